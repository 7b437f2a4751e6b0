"""The fault table of hosts and targets: every step of every part x every fault; generated from what the design makes.

    python -m tests.faults_table_hosts docs/evidence/fault-table-hosts-DATE.md     all of it, some minutes
    python -m tests.faults_table_hosts --every 40                                  each 40th case, to the screen

A step is a command on the wire, or an action that the agent performs on the host; a clean run over a host that keeps
state (tests/unit/host/model.py) tells which there are. Each case runs the very function that the playbooks' plug-in
calls, and then, on two copies of what is left: a second provision, and the rollback of the run. Nothing is merged.
"""

import argparse
import copy
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fabric.clock import FakeClock
from fabric.host import HostIntent, Part
from fabric.host.hold import Holder, holder_of
from fabric.policy import ShardPolicy, ShardProfile, profile_to_text
from fabric.state import Outcome
from fabric.state.host import NvmetState, NvmetSubsystem
from fabric.workflow.ansible_host import HostTask, host_part
from fabric.workflow.hosts import changes_of, prepare_back, results_of, write_intents
from tests.unit.host.faulty import FOR_GOOD, Fault, FaultyModel, KilledError, run_folder_is_full
from tests.unit.host.intents import HOST, KV1, KV2, ONE, PUBLISHED, TARGET

__all__ = ("CASES", "Case", "Fault", "FaultyModel", "Row", "World", "cases", "judged", "table", "tuned", "wider")

_REACHABLE: Final = {(KV1, "10.10.0.1"), (KV2, "10.10.0.1")}
_WELL: Final = frozenset({Outcome.COMMITTED.value, Outcome.UNCHANGED.value})
_OPEN: Final = frozenset({Outcome.UNCERTAIN.value, Outcome.ROLLBACK_FAILED.value})
"""Ends at which the run itself says that it cannot tell, or could not restore."""


def tuned(queues: int, tos: int) -> HostIntent:
    """Returns the host with a tuned profile and another type of service."""
    profile = profile_to_text(ShardProfile(ShardPolicy(queues=queues)))
    return replace(HOST, connections=(replace(ONE, tos=tos),), shard_profile=profile)


def wider(intent: HostIntent) -> HostIntent:
    """Returns the host with a larger MTU and another type of service on its NIC."""
    (nic,) = intent.plan.nics
    return replace(intent, plan=replace(intent.plan, nics=(replace(nic, mtu_bytes=9000, tos=138),)))


_OTHER: Final = replace(
    TARGET,
    target=NvmetState(
        (
            NvmetSubsystem(KV1, True, (), ((1, "/dev/ram1", True),)),
            NvmetSubsystem(KV2, True, (), ((1, "/dev/ram0", True),)),
        ),
        (replace(PUBLISHED.ports[0], subsystems=(KV1, KV2)),),
    ),
)


@dataclass(frozen=True)
class Case:
    """One operation.

    Attributes:
        part: as the task of the playbooks has it. of: the part that `back` takes back.
        first: what was provided before, in order, as (part, intent).
    """

    name: str
    intent: HostIntent
    part: str
    first: tuple[tuple[str, HostIntent], ...] = ()
    of: str = ""


