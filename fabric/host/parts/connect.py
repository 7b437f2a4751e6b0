"""Connections of a host: its identity, one unit each, timers, multipath policy, and how the engine reads.

Changes nothing itself.

A connection is made and taken away by its unit, so that systemd says what is, and a boot does the same. The kernel
shows no type of service; what made a connection does. So one that stands, and that neither a running unit of ours nor
nvme-cli's own file made with the planned one, is made anew.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host.actions import Action, ControllerAttribute, PutFile, RemoveLink, Run, Write
from fabric.host.batch import foreseeing
from fabric.host.boot import BootChange, boot_change, setting_lines
from fabric.host.change import HostIntent, Part, PartChange, Thing
from fabric.host.executor import Executor, list_folder, listing
from fabric.host.files import file_questions, standing
from fabric.host.nvme.compare import ConnectionDifference, connection_differences
from fabric.host.nvme.connect import (
    Connection,
    NvmeCli,
    connect_argv,
    disconnect_actions,
    read_connect,
    read_version,
    unconfirmed_options,
)
from fabric.host.nvme.identity import HOSTID_PATH, HOSTNQN_PATH, HostIdentity, identity, identity_actions
from fabric.host.observe import CONTROLLERS, read_controllers
from fabric.host.report import CONFIG_PATH, UNIT_NAME, UNITS, Definition, config_definitions, unit_command
from fabric.host.units import IOPOLICY_RULES, connection_files, connection_unit, connection_unit_files
from fabric.policy import PROFILE_PATH
from fabric.qos import UNKNOWN
from fabric.state.host import NvmePath, NvmeSubsystem

__all__ = ("design_connect",)

_SUBSYSTEMS: Final = "/sys/class/nvme-subsystem"
_POLICIES: Final = ("sh", "-c", f'grep -Hs "" {_SUBSYSTEMS}/*/subsysnqn {_SUBSYSTEMS}/*/iopolicy')
_VERSION: Final = ("nvme", "version")
_OWN_TIMERS: Final = frozenset({"ctrl-loss-tmo", "reconnect-delay", "fast_io_fail_tmo"})  # set on a live controller
_IDENTITY: Final = (HOSTNQN_PATH, HOSTID_PATH)
_NEW: Final = "made anew"
_RULES_READ: Final = Run(("udevadm", "control", "--reload"))
_CONNECTED: Final = "connected"
_NO_CONNECTION: Final = "not connected"

_Policies: TypeAlias = Mapping[str, tuple[str, str, str]]
"""NQN → file, multipath policy that stands, and the one wanted."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What stands of connections.

    Attributes:
        units: path → text of the units of ours that are there.
        theirs: what nvme-cli's own file defines.
        policies: NQN → (file, multipath policy).
    """

    units: Mapping[str, str]
    theirs: tuple[Definition, ...]
    subsystems: tuple[NvmeSubsystem, ...]
    policies: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Way:
    """One wanted connection and what must be done about it.

    Attributes:
        path: the controller that stands, None for none.
        anew: why it is made anew, "" if it is not.
        changes: what differs on it.
        is_ours: a unit of ours that runs made it.
    """

    one: Connection
    unit: str
    path: NvmePath | None
    anew: str
    changes: tuple[ConnectionDifference, ...]
    is_ours: bool

    @property
    def restarts(self) -> bool:
        """Returns whether its unit connects now."""
        return self.path is None or bool(self.anew)


def design_connect(intent: HostIntent, executor: Executor, *, new_uuid: str) -> PartChange:
    """Returns what makes the intent's connections, and takes away those of ours that it has no more.

    Args:
        intent: of the host.
        executor: the host.
        new_uuid: for the host's identity, used only when it has none.

    Raises:
        HostError: nvme-cli is missing, the identity cannot be read, or the host cannot be reached.
    """
    wanted = intent.connections
    own = (*((_VERSION, *file_questions(_IDENTITY)) if wanted else ()), listing(UNITS), *file_questions((CONFIG_PATH,)))
    executor = foreseeing(executor, (*own, listing(CONTROLLERS), _POLICIES))
    found = _read(executor)
    gone = [path for path in found.units if path not in {f"{UNITS}/{connection_unit(one)}" for one in wanted}]
    leaving = [one for path in gone if (one := _defined(found.units[path])) is not None]
    away = [file for path in gone for file in connection_unit_files(path.rpartition("/")[2])]
    profile = (PutFile(PROFILE_PATH, intent.shard_profile, 0o644),) if intent.shard_profile else ()
    away += [] if profile else [PROFILE_PATH]
    if not wanted:
        boot = boot_change(profile, executor, gone=(*away, IOPOLICY_RULES))
        return _change(intent, boot, (), leaving, found, who=None, cli=NvmeCli(2))
    cli = _cli(executor)
    texts = {path: None if file is None else file.text for path, file in standing(_IDENTITY, executor).items()}
    who = identity(texts[HOSTNQN_PATH], texts[HOSTID_PATH], new_uuid=new_uuid)
    made = identity_actions(who, hostnqn=texts[HOSTNQN_PATH], hostid=texts[HOSTID_PATH])
    files = (*made, *connection_files(wanted, who, cli, iopolicy=wanted[0].policy.iopolicy), *profile)
    boot = boot_change(files, executor, gone=away)
    ways = [_way(one, found, boot, who, cli) for one in wanted]
    return _change(intent, boot, ways, leaving, found, who=who, cli=cli)


# --- reading --------------------------------------------------------------------------------------------------------


def _read(executor: Executor) -> _Found:
    names = list_folder(executor, UNITS)
    if names is None:  # a unit of ours that was overlooked would make its connection one of others
        raise HostError("the units of the host cannot be listed", where=UNITS, remedy="Read them as root: set become.")
    units = [f"{UNITS}/{name}" for name in names if UNIT_NAME.fullmatch(name)]
    files = standing((*units, CONFIG_PATH), executor)
    config = files.pop(CONFIG_PATH)
    by_nqn: dict[str, list[NvmePath]] = {}
    for nqn, path in _controllers(executor).values():
        by_nqn.setdefault(nqn, []).append(path)
    return _Found(
        {path: file.text for path, file in files.items() if file is not None},
        _theirs(config.text) if config else (),
        tuple(NvmeSubsystem(nqn, paths=tuple(paths)) for nqn, paths in by_nqn.items()),
        _policies(executor),
    )


def _controllers(executor: Executor) -> Mapping[str, tuple[str, NvmePath]]:
    found = read_controllers(executor)
    if found is not UNKNOWN:
        return found
    if executor.run(["test", "-e", CONTROLLERS]).status != 1:
        raise HostError("the NVMe controllers of the host cannot be read", where=CONTROLLERS, remedy="Set become.")
    return {}  # the kernel has no NVMe yet


def _theirs(text: str) -> tuple[Definition, ...]:
    try:
        return config_definitions(text)
    except HostError:
        return ()  # what cannot be read proves nothing


def _policies(executor: Executor) -> dict[str, tuple[str, str]]:
    shown = executor.run(_POLICIES).stdout
    rows = re.findall(rf"(?m)^({_SUBSYSTEMS}/[^/\n]+)/(subsysnqn|iopolicy):(.*)$", shown)
    values: dict[str, dict[str, str]] = {}
    for folder, name, text in rows:
        values.setdefault(folder, {})[name] = text.strip()
    return {
        own["subsysnqn"]: (f"{folder}/iopolicy", own["iopolicy"])
        for folder, own in values.items()
        if {"subsysnqn", "iopolicy"} <= set(own)
    }


def _cli(executor: Executor) -> NvmeCli:
    done = executor.run(_VERSION)
    if not done.ok:
        raise HostError("nvme-cli does not run", found=done.stderr.strip()[:200], remedy="Install nvme-cli.")
    return read_version(done.stdout)


def _defined(unit: str) -> Connection | None:
    """The connection that a unit of ours makes, as far as taking it away needs it."""
    options = _options(unit)
    if not options:
        return None
    port = options.get("trsvcid", "")
    place = (options.get("nqn", ""), options.get("traddr", ""), int(port) if port.isdecimal() else 0)
    return Connection(*place, options.get("host-traddr", ""), "", 0)


def _options(unit: str) -> dict[str, str]:
    """The options of the connection that a unit makes, {} for a text that somebody damaged: it proves nothing."""
    try:
        return unit_command(unit)
    except HostError:
        return {}


# --- what must be done ----------------------------------------------------------------------------------------------


def _way(one: Connection, found: _Found, boot: BootChange, who: HostIdentity, cli: NvmeCli) -> _Way:
    unit = connection_unit(one)
    changes = connection_differences((one,), found.subsystems, who, cli)
    path = _standing(one, found)
    before = _options(found.units.get(f"{UNITS}/{unit}", ""))
    is_ours = bool(before) and boot.states[unit].active
    anew = next((f"{change.what}: {change.found}" for change in changes if change.disruptive), "")
    if path is not None and not anew:
        anew = _unproven(one, before if is_ours else {}, found, who, cli)
    kept = tuple(change for change in changes if change.what != "missing" and not anew)
    return _Way(one, unit, path, anew, kept, is_ours)


def _standing(one: Connection, found: _Found) -> NvmePath | None:
    """The controller to the same address: from the same source, else from the one that routing chose."""
    paths = [
        path
        for subsystem in found.subsystems
        if subsystem.nqn == one.nqn and subsystem.paths is not UNKNOWN
        for path in subsystem.paths
        if path.traddr == one.traddr and path.trsvcid in {one.trsvcid, UNKNOWN}
    ]
    exact = next((path for path in paths if path.host_traddr == one.host_traddr), None)
    return exact or next((path for path in paths if path.host_traddr is UNKNOWN), None)


def _unproven(one: Connection, before: Mapping[str, str], found: _Found, who: HostIdentity, cli: NvmeCli) -> str:
    """Returns what is not as planned in how this connection was made, "" when all is."""
    wanted = read_connect(" ".join(connect_argv(one, who, cli)))
    differs = [
        f"{name} {before.get(name, 'default')}, not {value}"
        for name, value in wanted.items()
        if name not in _OWN_TIMERS and before.get(name) != value
    ]
    if before:
        return "; ".join(differs)
    for other in found.theirs:
        if (other.nqn, other.traddr) == (one.nqn, one.traddr) and other.host_traddr in {one.host_traddr, ""}:
            return "" if other.tos == one.tos else f"tos {other.tos}, not {one.tos}: {other.source}"
    return "made by others, its type of service cannot be told"


# --- there and back -------------------------------------------------------------------------------------------------


def _change(
    intent: HostIntent,
    boot: BootChange,
    ways: Sequence[_Way],
    leaving: Sequence[Connection],
    found: _Found,
    *,
    who: HostIdentity | None,
    cli: NvmeCli,
) -> PartChange:
    policies = _wrong_policies(ways, found)
    orphans = tuple(one for one in leaving if _standing(one, found) is not None and not _runs(one, boot))
    forward = tuple(_forward(boot, ways, policies, orphans))
    back = tuple(_backward(boot, ways, policies, who, cli)) if forward else ()
    return PartChange(
        intent.host,
        Part.CONNECT,
        forward,
        back,
        "\n".join((*_lines(ways, policies), *(f"-{_name(one)}: connected" for one in orphans), *boot.diff)),
        disruptive=tuple(_disruptive(ways, leaving, found)),
        cannot_restore=(
            *(f"{_name(way.one)}: type of service" for way in ways if _is_foreign(way)),
            *(f"{_name(one)}: the connection, which its unit did not make" for one in orphans),
        ),
        unconfirmed=unconfirmed_options(cli) if ways else (),
        things=(*_things(ways, orphans, policies), *boot.things),
    )


def _wrong_policies(ways: Sequence[_Way], found: _Found) -> _Policies:
    wanted = {way.one.nqn: way.one.policy.iopolicy for way in ways}
    rows = {nqn: (*found.policies[nqn], one) for nqn, one in wanted.items() if nqn in found.policies}
    return {nqn: row for nqn, row in rows.items() if row[1] != row[2]}


def _is_foreign(way: _Way) -> bool:
    """Whether others made the connection that is made anew."""
    return bool(way.anew) and way.path is not None and not way.is_ours


def _runs(one: Connection, boot: BootChange) -> bool:
    """Whether the connection's unit runs: then it goes, and comes back, with it."""
    state = boot.states.get(connection_unit(one))  # none for a unit whose file went while the host was read
    return state is not None and state.active


