"""fio, as who knows it would run it for random reads at a depth: one job, O_DIRECT, and each engine that may be best.

One job with the depth in its queue is the peer. Beside it stands a row of its own: one process for each read in flight,
which takes all cores and reads into few buffers, that stay in the CPU's cache.
"""

import json
import resource
import subprocess
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.block.row import MIB, Result, Row

__all__ = ("ENGINES", "JOBS", "read", "version")

ENGINES = {
    "io_uring": ("--ioengine=io_uring",),
    "io_uring, registered": ("--ioengine=io_uring", "--registerfiles=1", "--fixedbufs=1"),
    "libaio": ("--ioengine=libaio",),
}
JOBS = "psync, a process a read"


def read(engine: str, row: Row, path: Path, run_ms: int) -> Result:
    """Returns one round. CPU is that of the process and its children, kernel workers too, without what a start costs.

    What fio itself says leaves out the workers of io_uring.
    """
    _start_cpu_s(engine, row, path)  # measured now, if it was not before
    before_s = _cpu_s()
    moved, longest_s = _run(engine, row, path, run_ms)
    start_s = _start_cpu_s(engine, row, path)
    cpu_s = max(0.0, _cpu_s() - before_s - start_s)
    return Result(moved / MIB / longest_s, cpu_s / (moved / MIB / 1024))


@cache
def _start_cpu_s(engine: str, row: Row, path: Path) -> float:
    found = []
    for _ in range(3):
        before_s = _cpu_s()
        _run(engine, row, path, 1)
        found.append(_cpu_s() - before_s)
    return median(found)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(engine: str, row: Row, path: Path, run_ms: int) -> tuple[int, float]:
    alone = engine != JOBS
    how = (*ENGINES[engine], f"--iodepth={row.depth}") if alone else ("--ioengine=psync", f"--numjobs={row.depth}")
    command = [
        *("fio", "--name=peer", f"--filename={path}", "--rw=randread", "--norandommap", "--randrepeat=0"),
        *("--direct=1", "--invalidate=0", f"--bs={row.bytes}", "--time_based", f"--runtime={run_ms}ms", *how),
        *("--output-format=json", "--disable_lat=1", "--disable_slat=1", "--disable_clat=1", "--gtod_reduce=1"),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    moved = sum(job["read"]["io_bytes"] for job in jobs)
    return moved, max(1, *(job["read"]["runtime"] for job in jobs), 1) / 1e3


def version() -> str:
    """Returns fio's version."""
    return subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
