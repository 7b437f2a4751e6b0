"""Files and block devices, a connected namespace among them: O_DIRECT, by threads pinned to the hardware queues' CPUs.

`BlockTransport` satisfies `Transport[BlockPost]`; `device` opens and describes what it reaches, `workers` do the calls.
"""

from fabric.engine.transport.block.device import BlockConfig, BlockDevice, hardware_queues, open_device
from fabric.engine.transport.block.transport import BlockOp, BlockPost, BlockTransport

__all__ = ("BlockConfig", "BlockDevice", "BlockOp", "BlockPost", "BlockTransport", "hardware_queues", "open_device")
