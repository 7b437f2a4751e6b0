"""A file or block device as the engine's way to a namespace: its queues are names under which posts are counted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from fabric.engine.client.link import Described, Landed, News, QueueOpened, Usable
from fabric.engine.client.orders import Ended, Order, OrderCommand, OrderReleased
from fabric.engine.nvmeof.host import Connect, ConnectionId, Deallocate, Flush, WriteZeroes
from fabric.engine.queues import Issue, Namespace, Op, Path, Queue, QueueId, RequestId, Transfer
from fabric.engine.transport.base import Connected, Disconnected, Done, Event, Released, Transport
from fabric.engine.transport.block import BlockOp, BlockPost, Runs
from fabric.errors import EngineError, TransportError
from fabric.policy import ControllerLimits, ShardPolicy

__all__ = ("BlockLink", "Place")

_SECTOR: Final = 512
_RANGES: Final = 256
_new = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_SIDES: Final = {Op.READ: BlockOp.READ, Op.WRITE: BlockOp.WRITE, Op.WRITE_DURABLE: BlockOp.WRITE_DURABLE}


@dataclass(slots=True)
class _Errand:
    """An order, and its posts that have not ended."""

    queue: QueueId
    order: Order
    left: int
    error: EngineError | None = None
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What a device is to a link.

    Attributes:
        where: its path.
        length: bytes.
        alignment: of offsets, lengths and memory.
    """

    where: str
    length: int
    alignment: int


class BlockLink:
    """One device.

    Args:
        transport: that works on it.
        place: what it is.
        policy: how many queues, and how deep.
        command_ns: a call that takes longer has failed, and its memory is held until it returns.
    """

    def __init__(self, transport: Transport[BlockPost], place: Place, policy: ShardPolicy, command_ns: int) -> None:
        self.place = place
        self.command_ns = command_ns
        self._where = place.where
        self._policy = policy
        self._transport = transport
        self._registered = 0
        self._flying: dict[tuple[int, int], Transfer] = {}
        self._errands: dict[tuple[int, int], _Errand] = {}
        self._tags = count(-1, -1)  # those of transfers are 0 and more
        self._live: set[int] = set()
        self._is_stopping = self._is_closed = False

    def start(self, now_ns: int) -> None:
        """See `Link`."""
        for qid in range(1, self._policy.queues + 1):
            order = Connect(ConnectionId(qid), qid, self._policy.depth, b"", 0)
            self._transport.connect(order, now_ns)

    def namespace(self) -> Described:
        """See `Link`."""
        block = max(self.place.alignment, _SECTOR)
        return Described(Namespace(1, self._where, block), self.place.length // block, ranges=_RANGES)

    def register(self, memory: memoryview) -> int:
        """See `Link`."""
        self._transport.register(memory)
        self._registered += 1
        return self._registered - 1  # as the transport counts them

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """See `Link`. There is always room."""
        del wanted
        posts: list[BlockPost] = []
        for queue, transfer in batch:
            self._flying[queue, transfer.id] = transfer
            deadline_ns = now_ns + self.command_ns
            block = transfer.namespace.block_bytes
            runs = _new(Runs, (block, transfer.lbas or (transfer.lba,), transfer.pieces))
            posts.append(_new(BlockPost, (queue, transfer.id, _SIDES[transfer.op], 0, None, deadline_ns, 0, runs)))
        if posts:
            self._transport.post(posts, now_ns)
        return []

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        """See `Link`. There is always room."""
        del wanted
        posts: list[BlockPost] = []
        block, deadline_ns = self.namespace().namespace.block_bytes, now_ns + self.command_ns
        for queue, order in batch:
            parts = _parts(order.command, block)
            errand = _Errand(queue, order, len(parts))
            for op, offset, length in parts:
                tag = next(self._tags)
                self._errands[queue, tag] = errand
                posts.append(BlockPost(ConnectionId(queue), tag, op, offset, None, deadline_ns, length))
        self._transport.post(posts, now_ns)
        return []

    def step(self, now_ns: int) -> list[News]:
        """See `Link`."""
        news: list[News] = []
        for event in self._transport.poll(now_ns):
            self._take(event, news)
        return news

    def next_timer_ns(self) -> int | None:
        """See `Link`."""
        return self._transport.next_timer_ns()

    def fileno(self) -> int:
        """See `Link`."""
        return self._transport.fileno()

    def stop(self, now_ns: int) -> bool:
        """See `Link`."""
        if not self._is_stopping:
            self._is_stopping = True
            for qid in self._live:
                self._transport.disconnect(ConnectionId(qid), now_ns)
        return not self._live

    def close(self) -> None:
        """See `Link`. Waits for calls that have begun: they cannot be taken back."""
        if not self._is_closed:
            self._is_closed = True
            self._transport.close()

    def _take(self, event: Event, news: list[News]) -> None:
        match event:
            case Connected(connection):
                self._live.add(connection)
                path = Path("here", self._where)
                news.append(QueueOpened(Queue(QueueId(connection), self._where, path, self._policy.depth)))
                if len(self._live) == self._policy.queues:
                    news.append(Usable(ControllerLimits(self._policy.queues, self._policy.depth)))
            case Done(connection, tag, error, held) if tag < 0:
                news += self._end_part(connection, tag, error, held=held)
            case Released(connection, tag) if tag < 0:
                news += self._end_part(connection, tag, None)
            case Done(connection, tag, error, held):
                if not held:
                    transfer = self._flying.pop((connection, tag))
                    news.append(Landed(QueueId(connection), transfer, error, again=isinstance(error, TransportError)))
            case Released(connection, tag):
                late = TransportError("the call took too long", where=self._where)
                news.append(Landed(QueueId(connection), self._flying.pop((connection, tag)), late, again=True))
            case Disconnected(connection):
                self._live.discard(connection)  # only `stop` asks for it, when nobody waits for transfers any more
            case _:
                pass  # a device sends no capsules

    def _end_part(self, connection: int, tag: int, error: EngineError | None, *, held: bool = False) -> list[News]:
        errand = self._errands[connection, tag]
        errand.error = errand.error or error
        news: list[News] = []
        if held:
            if not errand.is_told:
                errand.is_told = True
                news.append(Ended(errand.queue, errand.order, errand.error, again=True, held=True))
            return news
        del self._errands[connection, tag]
        errand.left -= 1
        if not errand.left:
            again = isinstance(errand.error, TransportError)
            ended = Ended(errand.queue, errand.order, errand.error, again=again)
            news.append(OrderReleased(errand.order) if errand.is_told else ended)
        return news


def _parts(command: OrderCommand, block: int) -> list[tuple[BlockOp, int, int]]:
    match command:
        case Flush():
            return [(BlockOp.FLUSH, 0, 0)]
        case WriteZeroes(_nsid, slba, blocks, deallocate):
            # a hole reads as zeroes too, but no device promises that of what was discarded
            del deallocate
            return [(BlockOp.ZERO, slba * block, blocks * block)]
        case Deallocate(_nsid, ranges):
            return [(BlockOp.DISCARD, one.slba * block, one.blocks * block) for one in ranges]
