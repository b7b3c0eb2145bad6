"""The one place that talks to the kernel: netlink, namespaces, eBPF, batched packet calls."""
