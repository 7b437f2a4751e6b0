"""Seeded runs on a faulty target in memory, recorded: the clock is the test's, and jumps from one thing to the next."""

import random
from collections.abc import Sequence
from pathlib import Path

from fabric.engine.client import Engine, Future, Read, Settings, Write, open_engine
from fabric.engine.client.work import BlockRange, Deallocate, Flush, WriteZeroes
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Shape
from fabric.errors import EngineError
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import MIB, MS, Hand, service

PART = 32 << 10


def faulty(seed: int) -> Shape:
    """A target with some of the faults."""
    dice = random.Random(seed)  # noqa: S311, repeatable
    kinds = dice.sample(list(FaultKind), 3)
    faults = tuple(Fault(kind, probability=0.08, delay_ns=90 * MS, status=0x006) for kind in kinds)
    return Shape(service_ns=200_000, faults=faults, seed=seed)


class Story:
    """What a caller does, drawn from a seed."""

    def __init__(self, path: Path | None, seed: int, steps: int = 40, *, metrics: bool = False) -> None:
        self.dice = random.Random(seed)  # noqa: S311, repeatable
        self.clock = Hand()
        settings = Settings(
            command_ns=60 * MS, close_ns=0, loss_ns=2_000 * MS, quarantine_bytes=256 << 10, trace=path, metrics=metrics
        )
        policy = ShardPolicy(queues=3, depth=4, transfer_bytes=16 << 10, deadline_ns=500 * MS)
        shape = faulty(seed)
        slow = Patient(self.clock)
        self.engine: Engine = open_engine(
            "memory://", policy=policy, settings=settings, service=service(shape), clock=slow
        )
        self.buffer = self.engine.allocate(MIB)
        self.futures: list[Future] = []
        slow.is_patient = False
        for _ in range(steps):
            self.act()

    def act(self) -> None:
        """One thing happens."""
        what = self.dice.random()
        try:
            if what < 0.4:
                self.futures += self.engine.submit(self.works())
            elif what < 0.45 and self.futures:
                self.engine.cancel(self.dice.choice(self.futures))
        except EngineError:
            return
        self.clock.now_ns += self.dice.choice((0, 1, 200_000, MS, 30 * MS))
        self.engine.step()

    def works(self) -> Sequence[Read | Write | Flush | WriteZeroes | Deallocate]:
        """A batch, at times one that is refused."""
        dice = self.dice
        works: list[Read | Write | Flush | WriteZeroes | Deallocate] = []
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(MIB // PART) * PART
            kind = dice.choice((Read, Read, Write))
            works.append(kind(dice.randrange(8 << 10), (self.buffer.view(at, PART),), tenant=dice.choice("ab")))
        if dice.random() < 0.1:
            works.append(dice.choice((Flush(), WriteZeroes(0, 8), Deallocate((BlockRange(8, 8), BlockRange(32, 16))))))
        return works


class Patient:
    """A clock that moves by itself while an engine is opened: nobody else would move it."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self.is_patient = True

    def __call__(self) -> int:
        if self.is_patient:
            self.hand.now_ns += 50_000
        return self.hand()
