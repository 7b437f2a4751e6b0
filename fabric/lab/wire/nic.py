"""The NIC between a guest's socket and the switch: eight queues, each of which a pause may hold.

A plain unread socket would be an IEEE 802.3x pause of everything. Here the guest is read on while one priority is
held, until a frame comes that the held queue has no room for; that frame is kept and the guest left unread till then.
Knows no socket and no switch.
"""

from dataclasses import dataclass

from fabric.lab.wire.frame import parse
from fabric.lab.wire.transmitter import QUEUES, QueuePlan, Transmitter
from fabric.qos import DSCP_COUNT

__all__ = ("Departure", "NicModel", "NicPlan")

_BY_CLASS_SELECTOR = tuple(
    dscp >> 3 for dscp in range(DSCP_COUNT)
)  # RFC 2474 section 4.2.2; that NICs do so by default is unconfirmed


@dataclass(frozen=True, slots=True)
class NicPlan:
    """One NIC.

    Attributes:
        rate_bps: rate of its link.
        dscp_to_priority: 64 elements; what carries no IP goes to priority 0.
        queue_limit_bytes: room of each queue.
        queues: schedulers, eight.
    """

    rate_bps: int
    dscp_to_priority: tuple[int, ...] = _BY_CLASS_SELECTOR
    queue_limit_bytes: int = 16 << 20  # more than the unacknowledged packets of 30 rxe queue pairs
    queues: tuple[QueuePlan, ...] = (QueuePlan(),) * QUEUES


@dataclass(frozen=True, slots=True)
class Departure:
    """A frame that is on the link from `start_ns`, and has wholly left at `end_ns`."""

    frame: bytes
    start_ns: int
    end_ns: int


class _Frame:
    __slots__ = ("frame", "size_bytes")

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.size_bytes = len(frame)


class NicModel:
    """The sending side of one NIC."""

    def __init__(self, plan: NicPlan) -> None:
        self.plan = plan
        self.transmitter: Transmitter[_Frame] = Transmitter(plan.queues, plan.rate_bps)
        self._overfull: int | None = None
        self._changed_ns = 0

    @property
    def reads_guest(self) -> bool:
        """Returns whether the guest's socket is to be read."""
        return self._overfull is None

    def offer(self, frame: bytes, now_ns: int) -> list[Departure]:
        """Takes a frame of the guest, also when its queue is full: then it is the last one for now."""
        done = self.advance(now_ns)
        headers = parse(frame)
        dscp = None if headers is None else headers.dscp
        queue = 0 if dscp is None else self.plan.dscp_to_priority[dscp]
        self.transmitter.push(queue, _Frame(frame))
        if self.transmitter.depth_bytes[queue] > self.plan.queue_limit_bytes:
            self._overfull = queue
        return [*done, *self._changed(now_ns)]

    def set_pause(self, priority: int, *, paused: bool, now_ns: int) -> list[Departure]:
        """Holds or frees one queue; a frame on the link goes on."""
        done = self.advance(now_ns)
        self.transmitter.held[priority] = paused
        return [*done, *self._changed(now_ns)]

    def reset(self) -> None:
        """Loses what waits, as a NIC does whose host starts anew; what the peer holds stays held."""
        for queue in range(QUEUES):
            self.transmitter.flush(queue)
        self._overfull = None

    def advance(self, now_ns: int) -> list[Departure]:
        """Returns the frames whose transmission starts by now, each at its own time."""
        done = []
        transmitter = self.transmitter
        while (start_ns := max(transmitter.busy_until_ns, self._changed_ns)) <= now_ns:
            taken = transmitter.take(start_ns)
            if taken is None:
                break
            item = taken[1]
            done.append(Departure(item.frame, start_ns, transmitter.occupy(item.size_bytes, start_ns)))
        if self._overfull is not None and transmitter.depth_bytes[self._overfull] <= self.plan.queue_limit_bytes:
            self._overfull = None
        return done

    def next_ns(self) -> int | None:
        """Returns when `advance` has something to do, None when only a frame or resume can change anything."""
        transmitter = self.transmitter
        sendable = any(waiting and not held for waiting, held in zip(transmitter.queues, transmitter.held, strict=True))
        return max(transmitter.busy_until_ns, self._changed_ns) if sendable else None

    def _changed(self, now_ns: int) -> list[Departure]:
        self._changed_ns = max(self._changed_ns, now_ns)
        return self.advance(now_ns)
