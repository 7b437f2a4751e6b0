"""A target and a wire of the memory transport that can be made to do anything, at any moment.

| part | what it adds to the real one |
|---|---|
| `WildService` | outputs held up, changed, doubled or swallowed; faults that strike commands already under way; an outage |
| `WildTransport` | send completions that come late |
| `SickStorage` | a medium that fails |
"""

import errno
import heapq
import itertools
import random
from collections.abc import Callable, Sequence

from fabric.engine.nvmeof.host import PostSend
from fabric.engine.nvmeof.target import Accept, Drop, FetchData, PeerId, PushData, Reject, Respond, Target
from fabric.engine.nvmeof.wire.cm import CmReject, CmStatus
from fabric.engine.transport.base import Event, Sent
from fabric.engine.transport.faults import Fault, FaultKind, FaultScript
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service, WireOutput, _Held, _Work
from fabric.engine.transport.shape import UNSHAPED, Shape, Shaper
from fabric.engine.transport.storage import NamespaceKey, RamStorage
from fabric.errors import LocalProtocolError

Item = WireOutput | _Work | _Held
Warp = Callable[[Item, int], Sequence[tuple[Item, int]]]


def straight(item: Item, at_ns: int) -> Sequence[tuple[Item, int]]:
    """The default warp: everything as it is."""
    return ((item, at_ns),)


class WildService(Service):
    """A service whose every output passes `warp`.

    Attributes:
        warp: from what is to happen, and when, to what happens instead.
        greet_ns: how long a connection takes to be accepted.
        admin_ns: how long answers take that are none of a read, write or flush.
        outage: what a new connection meets: None: all is well; a status: it is rejected; "silence": nothing.
    """

    def __init__(self, target: Target, storage: RamStorage, shape: Shape = UNSHAPED) -> None:
        super().__init__(target, storage, shape)
        self.warp: Warp = straight
        self.greet_ns = self.admin_ns = 0
        self.outage: CmStatus | str | None = None
        self.doomed: set[tuple[PeerId, int]] = set()  # commands that are never carried out or answered
        self._io: set[tuple[PeerId, int]] = set()  # reads, writes and flushes under way

    @property
    def io_peers(self) -> list[PeerId]:
        """Connections of I/O queues that have greeted."""
        return [peer for peer, known in self._peers.items() if known.qid]

    @property
    def admin_peers(self) -> list[PeerId]:
        """Connections of admin queues."""
        return [peer for peer, known in self._peers.items() if not known.qid]

    def peer_of(self, qid: int) -> PeerId | None:
        """The connection of an I/O queue."""
        return next((peer for peer, known in self._peers.items() if known.qid == qid), None)

    def under_way(self) -> list[tuple[PeerId, int]]:
        """I/O commands that the target has and has not answered."""
        return sorted(self._io)

    def capsule(self, peer: PeerId, data: bytes, now_ns: int) -> None:
        """See `Service`."""
        known = self._peers.get(peer)
        if known is not None and known.qid and data[0] != 0x7F:
            self._io.add((peer, int.from_bytes(data[2:4], "little")))
        super().capsule(peer, data, now_ns)

    def disconnected(self, peer: PeerId, now_ns: int) -> None:
        """See `Service`."""
        self._io = {one for one in self._io if one[0] != peer}
        self.doomed = {one for one in self.doomed if one[0] != peer}
        super().disconnected(peer, now_ns)

    def strike(self, fault: Fault, now_ns: int) -> None:
        """From now on this happens to every I/O command: to those that come, and to those under way."""
        self._script = FaultScript((fault,))
        for key in self.under_way():
            if fault.kind is FaultKind.DROP:
                self.doomed.add(key)
            elif fault.kind is FaultKind.BREAK:
                self.drop(key[0], now_ns)
            else:
                self._fate[key] = fault

    def heal(self) -> None:
        """Ends all that strikes or takes time, but for what has struck."""
        self._script = FaultScript()
        self._shaper = Shaper(UNSHAPED)
        self.warp = straight
        self.outage = None

    def drop(self, peer: PeerId, now_ns: int) -> None:
        """The target ends a connection."""
        self._due_at(Drop(peer, "the test"), now_ns)

    def drop_all(self, now_ns: int) -> None:
        """The target ends every connection."""
        for peer in tuple(self._peers):
            self.drop(peer, now_ns)

    def say(self, output: WireOutput, at_ns: int) -> None:
        """The target says something of its own accord."""
        self._due_at(output, at_ns)

    def flood(self, now_ns: int) -> None:
        """Answers every event request that is open, as if namespaces had changed."""
        for association in self.target.controllers:
            events, association.events = association.events, []
            for peer, cid in events:
                self.target._respond(peer, cid, 0, 0x04_00_02)  # log page 4, info 0, notice (NVMe base 1.4, 5.2)
        self.announce(now_ns)

    def _schedule(self, item: Item, at_ns: int) -> None:
        known = self._peers.get(item.peer)
        key = (item.peer, _cid(item))
        if known is None or key in self.doomed:
            return
        if isinstance(item, Accept) and self.outage is not None:
            if isinstance(self.outage, CmStatus):
                self._due_at(Reject(item.peer, CmReject(self.outage).pack()), at_ns + self.greet_ns)
            return
        at_ns += self.greet_ns if isinstance(item, Accept) else 0
        if isinstance(item, Respond):
            at_ns += 0 if key in self._io else self.admin_ns
            self._io.discard(key)
        for one, when_ns in self.warp(item, at_ns):
            self._due_at(one, when_ns)

    def _due_at(self, item: Item, at_ns: int) -> None:
        heapq.heappush(self._due, (at_ns, next(self._order), item))


