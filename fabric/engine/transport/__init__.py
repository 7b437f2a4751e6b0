"""Transports: how capsules and blocks travel. `base` is the one protocol; the rest satisfies it.

| module | holds |
|---|---|
| base, arenas, signal | the protocol, registered memory, the descriptor to wait on |
| driver | a host machine over a transport |
| memory | host and target in one process |
| tcp | NVMe/TCP, both sides; `tcp.server` is the target to run |
| rdma | NVMe/RDMA, the host's side; needs pyverbs and librdmacm when it is opened |
| block | a file or block device |
| service, storage, shape, faults | what stands behind a target's wire |

Threads: `block` alone, as many as its caller asked for. Nobody here reads a clock; `tcp.serve` is handed one.
"""
