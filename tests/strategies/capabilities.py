"""Two `Capabilities` for tests of the planner, by hand: its tests must not depend on a dialect."""

from dataclasses import replace
from typing import Final

from fabric.intent.model import Switch
from fabric.qos import Capabilities, CommitConfirm, Fact, HeadroomOwner

__all__ = ("EOS_LIKE", "SONIC_LIKE", "capabilities_of")

_SOURCE: Final = "test"
_EOS_MAP: Final = tuple((1, 0, 2, 3, 4, 5, 6, 7)[dscp // 8] for dscp in range(64))

SONIC_LIKE: Final = Capabilities(
    nos="sonic",
    mtu_max_bytes=Fact(9216, _SOURCE),
    mtu_overhead_bytes=Fact(22, _SOURCE),
    lossless_priorities_max=Fact(2, _SOURCE),
    threshold_quantum_bytes=Fact(1, _SOURCE),
    watchdog_timer_range_ms=Fact((100, 5000), _SOURCE),
    watchdog_polling_range_ms=Fact((100, 1000), _SOURCE),
    cnp_queue=Fact(6, _SOURCE),
    reserved_queues=Fact((), _SOURCE),
    marks_all_above_kmax=Fact(value=True, source=_SOURCE),
    dscp_map_is_device_wide=Fact(value=False, source=_SOURCE),
    dscp_default_to_tc=Fact(None, _SOURCE),
    commit_confirm=Fact(CommitConfirm.DEADMAN, _SOURCE),
    headroom_owner=Fact(HeadroomOwner.NOS, _SOURCE),
    cable_lengths_m=Fact((), _SOURCE),
    watchdog_polls_per_timer=Fact(1, _SOURCE),
    watchdog_restoration_range_ms=Fact((100, 60_000), _SOURCE),
    watchdog_actions=Fact(("drop", "forward", "alert"), _SOURCE),
    dcbx_modes=Fact(("off",), _SOURCE),
)
EOS_LIKE: Final = replace(
    SONIC_LIKE,
    nos="eos",
    mtu_max_bytes=Fact(9214, _SOURCE),
    watchdog_timer_range_ms=Fact((10, 60_000), _SOURCE),
    watchdog_polling_range_ms=Fact((5, 30_000), _SOURCE),
    reserved_queues=Fact((7,), _SOURCE),
    marks_all_above_kmax=Fact(value=False, source=_SOURCE, unconfirmed=True),
    dscp_map_is_device_wide=Fact(value=True, source=_SOURCE),
    dscp_default_to_tc=Fact(_EOS_MAP, _SOURCE),
    commit_confirm=Fact(CommitConfirm.NATIVE, _SOURCE),
    headroom_owner=Fact(HeadroomOwner.PLATFORM, _SOURCE),
    watchdog_polls_per_timer=Fact(2, _SOURCE),
    watchdog_restoration_range_ms=Fact((10, 60_000), _SOURCE),
    watchdog_actions=Fact(("drop", "alert"), _SOURCE),
    dcbx_modes=Fact(("off", "ieee", "cee"), _SOURCE),
)


def capabilities_of(switch: Switch) -> Capabilities:
    """Returns the one that is like the switch's network OS."""
    return {"sonic": SONIC_LIKE, "eos": EOS_LIKE}[switch.nos]
