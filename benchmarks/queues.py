"""Model runs: queues x readers on a target that is as slow as its configuration says. JSON is the last line.

    python benchmarks/queues.py [--rounds N] [--seconds S] [--no-contexts] [--plot FILE.svg] [--min SHARE]

What is measured here is a MODEL's result: the target is our own, in a process of its own behind NVMe/TCP on loopback,
and its speed is arithmetic (`fabric.engine.transport.shape`). It says whether the engine reaches what a path allows,
and nothing of any flash or network. The gain of sharding is configured: link cap over the rate of one queue.

The shape: a queue carries out one command at a time, 1 ms each and 40 MiB a second; 1 ms of latency to each command, in
parallel; 256 MiB/s for the link. So 256 KiB take a queue 7.25 ms: long against the 0.1 ms that Python and a busy
machine add; and 7.4 queues fill the link, which puts the knee in the middle of the grid. Over loopback 256 MiB/s take
about a third of two cores, both processes together; with a much higher cap those cores would be measured.

| mode | what it models |
|---|---|
| sharded | ours: transfers of 256 KiB over 1 to 64 queues |
| serial | one queue, one command in flight, 1 MiB each: what PyPI's `nvmeof` does with a read above MDTS |
| one-queue window | one queue, 128 KiB each, 32 MiB in flight: what Mooncake Store does per namespace |

All three are this engine under another policy, neither `nvmeof` nor Mooncake. Readers share the one queue of a
baseline; who opens a controller for each reader, as `nvmeof` lets one, has as many queues as readers, and is a row of
`sharded` at best.

The ceiling of a cell is the least of: the link cap; queues x the rate of one; commands in flight over the shortest time
of one; and what readers reach who each wait for one read before the next, a read alone on an idle target taking its
shortest time. `configured` is the least of the first two. What Python and the copy over loopback add to each command is
in no ceiling; one command in flight, or one reader, cannot hide it, so those stay further below theirs. Cells are
interleaved: every round measures all of them; medians count. The last read of every reader is compared with the target.
"""

import argparse
import json
import multiprocessing
import os
import platform
import random
import select
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import fabric.engine
from fabric.engine.client import Engine, Read, TargetSpec, soft_target
from fabric.engine.client.work import Buffer
from fabric.engine.transport.shape import Latency, Shape
from fabric.engine.transport.storage import RamStorage
from fabric.policy import ShardPolicy

