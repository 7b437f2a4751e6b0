"""What the payload of a load costs in plain Python: making, poisoning and verifying it, and a whole job on a file.

`python -m benchmarks.load` prints one row each. Median of five rounds of 64 MiB; a job of three seconds on a file in
the temporary folder, so mostly in the page cache's reach where O_DIRECT is refused.
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fabric.engine
from fabric.engine.load import Grounds, Job, Outside, Region, Stream, prepare, run_job
from fabric.engine.load.payload import Origin, poison_pattern, sector, sector_matches

MIB = 1 << 20
ROUNDS, SIZE = 5, 64 * MIB


def rate(work: Callable[[], None]) -> float:
    """Returns MiB/s, the median of the rounds."""
    rows = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        rows.append(SIZE / MIB / (time.perf_counter() - begin))
    return statistics.median(rows)


def payload() -> None:
    origin = Origin(1, 2)
    count = MIB // 4096
    memory = memoryview(bytearray(b"".join(sector(origin, lba, 1) for lba in range(count))))

    def make() -> None:
        for _ in range(SIZE // MIB):
            memory[:] = b"".join(sector(origin, lba, 1) for lba in range(count))

    def poison() -> None:
        for number in range(SIZE // MIB):
            scratch[:] = poison_pattern(number, MIB)

    def verify() -> None:
        for _ in range(SIZE // MIB):
            data = memory.tobytes()
            for at in range(count):
                assert sector_matches(data, at * 4096, origin, at, 1)

    scratch = memoryview(bytearray(MIB))
    for name, work in (("make", make), ("poison", poison), ("verify", verify)):
        print(f"{name:8} {rate(work):8.0f} MiB/s")


def job(check: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "disk"
        path.write_bytes(bytes(SIZE))
        stream = Stream("file", f"file://{path}")
        with fabric.engine.open(stream.url) as engine:
            blocks = engine.namespace.blocks
        outside = Outside(
            time.monotonic_ns, time.time, time.process_time_ns, lambda: False, lambda _one: None, lambda _one: None
        )
        grounds, region = Grounds(), Region(0, blocks)
        prepare(stream, region, run_id=1, has_consent=True, grounds=grounds, outside=outside)
        wanted = Job("bench", 1, 1, (stream,), MIB, 8, 0.0, 0, 0, None, 3.0, region, check)
        result = run_job(wanted, grounds=grounds, outside=outside)
        (one,) = result.streams
        assert (one.errors, one.flaw_count) == ((), 0)
        name = "job" if check else "no check"
        print(f"{name:8} {one.bytes_read / MIB / result.seconds:8.0f} MiB/s   {result.cpu_s / result.seconds:.2f} CPUs")


if __name__ == "__main__":
    print(platform.python_version(), platform.machine(), time.strftime("%Y-%m-%d"))
    payload()
    for check in (False, True):
        job(check)
    sys.exit(0)
