"""The three parts of a host: NICs, the kernel's target, connections.

Each module reads its part and returns the change that brings it about, with the way back. None changes a host.
"""
