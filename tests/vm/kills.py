"""kill -9 of `fabricctl provision` of a whole lab (switch, target, hosts) at any time, then the way out.

    python -m tests.vm.kills --count 10 --seed 7
    python -m tests.vm.kills --count 4 --of power       the power of a host or target is cut instead

The way out is `rollback RUN` or `provision` again, drawn. Every machine must be exactly as before, or fully as intended:
then `provision` once more changes nothing anywhere. Killed is fabricctl alone, whose ansible-playbook goes on, or all that
it started. Who works on at a host keeps the next one out until it ends: that one is asked again. A machine whose power was
cut boots while the run goes on, which ends by itself: what it wrote there at that time may be lost, in part too, and hosts
connect to a target that is not there.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.vm.fabrics import Driven, Ran, Saved, driven_lab, end_in_order, state_of_host

__all__ = ("LabKill", "kill_at", "kills", "main")

MACHINES: Final = ("host1", "host2", "target1")
HELD: Final = "another run is at this host"
AGAIN_S, HELD_S = 5.0, 300.0
ENDS_S: Final = 1800.0  # a run that lost a machine


@dataclass(frozen=True, slots=True)
class LabKill:
    """One kill and what came of it.

    Attributes:
        at_s: after the begin of the run. whole: the processes that it had started were killed too.
        machine: whose power was cut instead, "" for none.
        was_running: it had not ended by itself: it was killed.
        out: `rollback` or `provision`. told: by device how the way out ended.
        wrong: why it does not hold, "" if it does.
    """

    number: int
    at_s: float
    whole: bool
    out: str
    machine: str = ""
    was_running: bool = True
    told: str = ""
    wrong: str = ""

    def __str__(self) -> str:
        what = f"the power of {self.machine}" if self.machine else "all of it" if self.whole else "fabricctl alone"
        end = f" WRONG {self.wrong}" if self.wrong else ""
        what += "" if self.was_running else ", had it not ended,"
        what += " cut" if self.machine else " killed"
        return f"{self.number} {what} after {self.at_s:.1f} s, then {self.out}: {self.told}{end}"


def state(driven: Driven) -> dict[str, str]:
    """Returns by device what it is, as text to compare."""
    configs: dict[str, str] = driven.site.ask("configs")
    return {one: state_of_host(driven, one) for one in MACHINES} | configs


def kills(bare: Saved, count: int, draw: random.Random, *, of_power: bool = False) -> list[LabKill]:
    """Returns what came of so many kills, each of a run on bare machines.

    Args:
        bare: the lab before anything was provisioned.
        count: of kills, spread over the time that one undisturbed run takes.
        draw: draws the rest.
        of_power: of a machine, not of the run.
    """
    driven = bare.again()
    before = state(driven)
    begin = time.monotonic()
    assert driven.fabricctl("provision").status == 0
    length_s = time.monotonic() - begin
    print(f"undisturbed: {length_s:.0f} s", flush=True)
    found = []
    for number in range(count):
        # one in each of as many parts of the run, so that none of it is left out
        at_s = length_s * (number + draw.random()) / count
        kill = LabKill(number + 1, at_s, draw.random() < 0.5, draw.choice(("rollback", "provision")))
        if of_power:
            kill = replace(kill, machine=draw.choice(MACHINES))
        for name in ("runs", "state"):  # of machines that are no more
            shutil.rmtree(driven.folder / name, ignore_errors=True)
        found.append(kill_at(bare.again(), kill, before))
        print(found[-1], flush=True)
    return found


def kill_at(driven: Driven, kill: LabKill, before: dict[str, str]) -> LabKill:
    """Returns the kill with what came of it."""
    with (driven.folder / "killed.log").open("w") as log:
        process = subprocess.Popen(
            driven.argv("provision"), env=driven.environ, cwd=driven.folder, stdout=log, stderr=log
        )
    with_it: list[int] = []
    try:
        process.wait(kill.at_s)
        kill = replace(kill, was_running=False)
    except subprocess.TimeoutExpired:
        with_it = _below(process.pid)
    if kill.machine:
        driven.site.machine(kill.machine).power_cycle()
        process.wait(ENDS_S)
    for pid in (process.pid, *(with_it if kill.whole else ())):
        _kill(pid)
    process.wait()
    try:
        return _judged(driven, kill, before)
    finally:
        for pid in with_it:  # what went on must not reach the next machines
            _kill(pid)


def _patiently(driven: Driven, *words: str) -> Ran:
    """Returns how a verb ended; it is asked again while somebody is at a host."""
    end = time.monotonic() + HELD_S
    while True:
        done = driven.fabricctl(*words)
        if done.status == 0 or HELD not in done.stdout + done.stderr or time.monotonic() > end:
            return done
        time.sleep(AGAIN_S)


def _judged(driven: Driven, kill: LabKill, before: dict[str, str]) -> LabKill:
    wrong: list[str] = []
    runs = sorted((driven.folder / "runs").glob("*-provision"))
    if kill.out == "rollback" and not runs:
        told = "no run folder"
    else:
        words = ("rollback", str(runs[-1])) if kill.out == "rollback" else ("provision",)
        done = _patiently(driven, *words)
        told = json.dumps(done.outcomes()) if done.document.get("devices") else done.stderr.strip()[-300:]
        wrong += [] if done.status == 0 else [f"{words[0]} exit {done.status}: {done.stderr.strip()[-500:]}"]
    if kill.out == "rollback":
        now = state(driven)
        wrong += [
            f"{one} is not as before: {_differing(now[one], text)}" for one, text in before.items() if now[one] != text
        ]
    else:
        again = _patiently(driven, "provision")
        if again.status or set(again.outcomes().values()) != {"unchanged"}:
            wrong.append(f"not as intended: {again.outcomes() if again.document else again.stderr[-300:]}")
    return replace(kill, told=told, wrong="; ".join(wrong))


def _differing(now: str, before: str) -> str:
    found = set(now.splitlines()) ^ set(before.splitlines())
    return "; ".join(sorted(found))[:400]


def _below(pid: int) -> list[int]:
    """Returns the processes that a process started, and theirs."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(words[1]), []).append(int(place.parent.name))
    found, left = [], [pid]
    while left:
        own = parents.get(left.pop(), [])
        found += own
        left += own
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main() -> int:
    """Runs the kills; one JSON object as the last line. Returns 1 where anything was wrong."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--count", type=int, default=10)
    asked.add_argument("--of", choices=("run", "power"), default="run")
    asked.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = asked.parse_args()
    end_in_order()
    with driven_lab("lab") as driven:
        driven.site.save_all(driven.folder / "bare")
        draw = random.Random(options.seed)  # noqa: S311  (no secret)
        found = kills(Saved(driven, driven.folder / "bare"), options.count, draw, of_power=options.of == "power")
    wrong = [one for one in found if one.wrong]
    outs = Counter(one.out for one in found)
    killed = sum(one.was_running for one in found)  # the last part of a run may be over before its time
    print(json.dumps({"seed": options.seed, "runs": len(found), "killed": killed, **outs, "wrong": len(wrong)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
