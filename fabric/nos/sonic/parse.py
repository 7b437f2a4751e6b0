"""A SONiC configuration → `DeviceQos`: what it does, SONiC's defaults applied, UNKNOWN where it cannot tell.

Reads whole configurations and fragments (a qos.json alone, without DEVICE_METADATA): a table that a fragment lacks says
nothing; a row or field that is not there in a table that is, has SONiC's default. Knows no render.
"""

from dataclasses import dataclass
from typing import Final

from fabric.nos.sonic import parse_buffers, parse_maps, parse_queues
from fabric.nos.sonic.config import load, tables
from fabric.nos.sonic.names import (
    BUFFER_PG,
    BUFFER_QUEUE,
    CABLE_LENGTH,
    DEVICE_METADATA,
    MTU_DEFAULT,
    PFC_WD,
    PORT,
    PORT_QOS_MAP,
    QUEUE,
)
from fabric.nos.sonic.reading import Reading
from fabric.nos.sonic.rows import NOT_PORTS, Fields, Slots, by_port, fields_of, slots
from fabric.qos import (
    UNKNOWN,
    DcbxMode,
    DeviceQos,
    DscpMap,
    Known,
    LinkPause,
    PortPfc,
    PortQos,
    PortWatchdog,
    Reference,
    WatchdogAction,
)
from fabric.tree import Tree
from fabric.units import natural_key

__all__ = ("parse", "parse_tree")

_PORTCHANNEL_MEMBER: Final = "PORTCHANNEL_MEMBER"


@dataclass(frozen=True, slots=True)
class _View:
    """The tables by port, each read once."""

    reading: Reading
    ports: dict[str, Fields]
    bindings: dict[str, Fields]
    queues: Slots
    groups: Slots
    egress: Slots
    watchdogs: dict[str, Fields]
    cables: dict[str, str]
    lags: dict[str, str]
    global_dscp: Known[DscpMap | None]
    polling_ms: Known[int | None]


def parse(text: str, *, device: str = "") -> DeviceQos:
    """Returns what the configuration `text` does.

    Args:
        text: nested config_db.json, or a flat `TABLE|key` dump.
        device: host name; the text's own when empty.

    Raises:
        FabricError: the text is no CONFIG_DB.
    """
    tree, duplicates = load(text)
    return parse_tree(tree, device=device, duplicates=duplicates)


def parse_tree(tree: Tree, *, device: str = "", duplicates: tuple[Reference, ...] = ()) -> DeviceQos:
    """Returns what the configuration of that tree does."""
    reading = Reading(tables(tree))
    view = _view(reading)
    about = fields_of(reading.tables.get(DEVICE_METADATA, {}).get("localhost", {}))
    ports = tuple(_port(view, name) for name in sorted(_names(view), key=natural_key))
    return DeviceQos(
        device=device or about.get("hostname", ""),
        nos="sonic",
        ports=ports,
        global_dscp_to_tc=view.global_dscp,
        watchdog_polling_ms=view.polling_ms,
        pfc_disabled_globally=False,  # CONFIG_DB has no such switch
        buffer_model=parse_buffers.buffer_model(reading),
        pools=parse_buffers.pools(reading),
        headroom_pool_bytes=parse_buffers.headroom_pool(reading),
        aqm_counters=parse_queues.aqm_counters(reading),
        undefined=tuple(reading.unresolved),
        duplicates=duplicates,
    )


def _view(reading: Reading) -> _View:
    source = reading.tables
    watchdog = source.get(PFC_WD, {} if reading.whole else None)
    polling: Known[int | None] = UNKNOWN
    if watchdog is not None:
        polling = reading.number(fields_of(watchdog.get("GLOBAL", {})), "POLL_INTERVAL", f"{PFC_WD}|GLOBAL")
    return _View(
        reading=reading,
        ports=by_port(source, PORT),
        bindings=by_port(source, PORT_QOS_MAP),
        queues=slots(source, QUEUE),
        groups=slots(source, BUFFER_PG),
        egress=slots(source, BUFFER_QUEUE),
        watchdogs=by_port(source, PFC_WD),
        cables={port: text for row in source.get(CABLE_LENGTH, {}).values() for port, text in fields_of(row).items()},
        lags={port: lag for lag, _, port in (key.partition("|") for key in source.get(_PORTCHANNEL_MEMBER, {}))},
        global_dscp=parse_maps.global_dscp_map(reading),
        polling_ms=polling,
    )


def _names(view: _View) -> set[str]:
    by_row = (view.ports, view.bindings, view.queues, view.groups, view.egress, view.watchdogs, view.cables)
    return {name for table in by_row for name in table} - NOT_PORTS