KIB, MIB, SECOND, MS = 1 << 10, 1 << 20, 1_000_000_000, 1_000_000
SHAPE = Shape(
    service_ns=1 * MS,
    queue_bytes_per_s=40 * MIB,
    latency=Latency("fixed", 1 * MS),
    link_bytes_per_s=256 * MIB,
)
NAMESPACE_BYTES, SEED, SECTOR = 64 * MIB, 4, 512
READ_BYTES = 4 * MIB
COUNTS = (1, 2, 4, 8, 16, 32, 64)
READERS = (1, 2, 4, 8, 16)
# Llama-3.1-8B: 32 layers x 2 (K, V) x 8 KV heads x 128 x 1 B (fp8) = 64 KiB a token; one rank of eight reads 8 KiB
TOKEN_BYTES = 64 * KIB // 8
CONTEXTS = (1024, 4096, 16384, 65536, 131072)
CONTEXT_QUEUES = 16
PUBLISHED = {1: 7.8, 2: 13.4, 4: 20.6, 16: 25.8, 64: 27.8}  # GB/s, 1 MiB reads, rdma4py: printed beside, not compared


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to read."""

    name: str
    queues: int
    depth: int
    transfer_bytes: int
    window_bytes: int = 32 * MIB

    @property
    def policy(self) -> ShardPolicy:
        return ShardPolicy(
            queues=self.queues,
            depth=self.depth,
            transfer_bytes=self.transfer_bytes,
            target_bytes=self.window_bytes,
            receiver_bytes=self.window_bytes,
        )


SERIAL = Mode("serial", 1, 1, 1 * MIB)
WINDOW = Mode("one-queue window", 1, 127, 128 * KIB)
BASELINES = (SERIAL, WINDOW)


def sharded(queues: int) -> Mode:
    return Mode("sharded", queues, 32, 256 * KIB)


def queue_ns(shape: Shape, length: int) -> int:
    """Returns how long one command keeps its queue."""
    return shape.service_ns + (length * SECOND // shape.queue_bytes_per_s if shape.queue_bytes_per_s else 0)


def configured(shape: Shape, mode: Mode) -> float:
    """Returns bytes a second that link and queues allow."""
    link = shape.link_bytes_per_s or float("inf")
    busy_ns = queue_ns(shape, mode.transfer_bytes)
    return min(link, mode.queues * mode.transfer_bytes * SECOND / busy_ns) if busy_ns else link


def shortest_read_ns(shape: Shape, mode: Mode, length: int) -> float:
    """Returns the least time of one read on an idle target: queues work in waves, their data shares the link."""
    commands = -(-length // mode.transfer_bytes)
    on_link_ns = mode.transfer_bytes * SECOND / shape.link_bytes_per_s if shape.link_bytes_per_s else 0.0
    waves = range(1, -(-commands // mode.queues) + 1)
    busy_ns, latency_ns = queue_ns(shape, mode.transfer_bytes), shape.latency.median_ns
    return max(wave * busy_ns + latency_ns + (commands - (wave - 1) * mode.queues) * on_link_ns for wave in waves)


def ceiling(shape: Shape, mode: Mode, readers: int, read_bytes: int) -> float:
    """Returns bytes a second that the shape allows `readers` who each wait for one read before the next.

    Latency has to be fixed: the least time of a command is taken for granted.
    """
    flying = min(
        mode.queues * mode.depth, mode.window_bytes // mode.transfer_bytes, readers * read_bytes // mode.transfer_bytes
    )
    one_ns = shortest_read_ns(shape, mode, mode.transfer_bytes)
    in_flight = max(1, flying) * mode.transfer_bytes * SECOND / one_ns
    closed_loop = readers * read_bytes * SECOND / shortest_read_ns(shape, mode, read_bytes)
    return min(configured(shape, mode), in_flight, closed_loop)


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def unix_s(self) -> float:
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        time.sleep(seconds)


def pattern() -> bytes:
    """Returns what the namespace holds, the same in both processes."""
    return random.Random(SEED).randbytes(NAMESPACE_BYTES)


def serve(answer: Connection) -> None:
    """The target's process: says its URL, serves until something comes, then says its CPU seconds."""
    with soft_target(TargetSpec(NAMESPACE_BYTES, shape=SHAPE)) as target:
        storage = target.server.service.storage
        assert isinstance(storage, RamStorage)
        (disk,) = storage.disks.values()
        disk[:] = pattern()
        answer.send(target.url)
        start_s = time.process_time()
        target.serve(SystemClock(), answer.poll)
        answer.send(time.process_time() - start_s)


@dataclass(slots=True)
class Cell:
    """The measurements of one mode and number of readers."""

    mode: Mode
    readers: int
    read_bytes: int
    total_bytes: int
    seconds: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.total_bytes / statistics.median(self.seconds)

    def row(self) -> dict[str, object]:
        top, bound = configured(SHAPE, self.mode), ceiling(SHAPE, self.mode, self.readers, self.read_bytes)
        rates = sorted(self.total_bytes / one for one in self.seconds)
        return {
            "mode": self.mode.name,
            "queues": self.mode.queues,
            "readers": self.readers,
            "mib_s": round(self.rate / MIB, 1),
            "least_mib_s": round(rates[0] / MIB, 1),
            "most_mib_s": round(rates[-1] / MIB, 1),
            "ceiling_mib_s": round(bound / MIB, 1),
            "configured_mib_s": round(top / MIB, 1),
            "of_ceiling": round(self.rate / bound, 3),
            "host_cpu_s_per_gib": round(statistics.median(self.cpu_s) / self.total_bytes * (1 << 30), 3),
        }


