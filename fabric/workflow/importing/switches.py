"""One running configuration to a `Switch` whose plan changes nothing there, and what it could not express. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fabric.intent.fields import LONGEST_CABLE_M, SPEEDS, TEXT
from fabric.intent.model import Endpoint, PortRole, RocePolicy, Switch, SwitchPort, SwitchRole
from fabric.nos import Nos, catalog
from fabric.nos.base import Identity
from fabric.qos import ALL_ASPECTS, UNKNOWN, DeviceQos, PortQos
from fabric.tree import Tree
from fabric.units import format_speed, natural_key
from fabric.workflow.importing.keeping import find_keeps, undefined, unexpressed
from fabric.workflow.importing.model import Config, ImportOptions, ImportRefusedError, Unexpressed
from fabric.workflow.importing.pins import is_lossless, pinned_mtu, policy_of
from fabric.workflow.importing.trial import Trial, with_keeps

__all__ = ("Cable", "ReadSwitch", "described", "read_switch")

_ASSUMED_MBPS: Final = 100_000
_FECS: Final = frozenset({"rs", "fc", "none"})
_ROLES: Final = (("superspine", SwitchRole.SUPERSPINE), ("spine", SwitchRole.SPINE))


@dataclass(frozen=True, slots=True)
class ReadSwitch:
    """A configuration that was read.

    Attributes:
        qos: what it does.
        ports: the physical ports, natural order.
    """

    name: str
    nos: Nos
    running: Tree
    qos: DeviceQos
    identity: Identity
    ports: tuple[PortQos, ...]


@dataclass(frozen=True, slots=True)
class Cable:
    """What is known of the cable of one port.

    Attributes:
        peer: the far end where it is of an imported device. told_m: its length as somebody listed it.
        speed_mbps: as somebody listed it, or as the far end's configuration says.
    """

    peer: Endpoint | None = None
    told_m: int | None = None
    speed_mbps: int | None = None


def read_switch(name: str, config: Config) -> ReadSwitch:
    """Returns the configuration of the device `name`.

    Raises:
        FabricError: the text is not of that network OS, or has no port.
    """
    nos = catalog.get(config.nos)
    running = nos.tree(config.text)
    qos = nos.parse(config.text, device=name)
    pattern = nos.capabilities().port_names.value
    ports = tuple(sorted((port for port in qos.ports if _is_port(port.name, pattern[0])), key=_by_name))
    if not ports:
        raise ImportRefusedError(
            "the configuration has no physical port",
            where=name,
            expected=f"ports such as {pattern[1]}",
            remedy="Give the whole running configuration, not a fragment.",
        )
    return ReadSwitch(name, nos, running, qos, nos.identity(running, config.text), ports)


def _is_port(name: str, pattern: str) -> bool:
    import re

    return re.fullmatch(pattern, name) is not None


def _by_name(port: PortQos) -> tuple[tuple[int, int | str], ...]:
    return natural_key(port.name)


def described(
    read: ReadSwitch, cables: dict[str, Cable], options: ImportOptions, assume: Callable[[str], None]
) -> tuple[Switch, tuple[Unexpressed, ...]]:
    """Returns the switch, and what the intent has no words for.

    Args:
        read: its configuration.
        cables: port → its cable, of the ports that are cabled to an imported device.
        options: what nobody can read off it.
        assume: takes what was assumed, in words.

    Raises:
        FabricError: nothing that an inventory can say leaves the device as it is.
    """
    speeds = _speeds(read, cables, options, assume)
    draft = _draft(read, cables, speeds, options, assume)
    trial = Trial(draft, read.nos, read.running)
    quiet = [port.name for port in read.ports if port.name in speeds and not is_lossless(port)]
    fixed = dict.fromkeys(quiet, ALL_ASPECTS)
    keeps = find_keeps(trial, fixed)
    left = trial.of(keeps)
    if not left.empty:
        raise ImportRefusedError(
            "no inventory leaves this configuration as it is",
            where=read.name,
            found=str(left.error) if left.error is not None else f"{len(left.changes)} changes with everything kept",
        )
    told = list(unexpressed(trial, keeps, fixed))
    if quiet:
        told.append(undefined(trial, keeps, quiet, all_ports=len(quiet) == len(speeds)))
    return with_keeps(draft, keeps), (*told, *_device_wide(read))


def _device_wide(read: ReadSwitch) -> tuple[Unexpressed, ...]:
    """Returns what is wrong with the text itself: names without an object, keys given twice."""
    out = [
        Unexpressed(
            read.name, one.where, f"the {one.kind} {one.name!r} is used there and not defined: what it does is unknown"
        )
        for one in read.qos.undefined
    ]
    out += [
        Unexpressed(read.name, one.where, f"the key {one.name!r} stands twice: the last counts")
        for one in read.qos.duplicates
    ]
    return tuple(out)


def _speeds(
    read: ReadSwitch, cables: dict[str, Cable], options: ImportOptions, assume: Callable[[str], None]
) -> dict[str, int]:
    """Returns port → Mb/s of the ports that an inventory can name; says what was assumed and left out."""
    out: dict[str, int] = {}
    odd: list[str] = []
    guessed: list[str] = []
    for port in read.ports:
        speed = port.speed_mbps
        cable = cables.get(port.name)
        if speed is UNKNOWN and cable is not None and cable.speed_mbps is not None:
            speed = cable.speed_mbps
        if speed is UNKNOWN:
            speed = options.speed_mbps or _ASSUMED_MBPS
            guessed.append(port.name)
        if speed in SPEEDS:
            out[port.name] = speed
        else:
            odd.append(port.name)
    if guessed:
        speed_text = format_speed(options.speed_mbps or _ASSUMED_MBPS)
        assume(f"{read.name}: the configuration tells no speed of {_some(guessed)}; taken for {speed_text}")
    if odd:
        assume(f"{read.name}: {_some(odd)} left out: a speed that no inventory can say; its configuration stays")
    return out


def _draft(
    read: ReadSwitch,
    cables: dict[str, Cable],
    speeds: dict[str, int],
    options: ImportOptions,
    assume: Callable[[str], None],
) -> Switch:
    identity = read.identity
    hwsku, version = _told(identity.hwsku), _told(identity.version)
    policy = policy_of(read.qos, speeds, read.nos.capabilities(version=version))
    ports = tuple(_port(port, speeds[port.name], cables, policy) for port in read.ports if port.name in speeds)
    return Switch(
        name=read.name,
        nos=read.nos.name,
        role=_role(read.name, options, assume),
        ports=_same_speed_lags(ports, read.name, assume),
        policy=policy,
        version=version,
        hwsku=hwsku,
    )


def _port(port: PortQos, speed_mbps: int, cables: dict[str, Cable], policy: RocePolicy) -> SwitchPort:
    cable = cables.get(port.name)
    told_m = cable.told_m if cable is not None else None
    device_m = port.cable_m if isinstance(port.cable_m, int) and 1 <= port.cable_m <= LONGEST_CABLE_M else None
    return SwitchPort(
        name=port.name,
        role=PortRole.FABRIC if cable is not None and cable.peer is not None else PortRole.HOST,
        speed_mbps=speed_mbps,
        mtu_bytes=pinned_mtu(port) or policy.mtu_bytes,
        cable_m=told_m if told_m is not None else device_m,
        fec=port.fec if isinstance(port.fec, str) and port.fec in _FECS else None,
        lag=port.lag,
        peer=cable.peer if cable is not None else None,
    )


def _same_speed_lags(
    ports: tuple[SwitchPort, ...], device: str, assume: Callable[[str], None]
) -> tuple[SwitchPort, ...]:
    speeds: dict[str, set[int]] = {}
    for port in ports:
        if port.lag is not None:
            speeds.setdefault(port.lag, set()).add(port.speed_mbps)
    mixed = sorted((lag for lag, found in speeds.items() if len(found) > 1), key=natural_key)
    if mixed:
        assume(f"{device}: {_some(mixed)} left out of fabric_lags: members of several speeds")
    return tuple(replace(port, lag=None) if port.lag in mixed else port for port in ports)


def _role(name: str, options: ImportOptions, assume: Callable[[str], None]) -> SwitchRole:
    if name in options.roles:
        return options.roles[name]
    role = next((role for word, role in _ROLES if word in name.lower()), SwitchRole.LEAF)
    assume(f"{name}: taken for a {role.value}, by its name")
    return role


def _told(text: str) -> str:
    """Returns a text of the device if an inventory may hold it, else ""."""
    return text if TEXT.fullmatch(text) else ""


def _some(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
