"""The engine on a file, whole: URL, dealer, futures. `python -m benchmarks.block.ours PATH BYTES DEPTH RANGES`.

A request reads RANGES ranges at random places and has one future. As many ranges fly as the depth says at most; as many
more wait in this process, so that one follows as soon as one ends.
"""

import os
import select
import sys
import time
from itertools import cycle, islice
from pathlib import Path

import fabric.engine
from benchmarks.block.row import mark, places
from benchmarks.block.worker import serve
from fabric.engine.client import Engine, Future, Read, Settings
from fabric.engine.queues import View
from fabric.policy import ShardPolicy


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
        self.ranges = ranges
        # where to read is known before, as what a caller wants is: none of the engine's work
        batches = islice(places(count, ranges), count // ranges)
        self.places = cycle([tuple(place * self.unit for place in batch) for batch in batches])
        self.buffer = engine.allocate(requests * ranges * size)
        self.slots = [
            tuple(self.buffer.view((slot * ranges + at) * size, size) for at in range(ranges))
            for slot in range(requests)
        ]
        self.poller = select.poll()
        self.poller.register(engine.fileno(), select.POLLIN)
        self.seen: dict[tuple[View, ...], Read] = {}

    def work(self, views: tuple[View, ...]) -> Read:
        """Returns a read at random places."""
        lbas = next(self.places)
        work = self.seen[views] = Read(lbas if self.ranges > 1 else lbas[0], views)
        return work

    def run(self, end_s: float) -> int:
        """Reads until then, and until all that was begun has ended; returns bytes."""
        engine, ended, flying = self.engine, 0, dict[Future, tuple[View, ...]]()
        free = list(self.slots)
        while free or flying:
            if free and time.perf_counter() < end_s:
                flying.update(zip(engine.submit([self.work(slot) for slot in free]), free, strict=True))
            elif not flying:
                break
            self.poller.poll()
            free = []
            for future in engine.step():
                ended += future.result()
                free.append(flying.pop(future))
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
    requests = max(3, 2 * depth // ranges)  # one ends while others fly
    policy = ShardPolicy(
        queues=1,
        depth=requests,
        transfer_bytes=size * ranges,
        target_bytes=requests * size * ranges,
        receiver_bytes=requests * size * ranges,
    )
    settings = Settings(threads=os.cpu_count() or 1, device_depth=depth)
    with fabric.engine.open(f"file://{path}", policy=policy, settings=settings) as engine:
        reader = Reader(engine, size, path.stat().st_size // size, ranges, requests)
        serve("ours", reader.run, reader.check)


if __name__ == "__main__":
    main()
