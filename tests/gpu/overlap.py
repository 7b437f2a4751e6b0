"""Reads blocks into pinned memory and copies them to a GPU: one after the other, and overlapped. JSON is the last line.

    python3 -m tests.gpu.overlap [--mib N] [--rounds N] [--folder DIR]... [--library FILE]

    serial      read 8 chunks ── wait ── copy 8 chunks ── wait ── next 8
    overlapped  a chunk is copied when its read has ended, read anew when its copy has ended

Both have 8 chunks of 4 MiB in flight at most, on the same arena, file and streams; only the waiting differs. So the
ratio holds two gains: copies behind reads, and no wait for the slowest read of eight. The arena is the engine's own
(`Engine.allocate`), registered with the driver: no byte is copied on the host. Device memory is zeroed before each pass
and compared with the file behind it, outside the clock. Rounds alternate; the ratio serial / overlapped comes with a
bootstrap interval over rounds.
"""

import argparse
import ctypes
import json
import os
import platform
import random
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import fabric.engine
from fabric.engine.client import Buffer, Engine, Future, Read, Settings
from fabric.policy import ShardPolicy
from tests.gpu.cuda import LIBRARY, Cuda, CudaError, NoCudaError, load

MIB, SLOTS, CHUNK, STREAMS, SEED = 1 << 20, 8, 4 << 20, 2, 8
NOT_RUN = 77
POLICY = ShardPolicy(queues=4, depth=32, transfer_bytes=1 * MIB)
EVENT_POLL_S = 0.000_05  # events have no descriptor: while a copy runs, the engine is waited for so long at a time
RESAMPLES = 10_000


