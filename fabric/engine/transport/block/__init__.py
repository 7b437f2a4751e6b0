"""Files and block devices, a connected namespace among them: by io_uring or by pinned threads.

`BlockTransport` satisfies `Transport[BlockPost]`; `device` opens and describes what it reaches. A `Carrier` of `job`
carries out posts, and `carriers` chooses it: `core` with `core.c`, or `workers` in Python alone.
"""

from fabric.engine.transport.block.device import BlockConfig, BlockDevice, hardware_queues, open_device
from fabric.engine.transport.block.job import By, Runs
from fabric.engine.transport.block.transport import BlockOp, BlockPost, BlockTransport

__all__ = (
    "BlockConfig",
    "BlockDevice",
    "BlockOp",
    "BlockPost",
    "BlockTransport",
    "By",
    "Runs",
    "hardware_queues",
    "open_device",
)
