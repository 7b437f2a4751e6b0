"""The model before the measurement: bytes in flight, command size, queues, depth, fan-in bound, latency.

Steps 1 to 7 of simulation study 4.3. It proposes where to begin and says what cannot be had; what holds is measured.
"""

from dataclasses import dataclass
from math import ceil, exp, log, sqrt
from typing import Final

from fabric.tune.knobs import Knobs, Space
from fabric.tune.path import PathModel
from fabric.tune.usl import ScalingLaw, smallest_near_best

__all__ = (
    "Advice",
    "FanIn",
    "advise",
    "distinct_uplinks",
    "fan_in",
    "io_size_bounds",
    "needed_bytes",
    "p99_ns",
    "queue_bytes",
    "spread",
)

PIPELINE: Final = 4  # at least so many commands in flight: step 2
SLACK: Final = 1.2  # step 3
PHI: Final = 0.5  # another burst may share the pool: step 5
INFEASIBLE: Final = "infeasible: needs ECN/PFC or a credit scheduler"


@dataclass(frozen=True, slots=True)
class FanIn:
    """Bounds on all bytes in flight towards one egress; None where nothing bounds them.

    Attributes:
        unmarked_bytes: below it nothing is marked: BDP + Kmin.
        unpaused_bytes: below it no threshold is crossed: BDP + f (T_f + r).
        safe_bytes: BDP + phi f (T_f + r), phi 0.5.
    """

    unmarked_bytes: float | None
    unpaused_bytes: float | None
    safe_bytes: float | None

    def tightest_bytes(self, *, marks: bool = False) -> float | None:
        """Returns the least of the bounds that are there; `marks` says that some packets may be marked."""
        bounds = (None if marks else self.unmarked_bytes, self.safe_bytes)
        return min((one for one in bounds if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class Advice:
    """Where to begin.

    Attributes:
        knobs: of the space. feasible: whether the fan-in bound holds for them.
        needed_bytes: Little's law. bounds: of the fan-in.
        p99_ns: of one command, foreseen. notes: what was reduced and why, one sentence each.
    """

    knobs: Knobs
    feasible: bool
    needed_bytes: float
    bounds: FanIn
    p99_ns: float
    notes: tuple[str, ...]


def needed_bytes(model: PathModel) -> float:
    """Returns I* = min(C eta, D) x (t0 + t_s): what has to fly to fill the path (Little)."""
    return model.payload_bytes_per_s * (model.base_rtt_ns + model.service_p50_ns) / 1e9


def io_size_bounds(model: PathModel) -> tuple[float, float]:
    """Returns (least, most) bytes of a command: CPU bounds it from below, pipelining and the chunk from above."""
    least = model.command_cpu_ns / 1e9 * model.link_bytes_per_s * model.wire_efficiency / model.cores
    return least, min(needed_bytes(model) / PIPELINE, float(model.chunk_bytes))


def fan_in(model: PathModel) -> FanIn:
    """Returns what may fly towards the tightest egress."""
    buffer, sources = model.buffer, model.fan_in
    if buffer is None:
        return FanIn(None, None, None)
    pool = max(0, buffer.total_bytes - buffer.headroom_sum_bytes - buffer.reserved_sum_bytes)
    threshold = pool / (2**buffer.threshold_shift + sources)
    room = sources * (threshold + buffer.reserved_bytes)
    bdp = model.bdp_bytes
    return FanIn(
        unmarked_bytes=None if buffer.kmin_bytes is None else bdp + buffer.kmin_bytes,
        unpaused_bytes=bdp + room,
        safe_bytes=bdp + PHI * room,
    )


def queue_bytes(model: PathModel, flying_bytes: float) -> float:
    """Returns what waits at the egress of a window-limited incast: all that flies less what the wire holds (O4)."""
    return max(0.0, flying_bytes - model.bdp_bytes)


def p99_ns(model: PathModel, flying_bytes: float) -> float:
    """Returns the p99 of one command: t0 + t_s(p99) + Q / C."""
    waiting_ns = queue_bytes(model, flying_bytes) * 1e9 / model.link_bytes_per_s
    return model.base_rtt_ns + model.service_p99_ns + waiting_ns


def advise(model: PathModel, space: Space, law: ScalingLaw | None = None, *, marks: bool = False) -> Advice:
    """Returns the knobs to begin with: steps 1 to 6.

    Args:
        model: the path.
        space: what may be chosen.
        law: what was measured of queues so far, None before.
        marks: whether some packets may be marked; else all that flies has to fit below Kmin.
    """
    least, most = io_size_bounds(model)
    size = space.floor("transfer_bytes", int(max(least, most)))
    needed = SLACK * needed_bytes(model)
    bounds = fan_in(model)
    most_flying = bounds.tightest_bytes(marks=marks)
    flying = needed if most_flying is None else min(needed, most_flying)
    notes = []
    if flying < needed:
        notes.append(f"depth reduced: {needed:.0f} B would fill the path, the fan-in bound is {most_flying:.0f} B")
    smallest = space.transfer_bytes[0]
    while model.fan_in * size > flying and size > smallest:
        size = space.floor("transfer_bytes", size - 1)
        notes.append(f"transfers reduced to {size} B: {model.fan_in} sources have to share {flying:.0f} B")
    feasible = most_flying is None or most_flying >= size
    if not feasible:
        notes.append(f"{INFEASIBLE}: one command of {size} B exceeds {most_flying:.0f} B")
    elif model.fan_in * size > flying:
        notes.append("fewer sources are admitted at once: the receiver's window is the credit")
    each = max(1, ceil(flying / model.fan_in / size))
    counts = _counts(model, space, each)
    queues = counts[-1] if law is None else smallest_near_best(law, counts, ceiling=model.payload_bytes_per_s)
    if law is None:  # nothing is known of queues yet: so many that a depth of two would do
        queues = max((one for one in counts if one <= max(1, ceil(each / 2))), default=counts[0])
    window = max(flying, size)
    knobs = Knobs(
        queues=queues,
        depth=min(max(1, ceil(each / queues)), model.sqsize),
        transfer_bytes=size,
        dealing=space.dealing[0],
        target_bytes=max(each * size, size),
        receiver_bytes=int(window),
    )
    return Advice(space.nearest(knobs), feasible, needed, bounds, p99_ns(model, window), tuple(notes))


def _counts(model: PathModel, space: Space, each: int) -> tuple[int, ...]:
    """Returns the counts of queues to choose from: [commands / sqsize, min(cores, grant)]."""
    most = min(model.cores, model.queues_max or model.cores)
    least = ceil(each / model.sqsize)
    found = tuple(one for one in space.queues if least <= one <= most)
    return found or (space.floor("queues", most),)


def spread(chunks: int, queues: int) -> float:
    """Returns max / mean load of queues when chunks are hashed over them: about 1 + sqrt(2 n ln n / m) (step 7)."""
    return 1.0 if queues < 2 else 1 + sqrt(2 * queues * log(queues) / max(1, chunks))


def distinct_uplinks(uplinks: int, queues: int) -> float:
    """Returns how many of the uplinks so many queues cover, each hashed to one: u (1 - (1 - 1/u)^n) (step 7)."""
    return uplinks * (1 - exp(queues * log(1 - 1 / uplinks))) if uplinks > 1 else float(min(1, queues))
