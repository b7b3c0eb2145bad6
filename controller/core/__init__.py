"""Pure forwarding logic: events in, OpenFlow messages of our own out. No framework, no clock."""
