"""Maps and their bindings: `PortQos` → map tables and PORT_QOS_MAP. Knows no parser.

Maps are ours and named after their content, so that a stock map is never touched, ports are taken over one by
one, and a changed map is a new object that ports are moved to.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import BOUND_MAPS, DEVICE_METADATA, OWN_PREFIX, PORT_QOS_MAP
from fabric.qos import DeviceQos, DscpRewrite, Known, PfcMode, PortQos, PortWatchdog, Trust
from fabric.tree import Path, Value

__all__ = ("bindings", "device_wide_map")

_TRUSTS_DSCP: Final = (Trust.DSCP, Trust.BOTH)
_TRUSTS_PCP: Final = (Trust.PCP, Trust.BOTH)
# qos_config.j2 renders PFC_PRIORITY_TO_PRIORITY_GROUP_MAP for these asic_types only: mellanox, barefoot
_PFC_TO_PG_PLATFORMS: Final = ("mlnx", "nvidia", "barefoot")
_PFC_TO_PG_ASICS: Final = ("spectrum", "spc", "mellanox", "nvidia", "tofino", "barefoot")


def bindings(qos: DeviceQos, running: Tables, asic: str) -> dict[Path, Value]:
    """Returns the map rows and the PORT_QOS_MAP row of every port of `qos`."""
    out: dict[Path, Value] = {}
    with_pg_map = _takes_pfc_to_pg(running, asic)
    for port in qos.ports:
        for field, entries in _maps(port, with_pg_map=with_pg_map).items():
            out.update(_bind(port.name, field, entries))
        if port.pfc.mode is PfcMode.ON and isinstance(port.pfc.priorities, frozenset) and port.pfc.priorities:
            out[PORT_QOS_MAP, port.name, "pfc_enable"] = _joined(port.pfc.priorities)
        watchdog = port.watchdog
        if isinstance(watchdog, PortWatchdog) and isinstance(watchdog.priorities, frozenset) and watchdog.priorities:
            out[PORT_QOS_MAP, port.name, "pfcwd_sw_enable"] = _joined(watchdog.priorities)
    return out


def device_wide_map(qos: DeviceQos) -> dict[Path, Value]:
    """Returns PORT_QOS_MAP|global and its map; nothing when the plan has no device-wide map."""
    entries = qos.global_dscp_to_tc
    return _bind("global", "dscp_to_tc_map", entries) if isinstance(entries, tuple) else {}


def _maps(port: PortQos, *, with_pg_map: bool) -> dict[str, Sequence[int | None]]:
    unsaid = not isinstance(port.trust, Trust)
    wanted: dict[str, Known[Sequence[int | None] | None]] = {
        "tc_to_queue_map": port.tc_to_queue,
        "tc_to_pg_map": port.tc_to_pg,
        "pfc_to_queue_map": port.pfc_to_queue,
        "tc_to_dscp_map": port.rewrite.tc_to_dscp if isinstance(port.rewrite, DscpRewrite) else None,
    }
    if unsaid or port.trust in _TRUSTS_DSCP:
        wanted["dscp_to_tc_map"] = port.dscp_to_tc
    if unsaid or port.trust in _TRUSTS_PCP:
        wanted["dot1p_to_tc_map"] = port.pcp_to_tc
    if with_pg_map:
        wanted["pfc_to_pg_map"] = port.pfc_to_pg
    return {field: entries for field, entries in wanted.items() if isinstance(entries, tuple)}


def _bind(port: str, field: str, entries: Sequence[int | None]) -> dict[Path, Value]:
    rows = {str(key): str(target) for key, target in enumerate(entries) if target is not None}
    if not rows:
        return {}
    content = ",".join(f"{key}:{target}" for key, target in rows.items())
    name = f"{OWN_PREFIX}_{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    out: dict[Path, Value] = {(BOUND_MAPS[field], name, key): target for key, target in rows.items()}
    out[PORT_QOS_MAP, port, field] = name
    return out


def _joined(priorities: frozenset[int]) -> str:
    return ",".join(str(priority) for priority in sorted(priorities))


def _takes_pfc_to_pg(running: Tables, asic: str) -> bool:
    platform = running.get(DEVICE_METADATA, {}).get("localhost", {}).get("platform")
    if isinstance(platform, str):
        return any(vendor in platform for vendor in _PFC_TO_PG_PLATFORMS)
    return asic.lower().startswith(_PFC_TO_PG_ASICS)
