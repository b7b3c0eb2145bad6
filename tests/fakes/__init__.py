"""Stand-ins for switches and networks that need no root; each has tests of its own."""
