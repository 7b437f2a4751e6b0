"""Maps and their bindings: `PortQos` → map tables and PORT_QOS_MAP.

Maps are ours and named after their content, so that a stock map is never touched, ports are taken over one by
one, and a changed map is a new object that ports are moved to. A map of others that says the same stays bound.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from fabric.nos.sonic import standing
from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import BOUND_MAPS, DEVICE_METADATA, OWN_PREFIX, PORT_QOS_MAP
from fabric.nos.sonic.rows import Fields, fields_of
from fabric.qos import Aspect, DeviceQos, DscpRewrite, Known, PfcMode, PortQos, PortWatchdog, Trust
from fabric.tree import Path, Value

__all__ = ("bindings", "device_wide_map")

_TRUSTS_DSCP: Final = (Trust.DSCP, Trust.BOTH)
_TRUSTS_PCP: Final = (Trust.PCP, Trust.BOTH)
# qos_config.j2 renders PFC_PRIORITY_TO_PRIORITY_GROUP_MAP for these asic_types only: mellanox, barefoot
_PFC_TO_PG_PLATFORMS: Final = ("mlnx", "nvidia", "barefoot")
_PFC_TO_PG_ASICS: Final = ("spectrum", "spc", "mellanox", "nvidia", "tofino", "barefoot")


def bindings(qos: DeviceQos, running: Tables, asic: str, aspects: standing.Aspects) -> dict[Path, Value]:
    """Returns the map rows and the PORT_QOS_MAP row of every port of `qos`."""
    out: dict[Path, Value] = {}
    with_pg_map = _takes_pfc_to_pg(running, asic)
    bound = standing.raw_rows(running, PORT_QOS_MAP)
    for port in qos.ports:
        now, kept = bound.get(port.name, {}), aspects.get(port.name, frozenset())
        if Aspect.MAPS not in kept:
            out.update(_of_port(port, running, now, with_pg_map=with_pg_map))
        out.update(_priorities(port, now, kept))
    return out


def _of_port(port: PortQos, running: Tables, now: Fields, *, with_pg_map: bool) -> dict[Path, Value]:
    """Returns the maps of one port with their bindings; `now` is what it is bound to."""
    out: dict[Path, Value] = {}
    for field, entries in _maps(port, with_pg_map=with_pg_map or "pfc_to_pg_map" in now).items():
        stands = field in now and not _is_ours(now, field)
        if stands and standing.says_map(running, field, fields_of(now)[field], entries):
            out[PORT_QOS_MAP, port.name, field] = now[field]
        elif field != "pfc_to_pg_map" or with_pg_map:
            out.update(_bind(port.name, field, entries))
    return out


def _is_ours(now: Fields, field: str) -> bool:
    return fields_of(now)[field].startswith(OWN_PREFIX)


def _priorities(port: PortQos, now: Fields, kept: frozenset[Aspect]) -> dict[Path, Value]:
    watched = port.watchdog.priorities if isinstance(port.watchdog, PortWatchdog) else None
    paused = port.pfc.priorities if port.pfc.mode is PfcMode.ON else None
    wanted = (("pfc_enable", Aspect.PFC, paused), ("pfcwd_sw_enable", Aspect.WATCHDOG, watched))
    return {
        (PORT_QOS_MAP, port.name, field): _as_said(now.get(field), priorities)
        for field, aspect, priorities in wanted
        if aspect not in kept and isinstance(priorities, frozenset) and priorities
    }


def _as_said(now: str | None, priorities: frozenset[int]) -> str:
    """Returns the priorities as they are written when the same are meant: `4,3` stays."""
    parts = {part.strip() for part in now.split(",")} if now is not None else set()
    return now if now is not None and parts == {str(one) for one in priorities} else _joined(priorities)


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