def _forward(
    boot: BootChange, ways: Sequence[_Way], policies: _Policies, orphans: Sequence[Connection]
) -> Iterable[Action]:
    again = [way.unit for way in ways if way.restarts]
    if again:
        yield Run(("modprobe", "-a", "--", "nvme-rdma"))
    yield from _with_made(ways, "stop")
    yield from boot.forward
    if again and _RULES_READ not in boot.forward:  # a run that was cut off may have put the rule and not told of it
        yield _RULES_READ
    yield from (replace(one, optional=True) for one in disconnect_actions(orphans))
    for way in ways:
        if way.anew and way.path is not None:
            yield _deletion(way.path)
    if again:
        yield Run(("systemctl", "restart", *again))
    stopped = [unit for unit in boot.stopped if unit not in again]
    if stopped:
        yield Run(("systemctl", "start", *stopped))
    for way in ways:
        for change in way.changes:
            yield from change.actions
    for file, _, wanted in policies.values():
        yield Write(file, wanted)


def _with_made(ways: Sequence[_Way], verb: str) -> Iterable[Action]:
    """Stops or restarts our units whose connection is made anew.

    Its file says how a running unit's connection was made: so none runs while its file is put, there or back.
    """
    units = [way.unit for way in ways if way.anew and way.is_ours]
    if units:
        yield Run(("systemctl", verb, *units))