@dataclass(slots=True)
class Host:
    """One engine and its memory: room for as many reads as readers wait for at a time."""

    engine: Engine
    data: memoryview
    buffer: Buffer = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = self.engine.allocate(max(READERS) * READ_BYTES)

    def read(self, readers: int, read_bytes: int, total_bytes: int) -> tuple[float, float]:
        """Reads so many bytes, each reader one read at a time; returns seconds and CPU seconds, first to last byte."""
        places = deque(range(readers))
        where: dict[int, tuple[int, int]] = {}  # place and block by request
        last: dict[int, int] = {}
        spots = NAMESPACE_BYTES // read_bytes
        sent = ended = 0
        reads = total_bytes // read_bytes
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        while ended < reads:
            batch: list[Read] = []
            chosen: list[tuple[int, int]] = []
            while places and sent < reads:
                place, lba = places.popleft(), sent % spots * read_bytes // SECTOR
                chosen.append((place, lba))
                batch.append(Read(lba, (self.buffer.view(place * read_bytes, read_bytes),)))
                sent += 1
            for future, spot in zip(self.engine.submit(batch), chosen, strict=True):
                where[future.request] = spot
            for future in self._some():
                future.result()
                place, lba = where.pop(future.request)
                last[place] = lba
                places.append(place)
                ended += 1
        spent = time.monotonic() - start_s, time.process_time() - start_cpu_s
        self._compare(last, read_bytes)
        return spent

    def _some(self) -> list[fabric.engine.client.Future]:
        while True:
            if ended := self.engine.step():
                return ended
            due_ns = self.engine.next_timer_ns()
            left_s = 1.0 if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / SECOND)
            select.select([self.engine.fileno()], [], [], left_s)

    def _compare(self, last: dict[int, int], read_bytes: int) -> None:
        """Ends the run when the last read of a reader brought other bytes than the namespace holds."""
        for place, lba in last.items():
            got = self.buffer.memory[place * read_bytes : (place + 1) * read_bytes]
            if got != self.data[lba * SECTOR : lba * SECTOR + read_bytes]:
                sys.exit(f"reader {place} read wrong bytes from block {lba}")


def grid(seconds: float) -> list[Cell]:
    """Returns the cells, each to last about so long at its ceiling."""
    cells = []
    for mode in (*map(sharded, COUNTS), *BASELINES):
        for readers in READERS:
            once = readers * READ_BYTES
            turns = max(1, round(ceiling(SHAPE, mode, readers, READ_BYTES) * seconds / once))
            cells.append(Cell(mode, readers, READ_BYTES, once * turns))
    return cells


def by_mode(cells: list[Cell]) -> Iterator[tuple[Mode, list[Cell]]]:
    for mode in dict.fromkeys(cell.mode for cell in cells):
        yield mode, [cell for cell in cells if cell.mode == mode]


def measure(url: str, cells: list[Cell], data: memoryview) -> None:
    """Measures every cell once; an engine of one mode serves all its cells."""
    for mode, some in by_mode(cells):
        with fabric.engine.open(url, policy=mode.policy) as engine:
            host = Host(engine, data)
            for cell in some:
                spent_s, cpu_s = host.read(cell.readers, cell.read_bytes, cell.total_bytes)
                cell.seconds.append(spent_s)
                cell.cpu_s.append(cpu_s)


def contexts(url: str, rounds: int, data: memoryview) -> list[dict[str, object]]:
    """Measures one cold read of a whole context, by 16 reads of 512 tokens at a time; long ones once."""
    modes = (sharded(CONTEXT_QUEUES), *BASELINES)
    cells = [Cell(mode, max(READERS), READ_BYTES, tokens * TOKEN_BYTES) for tokens in CONTEXTS for mode in modes]
    for number in range(rounds):
        measure(url, [one for one in cells if not number or one.total_bytes <= CONTEXTS[2] * TOKEN_BYTES], data)
    rows: list[dict[str, object]] = []
    for tokens in CONTEXTS:
        some = {cell.mode.name: cell for cell in cells if cell.total_bytes == tokens * TOKEN_BYTES}
        row: dict[str, object] = {"tokens": tokens, "mib": tokens * TOKEN_BYTES // MIB}
        row["rounds"] = len(next(iter(some.values())).seconds)
        for name, cell in some.items():
            row[f"{name}_s"] = round(statistics.median(cell.seconds), 3)
            least_s = cell.total_bytes / ceiling(SHAPE, cell.mode, cell.readers, cell.read_bytes)
            row[f"{name}_least_s"] = round(least_s, 3)
        rows.append(row)
    return rows


def draw(rows: list[dict[str, object]]) -> str:
    """Returns the grid as SVG: MiB/s over queues, a line per number of readers; the ceilings dashed."""
    width, height, left, top = 800, 440, 70, 50
    across, down = width - left - 190, height - top - 60
    cap = (SHAPE.link_bytes_per_s or 0) / MIB * 1.05
    colors = ("#1b6ca8", "#2a9d8f", "#8ab17d", "#e9a23b", "#c8553d")

    def point(queues: object, rate: object) -> str:
        step = across / (len(COUNTS) - 1)
        return f"{left + COUNTS.index(int(str(queues))) * step:.1f},{top + down * (1 - float(str(rate)) / cap):.1f}"

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{words}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(left, 22, "Model: reads from a shaped target, MiB/s over I/O queues", 'font-size="15"'),
        text(left, 39, "solid: measured, median; dashed: ceiling that the shape allows; dots: one queue, 16 readers"),
    ]
    for mark in range(0, int(cap) + 1, 50):
        y = top + down * (1 - mark / cap)
        out.append(f'<path d="M{left} {y:.1f}H{left + across}" stroke="#ddd"/>')
        out.append(text(left - 8, y + 4, str(mark), 'text-anchor="end"'))
    for queues in COUNTS:
        x = float(point(queues, 0).split(",")[0])
        out.append(text(x, top + down + 18, str(queues), 'text-anchor="middle"'))
    for number, readers in enumerate(READERS):
        mine = [row for row in rows if row["mode"] == "sharded" and row["readers"] == readers]
        for value, look in (("ceiling_mib_s", 'stroke-dasharray="4 4" opacity="0.6"'), ("mib_s", 'stroke-width="2"')):
            line = " ".join(point(row["queues"], row[value]) for row in mine)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colors[number]}" {look}/>')
        words = f"{readers} reader{'s' if readers > 1 else ''}"
        out.append(text(left + across + 12, top + 20 + 18 * number, words, f'fill="{colors[number]}"'))
    for number, mode in enumerate(BASELINES):
        (row,) = (row for row in rows if row["mode"] == mode.name and row["readers"] == max(READERS))
        color, at = ("#444", "#999")[number], top + 20 + 18 * (len(READERS) + number)
        y = float(point(1, row["mib_s"]).split(",")[1])
        out.append(f'<circle cx="{left + 5 + 12 * number}" cy="{y}" r="4" fill="{color}"/>')
        out.append(text(left + across + 12, at, f"● {mode.name}: {row['mib_s']}", f'fill="{color}"'))
    out.append(text(left + across / 2, height - 14, "I/O queues", 'text-anchor="middle"'))
    return "\n".join([*out, "</svg>"]) + "\n"


