"""PORT_QOS_MAP and the maps it binds → what arrives where. Knows no queue, buffer or render."""

from dataclasses import dataclass
from typing import Final

from fabric.nos.sonic.names import BOUND_MAPS, DSCP_TO_TC_MAP, PORT_QOS_MAP
from fabric.nos.sonic.reading import Reading
from fabric.nos.sonic.rows import Fields, fields_of
from fabric.qos import (
    DSCP_COUNT,
    PRIORITY_COUNT,
    UNKNOWN,
    DscpMap,
    DscpRewrite,
    Known,
    PfcMode,
    PortPfc,
    TcMap,
    Trust,
)

__all__ = ("PortMaps", "global_dscp_map", "pfc", "port_maps", "priorities")

_GLOBAL: Final = "global"
_PORT_PFC_ASYM_DEFAULT: Final = "off"  # sonic-port.yang, leaf pfc_asym


@dataclass(frozen=True, slots=True)
class PortMaps:
    """The maps of one port, as `PortQos` has them."""

    trust: Known[Trust]
    dscp_to_tc: Known[DscpMap | None]
    pcp_to_tc: Known[TcMap | None]
    tc_to_queue: Known[TcMap | None]
    tc_to_pg: Known[TcMap | None]
    pfc_to_queue: Known[TcMap | None]
    pfc_to_pg: Known[TcMap | None]
    rewrite: Known[DscpRewrite | None]


def port_maps(reading: Reading, port: str, row: Fields, device_wide: Known[DscpMap | None]) -> PortMaps:
    """Returns the maps that hold on `port`; without a DSCP map of its own it has the device-wide one.

    Unconfirmed on a device: that the switch-level map (SAI_SWITCH_ATTR_QOS_DSCP_TO_TC_MAP) holds on such a port.
    """
    dscp = _bound(reading, port, row, "dscp_to_tc_map", DSCP_COUNT) if "dscp_to_tc_map" in row else device_wide
    undecided = dscp is UNKNOWN and "dscp_to_tc_map" not in row
    pcp = _bound(reading, port, row, "dot1p_to_tc_map", PRIORITY_COUNT)
    rewrite = _bound(reading, port, row, "tc_to_dscp_map", PRIORITY_COUNT)
    return PortMaps(
        trust=UNKNOWN if undecided else _trust(dscp is not None, pcp is not None),
        dscp_to_tc=dscp,
        pcp_to_tc=pcp,
        tc_to_queue=_bound(reading, port, row, "tc_to_queue_map", PRIORITY_COUNT),
        tc_to_pg=_bound(reading, port, row, "tc_to_pg_map", PRIORITY_COUNT),
        pfc_to_queue=_bound(reading, port, row, "pfc_to_queue_map", PRIORITY_COUNT),
        pfc_to_pg=_bound(reading, port, row, "pfc_to_pg_map", PRIORITY_COUNT),
        rewrite=DscpRewrite(tc_to_dscp=rewrite) if isinstance(rewrite, tuple) else rewrite,
    )


def global_dscp_map(reading: Reading) -> Known[DscpMap | None]:
    """Returns the map of PORT_QOS_MAP|global, None without one, UNKNOWN when the text has no PORT_QOS_MAP."""
    table = reading.tables.get(PORT_QOS_MAP)
    if table is None:
        return UNKNOWN if DSCP_TO_TC_MAP in reading.tables and not reading.whole else None
    return _bound(reading, _GLOBAL, fields_of(table.get(_GLOBAL, {})), "dscp_to_tc_map", DSCP_COUNT)


def pfc(reading: Reading, port: str, row: Fields, port_row: Fields | None) -> PortPfc:
    """Returns the PFC of `port`; an absent or empty `pfc_enable` is off (sonic-port-qos-map.yang).

    Community SONiC has no DCBX: nothing is advertised (switches.md 1.1).
    """
    enabled = priorities(reading, row, "pfc_enable", f"{PORT_QOS_MAP}|{port}")
    on: Known[bool] = UNKNOWN if enabled is UNKNOWN else bool(enabled)
    mode: Known[PfcMode] = UNKNOWN if on is UNKNOWN else (PfcMode.ON if on else PfcMode.OFF)
    asymmetric: Known[bool] = UNKNOWN
    if port_row is not None:
        asymmetric = port_row.get("pfc_asym", _PORT_PFC_ASYM_DEFAULT) == "on"
    return PortPfc(
        mode=mode,
        priorities=frozenset() if enabled is None else enabled,
        rx=on,
        tx=on,
        asymmetric=asymmetric,
        send_tlv=False,
    )


def priorities(reading: Reading, row: Fields, field: str, where: str) -> Known[frozenset[int]] | None:
    """Returns the priorities of a field such as `3,4`; None when the field is absent."""
    text = row.get(field)
    if text is None:
        return None
    numbers = [reading.integer(part, f"{where}|{field}") for part in text.split(",") if part.strip()]
    known = frozenset(number for number in numbers if number is not UNKNOWN)
    return known if len(known) == len(set(numbers)) else UNKNOWN


def _trust(by_dscp: bool, by_pcp: bool) -> Trust:
    if by_dscp and by_pcp:
        return Trust.BOTH
    if by_dscp:
        return Trust.DSCP
    return Trust.PCP if by_pcp else Trust.NONE


def _bound(reading: Reading, port: str, row: Fields, field: str, count: int) -> Known[tuple[int | None, ...] | None]:
    name = row.get(field)
    if name is None:
        return None
    entries = reading.row(BOUND_MAPS[field], name, f"{PORT_QOS_MAP}|{port}")
    if entries is None:
        return UNKNOWN
    out: list[int | None] = [None] * count
    for key, value in entries.items():
        source = reading.integer(key, f"{BOUND_MAPS[field]}|{name}")
        target = reading.integer(value, f"{BOUND_MAPS[field]}|{name}|{key}")
        if source is not UNKNOWN and target is not UNKNOWN and 0 <= source < count:
            out[source] = target  # a TC beyond 7 exists on dual-ToR tunnel maps and is no priority
    return tuple(out)
