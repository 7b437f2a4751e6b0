"""What EOS can do, with sources; which word its queues go by on an ASIC. Data.

Source: switches.md 0, 1.4 and 5.4, which cite the public EOS RoCE guide, the EOS manual and PyAVD's schema. What is
only remembered there is unconfirmed here.
"""

from typing import Final

from fabric.nos.eos.defaults import DSCP_TO_TC
from fabric.nos.eos.sections import ETHERNET
from fabric.qos import Capabilities, CommitConfirm, Fact, HeadroomOwner

__all__ = ("DETECTION_RANGE_MS", "MTU_MAX", "POLLING_RANGE_MS", "RESERVED_QUEUE", "capabilities", "queue_word")

_GUIDE: Final = "switches.md 1.4: EOS RoCE guide, citing the EOS manual"

DETECTION_RANGE_MS: Final = (10, 60_000)  # switches.md 1.4: timeout and recovery 0.01..60 s
POLLING_RANGE_MS: Final = (5, 30_000)  # switches.md 1.4: polling 0.005..30 s
MTU_MAX: Final = 9214  # switches.md 0
RESERVED_QUEUE: Final = 7  # switches.md 1.4

# switches.md 1.4: `tx-queue` on Jericho and Arad, `uc-tx-queue` on Trident and Tomahawk
_UNIFIED_QUEUE_ASICS: Final = ("jericho", "arad", "qumran")  # Qumran is of the Jericho family (unconfirmed)


def queue_word(asic: str) -> str:
    """Returns how a unicast queue is called in a profile: `tx-queue` or `uc-tx-queue`."""
    return "tx-queue" if asic.lower().startswith(_UNIFIED_QUEUE_ASICS) else "uc-tx-queue"


def capabilities(*, asic: str = "", version: str = "") -> Capabilities:
    """Returns what EOS can do; no fact here differs by ASIC or release, so that both may stay empty."""
    del asic, version
    return Capabilities(
        nos="eos",
        mtu_max_bytes=Fact(MTU_MAX, "switches.md 0: EOS max 9214"),
        mtu_overhead_bytes=Fact(
            22, "samples/eos/show/lldp_neighbors_detail: frame of 9236 B at MTU 9214", unconfirmed=True
        ),
        lossless_priorities_max=Fact(2, "switches.md 4.3 row 29: many XGS two", unconfirmed=True),
        threshold_quantum_bytes=Fact(1, "PyAVD schema qos_profiles: the unit `bytes`"),
        watchdog_timer_range_ms=Fact(DETECTION_RANGE_MS, _GUIDE),
        watchdog_polling_range_ms=Fact(POLLING_RANGE_MS, _GUIDE),
        cnp_queue=Fact(6, "switches.md 0: 6 on EOS"),
        reserved_queues=Fact((RESERVED_QUEUE,), _GUIDE),
        marks_all_above_kmax=Fact(False, "switches.md 5.5: EOS stays at max-mark-probability", unconfirmed=True),
        dscp_map_is_device_wide=Fact(True, _GUIDE),
        dscp_default_to_tc=Fact(DSCP_TO_TC, "switches.md 0: EOS default map, public EOS RoCE guide"),
        commit_confirm=Fact(CommitConfirm.NATIVE, "switches.md 1.9; napalm/eos/eos.py: commit timer"),
        headroom_owner=Fact(HeadroomOwner.PLATFORM, _GUIDE, unconfirmed=True),
        cable_lengths_m=Fact((), "EOS is not told a cable length", unconfirmed=True),
        watchdog_polls_per_timer=Fact(2, _GUIDE),
        watchdog_restoration_range_ms=Fact(DETECTION_RANGE_MS, _GUIDE),
        watchdog_actions=Fact(("drop", "alert"), "PyAVD schema: drop, notify-only"),
        port_names=Fact((ETHERNET.pattern, "Ethernet1, Ethernet3/1"), _GUIDE),
        dcbx_modes=Fact(("off", "ieee", "cee"), "switches.md 1.4 has ieee; cee is remembered", unconfirmed=True),
    )