CASES: Final = (
    Case("host: provision nic", HOST, "nic"),
    Case("host: provision connect", HOST, "connect", (("nic", HOST),)),
    Case("host: change nic", wider(HOST), "nic", (("nic", HOST),)),
    Case("host: tuned profile, other type of service", tuned(6, 138), "connect", (("nic", HOST), ("connect", tuned(2, 106)))),
    Case("host: tuned profile first", tuned(6, 106), "connect", (("nic", HOST), ("connect", HOST))),
    Case("host: disconnect", HOST, "disconnect", (("nic", HOST), ("connect", HOST))),
    Case("target: provision nic", TARGET, "nic"),
    Case("target: publish", TARGET, "target", (("nic", TARGET),)),
    Case("target: change what is published", _OTHER, "target", (("nic", TARGET), ("target", TARGET))),
    Case("host: take connect back", HOST, "back", (("nic", HOST), ("connect", HOST)), of="connect"),
    Case("host: take a tuned profile back", tuned(6, 138), "back", (("nic", HOST), ("connect", tuned(2, 106)), ("connect", tuned(6, 138))), of="connect"),
    Case("host: take nic back", HOST, "back", (("nic", HOST),), of="nic"),
    Case("target: take publish back", TARGET, "back", (("nic", TARGET), ("target", TARGET)), of="target"),
    Case("target: take a change back", _OTHER, "back", (("nic", TARGET), ("target", TARGET), ("target", _OTHER)), of="target"),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """How one case ended.

    Attributes:
        said: the outcome that the run records; "killed" where there was nobody to record one.
        stands: `before`, `intended`, or `amid`.
        again: outcome of a second provision (of a way back: of the same rollback again). back: of the rollback.
        wrong: what does not hold, "" when all does.
    """

    case: str
    number: int
    step: str
    fault: Fault
    said: str
    stands: str
    again: str = ""
    back: str = ""
    wrong: str = ""

    def cell(self) -> str:
        """Returns the row without its step and fault."""
        then = f"; {self.again}, {self.back}" if self.again else ""
        return f"{self.said}: {self.stands}{then}{' **' + self.wrong + '**' if self.wrong else ''}"


@functools.cache
def _dead() -> str:
    """Returns the name of a process that died: of the run that was killed."""
    with subprocess.Popen(["sleep", "60"]) as one:
        name = holder_of("", "", lasting=one.pid, worker=one.pid).key
        one.kill()
    return name


@dataclass
class World:
    """One host and the run folders of those who work on it."""

    folder: Path
    model: FaultyModel
    number: int = 0

    def run(self, intent: HostIntent) -> Path:
        """Returns a new run folder with the intent."""
        self.number += 1
        path = self.folder / f"20261129-1711{self.number:02d}-provision"
        path.mkdir()
        write_intents(path, (intent,))
        return path

    def back_of(self, past: Path) -> Path:
        """Returns a new run folder that takes `past` back."""
        self.number += 1
        path = self.folder / f"20261129-1711{self.number:02d}-rollback"
        path.mkdir()
        prepare_back(past, path)
        return path

    def do(
        self, part: str, run: Path, host: str, *, of: str = "", holder: Holder | None = None, hold: bool = False
    ) -> str:
        """Returns the outcome that the run has afterwards, "unrecorded" for none."""
        self._answer(HostTask(part, host, run, of=of, disruptive=True, hold=hold), holder)
        kind = Part.CONNECT if part == "disconnect" else Part(of or part)
        found = results_of(run).get((host, kind))
        return found.outcome.value if found else "unrecorded"

    def look(self, part: str, run: Path, host: str, *, of: str = "") -> str:
        """Returns what a check mode says."""
        return str(self._answer(HostTask(part, host, run, of=of, check_mode=True), None).get("msg"))

    def release(self, run: Path, host: str) -> None:
        """Lets go of the host."""
        self._answer(HostTask("release", host, run), None)

    def _answer(self, task: HostTask, holder: Holder | None) -> dict[str, object]:
        mine = holder or holder_of(task.run.name, "me@here", lasting=os.getpid(), worker=os.getpid())
        return host_part(task, self.model, lambda: self.model.lost, FakeClock(), holder=mine)

    def copy(self, folder: Path) -> "World":
        """Returns another world that is the same until now."""
        shutil.copytree(self.folder, folder)
        return World(folder, copy.deepcopy(self.model), self.number)


@dataclass(frozen=True)
class _Ready:
    """An operation that is about to begin, and what stands before and after it."""

    case: Case
    world: World
    past: Path | None
    before: FaultyModel
    intended: FaultyModel
    steps: tuple[str, ...]


def _prepared(case: Case, scratch: Path) -> _Ready:
    world = World(scratch / "start", FaultyModel(reachable=set(_REACHABLE)))
    world.folder.mkdir()
    host, past, stood = case.intent.host, None, copy.deepcopy(world.model)
    for part, intent in case.first:
        stood = copy.deepcopy(world.model)
        past = world.run(intent)
        assert world.do(part, past, host) == "committed"
    world.model.steps = []
    before = copy.deepcopy(world.model)
    clean = world.copy(scratch / "clean")
    run, of = _begun(case, clean, past)
    assert clean.do(case.part, run, host, of=of) == "committed"
    if case.part == "back":
        assert clean.model.snapshot() == stood.snapshot()
    return _Ready(case, world, past, before, clean.model, tuple(clean.model.steps))


def _begun(case: Case, world: World, past: Path | None) -> tuple[Path, str]:
    if case.part != "back":
        return world.run(case.intent), ""
    assert past is not None
    return world.back_of(world.folder / past.name), case.of


def _is_sensible(fault: Fault, step: str, case: Case) -> bool:
    """A unit can only fail where one is started, a target only be gone for a host, a write be torn where one is."""
    if step.startswith("?"):
        return fault is Fault.REFUSED
    match fault:
        case Fault.UNIT_FAILS:
            return "systemctl start" in step or "systemctl restart" in step
        case Fault.TARGET_GONE:
            return case.intent.role == "host" and (case.part in {"connect", "disconnect"} or case.of == "connect")
        case Fault.LOST_AMID:
            return step.startswith("… # put")
        case Fault.KILLED_GOES_ON:
            return step.startswith("…")
        case _:
            return True


def cases(every: int = 1, only: str = "") -> Iterator[Row]:
    """Yields a row for each case, or for each `every`th."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  mkdtemp makes it private; documents are fsynced
    count = 0
    for case in CASES:
        if only not in {"", case.name}:
            continue
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            ready = _prepared(case, Path(scratch))
            for at, step in enumerate(ready.steps):
                for fault in Fault:
                    if not _is_sensible(fault, step, case):
                        continue
                    count += 1
                    if count % every == 0:
                        yield judged(ready, at, fault, Path(scratch) / "case")


def judged(ready: _Ready, at: int, fault: Fault, scratch: Path) -> Row:
    """Returns how one case ends; `scratch` is made and removed."""
    scratch.mkdir()
    try:
        return _judged(ready, at, fault, scratch)
    finally:
        shutil.rmtree(scratch)


def _judged(ready: _Ready, at: int, fault: Fault, scratch: Path) -> Row:
    world = ready.world.copy(scratch / "world")
    run, of = _begun(ready.case, world, ready.past)
    world.model.at, world.model.fault, world.model.steps = at, fault, []
    gone = Holder(run.name, _dead(), _dead(), "me@here")  # whoever comes next finds that this run's process died
    with run_folder_is_full() as fill:
        world.model.when_struck = fill if fault is Fault.RUN_FULL else lambda: None
        try:
            said = world.do(ready.case.part, run, ready.case.intent.host, of=of, holder=gone)
        except KilledError:
            said = "killed"
    struck = world.model.has_struck
    world.model.mended(_REACHABLE)
    row = Row(ready.case.name, at, ready.steps[at], fault, said, _stands(ready, world.model, fault))
    if not struck:
        return replace(row, wrong="the step was not reached")
    again, first = _again(ready, world.copy(scratch / "again"))
    back, second = _back(ready, world.copy(scratch / "back"), run)
    wrong = _wrong(row, ready, (again, first), (back, second))
    if wrong == f"back: {back}, and stands amid" and any(one.cannot_restore for one in changes_of(run)):
        back, wrong = f"{back}, but what the run names as not to be restored", ""
    return replace(row, again=again, back=back, wrong=wrong)


def _again(ready: _Ready, world: World) -> tuple[str, FaultyModel]:
    """The same once more in a new run: a second provision, or the same rollback."""
    run, of = _begun(ready.case, world, ready.past)
    return world.do(ready.case.part, run, ready.case.intent.host, of=of), world.model


def _back(ready: _Ready, world: World, run: Path) -> tuple[str, FaultyModel]:
    """`rollback RUN`; of a rollback: provision again."""
    case = ready.case
    if case.part == "back":
        return world.do(case.of, world.run(case.intent), case.intent.host), world.model
    changes = changes_of(world.folder / run.name)
    if not changes:
        return "nothing to take back", world.model
    back = world.back_of(world.folder / run.name)
    return world.do("back", back, case.intent.host, of=changes[0].part.value), world.model


def _stands(ready: _Ready, model: FaultyModel, fault: Fault) -> str:
    if fault in FOR_GOOD:  # nobody could take away what was laid ready; the next run does
        model = copy.deepcopy(model)
        model.files = {path: one for path, one in model.files.items() if ".fabricctl" not in path}
    if _same(model, ready.before, fault):
        return "before"
    return "intended" if _same(model, ready.intended, fault) else "amid"


def _same(model: FaultyModel, other: FaultyModel, fault: Fault) -> bool:
    """Whether two hosts are the same, when systemd has tried what waits; after a boot, as the other is after one."""
    found, wanted = copy.deepcopy(model), copy.deepcopy(other)
    found.inside = True
    for unit in sorted(found.failed_units):
        found.retry(unit)
    if fault is Fault.REBOOTS:
        wanted.boot()
    return _comparable(found) == _comparable(wanted)


def _comparable(model: FaultyModel) -> str:
    """Returns all that the host is; what was drawn for it stands for itself: who it is, serial numbers, UUIDs."""
    text = "\n".join(f"{name} {_sorted(value)}" for name, value in model.snapshot().items())
    drawn = {"host": model.files.get("/etc/nvme/hostid", ("", 0))[0].strip()}
    drawn |= {path: value for path, value in model.nvmet.values.items() if path.endswith(("_serial", "_uuid"))}
    for path, value in sorted(drawn.items()):
        text = text.replace(value, f"(of {path})") if value else text
    return text


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return sorted((key, _sorted(one)) for key, one in value.items())
    if isinstance(value, set | frozenset):
        return sorted(value)
    return [_sorted(one) for one in value] if isinstance(value, tuple) else value


def _wrong(row: Row, ready: _Ready, again: tuple[str, FaultyModel], back: tuple[str, FaultyModel]) -> str:
    """Returns what does not hold, "" when all does."""
    is_open = row.said in {"killed", "unrecorded", *_OPEN}
    should = "intended" if row.said in _WELL else "before"
    if not is_open and row.stands != should:
        return f"says {row.said}, and stands {row.stands}"
    for name, (outcome, model), goal in (("again", again, ready.intended), ("back", back, ready.before)):
        if outcome not in {*_WELL, "nothing to take back"}:
            return f"{name}: {outcome}"
        if not _same(model, goal, row.fault):
            return f"{name}: {outcome}, and stands {_stands(ready, model, row.fault)}"
    return ""


# --- the table ------------------------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """Returns the rows as Markdown: a line a step, a column a fault."""
    lines = []
    for name in dict.fromkeys(one.case for one in rows):
        own = [one for one in rows if one.case == name]
        cells = {(one.number, one.fault): one.cell() for one in own}
        steps = dict.fromkeys((one.number, one.step) for one in own)
        lines += [f"## {name}", "", f"| # | step | {' | '.join(Fault)} |", f"|---|---|{'---|' * len(Fault)}"]
        for number, step in steps:
            row = " | ".join(cells.get((number, fault), "") for fault in Fault)
            lines.append(f"| {number} | {step.replace('|', '¦')} | {row} |")
        lines.append("")
    return "\n".join(lines)


def _rows(asked: tuple[int, str]) -> list[Row]:
    return list(cases(*asked))


def main() -> int:
    """Prints or writes the table; returns 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    names = [one.name for one in CASES if asked.only in one.name]
    rows: list[Row] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for found in pool.map(_rows, [(asked.every, name) for name in names]):
            rows += found
            for row in found:
                if row.wrong:
                    sys.stderr.write(f"{row.case} #{row.number} {row.step} x {row.fault}: {row.said}: {row.wrong}\n")
            sys.stderr.flush()
    wrong = sum(bool(one.wrong) for one in rows)
    answering = sum(one.said.startswith("uncertain") and one.fault not in FOR_GOOD for one in rows)
    told = {"uncertain": f"uncertain ({answering} of a host that answered again)"}
    counts = Counter(one.said.split(":")[0] for one in rows).most_common()
    ends = ", ".join(f"{count} {told.get(said, said)}" for said, count in counts)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    where = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    made = f"{datetime.now(UTC):%Y-%m-%d}, commit {commit.stdout.strip()}, {where}"
    text = f"{_HEAD}\n{made}\n\n{len(rows)} cases, {wrong} wrong: {ends}.\n\n{table(rows)}"
    if asked.output:
        asked.output.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(rows)} cases, {wrong} wrong: {ends}\n")
    return 1 if wrong else 0


_HEAD: Final = """# Faults of hosts and targets

Made by `python -m tests.faults_table_hosts`, over a host that keeps state (`tests/unit/host/model.py`). A cell: the outcome
that the run records, and how the host stands; then how a second provision ends, and the rollback of the run (of a way back:
the same rollback again, and a provision), each of which must arrive at "intended" and at "before". "killed": nobody was left
to record one. "unrecorded": the run folder could not be written, which the task says and the exit code is for. "…": an action that the agent performs on the host; "?": a question of several in one round trip.
"""

if __name__ == "__main__":
    raise SystemExit(main())
