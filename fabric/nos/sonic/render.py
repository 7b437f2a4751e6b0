"""`DeviceQos` → what must stand in CONFIG_DB, and what of it is ours. Knows no parser.

Only ports of the intent are touched. Owned are their QoS bindings, queues, watchdog, cable length and buffers, and
every object whose name starts with FABRICCTL; an object of ours that a port outside the intent still refers to stays.
Device-wide are PORT_QOS_MAP|global, the polling interval and the stock WRED profile, as far as other ports feel them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from fabric.diff import IntendedConfig, Pattern, matcher
from fabric.nos.base import RenderContext
from fabric.nos.sonic import placing, references, render_buffers, render_maps, render_queues, standing
from fabric.nos.sonic.config import Tables, dump, tables
from fabric.nos.sonic.names import (
    BUFFER_PG,
    BUFFER_QUEUE,
    CABLE_LENGTH,
    MTU_DEFAULT,
    OWN_PREFIX,
    OWN_TABLES,
    PFC_WD,
    PORT,
    PORT_QOS_MAP,
    QUEUE,
    STOCK_WRED,
    WRED_PROFILE,
)
from fabric.nos.sonic.outside import feels_polling, feels_wred
from fabric.nos.sonic.support import require
from fabric.qos import Aspect, DeviceQos, Known, PortQos, PortWatchdog
from fabric.qos.keeping import by_port
from fabric.tree import Path, Tree, Value

__all__ = ("render",)

_CABLE_MAP: Final = "AZURE"  # buffers_config.j2; the name that buffermgrd's users expect
_HISTORY: Final = "pfc_stat_history"


def render(qos: DeviceQos, context: RenderContext) -> IntendedConfig:
    """Returns the CONFIG_DB paths that make the ports of `qos` do what it says.

    Raises:
        UnsupportedFeatureError: CONFIG_DB has no words for something in it.
        PlanError: the device lacks one of its ports, or other ports forbid a device-wide setting.
    """
    running = tables(context.running)
    qos = standing.described(qos, context)
    aspects = by_port(context.kept)
    require(qos, running, adopt=context.adopt)
    ports = tuple(port.name for port in qos.ports)
    stock_wred = render_queues.needs_stock_wred(context.version) and not context.install
    groups, grouped = render_buffers.groups(qos, running, aspects)
    wanted: dict[Path, Value] = {
        **placing.split(running, ports),
        **_port_fields(qos, running, aspects),
        **render_maps.bindings(qos, running, context.asic, aspects),
        **(render_maps.device_wide_map(qos) if context.adopt else {}),
        **render_queues.queues(qos, running, aspects, stock_wred=stock_wred),
        **groups,
        **render_buffers.egress(qos, running, aspects),
        **_cables(qos, running, aspects),
        **_watchdogs(qos, running, aspects),
        **standing.kept_rows(running, {port: aspects.get(port, frozenset()) for port in ports}),
        **standing.left_groups(running, (port for port in ports if port not in grouped)),
    }
    wanted = placing.as_written(running, wanted, ports)
    owned = _owned(running, ports, grouped, _cabled(qos, aspects))
    wanted |= _still_referred(context.running, wanted, owned)
    tree = Tree(references.as_device_writes(running, wanted))
    return IntendedConfig(
        device=qos.device,
        nos="sonic",
        tree=tree,
        owned=owned,
        device_wide=_device_wide(running, tree, ports),
        text=dump(tree.to_nested()),
    )


def _port_fields(qos: DeviceQos, running: Tables, aspects: standing.Aspects) -> dict[Path, Value]:
    out: dict[Path, Value] = {}
    for port in qos.ports:
        kept = aspects.get(port.name, frozenset())
        if isinstance(port.mtu_bytes, int) and Aspect.MTU not in kept and not _is_default_mtu(port, running):
            out[PORT, port.name, "mtu"] = str(port.mtu_bytes)
        now = running.get(PORT, {}).get(port.name, {}).get("pfc_asym")
        if isinstance(port.pfc.asymmetric, bool) and (port.pfc.asymmetric or now is not None):
            # absent is off (sonic-port.yang): a port that never said it is left as it is
            out[PORT, port.name, "pfc_asym"] = "on" if port.pfc.asymmetric else "off"
    return out


def _is_default_mtu(port: PortQos, running: Tables) -> bool:
    """Returns whether the port has the wanted MTU by default, so that no row need say it."""
    row = running.get(PORT, {}).get(port.name)
    return row is not None and "mtu" not in row and port.mtu_bytes == MTU_DEFAULT


def _cabled(qos: DeviceQos, aspects: standing.Aspects) -> list[str]:
    """Returns the ports whose cable length is ours to say."""
    kept = {port for port, parts in aspects.items() if Aspect.CABLE in parts}
    return [port.name for port in qos.ports if isinstance(port.cable_m, int) and port.name not in kept]


def _cables(qos: DeviceQos, running: Tables, aspects: standing.Aspects) -> dict[Path, Value]:
    maps = running.get(CABLE_LENGTH, {})
    default = next(iter(maps), _CABLE_MAP)
    out: dict[Path, Value] = {}
    cabled = set(_cabled(qos, aspects))
    for port in qos.ports:
        if port.name in cabled:
            name = next((name for name, row in maps.items() if port.name in row), default)
            out[CABLE_LENGTH, name, port.name] = f"{port.cable_m}m"
    return out


def _watchdogs(qos: DeviceQos, running: Tables, aspects: standing.Aspects) -> dict[Path, Value]:
    out: dict[Path, Value] = {}
    for port in qos.ports:
        watchdog = port.watchdog
        if not isinstance(watchdog, PortWatchdog) or not isinstance(watchdog.priorities, frozenset):
            continue
        if not watchdog.priorities or Aspect.WATCHDOG in aspects.get(port.name, frozenset()):
            continue
        settings: dict[str, Known[object]] = {
            "action": watchdog.action,
            "detection_time": watchdog.detection_ms,
            "restoration_time": watchdog.restoration_ms,
        }
        row = {field: str(value) for field, value in settings.items() if isinstance(value, int | str)}
        history = running.get(PFC_WD, {}).get(port.name, {}).get(_HISTORY)
        if isinstance(history, str):
            row[_HISTORY] = history
        out.update({(PFC_WD, port.name, field): value for field, value in row.items()})
    if out and isinstance(qos.watchdog_polling_ms, int):
        out[PFC_WD, "GLOBAL", "POLL_INTERVAL"] = str(qos.watchdog_polling_ms)
    return out


def _owned(
    running: Tables, ports: tuple[str, ...], grouped: tuple[str, ...], cabled: Iterable[str]
) -> tuple[Pattern, ...]:
    ours, groups, cables = (_any_of(names) for names in (ports, grouped, cabled))
    queues = f"{QUEUE}|{BUFFER_QUEUE}"  # few patterns: each is tried on every path of the device
    patterns: list[Pattern] = [
        (PORT_QOS_MAP, ours, rf"(?!{placing.PORT_SHAPER}$).*"),
        (PFC_WD, ours, ".*"),
        (CABLE_LENGTH, ".*", cables),
        (queues, rf"{ours}\|.*", "**"),
        (BUFFER_PG, rf"{groups}\|.*", "**"),
        ("|".join(OWN_TABLES), f"{OWN_PREFIX}.*", ".*"),
    ]
    for table in (PORT_QOS_MAP, PFC_WD, *placing.SLOT_TABLES):
        patterns += [(table, re.escape(key), ".*") for key in placing.joined_keys(running, table, ports)]
    return tuple(patterns)


def _any_of(names: Iterable[str]) -> str:
    escaped = "|".join(re.escape(name) for name in names)
    return f"(?:{escaped})" if escaped else r"(?!)"  # no port: matches nothing


def _still_referred(running: Tree, wanted: Mapping[Path, Value], owned: Iterable[Pattern]) -> dict[Path, Value]:
    """Returns the rows of our own objects that what stays on the device still refers to."""
    is_owned = matcher(owned)
    staying = {path: value for path, value in running.items() if _names_ours(path, value) and not is_owned(path)}
    staying |= {path: value for path, value in wanted.items() if _names_ours(path, value)}
    objects = {references.target_of(path, value) for path, value in staying.items()}
    return {path: value for path, value in running.items() if path[:2] in objects and path not in wanted}


def _names_ours(path: Path, value: Value) -> bool:
    target = references.target_of(path, value)
    return target is not None and target[1].startswith(OWN_PREFIX)


def _device_wide(running: Tables, tree: Tree, ports: tuple[str, ...]) -> tuple[Pattern, ...]:
    out: list[Pattern] = [(PORT_QOS_MAP, "global", ".*")]
    if feels_polling(running, ports):
        out.append((PFC_WD, "GLOBAL", ".*"))
        out += _bound_to_polling(running, tree, ports)
    if feels_wred(running, ports):
        out.append((WRED_PROFILE, STOCK_WRED, ".*"))
    return tuple(out)


def _bound_to_polling(running: Tables, tree: Tree, ports: tuple[str, ...]) -> list[Pattern]:
    """Returns the watchdog rows that the present polling interval forbids: they wait for it.

    Source: sonic-pfcwd.yang: detection_time and restoration_time are at least POLL_INTERVAL.
    """
    now = running.get(PFC_WD, {}).get("GLOBAL", {}).get("POLL_INTERVAL")
    if not isinstance(now, str) or not now.isdigit():
        return []
    times = [
        value
        for (table, key, field), value in ((path, value) for path, value in tree.items() if len(path) == 3)
        if table == PFC_WD and key in ports and field in {"detection_time", "restoration_time"}
    ]
    too_short = any(isinstance(value, str) and int(value) < int(now) for value in times)
    return [(PFC_WD, _any_of(ports), ".*")] if too_short else []
