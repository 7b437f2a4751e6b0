"""A fabric without VMs that really drops, pauses and marks, with RDMA end points that count as drivers do.

Written from hosts.md 5.1 and 5.2, apart from `fabric.verify`: what is judged here does not see how it was planted.
"""
