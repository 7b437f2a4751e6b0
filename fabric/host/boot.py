"""Files and units of ours on a host: what makes them as they shall be, and the way back. Knows not what they do.

Order forward: units that go are stopped and disabled, files put, units enabled, systemd and udev told; the caller
starts them last. Order backward: new units stopped and disabled, the caller's own way back, files as they were.
Forward, systemd reads its files once, behind `enable`. Backward, each `disable` has it read them: it remembers what
starts at boot until then (seen on systemd 252), and a run that is cut off in between would leave a unit that is said to
be enabled and is not.
"""

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.errors import HostError
from fabric.host.actions import Action, PutFile, RemoveLink, Run
from fabric.host.change import Thing
from fabric.host.executor import Executor, half_paths
from fabric.host.files import FileChange, changed_files, restoring, standing
from fabric.host.units import AGENT_PATH

__all__ = ("BootChange", "UnitState", "boot_change", "read_units", "setting_lines", "unit_name")

_UNITS: Final = "/etc/systemd/system/"
_RULES: Final = "/etc/udev/rules.d/"
_OWN_FOLDER: Final = "/etc/fabricctl"
_AGENT_FOLDER: Final = AGENT_PATH.rpartition("/")[0]
_RELOAD: Final = Run(("systemctl", "daemon-reload"))


@dataclass(frozen=True, slots=True)
class UnitState:
    """What systemd says of one unit; all False for one that it does not know.

    Attributes:
        trying: it fails and is started again.
        stale: its file has changed since systemd read it.
    """

    active: bool = False
    enabled: bool = False
    trying: bool = False
    stale: bool = False


@dataclass(frozen=True, slots=True)
class BootChange:
    """What makes the files and units as they shall be.

    Attributes:
        forward: all but the start.
        stopped: units that shall run and do not, in the order given.
        before_back: what comes first on the way back. after_back: what comes last.
        changed: paths that are put, replaced or removed.
        things: what of these files, and of the units' start at boot, is changed.
        states: units as they were read.
    """

    forward: tuple[Action, ...]
    stopped: tuple[str, ...]
    before_back: tuple[Action, ...]
    after_back: tuple[Action, ...]
    diff: tuple[str, ...]
    changed: frozenset[str]
    states: Mapping[str, UnitState]
    things: tuple[Thing, ...] = ()


def unit_name(path: str) -> str:
    """Returns the unit that the file at `path` is, "" for another file."""
    return path.removeprefix(_UNITS) if path.startswith(_UNITS) else ""


def read_units(names: Sequence[str], executor: Executor) -> dict[str, UnitState]:
    """Returns what systemd says of these units.

    Raises:
        HostError: the host has no systemd, or it does not answer.
    """
    if not names:
        return {}
    argv = ("systemctl", "show", "--property=Id,ActiveState,UnitFileState,NeedDaemonReload", "--", *names)
    done = executor.run(argv)
    if not done.ok:
        remedy = "A host needs systemd: settings must outlast a boot."
        raise HostError("systemd does not answer", found=done.stderr.strip()[:200], remedy=remedy)
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in done.stdout.split("\n\n"))
    found = {block.get("Id", ""): block for block in blocks}
    return {
        name: UnitState(
            own.get("ActiveState") == "active",
            own.get("UnitFileState") == "enabled",
            own.get("ActiveState") == "activating",
            own.get("NeedDaemonReload") == "yes",
        )
        for name in names
        for own in (found.get(name, {}),)
    }


def boot_change(wanted: Sequence[PutFile], executor: Executor, *, gone: Sequence[str] = ()) -> BootChange:
    """Returns what must change of these files and the units among them.

    Args:
        wanted: files that shall stand, units among them enabled and running.
        executor: the host.
        gone: paths of ours that shall not stand.

    Raises:
        HostError: a file is there and cannot be read, systemd does not answer, or the host cannot be reached.
    """
    found = standing(tuple(dict.fromkeys((*(one.path for one in wanted), *gone))), executor)
    changes = changed_files(wanted, found)
    old = {path: file for path in gone if (file := found[path]) is not None}
    units = [unit_name(path) for path in (*(one.path for one in wanted), *old) if unit_name(path)]
    states = read_units(units, executor)
    kept = [unit for one in wanted if (unit := unit_name(one.path))]
    new = [unit for one in changes if one.before is None and (unit := unit_name(one.path))]
    leaving = [unit for path in old if (unit := unit_name(path))]
    touched = (*(one.path for one in changes), *old)
    disabled = [unit for unit in kept if not states[unit].enabled]
    forward: list[Action] = [_away(unit) for unit in leaving]
    # a unit's file goes after what only it needs: one that was cut off here is found by it
    forward += [RemoveLink(path) for path in reversed(old)]
    forward += [one.after for one in changes]
    stale = [f"{_UNITS}{unit}" for unit in kept if states[unit].stale]  # a run was cut off before it told systemd
    forward += [Run(("systemctl", "enable", "--no-reload", *disabled))] if disabled else []
    forward += _told((*touched, *stale), is_turned=bool(disabled))
    stopped = tuple(unit for unit in kept if not states[unit].active)
    return BootChange(
        tuple(forward),
        stopped,
        tuple(_before_back(kept, new, states)),
        (*_after_back(changes, old, new, leaving, states), *_tried_again(kept, leaving, states)),
        (*_file_lines(changes, old), *_unit_lines(kept, leaving, states)),
        frozenset(touched),
        states,
        (*_file_things(changes, old), *_unit_things(kept, leaving, states)),
    )


def _away(unit: str) -> Run:
    return Run(("systemctl", "disable", "--now", unit), if_exists=f"{_UNITS}{unit}")


