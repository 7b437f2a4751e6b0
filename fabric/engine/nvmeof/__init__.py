"""NVMe over Fabrics without I/O, for both roles: bytes, completions and `now` go in; commands and events come out.

It imports no socket, clock, thread or random source.
"""
