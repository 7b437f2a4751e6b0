"""`DeviceQos` as EOS configuration: own profiles, bound port by port; the device's maps and watchdog apart. Pure.

Names that come from outside are checked against the shape of an EOS name before they stand on a line, so that no
inventory can smuggle one in. Without `adopt` the watchdog's times stand in the profiles, so that ports can be taken
over one by one; the maps that EOS has only once are in the tree and named device-wide, for `diff` to hold back.
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import jinja2

from fabric.diff import IntendedConfig, Pattern
from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.eos.capabilities import DETECTION_RANGE_MS, MTU_MAX, POLLING_RANGE_MS, RESERVED_QUEUE, queue_word
from fabric.nos.eos.defaults import MTU_ROUTED
from fabric.nos.eos.parse import ALL_OFF, is_routed
from fabric.nos.eos.parse_watchdog import WATCHDOG
from fabric.nos.eos.sections import ETHERNET, Sections, sections
from fabric.nos.eos.text import tree
from fabric.nos.eos.views import (
    InterfaceView,
    ProfileView,
    TimerView,
    interface_view,
    maps_view,
    profile_view,
    timer_view,
)
from fabric.qos import UNKNOWN, DeviceQos, DscpRewrite, PortQos, PortWatchdog, Scheduler, SchedulerKind
from fabric.resources import data_path
from fabric.tree import Tree
from fabric.units import format_speed

__all__ = ("PROFILE_PREFIX", "device_timer", "outside_ports", "render", "watchdog_stands")

PROFILE_PREFIX: Final = "FABRICCTL-"
_MTU_MIN: Final = 68  # EOS User Manual, "mtu": 68 to 9214
_WATCHDOG_TIMES: Final = "(?:timeout|recovery-time|polling-interval)"


def render(qos: DeviceQos, context: RenderContext) -> IntendedConfig:
    """Returns what must stand in the configuration for the device to do `qos`.

    Raises:
        UnsupportedFeatureError: EOS cannot do it, or a name is no EOS name.
    """
    for port in qos.ports:
        _check(port)
    running = sections(context.running)
    timer = device_timer(qos, context)
    names, profiles = _profiles(qos, context, timer)
    interfaces = [interface_view(port, profile=names[port.name], mtu=_mtu(port, running)) for port in qos.ports]
    channels = _channels(qos, running, interfaces)
    text = "".join(
        (
            _filled("maps", maps=maps_view(qos)),
            _filled("watchdog", watchdog=timer) if timer is not None else "",
            "!\n",
            *(_filled("profile", profile=profile) for profile in profiles),
            *(_filled("interface", interface=one) for one in (*channels, *interfaces)),
        )
    )
    wide = _device_wide(qos, timer)
    return IntendedConfig(
        device=qos.device,
        nos="eos",
        tree=tree(text),
        owned=(*_owned([one.name for one in (*channels, *interfaces)]), *wide),
        device_wide=wide,
        text=text,
    )


def device_timer(qos: DeviceQos, context: RenderContext) -> TimerView | None:
    """Returns the watchdog's times that stand device-wide, None where each profile says its own.

    They do when device-wide settings were adopted and all watched ports agree.
    """
    watchdogs = [port.watchdog for port in qos.ports if isinstance(port.watchdog, PortWatchdog)]
    views = {timer_view(watchdog, port=qos.device) for watchdog in watchdogs}
    if not context.adopt or len(views) != 1 or any(watchdog.polling_ms is UNKNOWN for watchdog in watchdogs):
        return None
    return views.pop()


def watchdog_stands(running: Sections) -> bool:
    """Returns whether the device has a watchdog on every port that does not refuse it."""
    return f"{WATCHDOG} default timeout" in running.device


def outside_ports(running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
    """Returns the physical ports that `intended` does not name: device-wide settings are felt there too."""
    ours = {path[0].removeprefix("interface ") for path in intended.tree if path[0].startswith("interface ")}
    return tuple(name for name in sections(running).ports() if name not in ours)


def _profiles(
    qos: DeviceQos, context: RenderContext, timer: TimerView | None
) -> tuple[dict[str, str], tuple[ProfileView, ...]]:
    """Returns port → profile name, and one profile for each distinct setting of a speed."""
    stands = watchdog_stands(sections(context.running)) or timer is not None
    named: dict[tuple[str, ProfileView], str] = {}
    names: dict[str, str] = {}
    for port in qos.ports:
        view = profile_view(
            port,
            name="",
            word=queue_word(context.asic),
            device_watchdog=timer is not None,
            watchdog_stands=stands,
        )
        label = "ROCE" if port.speed_mbps is UNKNOWN else format_speed(port.speed_mbps)
        if (label, view) not in named:
            count = 1 + sum(1 for other, _ in named if other == label)
            named[label, view] = f"{PROFILE_PREFIX}{label}" + (f"-{count}" if count > 1 else "")
        names[port.name] = named[label, view]
    return names, tuple(replace(view, name=name) for (_, view), name in named.items())


def _channels(qos: DeviceQos, running: Sections, interfaces: Iterable[InterfaceView]) -> tuple[InterfaceView, ...]:
    """Returns the port channels of our ports: MTU and profile stand there too, for members take them from it."""
    channels: dict[str, InterfaceView] = {}
    for port, view in zip(qos.ports, interfaces, strict=True):
        channel = running.channel_of(port.name)
        if channel is None or channel not in running.interfaces:
            continue
        wanted = InterfaceView(name=channel, mtu=view.mtu, dcbx="", profile=view.profile)
        if channels.setdefault(channel, wanted) != wanted:
            raise UnsupportedFeatureError(
                "the members of a port channel must do the same", where=f"{qos.device}: {channel}", found=port.name
            )
    return tuple(channels.values())


def _mtu(port: PortQos, running: Sections) -> str:
    if port.mtu_bytes is UNKNOWN:
        return ""
    # EOS hides 1500 on a routed port, where it is the default
    is_default = port.mtu_bytes == MTU_ROUTED and is_routed(running, port.name)
    return "" if is_default else str(port.mtu_bytes)


def _owned(names: Iterable[str]) -> tuple[Pattern, ...]:
    interface = f"interface (?:{'|'.join(map(re.escape, names))})"
    keys = (
        "(?:l2 )?mtu",
        "dcbx mode",
        "service-profile",
        "service-policy type qos input",
        "qos trust",
        "priority-flow-control.*",
        "flowcontrol (?:receive|send)",
    )
    return (
        (interface, "|".join(f"(?:{key})" for key in keys)),
        (interface, r"(?:uc-)?tx-queue \d", "**"),
        (f"qos profile {PROFILE_PREFIX}.*", "**"),
    )


def _device_wide(qos: DeviceQos, timer: TimerView | None) -> tuple[Pattern, ...]:
    patterns: list[Pattern] = [
        ("qos map dscp", r"\d+"),
        ("qos map traffic-class to tx-queue", r"\d"),
        (re.escape(ALL_OFF),),
    ]
    rewrites = [port.rewrite for port in qos.ports]
    if UNKNOWN not in rewrites:
        patterns.append(("qos rewrite dscp",))
    if any(isinstance(rewrite, DscpRewrite) for rewrite in rewrites):
        patterns.append(("qos map traffic-class to dscp", r"\d"))
    if timer is not None:
        patterns.append((f"{WATCHDOG} (?:default {_WATCHDOG_TIMES}|action)",))
    return tuple(patterns)


def _check(port: PortQos) -> None:
    if not ETHERNET.fullmatch(port.name):
        raise UnsupportedFeatureError(
            "this is no EOS port name", found=repr(port.name), expected="Ethernet1, Ethernet3/1/1"
        )
    if port.mtu_bytes is not UNKNOWN and not _MTU_MIN <= port.mtu_bytes <= MTU_MAX:
        _refuse(port, "the MTU is out of EOS's range", f"{port.mtu_bytes} B", f"{_MTU_MIN}..{MTU_MAX} B")
    last = port.queue(RESERVED_QUEUE)
    if last is not None and (last.aqm is not None or last.scheduler not in {None, Scheduler(SchedulerKind.STRICT)}):
        _refuse(port, f"EOS keeps queue {RESERVED_QUEUE} for itself", str(last.scheduler or last.aqm), "no setting")
    if isinstance(port.watchdog, PortWatchdog):
        _check_watchdog(port, port.watchdog)


def _check_watchdog(port: PortQos, watchdog: PortWatchdog) -> None:
    times = (
        ("detection", watchdog.detection_ms, DETECTION_RANGE_MS),
        ("restoration", watchdog.restoration_ms, DETECTION_RANGE_MS),
        ("polling", watchdog.polling_ms, POLLING_RANGE_MS),
    )
    for name, value, (low, high) in times:
        if value is not UNKNOWN and not low <= value <= high:
            _refuse(port, f"the watchdog's {name} time is out of EOS's range", f"{value} ms", f"{low}..{high} ms")


def _refuse(port: PortQos, what: str, found: str, expected: str) -> None:
    raise UnsupportedFeatureError(what, where=port.name, found=found, expected=expected)


def _filled(name: str, **values: object) -> str:
    return _templates().get_template(f"{name}.j2").render(**values)


@functools.cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(  # noqa: S701  (a switch's configuration is no HTML; names are checked in _check)
        loader=jinja2.FileSystemLoader(data_path("templates", "eos")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