def _told(paths: Iterable[str], *, is_turned: bool = False) -> list[Action]:
    # systemd and udev read what changed; is_turned: what starts at boot did, of which systemd remembers the old
    found = list(paths)
    actions: list[Action] = [_RELOAD] if is_turned or any(unit_name(path) for path in found) else []
    if any(path.startswith(_RULES) for path in found):
        actions.append(Run(("udevadm", "control", "--reload")))
    return actions


def _before_back(kept: Sequence[str], new: Sequence[str], states: Mapping[str, UnitState]) -> Iterable[Action]:
    for unit in reversed(kept):
        state = states[unit]
        if unit in new:
            yield _away(unit)
        elif not state.active:
            yield Run(("systemctl", "stop", unit), if_exists=f"{_UNITS}{unit}")
    for unit in kept:
        if unit not in new and not states[unit].enabled:
            yield Run(("systemctl", "disable", unit), if_exists=f"{_UNITS}{unit}")


def _after_back(
    changes: Sequence[FileChange],
    old: Mapping[str, PutFile],
    new: Sequence[str],
    leaving: Sequence[str],
    states: Mapping[str, UnitState],
) -> Iterable[Action]:
    # the agent is shared by all parts: it goes when the last of them has gone
    own = [one for one in changes if not (one.path == AGENT_PATH and one.before is None)]
    yield from restoring(own)
    yield from old.values()
    touched = (*(one.path for one in changes), *old)
    if touched:  # a process that was killed may have left half a file
        yield Run(("rm", "-f", "--", *(half for path in touched for half in half_paths(path))))
    yield from _told(touched)
    for unit in new:  # a failed unit stays known without its file
        yield Run(("systemctl", "reset-failed", unit), accepted_words="not loaded")
    for unit in leaving:
        if states[unit].enabled:
            yield Run(("systemctl", "enable", unit))
        if states[unit].active:
            yield Run(("systemctl", "start", unit))
    if len(own) != len(changes):
        yield Run(("rmdir", "--ignore-fail-on-non-empty", _OWN_FOLDER), if_exists=_OWN_FOLDER)
        yield Run(("rm", "-f", "--", AGENT_PATH), unless_exists=_OWN_FOLDER)
        yield Run(("rmdir", "--ignore-fail-on-non-empty", _AGENT_FOLDER), if_exists=_AGENT_FOLDER)


def _tried_again(kept: Sequence[str], leaving: Sequence[str], states: Mapping[str, UnitState]) -> Iterable[Action]:
    """A unit that waits for its target waits on; what it comes to is nobody's business here."""
    trying = [unit for unit in (*kept, *leaving) if states[unit].trying]
    if trying:
        yield Run(("systemctl", "start", "--no-block", *trying))


# --- what is shown --------------------------------------------------------------------------------------------------


def setting_lines(what: str, found: str, wanted: str) -> tuple[str, str]:
    """Returns one value before and after, as two lines of a diff."""
    return f"-{what}: {found}", f"+{what}: {wanted}"


def _file_lines(changes: Sequence[FileChange], old: Mapping[str, PutFile]) -> Iterable[str]:
    for one in changes:
        yield from _text_lines(one.path, one.before, one.after.text)
        if one.before is not None and one.before_mode != one.after.mode:
            yield from setting_lines(f"{one.path} mode", f"{one.before_mode:04o}", f"{one.after.mode:04o}")
    for path, file in old.items():
        yield from _text_lines(path, file.text, None)


def _text_lines(path: str, before: str | None, after: str | None) -> Iterable[str]:
    ends = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    if path == AGENT_PATH:  # a program of this package: that it changes is enough
        lines = len((after or before or "").splitlines())
        yield from (f"--- {ends[0]}", f"+++ {ends[1]}", f"@@ {lines} lines of fabricctl's agent @@")
        return
    yield from difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), *ends, lineterm="", n=1)


def _unit_lines(kept: Sequence[str], leaving: Sequence[str], states: Mapping[str, UnitState]) -> Iterable[str]:
    for unit in kept:
        state = states[unit]
        if state.stale:
            yield from setting_lines(f"{unit} as systemd has it", "not reloaded", "as its file")
        if not (state.active and state.enabled):
            yield from setting_lines(unit, _said(state), _said(UnitState(active=True, enabled=True)))
    for unit in leaving:
        yield from setting_lines(unit, _said(states[unit]), _said(UnitState()))


def _file_things(changes: Sequence[FileChange], old: Mapping[str, PutFile]) -> Iterable[Thing]:
    for one in changes:
        before = None if one.before is None else PutFile(one.path, one.before, one.before_mode)
        yield Thing(one.path, _digest(before), _digest(one.after))
    for path, file in old.items():
        yield Thing(path, _digest(file), _digest(None))


def _digest(file: PutFile | None) -> str:
    return "no file" if file is None else f"{file.mode:04o} {hashlib.sha256(file.text.encode()).hexdigest()}"


def _unit_things(kept: Sequence[str], leaving: Sequence[str], states: Mapping[str, UnitState]) -> Iterable[Thing]:
    """Whether units start at boot; whether one runs now is a consequence: its target may be away."""
    words = {True: "enabled", False: "disabled"}
    for unit in kept:
        if not states[unit].enabled:
            yield Thing(unit, words[False], words[True])
    for unit in leaving:
        if states[unit].enabled:
            yield Thing(unit, words[True], words[False])


def _said(state: UnitState) -> str:
    now = "active" if state.active else "tried again and again" if state.trying else "inactive"
    return f"{'enabled' if state.enabled else 'disabled'}, {now}"
