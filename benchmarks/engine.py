"""What one read costs this host in CPU time, from `Engine.submit` to its future. No network, and no target's work.

    python benchmarks/engine.py [--commands N] [--queues N] [--repeats N] [--max MICROSECONDS] [--profile]

The engine is the real one: dealer, link, controller, capsules for RDMA. Its transport connects to an in-process target
through the memory transport and answers reads itself, at the next poll and without data. What that answering costs is
measured apart, and is part of the figures. Closed loop: a batch is submitted, and the engine stepped until each of it
has ended. The best of the repeats counts, since others may use the machine; `empty_turn_ns` compares machines. `posted`
is a digest of every capsule of a fixed run: compiled (compile_engine.py) or not, the engine posts the same. With a
limit it ends with 1 when the largest batch costs more. JSON is the last line.
"""

import argparse
import cProfile
import gc
import hashlib
import itertools
import json
import os
import platform
import pstats
import sys
import time
from collections.abc import Callable, Sequence

from fabric.engine.client import Engine, Read, Settings
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.opening import open_link
from fabric.engine.client.work import Buffer
from fabric.engine.nvmeof.host import Connect, ConnectionId, Controller, HostConfig, PostSend
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.io import IoOpcode
from fabric.engine.queues import Path, Urgency, dealer
from fabric.engine.transport.base import Arena, Event, Received, Sent
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.storage import RamStorage
from fabric.policy import ShardPolicy

KIB, MS = 1024, 1_000_000
LENGTH, BLOCKS, SHIFT = 4 * KIB, 1 << 16, 9
BATCHES = (1, 16)
NQN, HOST = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001", "nqn.2014-08.org.nvmexpress:host"


class NullTransport:
    """Answers reads of I/O queues itself; the rest goes to the memory transport. Satisfies `Transport[PostSend]`."""

    def __init__(self, inner: MemoryTransport) -> None:
        self.seen: list[bytes] | None = None  # capsules of reads, where somebody wants them
        self._inner = inner
        self._events: list[Event] = []
        self._is_idle = False  # the inner one has nothing to say

    def register(self, memory: memoryview) -> Arena:
        return self._inner.register(memory)

    def connect(self, order: Connect, now_ns: int) -> None:
        self._is_idle = False
        self._inner.connect(order, now_ns)

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        events = self._events
        for post in batch:
            capsule = post.capsule
            if post.qid and capsule[0] == IoOpcode.READ:
                events.append(Sent(post.connection, post.slot))
                events.append(Received(post.connection, _GOOD + capsule[2:4] + b"\0\0"))
                if self.seen is not None:
                    self.seen.append(capsule)
            else:
                self._is_idle = False
                self._inner.post((post,), now_ns)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        self._is_idle = False
        self._inner.disconnect(connection, now_ns)

    def poll(self, now_ns: int) -> list[Event]:
        events, self._events = self._events, []
        if not self._is_idle:
            inner = self._inner.poll(now_ns)
            self._is_idle = not inner
            events += inner
        return events

    def next_timer_ns(self) -> int | None:
        return None if self._is_idle else self._inner.next_timer_ns()

    def fileno(self) -> int:
        return self._inner.fileno()

    def close(self) -> None:
        self._inner.close()


_GOOD = bytes(12)  # result, head, queue; then the command id, and status 0


def opened(queues: int, clock: Callable[[], int] = time.monotonic_ns) -> tuple[Engine, NullTransport]:
    """Returns an engine, usable, and its null transport."""
    subsystem = Subsystem(NQN, {1: IdentifyNamespace(BLOCKS, SHIFT)})
    service = Service(Target(subsystems=[subsystem]), RamStorage({(NQN, 1): BLOCKS << SHIFT}))
    config = HostConfig(NQN, HOST, bytes(15) + b"\1", io_queues=queues, io_depth=33, kato_ms=0)
    transport = NullTransport(MemoryTransport(service))
    link = ControllerLink(Controller(config), transport, 1, Path("host", "target"))
    settings = Settings()
    news = open_link(link, settings, clock)
    return Engine(link, news, ShardPolicy(queues=queues), settings, clock), transport


