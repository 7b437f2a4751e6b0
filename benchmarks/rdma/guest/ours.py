"""Reads through the engine, in a guest: one JSON object in, one out.

    PYTHONPATH=/root/engine python3 ours.py '{"url": …, "size": 65536, "readers": 16, "queues": 4, "seconds": 4}'

Closed loop: each reader has one read of `size` bytes open at random places of the namespace. What comes in the first
second is not counted. Blocks carry their own number in their first 8 bytes, which is compared on every read.
"""

import json
import random
import struct
import sys
import time
from pathlib import Path

import fabric.engine
from fabric.engine.client import Buffer, Engine, Future, Read, Settings
from fabric.engine.transport.driver import wait as sleep
from fabric.policy import ShardPolicy

BLOCK = 4096
RAMP_S = 1.0


def guest_busy_s() -> float:
    """Returns seconds that the guest's CPUs were busy, since it booted."""
    line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, line.split()[1:])
    return (user + nice + system + irq + softirq) / 100  # USER_HZ


class Loop:
    """`readers` reads in flight, for ever.

    Args:
        engine: to read through.
        size: bytes of a read.
        readers: reads in flight.
    """

    def __init__(self, engine: Engine, size: int, readers: int) -> None:
        self.engine = engine
        self.size = size
        self.buffer: Buffer = engine.allocate(size * readers)
        self.views = [self.buffer.view(number * size, size) for number in range(readers)]
        described = engine.namespace
        self.unit = described.namespace.block_bytes
        self.places = described.blocks * self.unit // size
        self.flying: dict[Future, tuple[int, int, float]] = {}
        self.latencies: list[float] = []
        self.wrong = 0
        self.random = random.Random(7)

    def fill(self, free: list[int]) -> None:
        """Sends one read for each free reader."""
        places = [self.random.randrange(self.places) for _ in free]
        works = [
            Read(place * self.size // self.unit, (self.views[reader],))
            for reader, place in zip(free, places, strict=True)
        ]
        now = time.monotonic()
        for future, reader, place in zip(self.engine.submit(works), free, places, strict=True):
            self.flying[future] = (reader, place, now)

    def take(self) -> list[int]:
        """Returns the readers whose read has ended, after having compared what came."""
        free: list[int] = []
        now = time.monotonic()
        for future in self.engine.step():
            reader, place, since = self.flying.pop(future)
            future.result()
            (stamp,) = struct.unpack_from("<Q", self.buffer.memory, reader * self.size)
            self.wrong += stamp != place * self.size // BLOCK
            self.latencies.append(now - since)
            free.append(reader)
        return free

    def run(self, seconds: float) -> int:
        """Returns the reads that ended within `seconds`."""
        ended = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            free = self.take()
            if free:
                ended += len(free)
                self.fill(free)
            wait(self.engine, end)
        return ended


def wait(engine: Engine, end: float) -> None:
    """Sleeps until the engine has something to do."""
    due_ns = engine.next_timer_ns()
    now_ns = time.monotonic_ns()
    limit_ns = int(end * 1e9)
    sleep([engine.fileno()], max(0, min(limit_ns, limit_ns if due_ns is None else due_ns) - now_ns))


def percentile(values: list[float], share: float) -> float:
    """Returns a percentile in milliseconds."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 3) if ordered else 0.0


def main() -> None:
    """Measures once."""
    asked = json.loads(sys.argv[1])
    size, readers, queues = asked["size"], asked["readers"], asked["queues"]
    policy = ShardPolicy(queues=queues, depth=asked.get("depth", 32), transfer_bytes=asked.get("transfer", size))
    settings = Settings(tos=asked.get("tos"))
    with fabric.engine.open(asked["url"], policy=policy, settings=settings) as engine:
        loop = Loop(engine, size, readers)
        loop.fill(list(range(readers)))
        loop.run(RAMP_S)
        loop.latencies.clear()
        wall, busy, own = time.monotonic(), guest_busy_s(), time.process_time()
        reads = loop.run(asked["seconds"])
        wall, busy, own = time.monotonic() - wall, guest_busy_s() - busy, time.process_time() - own
        latencies = list(loop.latencies)
        engine.wait(list(loop.flying))
        opened = len(engine.load().queues)
    gib = reads * size / 2**30
    print(
        json.dumps(
            {
                "mib_s": round(reads * size / 2**20 / wall, 3),
                "reads": reads,
                "wrong": loop.wrong,
                "queues": opened,
                "guest_cpu_s_per_gib": round(busy / gib, 3) if gib else None,
                "process_cpu_s_per_gib": round(own / gib, 3) if gib else None,
                "p50_ms": percentile(latencies, 0.5),
                "p99_ms": percentile(latencies, 0.99),
            }
        )
    )


if __name__ == "__main__":
    main()
