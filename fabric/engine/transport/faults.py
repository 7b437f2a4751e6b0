"""What goes wrong at a target, as data: which commands, how. Rules are judged in order, from one seed.

| kind | what the host sees |
|---|---|
| DROP | no answer, no data: the command was never carried out |
| LOSE_ANSWER | the data lands, no answer comes |
| LOSE_DATA | a good answer, and not one byte of the data |
| CORRUPT | a good answer, and one byte of the data is another |
| DELAY | data and answer come late: after a timeout, a late write into the buffer |
| LATE_ANSWER | the data lands at once, the answer comes late |
| REORDER | the answer comes behind the next one of its queue, or after the delay |
| DUPLICATE | the answer comes twice |
| STATUS | the command fails with a status, not carried out |
| BREAK | the connection breaks when the command comes |
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ("Fault", "FaultKind", "FaultScript")


class FaultKind(StrEnum):
    """What happens to a command."""

    DROP = "drop"
    LOSE_ANSWER = "lose-answer"
    LOSE_DATA = "lose-data"
    CORRUPT = "corrupt"
    DELAY = "delay"
    LATE_ANSWER = "late-answer"
    REORDER = "reorder"
    DUPLICATE = "duplicate"
    STATUS = "status"
    BREAK = "break"


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule. It strikes a command that fits every condition, with a probability.

    Attributes:
        kind: what happens.
        queues: on which queues; one that has not greeted counts as admin.
        opcodes: of these commands; empty: of all. 0x7F are the fabrics commands.
        commands: only the n-th fitting ones, from 0; empty: all.
        probability: of striking a command that fits.
        delay_ns: of the late kinds.
        status: of STATUS, as in `Cqe.status`.
    """

    kind: FaultKind
    queues: Literal["io", "admin", "all"] = "io"
    opcodes: tuple[int, ...] = ()
    commands: tuple[int, ...] = ()
    probability: float = 1.0
    delay_ns: int = 0
    status: int = 0


class FaultScript:
    """The rules of one target, with their counters.

    Args:
        rules: in order; the first that strikes decides.
        seed: of the probabilities.
    """

    def __init__(self, rules: Sequence[Fault] = (), seed: int = 0) -> None:
        self._rules = tuple(rules)
        self._seen = [0] * len(self._rules)
        self._random = random.Random(seed)  # noqa: S311, repeatable on purpose: a failing run is replayed from its seed

    def judge(self, opcode: int, *, is_io: bool) -> Fault | None:
        """Returns what strikes the next command, or None."""
        struck = None
        for index, rule in enumerate(self._rules):
            if rule.queues != "all" and (rule.queues == "io") is not is_io:
                continue
            if rule.opcodes and opcode not in rule.opcodes:
                continue
            nth, self._seen[index] = self._seen[index], self._seen[index] + 1
            if rule.commands and nth not in rule.commands:
                continue
            # drawn even when an earlier rule struck, so that rules do not change each other's fate
            strikes = rule.probability >= 1.0 or self._random.random() < rule.probability
            if strikes and struck is None:
                struck = rule
        return struck
