"""The engine on a file, whole: URL, dealer, futures. `python -m benchmarks.block.ours PATH BYTES DEPTH RANGES`.

A request reads RANGES ranges at random places and has one future. As many ranges fly as the depth says; as many more
requests wait in the dealer, so that one follows as soon as one ends.
"""

import os
import random
import sys
import time
from pathlib import Path

import fabric.engine
from benchmarks.block.row import mark
from benchmarks.block.worker import serve
from fabric.engine.client import Engine, Future, Read, Settings
from fabric.engine.queues import View
from fabric.engine.transport.driver import wait
from fabric.policy import ShardPolicy

AHEAD = 2  # requests that are open, to those that fly


class Reader:
    """Keeps requests open.

    Args:
        engine: open.
        size: bytes of a range. count: ranges in the file.
        ranges: of a request. requests: that are open.
    """

    def __init__(self, engine: Engine, size: int, count: int, ranges: int, requests: int) -> None:
        self.engine = engine
        self.size = size
        self.unit = size // engine.namespace.namespace.block_bytes
        self.places = range(0, count * self.unit, self.unit)
        self.ranges = ranges
        self.random = random.Random(11)
        self.buffer = engine.allocate(requests * ranges * size)
        self.slots = [
            tuple(self.buffer.view((slot * ranges + at) * size, size) for at in range(ranges))
            for slot in range(requests)
        ]
        self.seen: dict[tuple[View, ...], Read] = {}

    def work(self, views: tuple[View, ...]) -> Read:
        """Returns a read at random places."""
        choices = self.random.choices(self.places, k=self.ranges)
        work = self.seen[views] = Read(tuple(choices) if self.ranges > 1 else choices[0], views)
        return work

    def run(self, end_s: float) -> int:
        """Reads until then, and until all that was begun has ended; returns bytes."""
        engine, ended, flying = self.engine, 0, dict[Future, tuple[View, ...]]()
        free = list(self.slots)
        while free or flying:
            if free and time.perf_counter() < end_s:
                flying.update(zip(engine.submit([self.work(slot) for slot in free]), free, strict=True))
                free = []
            elif not flying:
                break
            done = engine.step()
            if not done:
                wait([engine.fileno()], None)
                done = engine.step()
            for future in done:
                ended += future.result()
            free += [flying.pop(future) for future in done]
        return ended

    def check(self) -> None:
        """Looks at the start of each range that was read last."""
        for views, work in self.seen.items():
            lbas = work.lba if isinstance(work.lba, tuple) else (work.lba,)
            for lba, view in zip(lbas, views, strict=True):
                found = bytes(self.buffer.memory[view.offset : view.offset + 8])
                if found != mark(lba // self.unit * self.size):
                    raise SystemExit(f"wrong bytes of block {lba}: {found!r}")


def main() -> None:
    """Serves rounds."""
    path, size, depth, ranges = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    flying = max(1, depth // ranges)
    policy = ShardPolicy(
        queues=1,
        depth=flying,
        transfer_bytes=size * ranges,
        target_bytes=2 * size * depth,
        receiver_bytes=2 * size * depth,
    )
    settings = Settings(threads=os.cpu_count() or 1)
    with fabric.engine.open(f"file://{path}", policy=policy, settings=settings) as engine:
        reader = Reader(engine, size, path.stat().st_size // size, ranges, AHEAD * flying)
        serve("ours", reader.run, reader.check)


if __name__ == "__main__":
    main()
