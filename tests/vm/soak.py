"""A lab that is loaded and watched for hours, with a fault every minute and a rollback and provisioning now and then.

    python -m tests.vm.soak --minutes 120 --seed 7

Judged are verdicts, bytes and what is left behind:

| wrong | when |
|---|---|
| false pass | a window passed in which a fault had struck |
| false fail | the watch ended with a loss, and no fault had struck |
| wrong place | the finding does not name the port of the fault |
| wrong byte | a flaw of the payload without a fault that makes one |
| leak | processes, sockets or memory of guests, the lab or the watch grew by more than a tenth from one quarter to the last |

A window that proves nothing (a timer ran out on a busy machine) is counted, and is no false verdict.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fabric.workflow.verifying.prove import names_place
from tests.vm.fabrics import Driven, driven_lab

MACHINES: Final = ("host1", "host2", "target1")
PORTS: Final = ("Ethernet0", "Ethernet8", "Ethernet16")
ROUND_S, WINDOW_S, FOUND_S = 60.0, 12, 150.0
ANEW: Final = 10  # rounds between two rollbacks
GROWTH: Final = 1.1
_LOAD: Final = f"""\
span: 8MiB
phases:
  - {{name: soak, pattern: all, size: 64KiB, readers: 4, write_percent: 20, seconds: {WINDOW_S}}}
"""
# BTH kinds of the wire; a CNP never passes here
_KINDS: Final = ("send", "write", "read-request", "read-response", "ack", "data")
# a line for each: processes, TCP sockets, memory in use in KiB
_STATE: Final = (
    "ps -e --no-headers | wc -l; ss -Htan | wc -l; awk '/MemTotal/{t=$2} /MemAvailable/{print t-$2}' /proc/meminfo"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is done to the fabric. is_loss: packets are lost by it; else payload is damaged, or nothing."""

    name: str
    port: str = ""
    asked: tuple[dict[str, Any], ...] = ()
    hold_s: float = 0.0
    is_loss: bool = True


def drawn(draw: random.Random) -> Fault:
    """Returns the next fault; one in four rounds has none."""
    port = draw.choice(PORTS)
    base = {"switch": "leaf1", "port": port}
    match draw.choice(("none", "nth", "nth", "random", "corrupt", "flap", "storm", "none")):
        case "nth":
            kind = draw.choice(_KINDS)
            return Fault(f"nth {kind}", port, ({**base, "kind": "drop", "packet": kind, "nth": draw.randint(1, 200)},))
        case "random":
            return Fault("one in 1000", port, ({**base, "kind": "drop", "packet": "roce", "nth": 1000, "every": True},))
        case "corrupt":
            asked = {**base, "port": "Ethernet16", "kind": "corrupt", "packet": "write", "nth": draw.randint(1, 200)}
            return Fault("corrupt", "Ethernet16", (asked,), is_loss=False)
        case "flap":
            return Fault("flap", port, ({**base, "kind": "down"},), hold_s=draw.uniform(0.2, 1.5))
        case "storm":
            asked = {**base, "kind": "storm", "priority": 3, "duration_ms": draw.randint(800, 2000)}
            return Fault("storm", port, (asked,), hold_s=3.0)
        case _:
            return Fault("none")


@dataclass(slots=True)
class Watch:
    """`fabricctl verify --watch` in a process of its own."""

    driven: Driven
    checked: str
    _process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Starts it; what it prints goes into files, so that no pipe fills up."""
        words = ("--watch", "--profile", str(self.driven.folder / "soak.yml"), "--scratch", "target1", "--checked")
        argv = self.driven.argv("verify", *words, self.checked)
        with (self.driven.folder / "watch.json").open("w") as out, (self.driven.folder / "watch.log").open("w") as log:
            self._process = subprocess.Popen(
                argv, env=self.driven.environ, cwd=self.driven.folder, stdout=out, stderr=log, text=True
            )

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    def status(self) -> int | None:
        """Returns its exit status, None while it runs."""
        return None if self._process is None else self._process.poll()

    def windows(self) -> int:
        """Returns how many windows it has told so far."""
        return (self.driven.folder / "watch.log").read_text().count(" packets so far")

    def end(self) -> dict[str, Any]:
        """Ends it in order, and returns what it said."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait(180)
        text = (self.driven.folder / "watch.json").read_text()
        return json.loads(text) if text.strip() else {}


@dataclass(slots=True)
class Record:
    """What the soak came to."""

    rounds: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)
    packets: int = 0
    wrong: list[str] = field(default_factory=list)
    samples: dict[str, list[int]] = field(default_factory=dict)

    def take(self, said: dict[str, Any]) -> None:
        for name, count in said.get("windows", ()):
            self.windows[name] += count
        self.packets += said.get("packets", 0)

    def leaks(self) -> Iterator[str]:
        """Yields what grew from the second quarter to the last; the first one is for caches to fill."""
        for name, values in self.samples.items():
            quarter = len(values) // 4
            if quarter < 2:
                continue
            early, late = sum(values[quarter : 2 * quarter]) / quarter, sum(values[-quarter:]) / quarter
            if late > GROWTH * early + 4:
                yield f"leak: {name} {early:.0f} to {late:.0f}"


