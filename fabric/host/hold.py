"""One run at a host at a time, and which runs changed which part: kept on the host itself, until it boots.

Each task of Ansible is a session of its own, so nothing that a session holds can be the lock: it is a file in /run with
its owner and an expiry, read and replaced under `flock`. The agent performs under the same `flock`, so that whoever
comes after a run that was cut off waits until the host has performed the last it was told. The host's uptime is the
clock, so no wall clock counts. It knows no part and no run folder.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host.actions import Action, PutFile, RemoveLink
from fabric.host.change import Part
from fabric.host.executor import Executor

__all__ = ("FOLDER", "Held", "Holder", "Mark", "Marks", "holder_of", "read_marks", "release", "take")

FOLDER: Final = "/run/fabricctl"
EXPIRES_S: Final = 900
_BUSY: Final = 75
_KEPT_MARKS: Final = 40
_BEGUN: Final = "begun"
_ENDED: Final = "ended"
_PROC: Final = Path("/proc")
# what a process that was killed leaves beside the files of ours: half files, and such as were laid ready
_LEFT: Final = (
    "/etc/fabricctl /etc/nvme /etc/systemd/system /etc/modules-load.d /etc/security/limits.d /etc/sysctl.d "
    "/etc/udev/rules.d /usr/local/lib/fabricctl"
)
_OPEN: Final = 'mkdir -p -m 0755 -- "$1" && cd -- "$1" && exec 9>guard || exit 74; flock -w 120 9 || exit 75; '
_TAKE: Final = (
    _OPEN + "now=$(cut -d. -f1 /proc/uptime) || exit 74; was=; "
    "if [ -s lock ]; then "
    "{ read -r run; read -r key; read -r worker; read -r until; read -r who; } <lock; "
    'case "$until" in ""|*[!0-9]*) until=0;; esac; left=$((until - now)); was="$run"; '
    'if [ "$key" != "$3" ] && [ "$key $worker" != "$7" ] && [ "$left" -gt 0 ]; then '
    'printf "held\\n%s\\n%s\\n%s\\n%s\\n%s\\n" "$run" "$key" "$worker" "$left" "$who"; exit 0; fi; '
    '[ "$key" != "$3" ] || was=; fi; '
    'printf "%s\\n%s\\n%s\\n%s\\n%s\\n" "$2" "$3" "$4" "$((now + $6))" "$5" >lock.new || exit 74; '
    "mv -f lock.new lock || exit 74; "
    'printf "taken\\n%s\\n" "$was"; grep -Hs "" nic target connect; '
    f'for at in {_LEFT}; do for one in "$at"/*.fabricctl*; do [ ! -e "$one" ] || printf "left:%s\\n" "$one"; done; done'
)
_RELEASE: Final = (
    '[ -e "$1/lock" ] || exit 0; '
    + _OPEN
    + '[ -s lock ] && { read -r run; read -r key; } <lock && [ "$key" = "$2" ] && rm -f lock; exit 0'
)

_Line: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Holder:
    """Who works on the host.

    Attributes:
        run: name of the run folder.
        key: the process that lasts as long as the run does; the same for all its parts.
        worker: the process that performs this part.
        who: for people: user and machine.
    """

    run: str
    key: str
    worker: str
    who: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What the host keeps of one run at one part.

    Attributes:
        begun: performed before the first change. ended: after the last. undone: when the part is as before the run.
        found: what stood there.
    """

    begun: Action
    ended: Action
    undone: Action
    found: Action


@dataclass(frozen=True, slots=True)
class Marks:
    """Which runs have begun and ended changing one part since the host booted, the last one last."""

    part: Part
    folder: str = FOLDER
    lines: tuple[_Line, ...] = ()

    def of(self, run: str) -> Mark:
        """Returns what marks that this run is at the part, has ended there, or has left nothing there."""
        others = tuple(one for one in self.lines if one[0] != run)
        begun, ended = self._put((*others, (run, _BEGUN))), self._put((*others, (run, _ENDED)))
        return Mark(begun, ended, self._put(others), self._put(self.lines))

    def is_amid(self, run: str) -> bool:
        """Returns whether this run was the last at the part and did not come to its end."""
        return self.lines[-1:] == ((run, _BEGUN),)

    def later(self, run: str) -> tuple[str, ...]:
        """Returns the runs that changed the part after this one, as far as the host knows."""
        names = [name for name, _ in self.lines]
        return tuple(names[names.index(run) + 1 :] if run in names else names)

    def _put(self, lines: Sequence[_Line]) -> Action:
        path = f"{self.folder}/{self.part.value}"
        text = "".join(f"{name} {state}\n" for name, state in lines[-_KEPT_MARKS:])
        return PutFile(path, text) if text else RemoveLink(path)


