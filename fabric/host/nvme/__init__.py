"""NVMe over RDMA on Linux: what a host connects to and how, what a target publishes, and who the host is."""
