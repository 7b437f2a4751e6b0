"""NVMe/RDMA over pyverbs and librdmacm: `RdmaTransport` is the host's side. A target is Linux nvmet, or SPDK.

| module | holds |
|---|---|
| config, address, wording | how to connect; socket addresses; errors in words |
| layouts, ports | C structures; what is needed of a connection manager and an adapter |
| cm, verbs | librdmacm by ctypes, pyverbs: nothing else here touches either |
| ring, connection | the buffers and requests of a queue; its life |
| transport | all of them |
"""

from fabric.engine.transport.rdma.config import RdmaConfig
from fabric.engine.transport.rdma.transport import RdmaTransport

__all__ = ("RdmaConfig", "RdmaTransport")
