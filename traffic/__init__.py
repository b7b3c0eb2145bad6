"""What the hosts send: workloads, transports, the NIC engine, probes and metrics."""
