"""A file or block device as the engine's way to a namespace: its queues are names under which posts are counted."""

from collections.abc import Callable, Sequence
from typing import Final

from fabric.engine.client.link import Described, Landed, News, QueueOpened, Usable
from fabric.engine.nvmeof.host import Connect, ConnectionId
from fabric.engine.queues import Issue, Namespace, Op, Path, Queue, QueueId, RequestId, Transfer
from fabric.engine.transport.base import Arena, Connected, Disconnected, Done, Event, Released
from fabric.engine.transport.block import BlockConfig, BlockOp, BlockPost, BlockTransport
from fabric.errors import TransportError
from fabric.policy import ControllerLimits, ShardPolicy

__all__ = ("BlockLink",)

_SECTOR: Final = 512
_SIDES: Final = {Op.READ: BlockOp.READ, Op.WRITE: BlockOp.WRITE}


class BlockLink:
    """One device.

    Args:
        config: which, and how many threads work on it.
        policy: how many queues, and how deep.
        command_ns: a call that takes longer has failed, and its memory is held until it returns.

    Raises:
        EnvironmentMissingError: the device cannot be opened.
        LocalProtocolError: it is neither a file nor a block device.
    """

    def __init__(self, config: BlockConfig, policy: ShardPolicy, command_ns: int) -> None:
        self._where = str(config.path)
        self._policy = policy
        self._command_ns = command_ns
        self._transport = BlockTransport(config)
        self._arenas: list[Arena] = []
        self._flying: dict[tuple[int, int], Transfer] = {}
        self._live: set[int] = set()
        self._is_stopping = self._is_closed = False

    def start(self, now_ns: int) -> None:
        """See `Link`."""
        for qid in range(1, self._policy.queues + 1):
            order = Connect(ConnectionId(qid), qid, self._policy.depth, b"", 0)
            self._transport.connect(order, now_ns)

    def namespace(self) -> Described:
        """See `Link`."""
        device = self._transport.device
        block = max(device.alignment, _SECTOR)
        return Described(Namespace(1, self._where, block), device.length // block)

    def register(self, memory: memoryview) -> int:
        """See `Link`."""
        self._arenas.append(self._transport.register(memory))
        return len(self._arenas) - 1

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """See `Link`. There is always room."""
        del wanted
        posts: list[BlockPost] = []
        for queue, transfer in batch:
            (piece,) = transfer.pieces
            region = self._arenas[piece.buffer].region(piece.offset, piece.length)
            offset = transfer.lba * transfer.namespace.block_bytes
            self._flying[queue, transfer.id] = transfer
            deadline_ns = now_ns + self._command_ns
            posts.append(BlockPost(ConnectionId(queue), transfer.id, _SIDES[transfer.op], offset, region, deadline_ns))
        if posts:
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
