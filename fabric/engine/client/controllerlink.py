"""A controller over a transport as the engine's way to a namespace: joins `HostDriver` and the dealer's terms.

| the controller says | the engine hears |
|---|---|
| Ready, QueueUp while live | Usable once, QueueOpened |
| Completed, Failed that is not held | Landed; after the delay that the target asks for |
| Failed that is held | nothing: it may still land |
| QueueDown | QueueLost |
| of a command without data | Ended, at once; OrderReleased when it was held |
| QuarantineReleased | QueueReleased, once the queue is known to be lost and nothing of it is held |
| Lost, and Reconnecting before it was ever ready | LinkLost |
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from fabric.engine.client.link import (
    Described,
    Landed,
    LinkLost,
    News,
    QueueLost,
    QueueOpened,
    QueueReleased,
    Usable,
)
from fabric.engine.client.orders import Ended, Order, OrderReleased
from fabric.engine.nvmeof.errors import NotReadyError, QueueFullError, QueueLostError
from fabric.engine.nvmeof.host import (
    Completed,
    Controller,
    ControllerState,
    Failed,
    Limits,
    Lost,
    Output,
    PostSend,
    QuarantineReleased,
    QueueDown,
    QueueUp,
    Read,
    Ready,
    Reconnecting,
    Region,
    Write,
)
from fabric.engine.nvmeof.host import RequestId as CommandId
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import Disposition
from fabric.engine.queues import Issue, Namespace, Op, Path, Queue, QueueId, RequestId, Transfer
from fabric.engine.transport.base import Arena, Transport
from fabric.engine.transport.driver import HostDriver
from fabric.errors import EngineError, LocalProtocolError
from fabric.policy import ControllerLimits

__all__ = ("ControllerLink",)

_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_AGAIN: Final = frozenset({Disposition.RETRY_ELSEWHERE, Disposition.RETRY_LATER})
_OVER: Final = frozenset({ControllerState.CLOSED, ControllerState.LOST})


@dataclass(slots=True)
class _Line:
    """One queue that was opened.

    Attributes:
        qid: which.
        flying: commands on it, those that are held included.
        parked: transfers that found no room; the dealer has them in flight, and deals them again on release.
        is_lost: it went down, and is not released yet.
    """

    qid: QueueId
    flying: dict[CommandId, Transfer] = field(default_factory=dict)
    parked: deque[Transfer] = field(default_factory=deque)
    is_lost: bool = False


class ControllerLink:
    """One controller on one transport, and one of its namespaces.

    Args:
        controller: not started yet.
        transport: that carries it.
        nsid: the namespace.
        path: names of the two ports, for the windows of receivers.

    Attributes:
        controller, nsid, path: as given.
    """

    def __init__(self, controller: Controller, transport: Transport[PostSend], nsid: int, path: Path) -> None:
        self.controller = controller
        self._driver = HostDriver(controller, transport)
        self.nsid = nsid
        self.path = path
        self._arenas: list[Arena] = []
        self._lines: dict[int, _Line] = {}
        self._seen: tuple[IdentifyNamespace, Limits, Described] | None = None
        self._late: list[tuple[int, int, Landed]] = []  # failures told after the delay that the target asked for
        self._order = count()
        self._parked: list[tuple[QueueId, Order]] = []  # orders that found no slot
        self._ordered: dict[CommandId, tuple[QueueId, Order]] = {}  # orders that fly, those that are held included
        self._was_usable = self._is_closed = False

    def start(self, now_ns: int) -> None:
        """See `Link`."""
        self.controller.start(now_ns)

    def namespace(self) -> Described:
        """See `Link`."""
        where, known, limits = self.controller.config.subnqn, self.controller.namespaces, self.controller.limits
        found, seen = known.get(self.nsid), self._seen
        if found is None:
            listed = ", ".join(map(str, known)) or "none"
            raise LocalProtocolError("no such namespace", where=where, found=str(self.nsid), expected=listed)
        if seen is None or seen[0] is not found or seen[1] is not limits:
            namespace = Namespace(self.nsid, where, found.block_bytes, limits.max_transfer_bytes)
            identity = self.controller.identity
            has_cache = identity is None or bool(identity.volatile_cache & 1)
            seen = found, limits, Described(namespace, found.blocks, has_cache)
            self._seen = None if identity is None else seen
        return seen[2]

    def register(self, memory: memoryview) -> int:
        """See `Link`."""
        self._arenas.append(self._driver.transport.register(memory))
        return len(self._arenas) - 1

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """See `Link`."""
        if not (batch or self._parked or self._late or self._waits()):
            return []  # as in most calls: nothing was dealt, and nothing waits for a slot
        news: list[News] = self._send_orders(now_ns, wanted) if self._parked else []
        if self._late:
            self._drop_late(wanted, news)
        for line in self._lines.values():
            if line.parked and not line.is_lost:
                self._send_parked(line, now_ns, wanted, news)
        for queue, transfer in batch:
            line = self._lines[queue]
            if line.parked or line.is_lost or not self._send(line, transfer, now_ns, news):
                line.parked.append(transfer)
        return news + self._tell(self._driver.flush(now_ns), now_ns)

    def _waits(self) -> bool:
        for line in self._lines.values():  # noqa: SIM110  # a generator costs more than the rest of the call
            if line.parked:
                return True
        return False

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        """See `Link`."""
        self._parked += batch
        news = self._send_orders(now_ns, wanted)
        return news + self._tell(self._driver.flush(now_ns), now_ns)

    def step(self, now_ns: int) -> list[News]:
        """See `Link`."""
        news = self._tell(self._driver.step(now_ns), now_ns)
        while self._late and self._late[0][0] <= now_ns:
            news.append(heappop(self._late)[2])
        return news

    def next_timer_ns(self) -> int | None:
        """See `Link`."""
        due = [self._late[0][0]] if self._late else []
        if (at_ns := self._driver.next_timer_ns()) is not None:
            due.append(at_ns)
        return min(due) if due else None

    def fileno(self) -> int:
        """See `Link`."""
        return self._driver.transport.fileno()

    def stop(self, now_ns: int) -> bool:
        """See `Link`."""
        state = self.controller.state
        if state not in _OVER and state is not ControllerState.STOPPING:
            self.controller.stop(now_ns)
            self._driver.flush(now_ns)
        return self.controller.state in _OVER

    def close(self) -> None:
        """See `Link`."""
        if not self._is_closed:
            self._is_closed = True
            self._driver.transport.close()

    def _drop_late(self, wanted: Callable[[RequestId], bool], news: list[News]) -> None:
        """Tells at once of what nobody waits for: a target may ask for hours, and its memory is held meanwhile."""
        kept = [one for one in self._late if wanted(one[2].transfer.request)]
        if len(kept) < len(self._late):
            news += [one[2] for one in self._late if not wanted(one[2].transfer.request)]
            heapify(kept)
            self._late = kept

    def _send_parked(self, line: _Line, now_ns: int, wanted: Callable[[RequestId], bool], news: list[News]) -> None:
        while line.parked:
            transfer = line.parked[0]
            if not wanted(transfer.request):
                news.append(Landed(line.qid, transfer, _dropped(transfer)))
            elif not self._send(line, transfer, now_ns, news):
                return
            line.parked.popleft()

    def _send(self, line: _Line, transfer: Transfer, now_ns: int, news: list[News]) -> bool:
        try:
            command = self.controller.submit(line.qid, self._command(transfer), now_ns)
        except (NotReadyError, QueueFullError):
            return False  # a slot or the queue comes back, or QueueDown follows
        except EngineError as error:
            news.append(Landed(line.qid, transfer, error))
        else:
            line.flying[command] = transfer
        return True

    def _command(self, transfer: Transfer) -> Read | Write:
        ((buffer, offset, length),) = transfer.pieces
        region: Region = self._arenas[buffer].region(offset, length)
        nsid = transfer.namespace.nsid
        if transfer.op is Op.READ:
            return _new(Read, (nsid, transfer.lba, transfer.blocks, region))
        return Write(nsid, transfer.lba, transfer.blocks, region, transfer.op is Op.WRITE_DURABLE)

    def _send_orders(self, now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        news: list[News] = []
        waiting, self._parked = self._parked, []
        for queue, order in waiting:
            line = self._lines.get(queue)
            if line is None or line.is_lost:
                lost = QueueLostError("the queue went away before the command was sent", where=f"queue {queue}")
                news.append(Ended(queue, order, lost, again=True, is_sent=False))
            elif not wanted(order.request):
                dropped = EngineError("the command was not sent: its request has ended", where=f"queue {queue}")
                news.append(Ended(queue, order, dropped, is_sent=False))
            else:
                try:
                    self._ordered[self.controller.submit(queue, order.command, now_ns)] = queue, order
                except (NotReadyError, QueueFullError):
                    self._parked.append((queue, order))
                except EngineError as error:
                    news.append(Ended(queue, order, error))
        return news

    def _tell(self, outputs: Sequence[Output], now_ns: int) -> list[News]:
        news: list[News] = []
        for output in outputs:
            if type(output) is Completed:
                line = self._lines.get(output.qid)
                transfer = None if line is None else line.flying.pop(output.request, None)
                if line is not None and transfer is not None:
                    news.append(_new(Landed, (line.qid, transfer, None, False)))
                    continue
            news += self._rare(output, now_ns)
        return news

    def _rare(self, output: Output, now_ns: int) -> Iterator[News]:
        match output:
            case Completed(command) if command in self._ordered:
                yield Ended(*self._ordered.pop(command))
            case Failed():
                yield from self._failed(output, now_ns)
            case Lost(error):
                yield LinkLost(error)
            case Reconnecting(error=error) if not self._was_usable:
                yield LinkLost(error)  # whoever opens wants to know at once, and may open again
            case _:
                yield from self._of_queue(output)

    def _of_queue(self, output: Output) -> Iterator[News]:
        match output:
            case Ready():
                yield from self._ready(output)
            case QueueUp(qid) if self._was_usable and self.controller.state is ControllerState.LIVE:
                yield from self._opened(qid)
            case QueueDown(qid):
                yield from self._down(qid)
            case QuarantineReleased(_connection, qid, commands):
                yield from self._released(qid, commands)
            case _:
                pass  # events that no request waits for

    def _ready(self, ready: Ready) -> Iterator[News]:
        if not self._was_usable:
            self._was_usable = True
            depth = min((self.controller.queue(qid).slots.count for qid in ready.queues), default=1)
            mdts = self.controller.limits.max_transfer_bytes
            yield Usable(ControllerLimits(len(ready.queues), depth, mdts))
        for qid in ready.queues:
            yield from self._opened(qid)

    def _opened(self, qid: int) -> Iterator[News]:
        if qid not in self._lines:
            self._lines[qid] = _Line(QueueId(qid))
            depth = self.controller.queue(qid).slots.count
            yield QueueOpened(Queue(QueueId(qid), self.controller.config.subnqn, self.path, depth))

    def _failed(self, failed: Failed, now_ns: int) -> Iterator[News]:
        if failed.request in self._ordered:
            yield self._order_failed(failed, now_ns)
            return
        line = self._lines.get(failed.qid)
        if failed.held or line is None or failed.request not in line.flying:
            return
        transfer = line.flying.pop(failed.request)
        again = failed.disposition in _AGAIN and transfer.op is Op.READ
        landed = Landed(QueueId(failed.qid), transfer, failed.error, again)
        if again and failed.retry_after_ns:
            heappush(self._late, (now_ns + failed.retry_after_ns, next(self._order), landed))
        else:
            yield landed

    def _order_failed(self, failed: Failed, now_ns: int) -> Ended:
        queue, order = self._ordered[failed.request]
        if not failed.held:
            del self._ordered[failed.request]
        again, at_ns = failed.disposition in _AGAIN, now_ns + failed.retry_after_ns
        return Ended(queue, order, failed.error, again, at_ns, held=failed.held)

    def _down(self, qid: int) -> Iterator[News]:
        line = self._lines.get(qid)
        if line is None or line.is_lost:
            return
        line.is_lost = True
        self._late = [one for one in self._late if one[2].queue != qid]
        heapify(self._late)
        yield QueueLost(QueueId(qid))
        yield from self._released(qid, ())

    def _released(self, qid: int, commands: Sequence[CommandId]) -> Iterator[News]:
        for command in commands:
            if command in self._ordered:
                yield OrderReleased(self._ordered.pop(command)[1])
        line = self._lines.get(qid)
        if line is None:
            return
        for command in commands:
            line.flying.pop(command, None)
        if line.is_lost and not line.flying:
            del self._lines[qid]
            yield QueueReleased(QueueId(qid))


def _dropped(transfer: Transfer) -> EngineError:
    return EngineError("the transfer was not sent: its request has ended", where=f"request {transfer.request}")
