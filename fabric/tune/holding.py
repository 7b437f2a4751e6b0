"""What in the fabric holds a study back: the faster settings that one limit alone speaks against. Pure.

A study turns queues, no switch. Where the fabric's own thresholds keep it from more, this says which, by how much, and
what an egress would have to let wait. Whoever plans decides: a higher Kmin marks later, and everybody waits longer.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fabric.qos import known
from fabric.tune.knobs import Knobs
from fabric.tune.model import queue_bytes
from fabric.tune.outcome import Limits
from fabric.tune.path import PathModel
from fabric.tune.standing import Book, Standing

__all__ = ("Holding", "Limit", "holdings")

LEAST_GAIN: Final = 0.05  # the noise of one trial below full length is well below


class Limit(StrEnum):
    """What alone speaks against a setting."""

    MARKS = "marks"
    PAUSES = "pauses"
    LOSS = "loss"


_TURN: Final = {
    Limit.MARKS: "fabric_ecn_kmin and fabric_ecn_kmax mark later, fabric_ecn_overrides at one speed",
    Limit.PAUSES: "fabric_alpha_log2 pauses later",
    Limit.LOSS: "a lossless class holds its senders",
}
_LOSSLESS_LOST: Final = (
    "a lossless class that loses has too little headroom or no PFC somewhere: verify names the place"
)


@dataclass(frozen=True, slots=True)
class Holding:
    """The fastest setting that one limit alone forbids.

    Attributes:
        gain: of its score over the chosen one's, 0.1 is 10 %.
        queued_bytes: that it lets wait at the receiver's egress at most, by the windows and the model.
        kmin_bytes: where marking begins there now, None where nothing is marked or no switch is known.
        turn: what of the plan is to be looked at; then planned, checked and tuned anew.
    """

    limit: Limit
    knobs: Knobs
    gain: float
    queued_bytes: int
    kmin_bytes: int | None
    turn: str


def holdings(book: Book, model: PathModel, chosen: Knobs | None) -> tuple[Holding, ...]:
    """Returns for each limit the fastest setting that it alone forbids, where that is worth something; best first.

    Args:
        book: all trials.
        model: the path that they went over.
        chosen: what is deployed; None: then each such setting counts, and its gain is 0.
    """
    least = 0.0 if chosen is None else book.worth(book[chosen]) * (1 + LEAST_GAIN)
    best: dict[Limit, Standing] = {}
    for one in book.standings():
        limit = _only_limit(one, book.limits)
        if limit is not None and book.worth(one) > max(least, book.worth(best[limit]) if limit in best else 0.0):
            best[limit] = one
    found = [
        Holding(
            limit=limit,
            knobs=one.knobs,
            gain=book.worth(one) / book.worth(book[chosen]) - 1 if chosen is not None else 0.0,
            queued_bytes=round(queue_bytes(model, _flying_bytes(one.knobs, model))),
            kmin_bytes=model.buffer.kmin_bytes if model.buffer else None,
            turn=_LOSSLESS_LOST if limit is Limit.LOSS and (not model.buffer or model.buffer.pfc) else _TURN[limit],
        )
        for limit, one in best.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.gain, one.limit)))


def _only_limit(one: Standing, limits: Limits) -> Limit | None:
    """Returns the limit that alone speaks against it; UNKNOWN and errors speak against it too, and name no limit."""
    outcomes = [told.outcome for told in one.told]
    p99_ns = limits.p99_max_ns
    if any(told.errors or (p99_ns is not None and told.p99_ns > p99_ns) for told in outcomes):
        return None
    over = {
        Limit.LOSS: any(known(told.lost, 1) for told in outcomes),
        Limit.PAUSES: any(known(told.pause_share, 0.0) > limits.pause_share_max for told in outcomes),
        Limit.MARKS: any(known(told.marks_share, 0.0) > limits.marks_share_max for told in outcomes),
    }
    named = [limit for limit, is_over in over.items() if is_over]
    return named[0] if len(named) == 1 and one.flaws(limits) else None


def _flying_bytes(knobs: Knobs, model: PathModel) -> float:
    """Returns what flies towards one receiver at most; no more than the load has open."""
    _, wanted = model.offer.most_bytes(knobs.transfer_bytes)
    return min(knobs.flying_bytes(model.fan_in), wanted)
