"""The board of an emulated switch: what a real one has in silicon, scaled to what two CPU cores can emulate.

A real leaf has 1 MB of shared buffer a port of 100 Gbit/s (Arista 7050X3 data sheet: up to 32 MB; a DCS-7050CX3-32S
has 32 such ports). Scaled with the rate to 100 Mbit/s that were less than a frame. So what the emulated buffer holds is
the lab's own choice, made by what decides whether a lossy class loses: the buffer against what the senders have in
flight. Soft-RoCE gives an interface at most 64 packets of one connection at a time (RXE_INFLIGHT_SKBS_PER_QP_HIGH of
Linux, drivers/infiniband/sw/rxe/rxe_param.h). One queue may take half of the buffer, as its alpha is 1: with
`FRAMES_PER_PORT` frames a port that is 72 frames on a switch of three ports, which one connection does not fill and an
incast of two does.

ECN thresholds stay what the configuration says, in bytes. Headroom comes from the configuration, or where the OS hides
it, from the plan; emulated links need less, as a pause takes effect at once.
"""

from dataclasses import replace
from typing import Final

from fabric.intent import Switch
from fabric.lab.wire import Platform
from fabric.nos import catalog
from fabric.plan.model import SwitchPlan
from fabric.qos import UNKNOWN, HeadroomOwner

__all__ = ("FRAMES_PER_PORT", "board_of")

FRAMES_PER_PORT: Final = 48  # the lab's own choice, see above
_FRAME_BYTES: Final = 4200  # a Soft-RoCE packet of the largest path MTU, 4096, with its headers
_XON_OFFSET_FRAMES: Final = 2  # the lab's own choice where the configuration has none: with 0 each frame pauses anew
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
        xon_offset_bytes=_XON_OFFSET_FRAMES * _FRAME_BYTES,
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