def _cid(item: Item) -> int:
    match item:
        case Respond():
            return int.from_bytes(item.response[12:14], "little")
        case PushData() | FetchData() | _Work():
            return item.cid
        case _Held():
            return int.from_bytes(item.answer.response[12:14], "little")
        case _:
            return -1


class WildTransport(MemoryTransport):
    """A memory transport whose send completions come after `sent_ns`."""

    def __init__(self, service: Service, *, keyed: bool, flush_ns: int, sent_ns: int = 0) -> None:
        super().__init__(service, keyed=keyed, flush_ns=flush_ns)
        self.sent_ns = sent_ns
        self._now_ns = 0
        self._lagging: list[tuple[int, int, Sent]] = []
        self._count = itertools.count()

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        """See `Transport`."""
        self._now_ns = now_ns
        super().post(batch, now_ns)

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        self._now_ns = now_ns
        while self._lagging and self._lagging[0][0] <= now_ns:
            sent = heapq.heappop(self._lagging)[2]
            if sent.connection in self._links:
                super()._say(sent)
        return super().poll(now_ns)

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        due = [self._lagging[0][0]] if self._lagging else []
        if (at_ns := super().next_timer_ns()) is not None:
            due.append(at_ns)
        return min(due) if due else None

    def _say(self, event: Event) -> None:
        if isinstance(event, Sent) and self.sent_ns:
            heapq.heappush(self._lagging, (self._now_ns + self.sent_ns, next(self._count), event))
        else:
            super()._say(event)


class SickStorage(RamStorage):
    """A medium that fails as often as `chance` says, with one of `codes`; a write that fails is done in part.

    Every write of the tests has bytes of its own: one that comes twice was sent twice, which no write may be.
    """

    def __init__(self, disks: dict[NamespaceKey, bytes], seed: int = 0) -> None:
        super().__init__({})
        self.disks = {key: bytearray(data) for key, data in disks.items()}
        self.chance = 0.0
        self._seen: set[tuple[int, bytes]] = set()
        self.codes: tuple[int, ...] = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.ETIMEDOUT)
        self._random = random.Random(seed)  # noqa: S311, repeatable on purpose

    def read(self, key: NamespaceKey, offset: int, length: int) -> bytes:
        """See `Storage`."""
        self._maybe()
        return super().read(key, offset, length)

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        """See `Storage`."""
        came = (offset, data[:16])
        if came in self._seen:
            raise AssertionError(f"a write at {offset} came twice")
        self._seen.add(came)
        try:
            self._maybe()
        except OSError:
            whole = self._random.randrange(len(data) // 512 + 1) * 512
            super().write(key, offset, data[:whole], durable=durable)
            raise
        super().write(key, offset, data, durable=durable)

    def flush(self, key: NamespaceKey) -> None:
        """See `Storage`."""
        del key
        self._maybe()

    def _maybe(self) -> None:
        if self.chance and self._random.random() < self.chance:
            raise OSError(self._random.choice(self.codes), "the test")


def changed(answer: Respond, *, cid: int | None = None, sqhd: int | None = None, status: int | None = None) -> Respond:
    """An answer with other fields."""
    if len(answer.response) != 16:
        raise LocalProtocolError("no answer")
    data = bytearray(answer.response)
    for value, at in ((sqhd, 8), (cid, 12), (status, 14)):
        if value is not None:
            data[at : at + 2] = value.to_bytes(2, "little")
    return Respond(answer.peer, bytes(data))