def _deletion(path: NvmePath) -> Write:
    return Write(f"/sys/class/nvme/{path.controller}/delete_controller", "1", optional=True)


def _backward(
    boot: BootChange,
    ways: Sequence[_Way],
    policies: _Policies,
    who: HostIdentity | None,
    cli: NvmeCli,
) -> Iterable[Action]:
    for way in ways:
        if not way.restarts and not way.is_ours:  # others made it: that our unit stops must not take it away
            yield RemoveLink(connection_unit_files(way.unit)[2])
    yield from boot.before_back
    yield from _with_made(ways, "stop")
    for way in ways:
        if way.restarts:  # a unit that was killed while it connected does not take its connection away
            yield from (replace(one, optional=True) for one in disconnect_actions((way.one,)))
    yield from boot.after_back
    yield from _with_made(ways, "restart")
    for way in ways:
        if _is_foreign(way) and way.path is not None and who is not None:
            yield Run(connect_argv(_as_it_was(way.one, way.path), who, cli), accepted_words="already connected")
        if way.path is not None and not (way.anew and way.is_ours):
            yield from _old_timers(way.one, way.path)
    for file, old, _ in policies.values():
        yield Write(file, old, optional=True)


def _as_it_was(one: Connection, path: NvmePath) -> Connection:
    """The connection that others made, as far as the kernel shows it."""
    policy = one.policy
    queues, size, alive = path.queue_count, path.queue_size, path.keep_alive_s
    policy = policy if queues is UNKNOWN else replace(policy, nr_io_queues=max(1, queues - 1))  # admin queue counted
    policy = policy if size is UNKNOWN else replace(policy, queue_size=size)
    policy = policy if alive is UNKNOWN else replace(policy, keep_alive_s=alive)
    source = "" if path.host_traddr is UNKNOWN else path.host_traddr
    return replace(one, host_traddr=source, policy=policy, tos=-1)


