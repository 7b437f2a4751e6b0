"""`DeviceQos` as EOS configuration: own profiles, bound port by port; the device's maps and watchdog apart. Pure.

Names that come from outside are checked against the shape of an EOS name before they stand on a line, so that no
inventory can smuggle one in. Without `adopt` the watchdog's times stand in the profiles, so that ports can be taken
over one by one; the maps that EOS has only once are in the tree and named device-wide, for `diff` to hold back.
"""

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final

import jinja2

from fabric.diff import IntendedConfig, Pattern, matcher
from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.eos.capabilities import DETECTION_RANGE_MS, MTU_MAX, POLLING_RANGE_MS, RESERVED_QUEUE, queue_word
from fabric.nos.eos.defaults import MTU_ROUTED
from fabric.nos.eos.parse import ALL_OFF, is_routed, parse_tree
from fabric.nos.eos.parse_watchdog import WATCHDOG
from fabric.nos.eos.sections import ETHERNET, Sections, sections
from fabric.nos.eos.session import RULES
from fabric.nos.eos.standing import OWN_PREFIX, PART_KEYS, Part, Standing, described, standing
from fabric.nos.eos.text import tree
from fabric.nos.eos.views import (
    InterfaceView,
    ProfileView,
    TimerView,
    device_timer,
    interface_view,
    maps_view,
    profile_view,
)
from fabric.qos import UNKNOWN, DeviceQos, DscpRewrite, PortQos, PortWatchdog, Scheduler, SchedulerKind
from fabric.resources import data_path
from fabric.tree import Tree
from fabric.units import format_speed, natural_key

__all__ = ("PROFILE_PREFIX", "outside_ports", "render", "watchdog_stands")

PROFILE_PREFIX: Final = OWN_PREFIX
_MTU_MIN: Final = 68  # EOS User Manual, "mtu": 68 to 9214
_WATCHDOG_TIMES: Final = "(?:timeout|recovery-time|polling-interval)"


def render(qos: DeviceQos, context: RenderContext) -> IntendedConfig:
    """Returns what must stand in the configuration for the device to do `qos`.

    Raises:
        UnsupportedFeatureError: EOS cannot do it, or a name is no EOS name.
    """
    whole, running = qos, sections(context.running)
    seen = parse_tree(context.running, device=qos.device)
    qos = described(qos, context, seen)
    for port in qos.ports:
        _check(port)
    stays = standing(whole, qos, context, running, seen)
    timer = device_timer(qos, context)
    moving = replace(qos, ports=tuple(port for port in qos.ports if not stays.stays(Part.QOS, port.name)))
    kept = _kept_profiles(qos, context, running, stays)
    names, profiles = _profiles(moving, context, timer, kept)
    views = [_view(port, names.get(port.name, ""), running, stays) for port in qos.ports]
    channels = [one for one in _channels(qos, running, views, stays) if _says_something(one)]
    interfaces = [one for one in views if _says_something(one)]
    shared = _shared_channels(qos, running, stays)
    text = "".join(
        (
            _filled("maps", maps=maps_view(qos)) if not stays.has_maps else "",
            _filled("watchdog", watchdog=timer) if timer is not None else "",
            "!\n",
            *(_filled("profile", profile=profile) for profile in profiles),
            *(_filled("interface", interface=one) for one in (*channels, *interfaces)),
        )
    )
    wide = _device_wide(qos, timer, stays)
    ours = [*(port.name for port in qos.ports), *_own_channels(qos, running)]
    return IntendedConfig(
        device=qos.device,
        nos="eos",
        tree=tree(text).with_changes(stays.lines),
        owned=(*_owned(ours, kept, stays), *wide),
        device_wide=(*wide, *((re.escape(f"interface {one}"), "**") for one in shared)),
        text=text,
    )


def watchdog_stands(running: Sections) -> bool:
    """Returns whether the device has a watchdog on every port that does not refuse it."""
    return f"{WATCHDOG} default timeout" in running.device


