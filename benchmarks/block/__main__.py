"""Random reads of a file: the whole engine beside fio and NIXL POSIX, interleaved, with the ratios' intervals.

    python -m benchmarks.block [--rounds N] [--run-ms N] [--tmpfs DIR] [--disk DIR] [--nixl PYTHON] [--row N] [--judge]

| contender | how |
|---|---|
| ours | `fabric.engine.open("file://…")`: URL, dealer, futures; requests read 4 x 1 MiB or 64 x 64 KiB |
| ours, alone | one range a request, so a future for each; no bar |
| fio | one job, O_DIRECT, the depth in its queue; the fastest of io_uring, io_uring registered, libaio in this run |
| fio, jobs | psync, a process for each read in flight: all cores, and buffers that stay in their caches; no bar |
| nixl | `nixl` of PyPI, its POSIX backend, two batches of half the depth; the faster of libaio, io_uring in this run |

Each round has every contender once, in random order. What ours and NIXL read is looked at after each. MiB/s and seconds
of CPU for each GiB are medians; a ratio is the median of the rounds' ratios with the 95 % interval of the bootstrap.
With `--judge` it ends with 1 where a bar of issue 4 is missed, or a peer did not run. JSON is the last line.
"""

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.block import fio
from benchmarks.block.row import MARK, MIB, Result, Row, mark
from benchmarks.block.worker import ROOT, Worker
from benchmarks.rdma.intervals import Ratio, ratio

