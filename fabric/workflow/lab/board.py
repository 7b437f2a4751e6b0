"""The board of an emulated switch: what a real one has in silicon, scaled to what two CPU cores can emulate.

A real leaf has some 1 MB of shared buffer a port and 100 Gbit/s; the emulated machines send some 50 MB/s together.
What decides whether a lossy class loses is the buffer against what the senders have in flight. Soft-RoCE has at most 64
packets of 4 KiB in flight on each connection, so a shared buffer of `FRAMES_PER_PORT` frames a port overflows under an
incast of two connections, and holds one. ECN thresholds stay what the configuration says, in bytes. Headroom comes from
the configuration, or where the OS hides it, from the plan; emulated links need less, as a pause takes effect at once.
"""

from dataclasses import replace
from typing import Final

from fabric.intent import Switch
from fabric.lab.wire import Platform
from fabric.nos import catalog
from fabric.plan.model import SwitchPlan
from fabric.qos import UNKNOWN, HeadroomOwner

__all__ = ("FRAMES_PER_PORT", "board_of")

FRAMES_PER_PORT: Final = 48
_FRAME_BYTES: Final = 4200  # a Soft-RoCE packet of the largest path MTU, 4096, with its headers
_SPARE_HEADROOM_FRAMES: Final = 8  # where nobody knows: a pause takes effect after at most two frames here


def board_of(switch: Switch, plan: SwitchPlan | None, *, rate_bps: int) -> Platform:
    """Returns the board.

    Args:
        switch: its network OS and ports.
        plan: where its headroom stands; None for not planned.
        rate_bps: of every emulated link.
    """
    can = catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)
    shared = FRAMES_PER_PORT * len(switch.ports) * _FRAME_BYTES
    default = can.dscp_default_to_tc.value
    board = Platform(
        shared_bytes=shared,
        rate_bps=rate_bps,
        headroom_bytes=_headroom_bytes(plan),
        lossless_by_pfc=can.headroom_owner.value is HeadroomOwner.PLATFORM,
        quantum_bytes=2 * _FRAME_BYTES,
        queue_buffer_bytes=shared,
        marks_all_above_kmax=can.marks_all_above_kmax.value,
        mtu_overhead_bytes=can.mtu_overhead_bytes.value,
    )
    return board if default is None else replace(board, dscp_to_tc=default)


def _headroom_bytes(plan: SwitchPlan | None) -> int:
    rows = plan.headroom if plan else ()
    known = [row.headroom.xoff_bytes for row in rows if row.headroom.xoff_bytes is not UNKNOWN]
    return max(known, default=_SPARE_HEADROOM_FRAMES * _FRAME_BYTES)
