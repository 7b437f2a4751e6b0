"""Brings a controller to a state, lets the test break something there, and tells how it ended.

python3 -m tests.vm.engine.programs.faulty URL: reads states on standard input, one a line. For each it says `at STATE`
when it is there; the test breaks something and answers; then `at end {…}`. An empty line ends it.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fabric.engine.client import Buffer, Future, Read, Settings, Write
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.link import LinkLost, News, Usable
from fabric.engine.nvmeof.host import Controller, ControllerState, QueueState
from fabric.engine.transport.driver import wait
from fabric.errors import EngineError
from fabric.policy import ShardPolicy, fit
from tests.vm.engine.programs.common import (
    SECOND,
    at,
    block,
    controller_of,
    emit,
    link_to,
    names,
    open_descriptors,
    opened,
    wait_for_answer,
)

SIZE: Final = 65536
COUNT: Final = 8  # twice: before the fault and after it
LIMIT_NS: Final = 40 * SECOND
POLICY: Final = ShardPolicy(queues=2, deadline_ns=20 * SECOND, redeals=100)
SETTINGS: Final = Settings(command_ns=4 * SECOND, loss_ns=30 * SECOND)


def _is_greeting(controller: Controller) -> bool:
    return controller.queue(0).state is QueueState.GREETING


REACHED: Final[Mapping[str, Callable[[Controller], bool]]] = MappingProxyType(
    {
        "connecting": lambda _: True,
        "greeting": _is_greeting,
        "enabling": lambda controller: controller.state is ControllerState.CONFIGURING,
        "idle": lambda controller: controller.state is ControllerState.LIVE,
    }
)


class Opening:
    """A link on its way up."""

    def __init__(self, url: str) -> None:
        self.link: ControllerLink = link_to(url, POLICY, SETTINGS)
        self.news: list[News] = []
        self.end_ns = time.monotonic_ns() + LIMIT_NS
        self.link.start(time.monotonic_ns())

    def step(self) -> None:
        """Waits a little, and does what there is to do."""
        wait([self.link.fileno()], SECOND // 50)
        self.news += self.link.step(time.monotonic_ns())

    def until(self, holds: Callable[[Controller], bool]) -> None:
        """Steps until it is so; nothing is broken yet."""
        while not holds(self.link.controller):
            self.step()
            assert time.monotonic_ns() < self.end_ns

    def finish(self) -> tuple[Engine | None, str]:
        """Returns the engine, or why there is none; "late" when it was neither."""
        while time.monotonic_ns() < self.end_ns:
            for one in self.news:
                if isinstance(one, LinkLost):
                    self.link.close()
                    return None, type(one.error).__name__
                if isinstance(one, Usable):
                    fitted, _notes = fit(POLICY, one.limits)
                    return Engine(self.link, self.news, fitted, SETTINGS, time.monotonic_ns), ""
            self.step()
        self.link.close()
        return None, "late"


class Blocks:
    """Blocks of the namespace and what they hold: each run of `SIZE` bytes with a turn of its own."""

    def __init__(self) -> None:
        self.turns = [0] * (2 * COUNT)
        self.turn = 0

    def work(self, kind: type[Read] | type[Write], engine: Engine, buffer: Buffer, half: int) -> list[Future]:
        """Returns the reads or writes of one half of the blocks."""
        unit = engine.namespace.namespace.block_bytes
        numbers = range(half * COUNT, (half + 1) * COUNT)
        for number in numbers:
            content = block(number, SIZE, self.turn) if kind is Write else bytes(SIZE)
            buffer.memory[number * SIZE : (number + 1) * SIZE] = content
        return engine.submit([kind(number * SIZE // unit, (buffer.view(number * SIZE, SIZE),)) for number in numbers])

    def wrong(self, buffer: Buffer, futures: list[Future]) -> int:
        """Returns how many good reads brought other bytes; futures in the order of the blocks."""
        return sum(
            future.error is None and self._at(buffer, number) != block(number, SIZE, self.turns[number])
            for number, future in enumerate(futures)
        )

    def written(self, url: str, futures: list[Future]) -> int:
        """Returns how many blocks hold what they cannot: a failed write may have been done, or not."""
        with opened(link_to(url, POLICY, SETTINGS), POLICY, SETTINGS) as engine:
            buffer = engine.allocate(2 * COUNT * SIZE)
            reads = [one for half in (0, 1) for one in self.work(Read, engine, buffer, half)]
            engine.wait(reads)
        wrong = sum(one.error is not None for one in reads)
        for number, future in enumerate(futures):
            found = self._at(buffer, number)
            if found == block(number, SIZE, self.turn):
                self.turns[number] = self.turn
            elif future.error is None or found != block(number, SIZE, self.turns[number]):
                wrong += 1
        return wrong

    @staticmethod
    def _at(buffer: Buffer, number: int) -> bytes:
        return bytes(buffer.memory[number * SIZE : (number + 1) * SIZE])


def move(engine: Engine, kind: type[Read] | type[Write], blocks: Blocks, state: str) -> tuple[list[Future], Buffer]:
    """Returns what became of reads or writes around the fault."""
    buffer = engine.allocate(2 * COUNT * SIZE)
    futures = blocks.work(kind, engine, buffer, 0)
    at(state)
    wait_for_answer()
    try:
        futures += blocks.work(kind, engine, buffer, 1)
    except EngineError:
        futures += [Future(futures[0].request, SIZE, True, True, engine.lost)] * COUNT
    engine.wait(futures, LIMIT_NS)
    engine.settle(futures, LIMIT_NS)
    return futures, buffer


def scene(url: str, state: str, blocks: Blocks) -> dict[str, object]:
    """Returns how one state met one fault."""
    before, opening = open_descriptors(), Opening(url)
    opening.until(REACHED.get(state, REACHED["idle"]))
    engine: Engine | None = None
    futures: list[Future] = []
    wrong, error = 0, ""
    if state in REACHED:
        at(state)
        wait_for_answer()
        engine, error = opening.finish()
        began_ns = time.monotonic_ns()
    else:
        engine, error = opening.finish()
        assert engine is not None
    if state == "stopping":
        at(state)
        wait_for_answer()
    kind = Write if state == "writing" else Read
    if engine is not None and state in {"reading", "writing"}:
        blocks.turn += state == "writing"
        futures, buffer = move(engine, kind, blocks, state)
        wrong = blocks.wrong(buffer, futures) if kind is Read else 0
    quarantined = leaked = 0
    if engine is not None:
        controller = controller_of(engine)
        quarantined = len(engine.quarantined)
        leaked = sum(controller.queue(qid).slots.in_use for qid in controller.live_queues)
        began_ns = time.monotonic_ns()
        engine.close()
    closed_s = (time.monotonic_ns() - began_ns) / SECOND
    ended = sum(one.done for one in futures)
    return {
        "error": error,
        "errors": names(futures),
        "wrong": wrong,
        "hung": len(futures) - ended + (error == "late"),
        "unsettled": sum(not one.settled for one in futures),
        "quarantined": quarantined,
        "leaked": leaked,
        "descriptors": open_descriptors() - before,
        "closed_s": closed_s,
        "written": [one.error is None for one in futures] if state == "writing" else [],
    }


def main() -> None:
    """Runs it."""
    url, blocks, scenes = sys.argv[1], Blocks(), 0
    with opened(link_to(url, POLICY, SETTINGS), POLICY, SETTINGS) as engine:
        buffer = engine.allocate(2 * COUNT * SIZE)
        futures = [one for half in (0, 1) for one in blocks.work(Write, engine, buffer, half)]
        engine.wait(futures)
        assert names(futures) == []
    while state := wait_for_answer():
        told = scene(url, state, blocks)
        at(f"end {json.dumps(told)}")
        scenes += 1
        written = told["written"]
        wait_for_answer()  # the fault is mended
        if isinstance(written, list) and written:
            failed = [
                Future(futures[0].request, SIZE, True, True, None if good else EngineError("")) for good in written
            ]
            at(f"written {blocks.written(url, failed)}")
    emit(scenes=scenes)


if __name__ == "__main__":
    main()
