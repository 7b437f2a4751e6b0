"""Reads blocks that it knows, without end, and compares each; does what the test says on its standard input.

python3 -m tests.vm.engine.programs.load URL KATO_MS [thread]: the word gives the engine its keep-alive thread.

| line | does |
|---|---|
| stall SECONDS | submits reads and then nothing for so long, as a caller that is busy elsewhere |
| report | prints what happened since the last report, as `at report {…}` |
| stop | ends, when no read is open; its report is the result |

It tells `at loaded` when reads flow, `at lost` when the controller went away, `at back` when reads flow again, and ends
by itself when the engine says that all is lost.
"""

import json
import random
import select
import sys
import time
from dataclasses import dataclass, field
from typing import Final

from fabric.engine.client import Buffer, Future, Read, Settings, Write, open_engine
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.nvmeof.host import Controller, ControllerState
from fabric.engine.transport.driver import wait
from fabric.errors import EngineError
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, at, block, controller_of, emit, link_to, names, opened

SIZE: Final = 16384
BLOCKS: Final = 64
DEPTH: Final = 16
_LOADED: Final = 32


@dataclass
class Load:
    """The reads.

    Attributes:
        engine: reads.
        controller: below it.
        buffer: a view for each read that is open.
        open: by view number what is read there, and by which future.
        ended: all futures since the last report.
        wrong: reads that brought other bytes.
        longest_ns: that a read took.
        refused: what a submission raised.
    """

    engine: Engine
    controller: Controller
    buffer: Buffer
    known: list[bytes]
    source: random.Random = field(default_factory=lambda: random.Random(4))  # noqa: S311, picks blocks
    open: dict[int, tuple[int, Future, int]] = field(default_factory=dict)
    ended: list[Future] = field(default_factory=list)
    wrong: int = 0
    longest_ns: int = 0
    refused: str = ""

    def submit(self) -> None:
        """Fills every free view with a read."""
        free = [number for number in range(DEPTH) if number not in self.open]
        picks = [self.source.randrange(BLOCKS) for _ in free]
        unit = self.engine.namespace.namespace.block_bytes
        for number in free:
            self.buffer.memory[number * SIZE : (number + 1) * SIZE] = bytes(SIZE)
        works = [
            Read(pick * SIZE // unit, (self.buffer.view(number * SIZE, SIZE),))
            for number, pick in zip(free, picks, strict=True)
        ]
        now_ns = time.monotonic_ns()
        for number, pick, future in zip(free, picks, self.engine.submit(works), strict=True):
            self.open[number] = pick, future, now_ns

    def take(self) -> int:
        """Returns how many reads have ended well in this step; their bytes are compared."""
        self.engine.step()
        now_ns, well = time.monotonic_ns(), 0
        for number, (pick, future, began_ns) in tuple(self.open.items()):
            if not future.done:
                continue
            del self.open[number]
            self.ended.append(future)
            self.longest_ns = max(self.longest_ns, now_ns - began_ns)
            if future.error is None:
                well += 1
                self.wrong += self.buffer.memory[number * SIZE : (number + 1) * SIZE] != self.known[pick]
        return well

    def report(self) -> dict[str, object]:
        """Returns what happened since the last report."""
        slots = {qid: self.controller.queue(qid).slots.in_use for qid in self.controller.live_queues}
        told: dict[str, object] = {
            "reads": len(self.ended),
            "errors": names(self.ended),
            "wrong": self.wrong,
            "longest_s": self.longest_ns / SECOND,
            "unsettled": sum(not one.settled for one in self.ended),
            "quarantined": len(self.engine.quarantined),
            "leaked": 0 if self.open else sum(slots.values()),
            "state": str(self.controller.state),
            "live": len(slots),
            "lost": type(self.engine.lost).__name__ if self.engine.lost else "",
        }
        self.ended, self.wrong, self.longest_ns = [], 0, 0
        return told

    def obey(self) -> bool:
        """Does what a line on standard input says, if there is one; returns whether to stop."""
        if not select.select([sys.stdin], [], [], 0)[0]:
            return False
        verb, *words = sys.stdin.readline().split() or ["stop"]
        if verb == "stall":
            at("stalled")
            time.sleep(float(words[0]))
        elif verb == "report":
            at(f"report {json.dumps(self.report())}")
        return verb == "stop"

    def run(self) -> None:
        """Reads until the test says stop, or all is lost."""
        total, was_live, stopping = 0, True, False
        while not self.engine.lost and (self.open or not stopping):
            if not stopping:
                self.submit()
            stopping = stopping or self.obey()
            due_ns = self.engine.next_timer_ns()
            now_ns = time.monotonic_ns()
            wait([self.engine.fileno()], max(0, min(SECOND, SECOND if due_ns is None else due_ns - now_ns)))
            well = self.take()
            is_live = self.controller.state is ControllerState.LIVE
            if was_live and not is_live:
                at("lost")
            if well and total < _LOADED <= total + well:
                at("loaded")
            if well and is_live and not was_live:
                at("back")
                was_live = True
            was_live = was_live and is_live
            total += well
        self.take()


def fill(engine: Engine) -> list[bytes]:
    """Returns what it wrote: a run of `SIZE` bytes for each block."""
    known = [block(number, SIZE, 7) for number in range(BLOCKS)]
    unit = engine.namespace.namespace.block_bytes
    buffer = engine.allocate(BLOCKS * SIZE)
    buffer.memory[:] = b"".join(known)
    futures = engine.submit(
        [Write(number * SIZE // unit, (buffer.view(number * SIZE, SIZE),)) for number in range(BLOCKS)]
    )
    engine.wait(futures)
    for one in futures:
        one.result()
    return known


def main() -> None:
    """Runs it."""
    url, kato_ms, *words = sys.argv[1:]
    policy = ShardPolicy(queues=2, deadline_ns=60 * SECOND, redeals=100)
    settings = Settings(
        command_ns=20 * SECOND, keep_alive_ms=int(kato_ms), keep_alive_thread="thread" in words, loss_ns=60 * SECOND
    )
    if settings.keep_alive_thread:
        engine = open_engine(url, policy=policy, settings=settings)
        link = engine.link
        while not isinstance(link, ControllerLink):
            link = getattr(link, "inner")  # noqa: B009, what stands around the link says so in its own words
        controller = link.controller
    else:
        engine = opened(link_to(url, policy, settings), policy, settings)
        controller = controller_of(engine)
    with engine:
        load = Load(engine, controller, engine.allocate(DEPTH * SIZE), fill(engine))
        try:
            load.run()
        except EngineError as error:
            load.refused = type(error).__name__
        report = load.report()
        began_ns = time.monotonic_ns()
    closed_s = (time.monotonic_ns() - began_ns) / SECOND
    unsettled = sum(not future.settled for _, future, _ in load.open.values())
    emit(**report, refused=load.refused, closed_s=closed_s, open_at_end=len(load.open), unsettled_at_end=unsettled)


if __name__ == "__main__":
    main()