def show(rows: list[dict[str, object]]) -> None:
    """Prints the grid: measured / ceiling in MiB/s."""
    print("model, MiB/s: measured / ceiling")
    print(f"{'mode':<20}" + "".join(f"{readers:>7} readers" for readers in READERS))
    for name, queues in dict.fromkeys((row["mode"], row["queues"]) for row in rows):
        mine = [row for row in rows if (row["mode"], row["queues"]) == (name, queues)]
        cells = "".join(f"{row['mib_s']:>7} /{row['ceiling_mib_s']:>6}" for row in mine)
        print(f"{f'{name}, {queues}':<20}{cells}")


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a cell, about")
    parser.add_argument("--no-contexts", action="store_true")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--min", type=float, default=0.0, metavar="SHARE", help="of the configured ceiling, best count")
    given = parser.parse_args()
    start_s, load = time.monotonic(), os.getloadavg()[0]
    here, there = multiprocessing.Pipe()
    target = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    target.start()
    url, data = here.recv(), memoryview(pattern())
    cells = grid(given.seconds)
    for _ in range(given.rounds):
        measure(url, cells, data)
    rows = [cell.row() for cell in cells]
    show(rows)
    table = [] if given.no_contexts else contexts(url, given.rounds, data)
    for line in table:
        print(json.dumps(line))
    here.send(None)
    target_cpu_s = here.recv()
    target.join()
    if given.plot:
        given.plot.write_text(draw(rows), encoding="utf-8")
    most = max((cell for cell in cells if cell.readers == max(READERS)), key=lambda cell: cell.rate)
    share = most.rate / configured(SHAPE, most.mode)
    result = {
        "benchmark": "queues, MODEL: our own target, shaped",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "seconds": round(time.monotonic() - start_s, 1),
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],  # about 1 of it is our own, after
        "rounds": given.rounds,
        "shape": {
            "service_us": SHAPE.service_ns // 1000,
            "queue_mib_s": (SHAPE.queue_bytes_per_s or 0) // MIB,
            "latency_us": SHAPE.latency.median_ns // 1000,
            "link_mib_s": (SHAPE.link_bytes_per_s or 0) // MIB,
        },
        "read_kib": READ_BYTES // KIB,
        "best": {**most.row(), "of_configured": round(share, 3)},
        "baselines": [c.row() for c in cells if c.mode in BASELINES and c.readers == max(READERS)],
        "cells": rows,
        "token_bytes": TOKEN_BYTES,
        "contexts": table,
        "target_cpu_s": round(target_cpu_s, 1),
        "published_gb_s_by_queue_pairs": PUBLISHED,
    }
    print(json.dumps(result))
    return int(share < given.min)


if __name__ == "__main__":
    sys.exit(main())