def _old_timers(one: Connection, path: NvmePath) -> Iterable[Action]:
    source = "" if path.host_traddr is UNKNOWN else path.host_traddr
    rows = (
        ("ctrl_loss_tmo", path.ctrl_loss_tmo_s, one.policy.ctrl_loss_tmo_s),
        ("reconnect_delay", path.reconnect_delay_s, one.policy.reconnect_delay_s),
        ("fast_io_fail_tmo", path.fast_io_fail_tmo_s, one.policy.fast_io_fail_tmo_s),
    )
    for name, old, wanted in rows:
        if old is not UNKNOWN and old != wanted:
            yield ControllerAttribute(one.nqn, one.traddr, name, str(old), source, optional=True)


def _disruptive(ways: Sequence[_Way], leaving: Sequence[Connection], found: _Found) -> Iterable[str]:
    for way in ways:
        if way.anew and way.path is not None:
            yield f"{_name(way.one)}: {_NEW}: {way.anew}"
    for one in leaving:
        if _standing(one, found) is not None:
            yield f"{_name(one)}: disconnected: its disks go"


def _lines(ways: Sequence[_Way], policies: _Policies) -> Iterable[str]:
    for way in ways:
        if way.path is None:
            yield f"+{_name(way.one)}: connected"
        elif way.anew:
            yield from setting_lines(_name(way.one), way.anew, _NEW)
        for change in way.changes:
            yield from setting_lines(f"{_name(way.one)} {change.what}", change.found, change.wanted)
    for nqn, (_, old, wanted) in policies.items():
        yield from setting_lines(f"{nqn} iopolicy", old, wanted)


def _things(ways: Sequence[_Way], orphans: Sequence[Connection], policies: _Policies) -> Iterable[Thing]:
    for way in ways:
        if way.path is None:
            yield Thing(_name(way.one), _NO_CONNECTION, _CONNECTED)
        elif way.anew:
            yield Thing(_name(way.one), way.anew, _CONNECTED)
        for change in way.changes:
            if change.what == "state":  # it comes and goes with the target
                continue
            yield Thing(f"{_name(way.one)} {change.what}", change.found, change.wanted)
    yield from (Thing(_name(one), _CONNECTED, _NO_CONNECTION) for one in orphans)
    yield from (Thing(f"{nqn} iopolicy", old, wanted) for nqn, (_, old, wanted) in policies.items())


def _name(one: Connection) -> str:
    return f"{one.nqn} at {one.traddr} from {one.host_traddr}"