def read_us(engine: Engine, reads: Sequence[Read], batch: int) -> float:
    """Returns microseconds of CPU time that one of the reads takes, in batches."""
    batches = [reads[at : at + batch] for at in range(0, len(reads), batch)]
    gc.collect()
    start_s = time.process_time()
    for one in batches:
        futures = engine.submit(one)
        ended = 0
        while ended < len(futures):
            ended += len(engine.step())
    taken_s = time.process_time() - start_s
    assert all(future.error is None for future in futures)
    return round(taken_s / len(reads) * 1e6, 2)


def posted(queues: int) -> str:
    """Returns a digest of what reads of many shapes made the engine post."""
    engine, transport = opened(queues, itertools.count(0, MS).__next__)  # a clock that no machine slows down
    transport.seen = []
    with engine:
        buffer = engine.allocate(4096 * KIB)
        for first in range(0, 512, 32):
            futures = engine.submit(mixed(buffer, number) for number in range(first, first + 32))
            while not all(future.settled for future in futures):
                engine.step()
        return hashlib.sha256(b"".join(transport.seen)).hexdigest()


def mixed(buffer: Buffer, number: int) -> Read:
    """Returns a read of 1 to 3 views of 512 B to 1.2 MB, by its number."""
    lengths = [512 * (1 + (number * (views + 7) ** 3) % 2400) for views in range(1 + number % 3)]
    views = tuple(buffer.view(index * 1280 * KIB, length) for index, length in enumerate(lengths))
    urgency = Urgency.PREFETCH if number % 5 else Urgency.DEMAND
    return Read(number * 64 % 32768, views, tenant=f"t{number % 3}", urgency=urgency)


def answer_us(commands: int) -> float:
    """Returns microseconds of CPU time that the null transport itself takes for a command."""
    transport = NullTransport(MemoryTransport(Service(Target(subsystems=[]), RamStorage({}))))
    transport.poll(0)
    posts = [PostSend(ConnectionId(1), 1, slot, bytes([IoOpcode.READ]) + bytes(63)) for slot in range(16)]
    start_s = time.process_time()
    for _ in range(commands // len(posts)):
        transport.post(posts, 0)
        transport.poll(0)
    taken_s = time.process_time() - start_s
    transport.close()
    return round(taken_s / commands * 1e6, 2)


def empty_turn_ns() -> float:
    """Returns nanoseconds of one turn of `for` with one addition, the best of five."""
    best_s = float("inf")
    for _ in range(5):
        total, start_s = 0, time.process_time()
        for index in range(200_000):
            total += index
        best_s = min(best_s, time.process_time() - start_s)
    return round(best_s / 200_000 * 1e9, 1)


def profiled(work: Callable[[], object]) -> None:
    """Prints where the time goes."""
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commands", type=int, default=16384)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--max", type=float, default=float("inf"), metavar="MICROSECONDS")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    engine, _transport = opened(given.queues)
    with engine:
        buffer = engine.allocate(1024 * KIB)
        places = buffer.memory.nbytes // LENGTH
        reads = [
            Read(index % (BLOCKS // 8) * 8, (buffer.view(index % places * LENGTH, LENGTH),))
            for index in range(given.commands)
        ]
        if given.profile:
            profiled(lambda: read_us(engine, reads, BATCHES[-1]))
            return 0
        runs = {batch: [read_us(engine, reads, batch) for _ in range(given.repeats)] for batch in BATCHES}
    best = {batch: min(taken) for batch, taken in runs.items()}
    result = {
        "benchmark": "engine",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "empty_turn_ns": empty_turn_ns(),
        "compiled": not str(dealer.__file__).endswith(".py"),
        "posted": posted(given.queues),
        "queues": given.queues,
        "commands": given.commands,
        "us_per_command": best,
        "of_which_answering_us": min(answer_us(given.commands) for _ in range(3)),
        "runs": runs,
    }
    print(json.dumps(result))
    return int(best[BATCHES[-1]] > given.max)


if __name__ == "__main__":
    sys.exit(main())
