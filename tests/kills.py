"""`python -m tests.kills --count 60 --seed S`: kill -9 of a real `fabricctl provision` at a step of its journal, then the
way out: `rollback RUN`, or `provision` again. Every switch must end exactly as before, or fully as intended.

The hook is outside the product: the journal is watched, and the process is killed once the line of the chosen step is
there, up to a few hundredths of a second later. A fault of the lab makes some runs take the ways back. The switches
are those of `tests.strategies.site`: one SONiC, one EOS. The killed process has the machine's clock; the way out is
taken in this process on a clock that waits for no timer, the switches' own clock too.

Targets and hosts are not killed at here: that wants machines, `tests.vm.kills`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fabric.errors import FabricError
from fabric.lab import Fault, FaultKind, Fronts, serve
from fabric.state import Outcome
from fabric.workflow import Environment, Request, provision, rollback
from tests.faults.clock import JumpClock
from tests.faults.keys import few_host_keys
from tests.strategies.site import specs, write_site

__all__ = ("WAYS", "Kill", "killed", "main", "reference")

ROOT: Final = Path(__file__).resolve().parent.parent
_CONFIRM_S: Final = 20
_LATEST_S: Final = 0.05  # after the line is there
_PATIENCE_S: Final = 300.0
_END: Final = "its end"  # the run was over: it was not killed
_NEVER_TOUCHED: Final = ("pushed nothing", "before it changed a switch", "committed nothing")

WAYS: Final[dict[str, tuple[str, tuple[Fault, ...]]]] = {
    "straight": ("", ()),
    "refused commit": ("leaf2", (Fault(FaultKind.REFUSE, "commit timer", times=1),)),
    "lost commit": ("leaf2", (Fault(FaultKind.DROP_AFTER, "commit timer", times=1),)),
    "lost patch": ("leaf1", (Fault(FaultKind.DROP_AFTER, "apply-patch /", times=1),)),
    "lost confirmation": ("leaf1", (Fault(FaultKind.DROP_AFTER, "systemctl stop", times=1),)),
    "refused saving": ("leaf1", (Fault(FaultKind.REFUSE, "config save", times=1),)),
    "lost saving": ("leaf2", (Fault(FaultKind.DROP_AFTER, "write memory", times=1),)),
}
"""Which device goes another way than the straight one, and why."""


@dataclass(frozen=True)
class Kill:
    """One kill and what came of it.

    Attributes:
        at: the device and state whose line was the last in its journal when the process died.
        out: `rollback` or `provision`.
        ends: where each switch stands after it.
        wrong: why it does not hold, "" if it does.
    """

    number: int
    way: str
    at: str
    out: str
    ends: str = ""
    wrong: str = ""

    def __str__(self) -> str:
        return f"{self.number:3} {self.way}, at {self.at}, then {self.out}: {self.ends}{self.wrong and f' WRONG {self.wrong}'}"


@dataclass(frozen=True)
class _Site:
    folder: Path
    request: Request
    environment: Environment
    fronts: Fronts

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def configs(self) -> dict[str, tuple[object, object]]:
        """Returns by switch what it runs and what it boots with, in canonical form."""
        return {name: (_canonical(front.running()), _canonical(front.startup())) for name, front in self.fronts.items()}


def _canonical(text: str) -> object:
    if text.lstrip().startswith("{"):
        return json.loads(text)
    return [line for line in text.split("\n") if line.strip() and not line.startswith("! ")]


@contextmanager
def _site(folder: Path) -> Iterator[_Site]:
    clock = JumpClock()
    inventory = write_site(folder)
    quick = [replace(one, reload_s=0.0) for one in specs()]  # an outage is real time, and the clock waits for none
    with serve(quick, directory=folder / "lab", clock=clock) as fronts:
        overlay = folder / "lab.yml"
        overlay.write_text(fronts.inventory())
        overlay.chmod(0o600)
        request = Request((inventory, overlay), runs=folder / "runs", confirm_s=_CONFIRM_S, disruptive=True)
        yield _Site(folder, request, Environment(clock=clock, state_dir=folder / "state"), fronts)


Ends = dict[str, dict[str, object]]


def reference() -> Ends:
    """Returns by switch its configuration before, and as one undisturbed run leaves it."""
    with tempfile.TemporaryDirectory() as folder, _site(Path(folder)) as site:
        before = site.configs()
        provision(site.request, site.environment)
        after = site.configs()
    return {name: {"before": before[name][0], "intended": after[name][0]} for name in before}


def killed(number: int, seed: int, ends: Ends) -> Kill:
    """Returns what came of one kill; the same number and seed give the same choice."""
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 - no secret
    way = chance.choice(list(WAYS)) if chance.random() < 0.6 else "straight"
    device, faults = WAYS[way]
    watched = device or chance.choice(list(ends))
    line, late_s = chance.randrange(1, 26 if device else 21), chance.uniform(0, _LATEST_S)
    out = chance.choice(("rollback", "provision"))
    with tempfile.TemporaryDirectory() as folder, _site(Path(folder)) as site:
        for fault in faults:
            site.fronts[device].add_fault(fault)
        at = _kill(site, watched, line, late_s)
        for front in site.fronts.values():
            front.clear_faults()
        return _judged(Kill(number, way, at, out), site, ends)


def _kill(site: _Site, device: str, line: int, late_s: float) -> str:
    sources = [word for source in site.request.sources for word in ("-i", str(source))]
    command = [str(ROOT / ".venv/bin/fabricctl"), "provision", *sources, "--runs", str(site.request.runs), "--quiet"]
    command += ["--switches-only", "--disruptive", "--confirm-s", str(_CONFIRM_S), "--json"]
    with (site.folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            stdout=said,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "FABRICCTL_STATE": str(site.state_dir)},
        )
    end_s = time.monotonic() + _PATIENCE_S
    while process.poll() is None and _lines(site, device) < line and time.monotonic() < end_s:
        time.sleep(0.001)
    time.sleep(late_s)
    was_running = process.poll() is None
    process.kill()
    process.wait()
    if not was_running:
        return _END
    entries = _entries(site, device)
    return f"{device} {entries[-1]['state']} {entries[-1]['phase']}" if entries else "nothing begun"


def _journals(site: _Site, device: str) -> list[Path]:
    return sorted(site.state_dir.glob(f"*/{device}.jsonl"))


def _lines(site: _Site, device: str) -> int:
    return sum(path.read_bytes().count(b"\n") for path in _journals(site, device))


def _entries(site: _Site, device: str) -> list[dict[str, str]]:
    whole = [line for path in _journals(site, device) for line in path.read_text().split("\n")[:-1]]
    return [json.loads(line) for line in whole]


def _judged(kill: Kill, site: _Site, ends: Ends) -> Kill:
    request = replace(site.request, confirm_s=300)  # nobody kills this one, and the machine may be slow
    said: dict[str, Outcome] = {}
    refusal = ""
    try:
        if kill.out == "rollback":
            (run,) = site.request.runs.glob("*-provision")
            summary = rollback(run, request, site.environment)
        else:
            summary = provision(request, site.environment)
        said = {one.device: one.outcome for one in summary.devices}
        refusal = "; ".join(one.error for one in summary.devices if one.error)
    except FabricError as error:
        refusal = str(error)
    wanted = "before" if kill.out == "rollback" else "intended"
    where = {name: _where(pair, ends[name]) for name, pair in site.configs().items()}
    told = ", ".join(f"{name} {place} ({said.get(name, 'not contacted')})" for name, place in where.items())
    kill = replace(kill, ends=f"{told}{refusal and f'; {refusal}'}")
    bad = {name: one for name, one in said.items() if one not in {Outcome.COMMITTED, Outcome.UNCHANGED}}
    if set(where.values()) != {wanted} or bad:
        return replace(kill, wrong=f"expected {wanted} everywhere")
    if not said and not any(words in refusal for words in _NEVER_TOUCHED):
        return replace(kill, wrong="refused for another reason")
    return kill


def _where(pair: tuple[object, object], ends: dict[str, object]) -> str:
    names = [next((name for name, one in ends.items() if one == config), "neither") for config in pair]
    return names[0] if names[0] == names[1] else f"running {names[0]}, saved {names[1]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Kills, takes the way out, prints each kill and the figure last; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4, help="kills at a time")
    given = parser.parse_args(argv)
    kills: list[Kill] = []
    with few_host_keys(), ThreadPoolExecutor(given.threads) as pool:
        ends = reference()
        while missing := given.count - sum(1 for one in kills if one.at != _END):
            for one in pool.map(
                lambda number: killed(number, given.seed, ends), range(len(kills), len(kills) + missing)
            ):
                kills.append(one)
                print(one, flush=True)
    wrong = sum(1 for one in kills if one.wrong)
    steps = {one.at.split(" ", 1)[-1] for one in kills if one.at != _END}
    outs = Counter(one.out for one in kills)
    print(
        f"{given.count} kills (seed {given.seed}) at {len(steps)} different steps, {len(kills) - given.count} runs over before the kill, then "
        f"{', '.join(f'{count} {name}' for name, count in sorted(outs.items()))}: {len(kills) - wrong} ended well, {wrong} not"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