@contextmanager
def planted(driven: Driven, fault: Fault) -> Iterator[Callable[[], int]]:
    """Yields how often the fault has struck so far; it is taken away in the end."""
    numbers = [driven.site.ask("fault-add", **one) for one in fault.asked]

    def struck() -> int:
        rows = driven.site.ask("fault-list")
        return sum(int(one["struck"]) for one in rows if one["number"] in numbers)

    try:
        yield struck
    finally:
        for number in numbers:
            driven.site.ask("fault-remove", number=number)


def one_round(driven: Driven, watch: Watch, fault: Fault, record: Record) -> None:
    """Plants one fault under the watch and judges what the watch says of it."""
    begin = time.monotonic()
    struck = 0
    with planted(driven, fault) as count:
        while time.monotonic() - begin < (fault.hold_s or ROUND_S) and watch.status() is None:
            time.sleep(0.5 if not fault.hold_s else min(0.5, fault.hold_s))
        struck = count()
    end = begin + (FOUND_S if struck or fault.hold_s else ROUND_S)
    while watch.status() is None and time.monotonic() < end:
        time.sleep(1)
    status, said = watch.status(), watch.end()
    record.take(said)
    record.rounds[f"{fault.name}: {_told(status)}"] += 1
    record.wrong += list(_judged(fault, struck, status, said))


def _told(status: int | None) -> str:
    return "watch went on" if status is None else {0: "proven", 1: "loss found"}.get(status, f"exit {status}")


def _judged(fault: Fault, struck: int, status: int | None, said: dict[str, Any]) -> Iterator[str]:
    invalid = dict(said.get("windows", ())).get("invalid", 0)
    findings = ((said.get("last") or {}).get("verdict") or {}).get("findings", ())
    failed = [one for one in findings if one["status"] == "fail"]
    if status == 1 and fault.name == "none":
        yield f"false fail: {failed}"
    elif status == 1 and not any(names_place(one["place"], f"leaf1/{fault.port}") for one in failed):
        yield f"wrong place: {fault} {failed}"
    if status != 1 and struck and not invalid:
        yield f"false pass: {fault} struck {struck} times"
    if any(one["cause"] == "payload-corrupted" for one in failed) and fault.name != "corrupt":
        yield f"wrong byte: {fault} {failed}"


def sample(driven: Driven, watch: Watch, record: Record) -> None:
    """Notes what is there now: in the guests, in the lab's process, in the watch."""
    for name in MACHINES:
        processes, sockets, memory = driven.sh(name, _STATE).split()
        for what, value in (("processes", processes), ("sockets", sockets), ("memory KiB", memory)):
            record.samples.setdefault(f"{name} {what}", []).append(int(value))
    own = {
        "lab": json.loads((driven.site.folder.path / "process.json").read_text())["pid"],
        "watch": watch.pid,
        "this": 0,
    }
    for name, pid in own.items():
        place = Path("/proc") / (str(pid) if pid else "self")
        if not place.exists():
            continue
        rss = next(int(line.split()[1]) for line in (place / "status").read_text().splitlines() if "VmRSS" in line)
        record.samples.setdefault(f"{name} memory KiB", []).append(rss)
        record.samples.setdefault(f"{name} descriptors", []).append(len(list((place / "fd").iterdir())))


def anew(driven: Driven, run: str, record: Record) -> str:
    """Takes the provisioning back and makes it again; returns its run folder."""
    back = driven.fabricctl("rollback", run, inventory=True)
    again = driven.fabricctl("provision")
    record.rounds["rolled back and provisioned"] += 1
    if back.status or again.status:
        record.wrong.append(f"rollback exit {back.status}, provision exit {again.status}: {again.stderr[-500:]}")
    return str(again.document.get("run_folder", run))


def main() -> int:
    """Runs the soak; one JSON object as the last line. Returns 1 where anything was wrong."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--minutes", type=float, default=120)
    asked.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = asked.parse_args()
    draw, record = random.Random(options.seed), Record()  # noqa: S311  (no secret)
    with driven_lab("lab") as driven:
        run = driven.fabricctl("provision").document["run_folder"]
        (driven.folder / "soak.yml").write_text(_LOAD)
        end, number = time.monotonic() + options.minutes * 60, 0
        while time.monotonic() < end:
            if number and number % ANEW == 0:
                run = anew(driven, run, record)
            number += 1
            watch, fault = Watch(driven, run), drawn(draw)
            watch.begin()
            limit = time.monotonic() + 180
            while watch.status() is None and not watch.windows() and time.monotonic() < limit:
                time.sleep(0.5)  # the first window is without a fault
            sample(driven, watch, record)
            one_round(driven, watch, fault, record)
            print(f"{number} {fault.name} {fault.port}: {dict(record.windows)} wrong {len(record.wrong)}", flush=True)
    record.wrong += list(record.leaks())
    print(*record.wrong, sep="\n")
    found = {"seed": options.seed, "minutes": options.minutes, "rounds": dict(record.rounds), "packets": record.packets}
    print(json.dumps({**found, "windows": dict(record.windows), "wrong": len(record.wrong)}))
    return 1 if record.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
