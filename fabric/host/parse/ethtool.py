"""`ethtool -S`, `-a` and `--show-priv-flags`. Knows no plan.

mlx5 lists the counters of a priority only while PFC is on for it, and those of the link only while 802.3x is on: a
line that is not there is UNKNOWN, never zero. Source: hosts.md 5.1; samples/linux/show/ethtool_*.
"""

import re
from typing import Final

from fabric.errors import HostError
from fabric.host.parse.text import PRIORITIES, document
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState, PauseCounters

__all__ = ("read_firmware_lldp", "read_pause", "read_pause_counters", "read_statistics")

_LINE: Final = re.compile(r"\s*([^\s:][^:]*?):\s*([0-9]{1,20})\s*")
# driver's counter of priority N: mlx5 (counts pause frames, xoff and xon apart by `transition`), ice, bnxt_en
_PFC_RX: Final = ("rx_prio{}_pause", "rx_priority_{}_xoff.nic", "rx_pfc_ena_frames_pri{}")
_PFC_TX: Final = ("tx_prio{}_pause", "tx_priority_{}_xoff.nic", "tx_pfc_ena_frames_pri{}")
_XON_RX: Final = ("rx_priority_{}_xon.nic",)
_XON_TX: Final = ("tx_priority_{}_xon.nic",)
_STORMS: Final = ("tx_pause_storm_warning_events", "tx_pause_storm_error_events")


def read_statistics(text: str) -> dict[str, int]:
    """Returns the counters of `ethtool -S` by name.

    Raises:
        HostError: there is none.
    """
    found = {m[1]: int(m[2]) for line in text.splitlines() if (m := _LINE.fullmatch(line))}
    if not found:
        raise HostError("ethtool -S shows no counter", found=repr(text.strip()[:60]))
    return found


def read_pause_counters(text: str, netdev: str = "") -> PauseCounters:
    """Returns pause frames by priority and of the whole link from `ethtool -S`."""
    counters = read_statistics(text)
    mlx5_link = "rx_global_pause" in counters or "tx_global_pause" in counters
    return PauseCounters(
        netdev,
        pfc_rx_xoff=_by_priority(counters, _PFC_RX),
        pfc_tx_xoff=_by_priority(counters, _PFC_TX),
        pfc_rx_xon=_by_priority(counters, _XON_RX),
        pfc_tx_xon=_by_priority(counters, _XON_TX),
        link_pause=True if mlx5_link else UNKNOWN,
        link_rx_pause=_first(counters, "rx_global_pause", "link_xoff_rx.nic"),
        link_tx_pause=_first(counters, "tx_global_pause", "link_xoff_tx.nic"),
        storm_events=sum(counters[name] for name in _STORMS) if set(_STORMS) <= set(counters) else UNKNOWN,
    )


def read_pause(text: str, netdev: str = "") -> NicState:
    """Returns whether 802.3x pause is on, from `ethtool -a`, JSON or text; unconfirmed: no sample of either.

    Raises:
        HostError: the text shows neither direction.
    """
    if text.lstrip().startswith("["):
        data = document(text, "ethtool --json -a")
        first = data[0] if data and isinstance(data[0], dict) else {}
        rx, tx = first.get("rx"), first.get("tx")
    else:
        words = dict(re.findall(r"(?m)^(RX|TX):\s*(on|off)\s*$", text))
        rx, tx = (None if way not in words else words[way] == "on" for way in ("RX", "TX"))
    if not isinstance(rx, bool) or not isinstance(tx, bool):
        raise HostError("ethtool -a shows no pause setting", found=repr(text.strip()[:60]))
    return NicState(netdev, global_pause_rx=rx, global_pause_tx=tx)


def read_firmware_lldp(text: str, netdev: str = "") -> NicState:
    """Returns whether the NIC's own LLDP agent runs, from `ethtool --show-priv-flags` of ice; unconfirmed: no sample.

    Raises:
        HostError: the driver has no such flag.
    """
    found = re.search(r"(?m)^fw-lldp-agent\s*:\s*(on|off)\s*$", text)
    if found is None:
        raise HostError("the driver has no flag fw-lldp-agent", found=repr(text.strip()[:60]))
    return NicState(netdev, firmware_lldp=found[1] == "on")


def _by_priority(counters: dict[str, int], names: tuple[str, ...]) -> Known[tuple[Known[int], ...]]:
    found = tuple(_first(counters, *(name.format(index) for name in names)) for index in range(PRIORITIES))
    return UNKNOWN if all(one is UNKNOWN for one in found) else found


def _first(counters: dict[str, int], *names: str) -> Known[int]:
    return next((counters[name] for name in names if name in counters), UNKNOWN)