ROWS = (
    Row("tmpfs", MIB, 16, 4, 0.95),
    Row("tmpfs", MIB // 16, 64, 64, 0.85),
    Row("disk", MIB, 16, 4, None),
    Row("disk", MIB // 16, 64, 64, None),
)
MORE_CPU_S_GIB = 0.05
NIXL_BACKENDS = ("use_aio", "use_uring")
Contender = Callable[[int], Result]


def make_file(folder: Path, length: int) -> Path:
    """Writes a file of random bytes in which each run of 64 KiB starts with its number."""
    path = folder / f"fabricctl-bench-{os.getpid()}"
    noise = random.Random(3).randbytes(MIB)
    with path.open("wb") as file:
        for at in range(0, length, MIB):
            part = bytearray(noise)
            for inside in range(0, MIB, MARK):
                part[inside : inside + 8] = mark(at + inside)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return path


def has_nixl(python: str) -> bool:
    """Returns whether that interpreter has NIXL and what its Python interface needs."""
    try:
        done = subprocess.run([python, "-c", "import nixl._api"], capture_output=True, check=False, cwd=ROOT)
    except OSError:
        return False
    return not done.returncode


def contenders(row: Row, path: Path, nixl: str | None, stack: ExitStack) -> dict[str, tuple[str, Contender]]:
    """Returns who runs in a row: name, in which way, and what reads for so many milliseconds."""

    def ours(ranges: int) -> Contender:
        arguments = [str(path), str(row.bytes), str(row.depth), str(ranges)]
        return stack.enter_context(Worker(sys.executable, "benchmarks.block.ours", arguments)).read

    def peer(engine: str) -> Contender:
        return lambda run_ms: fio.read(engine, row, path, run_ms)

    found = {
        "ours": (f"{row.ranges} ranges a request", ours(row.ranges)),
        "ours, alone": ("1 range a request", ours(1)),
    }
    found["fio"] = fastest({engine: peer(engine) for engine in fio.ENGINES})
    found["fio, jobs"] = (fio.JOBS, peer(fio.JOBS))
    if nixl is not None:
        backends: dict[str, Contender] = {}
        for backend in NIXL_BACKENDS:
            arguments = [str(path), str(row.bytes), str(row.depth), backend]
            backends[backend] = stack.enter_context(Worker(nixl, "benchmarks.block.nixl_posix", arguments)).read
        found["nixl"] = fastest(backends)
    return found


def fastest(ways: dict[str, Contender]) -> tuple[str, Contender]:
    """Returns the way that is best of three short tries, taken in turns."""
    tries = {name: [way(300).mib_s] for name, way in ways.items()}
    for _ in range(2):
        for name, way in ways.items():
            tries[name].append(way(300).mib_s)
    best = max(tries, key=lambda name: median(tries[name]))
    return best, ways[best]


def measure(row: Row, path: Path, nixl: str | None, rounds: int, run_ms: int) -> dict[str, object]:
    """Returns a row's figures, and prints them."""
    with ExitStack() as stack:
        found = contenders(row, path, nixl, stack)
        seen: dict[str, list[Result]] = {name: [] for name in found}
        for _round in range(rounds):
            for name in random.sample(list(found), len(found)):
                seen[name].append(found[name][1](run_ms))
    ratios = {
        name: ratio([one.mib_s for one in seen["ours"]], [one.mib_s for one in theirs])
        for name, theirs in seen.items()
        if name != "ours"
    }
    print(f"{row.name}")
    for name, results in seen.items():
        mib_s, cpu = median(one.mib_s for one in results), median(one.cpu_s_gib for one in results)
        beside = f"   ours is {ratios[name]}" if name in ratios else ""
        print(f"  {name:12} {found[name][0]:24} {mib_s:7.0f} MiB/s  {cpu:.3f} CPU s/GiB{beside}", flush=True)
    return {
        "row": row.name,
        "ways": {name: way for name, (way, _run) in found.items()},
        "mib_s": {name: [round(one.mib_s) for one in results] for name, results in seen.items()},
        "cpu_s_gib": {name: [round(one.cpu_s_gib, 4) for one in results] for name, results in seen.items()},
        "ratios": {name: {key: round(value, 4) for key, value in asdict(one).items()} for name, one in ratios.items()},
        "missed": missed(row, ratios, seen),
    }


def missed(row: Row, ratios: dict[str, Ratio], seen: dict[str, list[Result]]) -> list[str]:
    """Returns what the bar asks for and did not get."""
    wrong = []
    to_fio = ratios["fio"]
    if row.least is not None and to_fio.low < row.least:
        wrong.append(f"{row.name}: {to_fio} of fio, {row.least} wanted")
    if row.least is None and to_fio.high < 1:
        wrong.append(f"{row.name}: {to_fio} of fio, below 1")
    cpu = {name: median(one.cpu_s_gib for one in seen[name]) for name in ("ours", "fio")}
    if cpu["ours"] > cpu["fio"] + MORE_CPU_S_GIB:
        wrong.append(f"{row.name}: {cpu['ours']:.3f} CPU s/GiB, fio {cpu['fio']:.3f}")
    if "nixl" not in ratios:
        wrong.append(f"{row.name}: NIXL did not run")
    return wrong


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=13)
    parser.add_argument("--run-ms", type=int, default=400)
    parser.add_argument("--tmpfs", type=Path, default=Path("/dev/shm"))  # noqa: S108  # tmpfs on every Linux
    parser.add_argument("--disk", type=Path, default=ROOT / "build")
    parser.add_argument("--nixl", default=os.environ.get("NIXL_PYTHON", sys.executable), metavar="PYTHON")
    parser.add_argument("--row", type=int, action="append", choices=range(len(ROWS)))
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    if shutil.which("fio") is None:
        parser.error("fio is not installed; run: sudo apt-get install -y fio")
    nixl = given.nixl if has_nixl(given.nixl) else None
    if nixl is None:
        print(f"NIXL is not installed for {given.nixl}: pip install --no-deps nixl nixl-cu12 numpy", file=sys.stderr)
    rows = [ROWS[index] for index in given.row or range(len(ROWS))]
    start_s = time.monotonic()
    with ExitStack() as stack:
        paths = {}
        for place, folder, length in (("tmpfs", given.tmpfs, 1024 * MIB), ("disk", given.disk, 2048 * MIB)):
            if any(row.place == place for row in rows):
                folder.mkdir(parents=True, exist_ok=True)
                held = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
                paths[place] = make_file(Path(held), length)
        found = [measure(row, paths[row.place], nixl, given.rounds, given.run_ms) for row in rows]
    wrong = [line for row in found for line in row["missed"]]  # type: ignore[attr-defined]
    for line in wrong:
        print(f"missed: {line}")
    result = {
        "benchmark": "block",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "kernel": ".".join(platform.release().split(".")[:2]),
        "fio": fio.version(),
        "rounds": given.rounds,
        "run_ms": given.run_ms,
        "took_s": round(time.monotonic() - start_s),
        "rows": found,
        "missed": wrong,
    }
    print(json.dumps(result))
    return int(given.judge and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
