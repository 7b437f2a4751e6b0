"""Bytes to values and back: every NVMe over Fabrics structure that the two roles exchange. No state, no time.

A parser takes at least the bytes of its structure and ignores what follows: the RDMA connection manager hands over
its whole area, zero padded (libfabric issue 3490). What cannot be read raises `RemoteProtocolError` and nothing else.

| module | structures | source |
|---|---|---|
| cm | private data of the RDMA connection manager | RDMA transport 1.0, figures 8-10; Linux nvme-rdma.h |
| sgl, command, completion | SGL descriptor, SQE, CQE | NVMe base 1.4 section 4; SPDK nvme_spec.h |
| fabrics | Connect, Property Get, Property Set | NVMe-oF 1.1 section 3; SPDK nvmf_spec.h |
| admin, io | admin and NVM commands | NVMe base 1.4 sections 5 and 6 |
| registers | CAP, CC, CSTS | NVMe base 1.4 section 3.1 |
| identify, logs, events | data pages, events | NVMe base 1.4 sections 5.2, 5.14, 5.15; NVMe-oF 1.1 section 5 |
| status | status codes, and what a host does on each | NVMe base 1.4 section 4.6 |
"""