def outside_ports(running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
    """Returns the physical ports outside the intent that feel what `intended` changes device-wide.

    A setting of the device is felt on all of them, one of a port channel on its other members.
    """
    found = sections(running)
    ours = {path[0].removeprefix("interface ") for path in intended.tree if path[0].startswith("interface ")}
    is_wide = matcher(intended.device_wide)
    wide = {
        path[0]
        for path in (*intended.tree, *running)
        if is_wide(path) and (path not in running or path not in intended.tree or running[path] != intended.tree[path])
    }
    of_device = any(not head.startswith("interface ") for head in wide)
    others = (name for name in found.ports() if name not in ours)
    return tuple(name for name in others if of_device or f"interface {found.channel_of(name)}" in wide)


def _profiles(
    qos: DeviceQos, context: RenderContext, timer: TimerView | None, kept: Mapping[str, Tree]
) -> tuple[dict[str, str], tuple[ProfileView, ...]]:
    """Returns port → profile name, and one profile for each distinct setting of a speed.

    A name of `kept` is given only to a profile that says just what stands there.
    """
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
            named[label, view] = _free_name(f"{PROFILE_PREFIX}{label}", view, set(named.values()), kept)
        names[port.name] = named[label, view]
    return names, tuple(replace(view, name=name) for (_, view), name in named.items())


def _free_name(stem: str, view: ProfileView, used: Collection[str], kept: Mapping[str, Tree]) -> str:
    """Returns a name not in use: that of a kept profile that says the same, so that nobody is bound anew, else new."""
    same = (name for name, lines in kept.items() if name not in used and _says(view, name, lines))
    numbered = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(chain(same, (name for name in numbered if name not in used and name not in kept)))


def _says(view: ProfileView, name: str, lines: Tree) -> bool:
    wanted = tree(_filled("profile", profile=replace(view, name=name)))
    return set(wanted) == set(lines) and all(RULES.same(path, value, lines[path]) for path, value in wanted.items())


def _kept_profiles(qos: DeviceQos, context: RenderContext, running: Sections, stays: Standing) -> dict[str, Tree]:
    """Returns the profiles of ours, with their lines, that a port is bound to which is foreign or stays."""
    ours = {port.name for port in qos.ports} | {running.channel_of(port.name) for port in qos.ports}
    if not context.adopt:
        ours -= set(_shared_channels(qos, running, None))
    bound = {one.text("service-profile") or "" for name, one in running.interfaces.items() if name not in ours}
    bound |= stays.profiles
    names = sorted((name for name in bound if name.startswith(PROFILE_PREFIX)), key=natural_key)
    lines = {name: f"qos profile {name}" for name in names}
    return {name: Tree({p: v for p, v in context.running.items() if p[0] == head}) for name, head in lines.items()}


def _own_channels(qos: DeviceQos, running: Sections) -> tuple[str, ...]:
    """Returns the port channels of our ports that have lines of their own."""
    channels = (running.channel_of(port.name) for port in qos.ports)
    return tuple(dict.fromkeys(one for one in channels if one is not None and one in running.interfaces))


def _shared_channels(qos: DeviceQos, running: Sections, stays: Standing | None) -> tuple[str, ...]:
    """Returns the port channels of our ports that have members outside the intent too: those feel their lines.

    One whose lines all stay is not among them: nobody feels what does not change.
    """
    ours = {port.name for port in qos.ports}
    others = {running.channel_of(name) for name in running.interfaces if name not in ours}
    shared = {channel for name in ours if (channel := running.channel_of(name)) and channel in others}
    quiet = set() if stays is None else {one for one in shared if all(stays.stays(part, one) for part in Part)}
    return tuple(sorted(shared - quiet))


def _view(port: PortQos, profile: str, running: Sections, stays: Standing) -> InterfaceView:
    view = interface_view(port, profile=profile, mtu=_mtu(port, running))
    return replace(
        view,
        mtu="" if stays.stays(Part.MTU, port.name) else view.mtu,
        dcbx="" if stays.stays(Part.DCBX, port.name) else view.dcbx,
        guaranteed=() if stays.stays(Part.QOS, port.name) else view.guaranteed,
    )


def _says_something(view: InterfaceView) -> bool:
    return view != InterfaceView(name=view.name, mtu="", dcbx="", profile="")


def _channels(
    qos: DeviceQos, running: Sections, views: Iterable[InterfaceView], stays: Standing
) -> tuple[InterfaceView, ...]:
    """Returns the port channels of our ports: MTU and profile stand there too, for members take them from it."""
    channels: dict[str, InterfaceView] = {}
    for port, view in zip(qos.ports, views, strict=True):
        channel = running.channel_of(port.name)
        if channel is None or channel not in running.interfaces:
            continue
        mtu = "" if stays.stays(Part.MTU, channel) else view.mtu
        wanted = InterfaceView(name=channel, mtu=mtu, dcbx="", profile=view.profile)
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


def _owned(names: Sequence[str], kept: Iterable[str], stays: Standing) -> tuple[Pattern, ...]:
    # what an interface outside the intent is bound to is not ours to change
    spared = "".join(f"(?!{re.escape(name)}$)" for name in kept)
    patterns: list[Pattern] = []
    for part, keys in PART_KEYS.items():
        moving = [name for name in names if not stays.stays(part, name)]
        interface = f"interface (?:{'|'.join(map(re.escape, moving))})"
        patterns += [(interface, keys)] if moving else []
        patterns += [(interface, r"(?:uc-)?tx-queue \d", "**")] if moving and part is Part.QOS else []
    return (*patterns, (f"qos profile {spared}{PROFILE_PREFIX}.*", "**"))


def _device_wide(qos: DeviceQos, timer: TimerView | None, stays: Standing) -> tuple[Pattern, ...]:
    patterns: list[Pattern] = [] if stays.has_pfc_off else [(re.escape(ALL_OFF),)]
    if not stays.has_maps:
        patterns += [("qos map dscp", r"\d+"), ("qos map traffic-class to tx-queue", r"\d")]
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