@dataclass(slots=True)
class Pass:
    """What both ways work on.

    Attributes:
        engine: on the file.
        buffer: `SLOTS` chunks of pinned memory.
        device: where to.
        chunks: of the file.
    """

    engine: Engine
    buffer: Buffer
    device: Cuda
    chunks: int

    def read(self, slot: int, chunk: int) -> Future:
        """Begins to read a chunk into a slot."""
        block = self.engine.namespace.namespace.block_bytes
        (future,) = self.engine.submit([Read(chunk * CHUNK // block, (self.buffer.view(slot * CHUNK, CHUNK),))])
        return future

    def copy(self, slot: int, chunk: int) -> None:
        """Begins to copy a slot to the chunk's place on the device."""
        self.device.copy(slot, slot % STREAMS, chunk * CHUNK, self.buffer.memory[slot * CHUNK : (slot + 1) * CHUNK])


def serial(work: Pass) -> None:
    """Reads and copies in turn."""
    for first in range(0, work.chunks, SLOTS):
        some = range(first, min(first + SLOTS, work.chunks))
        futures = [work.read(chunk - first, chunk) for chunk in some]
        work.engine.wait(futures)
        for chunk, future in zip(some, futures, strict=True):
            future.result()
            work.copy(chunk - first, chunk)
        work.device.synchronize()


def overlapped(work: Pass) -> None:
    """Copies each chunk as soon as it is read, and reads into each slot as soon as it is copied."""
    waiting = deque(range(work.chunks))
    free = deque(range(SLOTS))
    reading: dict[int, tuple[int, int]] = {}  # slot and chunk by request
    copying: deque[int] = deque()
    while waiting or reading or copying:
        while waiting and free:
            slot, chunk = free.popleft(), waiting.popleft()
            reading[work.read(slot, chunk).request] = slot, chunk
        ended = work.engine.step()
        for future in ended:
            future.result()
            slot, chunk = reading.pop(future.request)
            work.copy(slot, chunk)
            copying.append(slot)
        copied = [slot for slot in copying if work.device.ended(slot)]
        for slot in copied:
            copying.remove(slot)
            free.append(slot)
        if not ended and not copied:
            _rest(work.engine, is_copying=bool(copying))


def _rest(engine: Engine, *, is_copying: bool) -> None:
    if is_copying:
        left_s = EVENT_POLL_S
    else:
        due_ns = engine.next_timer_ns()
        left_s = 1.0 if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)
    select.select([engine.fileno()], [], [], left_s)


Way: TypeAlias = Callable[[Pass], None]


def timed(way: Way, work: Pass, wanted: bytes) -> float:
    """Returns seconds of one pass; ends the program when the device holds other bytes than the file."""
    work.device.clear()
    start_s = time.perf_counter()
    way(work)
    took_s = time.perf_counter() - start_s
    back = bytearray(CHUNK)
    for chunk in range(work.chunks):
        work.device.fetch(chunk * CHUNK, memoryview(back))
        if back != wanted[chunk * CHUNK : (chunk + 1) * CHUNK]:
            sys.exit(f"{way.__name__}: wrong bytes on the device in chunk {chunk}")
    return took_s


def interval(ratios: list[float]) -> tuple[float, float]:
    """Returns the bootstrap 95 % interval of the median."""
    draw = random.Random(SEED)  # noqa: S311, repeatable on purpose
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return medians[round(0.025 * RESAMPLES)], medians[round(0.975 * RESAMPLES) - 1]


def measure(folder: Path, wanted: bytes, rounds: int, library: ctypes.CDLL) -> dict[str, object]:
    """Returns the row of one file system."""
    path = folder / "blocks"
    with path.open("wb") as file:
        file.write(wanted)
        os.fsync(file.fileno())
    direct = True
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        direct = False  # tmpfs before Linux 6.6
    settings = Settings(direct=direct, threads=8)
    with fabric.engine.open(path.as_uri(), policy=POLICY, settings=settings) as engine:
        buffer = engine.allocate(SLOTS * CHUNK)
        device = Cuda(library, len(wanted), buffer.memory, streams=STREAMS, events=SLOTS)
        try:
            work = Pass(engine, buffer, device, len(wanted) // CHUNK)
            timed(serial, work, wanted), timed(overlapped, work, wanted)  # warm
            pairs = [(timed(serial, work, wanted), timed(overlapped, work, wanted)) for _ in range(rounds)]
        finally:
            device.close()
    ratios = [one / other for one, other in pairs]
    low, high = interval(ratios)
    return {
        "folder": str(folder.parent),
        "direct": direct,
        "device": device.device,
        "driver": device.version,
        "rounds": rounds,
        "serial_mib_s": round(len(wanted) / MIB / statistics.median(one for one, _ in pairs), 1),
        "overlapped_mib_s": round(len(wanted) / MIB / statistics.median(other for _, other in pairs), 1),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_low": round(low, 3),
        "ratio_high": round(high, 3),
        "bytes_compared": len(wanted) * (rounds + 1) * 2,
    }


def main() -> int:
    """Returns the exit code: 77 when there is no GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, action="append", help="default: /dev/shm and /var/tmp")
    parser.add_argument("--library", default=LIBRARY)
    given = parser.parse_args()
    try:
        library = load(given.library)
    except NoCudaError as error:
        print(f"not run: {error}")
        return NOT_RUN
    draw = random.Random(SEED)  # noqa: S311, repeatable on purpose
    wanted = b"".join(draw.randbytes(CHUNK) for _ in range(given.mib * MIB // CHUNK))
    rows: list[dict[str, object]] = []
    for folder in given.folder or [Path("/dev/shm"), Path("/var/tmp")]:  # noqa: S108, a folder of our own in each
        if shutil.disk_usage(folder).free < 2 * len(wanted):
            print(f"failed: {folder} has no room for {given.mib} MiB; give --mib or --folder")
            return 1
        with tempfile.TemporaryDirectory(prefix="fabric-gpu-", dir=folder) as own:
            try:
                rows.append(measure(Path(own), wanted, given.rounds, library))
            except CudaError as error:
                print(f"failed: {error}")
                return 1
    result = {
        "benchmark": "gpu overlap",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "mib": len(wanted) // MIB,
        "chunk_mib": CHUNK // MIB,
        "slots": SLOTS,
        "rows": rows,
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