def _port(view: _View, name: str) -> PortQos:
    row = view.ports.get(name)
    binding = view.bindings.get(name, {})
    maps = parse_maps.port_maps(view.reading, name, binding, view.global_dscp)
    pfc = parse_maps.pfc(view.reading, name, binding, row)
    egress = parse_buffers.lossless_queues(view.reading, name, view.egress.get(name, {}))
    groups = _pfc_groups(pfc, maps.pfc_to_pg)
    return PortQos(
        name=name,
        speed_mbps=_number(view.reading, name, row, "speed", UNKNOWN),
        mtu_bytes=_number(view.reading, name, row, "mtu", MTU_DEFAULT),
        fec=UNKNOWN if row is None else row.get("fec"),
        cable_m=_cable(view, name),
        lag=view.lags.get(name),
        trust=maps.trust,
        dscp_to_tc=maps.dscp_to_tc,
        pcp_to_tc=maps.pcp_to_tc,
        tc_to_queue=maps.tc_to_queue,
        tc_to_pg=maps.tc_to_pg,
        pfc_to_queue=maps.pfc_to_queue,
        pfc_to_pg=maps.pfc_to_pg,
        rewrite=maps.rewrite,
        pfc=pfc,
        # CONFIG_DB cannot set 802.3x, and SAI's default is off (saiport.h, GLOBAL_FLOW_CONTROL_MODE): unconfirmed
        link_pause=LinkPause(rx=False, tx=False),
        queues=parse_queues.queues(view.reading, name, view.queues.get(name, {}), egress),
        priority_groups=parse_buffers.priority_groups(view.reading, name, view.groups.get(name, {}), groups),
        watchdog=_watchdog(view, name, binding),
        dcbx=DcbxMode.OFF,  # community SONiC has no DCBX (switches.md 1.1)
        lldp=_lldp(view.reading, name),
    )


def _number(reading: Reading, port: str, row: Fields | None, field: str, default: Known[int]) -> Known[int]:
    if row is None:
        return UNKNOWN
    value = reading.number(row, field, f"{PORT}|{port}")
    return default if value is None else value


def _cable(view: _View, port: str) -> Known[int | None]:
    text = view.cables.get(port)
    if text is None:
        return None if CABLE_LENGTH in view.reading.tables or view.reading.whole else UNKNOWN
    return view.reading.integer(text.removesuffix("m"), f"{CABLE_LENGTH}|{port}")


def _pfc_groups(pfc: PortPfc, mapping: Known[tuple[int | None, ...] | None]) -> frozenset[int]:
    if pfc.priorities is UNKNOWN:
        return frozenset()
    if not isinstance(mapping, tuple):  # no map: priority n pauses group n, as buffermgrd takes it
        return pfc.priorities
    targets = {priority: mapping[priority] for priority in pfc.priorities if priority < len(mapping)}
    return frozenset(priority if group is None else group for priority, group in targets.items())


def _watchdog(view: _View, port: str, binding: Fields) -> Known[PortWatchdog | None]:
    watched = parse_maps.priorities(view.reading, binding, "pfcwd_sw_enable", f"{PORT_QOS_MAP}|{port}")
    row = view.watchdogs.get(port)
    if row is None:
        never_started = PFC_WD in view.reading.tables or view.reading.whole
        if never_started or watched is None or watched == frozenset():  # pfcwd_sw_enable alone starts nothing
            return None
        return PortWatchdog(priorities=watched)
    # without pfcwd_sw_enable, branches before 2022 watch pfc_enable and later ones nothing: unconfirmed
    where = f"{PFC_WD}|{port}"
    return PortWatchdog(
        priorities=UNKNOWN if watched is None else watched,
        detection_ms=_or_unknown(view.reading.number(row, "detection_time", where)),
        restoration_ms=_or_unknown(view.reading.number(row, "restoration_time", where)),
        polling_ms=_or_unknown(view.polling_ms),
        action=_action(row),
    )


def _or_unknown(value: Known[int] | None) -> Known[int]:
    return UNKNOWN if value is None else value


def _action(row: Fields) -> Known[WatchdogAction]:
    return next((action for action in WatchdogAction if action.value == row.get("action")), UNKNOWN)


def _lldp(reading: Reading, port: str) -> Known[bool]:
    rows = (
        reading.tables.get("LLDP_PORT", {}).get(port, {}),
        reading.tables.get("LLDP", {}).get("GLOBAL", {}),
    )
    if any(row.get("enabled") == "false" for row in rows):
        return False
    state = reading.tables.get("FEATURE", {}).get("lldp", {}).get("state")
    return UNKNOWN if state is None else state in {"enabled", "always_enabled"}
