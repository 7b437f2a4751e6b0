"""Hosts and targets: NIC settings, NVMe connections, the kernel's target, and how a host is reached."""
