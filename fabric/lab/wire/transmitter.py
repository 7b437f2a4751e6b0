"""Eight queues before one link: strict queues first, then deficit round robin, at the link's rate.

A pause holds one queue. Both ends of a cable are this: the egress of a switch port and the sending side of a NIC. It
knows no buffer, no pause frame and no curve. Time is an argument in ns; a frame's remainder below 1 ns is carried to
the next, so that the rate is exact over many frames.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

__all__ = ("QUEUES", "WIRE_OVERHEAD_BYTES", "QueuePlan", "Sized", "Transmitter")

QUEUES: Final = 8
# IEEE 802.3 clauses 3 and 4.4.2: preamble and delimiter 8, gap 12, frame check sequence 4 (our frames come without)
WIRE_OVERHEAD_BYTES: Final = 24
_NS_BITS_PER_BYTE: Final = 8 * 1_000_000_000


class Sized(Protocol):
    """What can be queued."""

    @property
    def size_bytes(self) -> int:
        """Returns the bytes of the frame."""
        ...


T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """How one queue gets its turn.

    Attributes:
        strict: served before all that are not; among strict ones the highest number first.
        quantum_bytes: share of one round where not strict.
        shape_bps: maximum rate of the queue, None for none.
    """

    strict: bool = False
    quantum_bytes: int = 16_384
    shape_bps: int | None = None


class Transmitter(Generic[T]):
    """Queues and link of one direction.

    Args:
        plans: eight.
        rate_bps: rate of the link.

    Source: deficit round robin is M. Shreedhar and G. Varghese, SIGCOMM 1995.
    """

    def __init__(self, plans: Sequence[QueuePlan], rate_bps: int) -> None:
        self.queues: tuple[deque[T], ...] = tuple(deque() for _ in range(QUEUES))
        self.depth_bytes = [0] * QUEUES
        self.held = [False] * QUEUES
        self.busy_until_ns = 0
        self._remainder = 0
        self._deficit = [0] * QUEUES
        self._shape_ready_ns = [0] * QUEUES
        self._shape_remainder = [0] * QUEUES
        self._turn = 0
        self._granted = False
        self.configure(plans, rate_bps)

    def configure(self, plans: Sequence[QueuePlan], rate_bps: int) -> None:
        """Replaces schedulers and rate; what is queued stays."""
        self._plans = tuple(plans)
        self._strict = [queue for queue in reversed(range(QUEUES)) if plans[queue].strict]
        self._weighted = [queue for queue in range(QUEUES) if not plans[queue].strict]
        self._shaped = any(plan.shape_bps is not None for plan in plans)
        self.rate_bps = rate_bps

    def push(self, queue: int, item: T) -> None:
        """Appends to a queue."""
        self.queues[queue].append(item)
        self.depth_bytes[queue] += item.size_bytes

    def flush(self, queue: int) -> list[T]:
        """Returns and removes all that waits in a queue."""
        items = list(self.queues[queue])
        self.queues[queue].clear()
        self.depth_bytes[queue] = 0
        self._deficit[queue] = 0
        return items

    def take(self, now_ns: int) -> tuple[int, T] | None:
        """Returns (queue, item) whose turn it is and removes it; None when nothing may be sent now."""
        queue = self._next(now_ns)
        if queue is None:
            return None
        item = self.queues[queue].popleft()
        size = item.size_bytes
        self.depth_bytes[queue] -= size
        plan = self._plans[queue]
        if not plan.strict:
            self._deficit[queue] -= size
            if not self.queues[queue]:
                self._deficit[queue] = 0
                if queue == self._turn:
                    self._pass_turn()
        if plan.shape_bps is not None:
            self._shape(queue, size, plan.shape_bps, now_ns)
        return queue, item

    def occupy(self, size_bytes: int, now_ns: int) -> int:
        """Returns when a frame that starts now has left the link, and keeps the link busy until then."""
        bits = (size_bytes + WIRE_OVERHEAD_BYTES) * _NS_BITS_PER_BYTE + self._remainder
        duration_ns, self._remainder = divmod(bits, self.rate_bps)
        self.busy_until_ns = now_ns + duration_ns
        return self.busy_until_ns

    def shaped_until_ns(self, now_ns: int) -> int | None:
        """Returns when the first queue that only its shaper holds back may send; None when there is none."""
        if not self._shaped:
            return None
        later = [
            self._shape_ready_ns[queue]
            for queue in range(QUEUES)
            if self.queues[queue] and not self.held[queue] and self._shape_ready_ns[queue] > now_ns
        ]
        return min(later, default=None)

    def waiting(self) -> int:
        """Returns how many items wait."""
        return sum(map(len, self.queues))

    def _ready(self, queue: int, now_ns: int) -> bool:
        return bool(self.queues[queue]) and not self.held[queue] and self._shape_ready_ns[queue] <= now_ns

    def _next(self, now_ns: int) -> int | None:
        for queue in self._strict:
            if self._ready(queue, now_ns):
                return queue
        queues, held, shape_ready_ns = self.queues, self.held, self._shape_ready_ns
        ready = [one for one in self._weighted if queues[one] and not held[one] and shape_ready_ns[one] <= now_ns]
        if not ready:
            return None
        if len(ready) == 1:  # alone it has the link; a light queue's many rounds would only take time
            (queue,) = ready
            self._deficit[queue] = max(self._deficit[queue], self.queues[queue][0].size_bytes)
            return queue
        while True:  # ends: each round adds a quantum to a queue that is ready
            queue = self._turn
            if not self._plans[queue].strict and self._ready(queue, now_ns):
                if not self._granted:
                    self._deficit[queue] += self._plans[queue].quantum_bytes
                    self._granted = True
                if self.queues[queue][0].size_bytes <= self._deficit[queue]:
                    return queue
            self._pass_turn()

    def _pass_turn(self) -> None:
        self._turn = (self._turn + 1) % QUEUES
        self._granted = False

    def _shape(self, queue: int, size_bytes: int, shape_bps: int, now_ns: int) -> None:
        bits = (size_bytes + WIRE_OVERHEAD_BYTES) * _NS_BITS_PER_BYTE + self._shape_remainder[queue]
        duration_ns, self._shape_remainder[queue] = divmod(bits, shape_bps)
        self._shape_ready_ns[queue] = max(now_ns, self._shape_ready_ns[queue]) + duration_ns
