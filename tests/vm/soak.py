"""A lab loaded and watched for hours: a fault every minute or two, a rollback and a provisioning now and then.

    python -m tests.vm.soak --minutes 120 --seed 7

One watch goes on until it has found a loss, or until the fabric is taken back; then the next begins. Judged are the
verdicts of its windows, bytes, and what is left behind:

| wrong | when |
|---|---|
| false pass | a fault took packets, and every window from then on passed |
| false fail | a window failed in which no fault had taken any |
| wrong place | no finding of the failed window names the port of the fault |
| wrong byte | a flaw of the payload without a fault that makes one |
| no window | the watch judged nothing for minutes, or ended in another way than a verdict or the order to stop |
| leak | processes, sockets or memory of guests, the lab or this process grew by more than a tenth from the second quarter to the last |

What a fault took is what the emulated cable says; of a storm, that a watchdog of the emulated switch tripped. A window
that proves nothing (a timer ran out on a busy machine) is no verdict; a fault that only such windows saw is counted as
`not judged`.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fabric.workflow.verifying.prove import names_place
from tests.vm.fabrics import Driven, driven_lab, end_in_order

MACHINES: Final = ("host1", "host2", "target1")
PORTS: Final = ("Ethernet0", "Ethernet8", "Ethernet16")
ROUND_S, WINDOW_S = 60.0, 12
WINDOW_LIMIT_S: Final = 300.0  # none in this time, and the watch hangs
UNCLEAR: Final = 10  # windows that may prove nothing before the first that does
LATER: Final = 2  # windows after a fault is gone: the one that goes on, and one for what was still on the way
ANEW: Final = 10  # rounds between two rollbacks
GROWTH: Final = 1.1
_LOAD: Final = f"""\
span: 8MiB
phases:
  - {{name: soak, pattern: all, size: 64KiB, readers: 4, write_percent: 20, seconds: {WINDOW_S}}}