@dataclass(frozen=True, slots=True)
class Held:
    """The lock of a host, taken.

    Attributes:
        broken: the run whose stale lock it was, "" for none.
        marks: by part.
        left: half files that a killed run left on the host.
    """

    broken: str
    marks: tuple[Marks, ...]
    left: tuple[str, ...]

    def of(self, part: Part) -> Marks:
        """Returns the marks of one part."""
        return next(one for one in self.marks if one.part is part)


def take(executor: Executor, holder: Holder, *, folder: str = FOLDER) -> Held:
    """Returns the lock of the host, taken or renewed.

    A lock whose owner died on this machine, or that expired, is broken.

    Raises:
        HostError: another run is at the host, or the host cannot be reached or cannot keep a lock.
    """
    answer = _asked(executor, holder, folder, dead="")
    if answer[0] == "held" and _is_dead(answer[2]) and _is_dead(answer[3]):
        answer = _asked(executor, holder, folder, dead=f"{answer[2]} {answer[3]}")
    if answer[0] == "held":
        raise HostError(
            "another run is at this host",
            found=f"run {answer[1]} of {answer[5] or 'somebody'}",
            remedy=f"Wait until it ends. If it was killed on another machine: its lock expires in {answer[4]} s.",
        )
    marks = [_marks(one, folder, _own(answer[2:], f"{one.value}:")) for one in Part]
    return Held(answer[1], tuple(marks), tuple(_own(answer[2:], "left:")))


def release(executor: Executor, holder: Holder, *, folder: str = FOLDER) -> None:
    """Lets go of the host; a lock of somebody else stays.

    Raises:
        HostError: the host cannot be reached.
    """
    executor.run(["sh", "-c", _RELEASE, "sh", folder, holder.key])


def holder_of(run: str, who: str, *, lasting: int, worker: int) -> Holder:
    """Returns who works on a host.

    Args:
        run: name of the run folder.
        who: user and machine, for people.
        lasting: the process that lasts as long as the run does.
        worker: the process that performs the part.
    """
    return Holder(run, _process(lasting), _process(worker), " ".join(who.split()))


def read_marks(executor: Executor, part: Part, *, folder: str = FOLDER) -> Marks:
    """Returns the marks of one part, without the lock: for a look.

    Raises:
        HostError: the host cannot be reached.
    """
    return _marks(part, folder, (executor.read(f"{folder}/{part.value}") or "").splitlines())


def _own(lines: Sequence[str], start: str) -> list[str]:
    return [line.removeprefix(start) for line in lines if line.startswith(start)]


def _marks(part: Part, folder: str, lines: Sequence[str]) -> Marks:
    rows = (row for line in lines if (row := re.fullmatch(r"(\S+) (begun|ended)", line)))
    return Marks(part, folder, tuple((row[1], row[2]) for row in rows))


def _asked(executor: Executor, holder: Holder, folder: str, *, dead: str) -> list[str]:
    words = (folder, holder.run, holder.key, holder.worker, holder.who, str(EXPIRES_S), dead)
    done = executor.run(["sh", "-c", _TAKE, "sh", *words])
    answer = done.stdout.splitlines()
    sizes = {"held": 6, "taken": 2}
    if done.ok and answer and len(answer) >= sizes.get(answer[0], len(answer) + 1):
        return answer
    if done.status == _BUSY:
        what = "commands of an earlier run still run on the host"
        raise HostError(what, where=folder, remedy="Wait a few minutes; then run again.")
    raise HostError(
        "the host cannot keep a lock",
        where=folder,
        found=f"exit {done.status}: {done.stderr.strip()[:200]}",
        remedy="It needs flock (util-linux), and room in /run. Set become to root.",
    )


# --- processes of this machine --------------------------------------------------------------------------------------


def _machine() -> str:
    """Returns what names this boot of this machine and this space of process numbers; "" where nothing does."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _process(pid: int) -> str:
    """Returns what names a process for good: its number is given again, but not with the same time of its start."""
    return f"{_machine()}/{pid}/{_started(pid)}"


def _started(pid: int) -> str:
    try:
        fields = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    rest = fields.rpartition(")")[2].split()  # proc(5): the name in parentheses may have any character
    return "" if rest[0] in {"Z", "X"} else rest[19]  # fields 3 and 22; a dead process may wait for its parent


def _is_dead(name: str) -> bool:
    """Returns whether the process was one of this machine and is no more; one elsewhere may live."""
    place, _, rest = name.rpartition("/")[0].rpartition("/")
    if not place or place != _machine() or not rest.isdecimal():
        return False
    pid = int(rest)
    return name != _process(pid) or not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