"""
_LOADING: Final = "verify.load.started"
# BTH kinds of the wire; a CNP never passes here
_KINDS: Final = ("send", "write", "read-request", "read-response", "ack", "data")
# a line for each: processes, TCP sockets, memory in use in KiB
_STATE: Final = (
    "ps -e --no-headers | wc -l; ss -Htan | wc -l; awk '/MemTotal/{t=$2} /MemAvailable/{print t-$2}' /proc/meminfo"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is done to the fabric, at one port. hold_s: how long; 0: as long as a round."""

    name: str
    port: str = ""
    asked: tuple[dict[str, Any], ...] = ()
    hold_s: float = 0.0


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
            return Fault("corrupt", "Ethernet16", (asked,))
        case "flap":
            asked = {**base, "kind": "down", "packet": "roce"}
            return Fault("flap", port, (asked,), hold_s=draw.uniform(0.2, 1.5))
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
    code: int | None = None
    _process: subprocess.Popen[bytes] | None = None
    _known: set[Path] = field(default_factory=set)

    def begin(self) -> None:
        """Starts it; what it prints goes into files, so that no pipe fills up."""
        words = ("--watch", "--profile", str(self.driven.folder / "soak.yml"), "--scratch", "target1", "--checked")
        argv = [
            word for word in self.driven.argv("verify", *words, self.checked) if word != "--json"
        ]  # it tells no window
        self._known = set(self._folders())
        with (self.driven.folder / "watch.log").open("w") as log:
            self._process = subprocess.Popen(
                argv, env=self.driven.environ, cwd=self.driven.folder, stdout=log, stderr=log
            )

    @property
    def is_running(self) -> bool:
        """Returns whether it was begun and has not ended."""
        return self._process is not None and self._process.poll() is None

    def status(self) -> int | None:
        """Returns its exit status, None while it runs."""
        return None if self._process is None else self._process.poll()

    def windows(self) -> list[str]:
        """Returns the verdicts of the windows that it has told so far."""
        return re.findall(r"\b(pass|fail|invalid); [\d,]+ packets so far", self._log())

    def await_windows(self, count: int) -> bool:
        """Waits until it has told so many windows, or ended; returns False where it told none for minutes."""
        known, limit = len(self.windows()), time.monotonic() + WINDOW_LIMIT_S
        while known < count and self.status() is None:
            if time.monotonic() > limit:
                return False
            time.sleep(0.5)
            if len(self.windows()) > known:
                known, limit = len(self.windows()), time.monotonic() + WINDOW_LIMIT_S
        return True

    def await_load(self) -> None:
        """Waits until the next load runs, or the watch has ended: what lasts a second would seldom meet one."""
        begun, limit = self._log().count(_LOADING), time.monotonic() + WINDOW_LIMIT_S
        while self._log().count(_LOADING) == begun and self.status() is None and time.monotonic() < limit:
            time.sleep(0.2)
        time.sleep(2)  # agents begin together, a little later

    def await_clean(self) -> bool:
        """Waits for a window that passed; returns False where one failed, or too many prove nothing."""
        while not {"pass", "fail"} & set(self.windows()) and len(self.windows()) < UNCLEAR:
            if not self.await_windows(len(self.windows()) + 1) or not self.is_running:
                return False
        return self.windows()[-1:] == ["pass"]

    def end(self) -> dict[str, Any]:
        """Ends it in order, unless it ends by itself, and returns what it said; {} the second time."""
        process, self._process = self._process, None
        if process is None:
            return {}
        if process.poll() is None and "fail" not in self.windows():
            process.send_signal(signal.SIGTERM)
        self.code = process.wait(180)
        verdicts = [path / "verdict.json" for path in self._folders() if path not in self._known]
        last: dict[str, Any] = next((json.loads(path.read_text())["data"] for path in verdicts if path.is_file()), {})
        packets = re.findall(r"([\d,]+) packets so far", self._log())
        count = int(packets[-1].replace(",", "")) if packets else 0
        return {"windows": Counter(self.windows()), "packets": count, "verdict": last}

    def kill(self) -> None:
        """Ends it at once, wherever it is; nothing where it has ended."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _folders(self) -> list[Path]:
        return sorted((self.driven.folder / "runs").glob("*-watch"))

    def _log(self) -> str:
        return (self.driven.folder / "watch.log").read_text()

    def unclear(self) -> list[str]:
        """Returns what it said of each window that proved nothing."""
        return [line.strip() for line in self._log().splitlines() if "verify.window.done — invalid" in line]

    def last_words(self) -> str:
        """Returns the end of what it said."""
        return self._log()[-500:]


@dataclass(slots=True)
class Record:
    """What the soak came to."""

    rounds: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)
    packets: int = 0
    wrong: list[str] = field(default_factory=list)
    samples: dict[str, list[int]] = field(default_factory=dict)

    def take(self, said: dict[str, Any]) -> None:
        self.windows.update(said.get("windows", {}))
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
    """Yields how often the fault has taken something so far; it is taken away in the end."""
    storms = _storms(driven)
    numbers = [driven.site.ask("fault-add", **one) for one in fault.asked]

    def struck() -> int:
        if fault.name == "storm":
            return _storms(driven) - storms
        rows = driven.site.ask("fault-list")  # of a flap: what its cable did not carry, which may be nothing
        return sum(int(one["struck"]) for one in rows if one["number"] in numbers)

    try:
        yield struck
    finally:
        for number in numbers:
            driven.site.ask("fault-remove", number=number)


def _storms(driven: Driven) -> int:
    """Returns how many storms the watchdogs of the emulated switch have detected."""
    (ports,) = driven.site.ask("counters", switches=["leaf1"]).values()
    return sum(int(dog["storms_detected"]) for row in ports.values() for dog in row["counters"]["watchdog"])


def one_round(driven: Driven, watch: Watch, fault: Fault, record: Record) -> None:
    """Plants one fault under the watch and judges what the watch says of it."""
    if fault.name == "flap":
        watch.await_load()
    begin, first = time.monotonic(), len(watch.windows())
    with planted(driven, fault) as count:
        while time.monotonic() - begin < (fault.hold_s or ROUND_S) and watch.status() is None:
            time.sleep(min(0.5, fault.hold_s or 0.5))
        struck = count()
        if fault.name == "storm":  # it ends by itself, and a watchdog may see it only then
            time.sleep(1)
            struck = count()
    is_told = watch.await_windows(len(watch.windows()) + LATER if struck else first + 1)
    while time.monotonic() - begin < ROUND_S and watch.status() is None:
        time.sleep(0.5)
    seen, said = watch.windows()[first:], {}
    if "fail" in seen or not watch.is_running:
        said = watch.end()
        record.take(said)
    wrong = list(_judged(fault, struck, seen, said))
    if not is_told or not seen or watch.code not in {None, 1}:
        wrong.append(f"no window: {fault} {seen}, exit {watch.code}: {watch.last_words()}")
    record.rounds[f"{fault.name}: {_told(struck, seen)}"] += 1
    record.wrong += wrong
    print(f"{fault.name} {fault.port}: took {struck}, windows {' '.join(seen)}", *watch.unclear(), sep="\n  ")


def _told(struck: int, seen: Sequence[str]) -> str:
    if "fail" in seen:
        return "found"
    if not struck:
        return "took nothing"
    return "missed" if set(seen) == {"pass"} else "not judged"


def _judged(fault: Fault, struck: int, seen: Sequence[str], said: dict[str, Any]) -> Iterator[str]:
    findings = said.get("verdict", {}).get("findings", ())
    failed = [one for one in findings if one["status"] == "fail"]
    if "fail" in seen:
        if not struck:
            yield f"false fail: {fault} took nothing: {failed}"
        elif not any(names_place(one["place"], f"leaf1/{fault.port}") for one in failed):
            yield f"wrong place: {fault} {failed}"
    elif struck and set(seen) == {"pass"}:
        yield f"false pass: {fault} took {struck}"
    if any(one["cause"] == "payload-corrupted" for one in failed) and fault.name != "corrupt":
        yield f"wrong byte: {fault} {failed}"


def sample(driven: Driven, record: Record) -> None:
    """Notes what is there now: in the guests, in the lab's process, here. A watch is young each time."""
    for name in MACHINES:
        processes, sockets, memory = driven.sh(name, _STATE).split()
        for what, value in (("processes", processes), ("sockets", sockets), ("memory KiB", memory)):
            record.samples.setdefault(f"{name} {what}", []).append(int(value))
    own = {"lab": json.loads((driven.site.folder.path / "process.json").read_text())["pid"], "this": os.getpid()}
    for name, pid in own.items():
        place = Path("/proc") / str(pid)
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
    end_in_order()
    record = Record()
    begin = time.monotonic()
    with driven_lab("lab") as driven:
        (driven.folder / "soak.yml").write_text(_LOAD)
        rounds(driven, random.Random(options.seed), begin + options.minutes * 60, record)  # noqa: S311  (no secret)
    record.wrong += list(record.leaks())
    print(*record.wrong, sep="\n")
    found = {"seed": options.seed, "minutes": round((time.monotonic() - begin) / 60, 1), "rounds": dict(record.rounds)}
    ends = {name: values[len(values) // 4 :: max(1, len(values) // 4)] for name, values in record.samples.items()}
    counts = {"packets": record.packets, "windows": dict(record.windows), "samples": ends, "wrong": len(record.wrong)}
    print(json.dumps({**found, **counts}))
    return 1 if record.wrong else 0


def rounds(driven: Driven, draw: random.Random, end: float, record: Record) -> None:
    """Fault after fault, each under a watch that has seen a window without one, until the time is over."""
    run = driven.fabricctl("provision").document["run_folder"]
    watch, number = Watch(driven, run), 0
    try:
        while time.monotonic() < end:
            number += 1
            if number % ANEW == 0:
                record.take(watch.end())
                run = anew(driven, run, record)
                watch = Watch(driven, run)
            if not watch.is_running:
                watch = Watch(driven, run)
                watch.begin()
                if not watch.await_clean():
                    record.wrong.append(f"no clean window at the begin: {watch.windows()} {watch.last_words()}")
            fault = drawn(draw)
            sample(driven, record)
            one_round(driven, watch, fault, record)
            print(f"{number} {fault.name} {fault.port}: {dict(record.rounds)} wrong {len(record.wrong)}", flush=True)
        record.take(watch.end())
    finally:
        watch.kill()


if __name__ == "__main__":
    sys.exit(main())
