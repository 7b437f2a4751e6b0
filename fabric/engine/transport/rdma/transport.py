"""The host's side of NVMe/RDMA: all queues to one target address over one adapter. Satisfies `Transport[PostSend]`.

Two completion queues, one for receives and one for sends, serve every queue pair, one protection domain every arena.
`poll` takes completions without a system call while there are some; when there are none it looks at the descriptors,
asks for a notice, and looks once more: what ends after that makes the descriptor readable. Busy polling would take the
CPU that Soft-RoCE needs. The end of a send wakes nobody while answers are to come: it frees a slot, and whoever is
woken by the answer finds it. Sends give notice only where more was answered than was seen to be sent, and in a flush.
"""

import errno
import select
from collections.abc import Callable, Sequence
from typing import Final

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend
from fabric.engine.transport.base import Arena, Broken, DeviceRemoved, Disconnected, Event, Received, Sent
from fabric.engine.transport.rdma.address import local_address, pack_address
from fabric.engine.transport.rdma.cm import open_cm
from fabric.engine.transport.rdma.config import RdmaConfig
from fabric.engine.transport.rdma.connection import LinkState, RdmaConnection
from fabric.engine.transport.rdma.layouts import AsyncKind, CmEventKind
from fabric.engine.transport.rdma.ports import Adapter, ConnectionManager, Verbs
from fabric.engine.transport.rdma.ring import CHAINED, RESPONSE_BYTES, SLOT_MASK, WR_BITS, Ring, address_of
from fabric.engine.transport.rdma.verbs import open_adapter
from fabric.engine.transport.rdma.wording import refused_by_kernel
from fabric.engine.transport.signal import Signal
from fabric.errors import (
    EnvironmentMissingError,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
)

__all__ = ("RdmaTransport",)

_new: Final = tuple.__new__  # a named tuple's own __new__ is a Python function, and costs twice as much
_TURN: Final = 64  # completions a look
_BUSY_POLLS: Final = 16  # polls with completions in a row before the descriptors are looked at all the same
_QP_ASYNC: Final = frozenset({AsyncKind.QP_FATAL, AsyncKind.QP_REQ_ERR, AsyncKind.QP_ACCESS_ERR})
_LET_GO_NS: Final = 50_000_000
_LET_GO_TRIES: Final = 100
_REMOVED: Final = "the RDMA device was removed"


class RdmaTransport:
    """All connections of a host to one target address.

    Args:
        config: where to and how.
        manager: makes the connection manager.
        verbs: opens the adapter.

    Raises:
        LocalProtocolError: an address is no IP address.
        EnvironmentMissingError: a library is missing, or the address belongs to no RDMA device.
        TransportError: there is no route to the target.
    """

    def __init__(
        self, config: RdmaConfig, manager: Callable[[], ConnectionManager] = open_cm, verbs: Verbs = open_adapter
    ) -> None:
        self.config = config
        destination = pack_address(config.address, config.service)
        source = config.source or local_address(config.address, config.service)
        self._addresses = pack_address(source, 0), destination
        self._manager = manager()
        try:
            self.adapter: Adapter = verbs(_device(self._manager, source, self._addresses[0]), config.completions)
        except BaseException:
            self._manager.close()
            raise
        self._is_removed = False
        self._arenas: dict[int, tuple[int, int]] = {}
        self._held: list[object] = []
        self._links: dict[int, RdmaConnection] = {}
        self._by_cm: dict[int, RdmaConnection] = {}
        self._closing: list[RdmaConnection] = []
        self._spare: dict[int, list[Ring]] = {}
        self._room = self.adapter.capacity
        self._events: list[Event] = []
        self._let_go_tries = 0
        self._let_go_ns: int | None = None
        self._is_armed = self._sends_armed = False
        self._signals = 0  # sends that were posted and will complete
        self._busy = 0
        self._last_id = -1
        self._signal = Signal()
        self._refused: set[int] = set()
        self._epoll = select.epoll()
        self._actions: dict[int, Callable[[], None]] = {
            self._signal.fileno(): self._signal.clear,
            self._manager.fileno(): self._take_cm_events,
            self.adapter.notice_fd: self._take_notice,
            self.adapter.async_fd: self._take_async,
        }
        for descriptor in self._actions:
            self._epoll.register(descriptor, select.EPOLLIN)

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`. The memory is pinned.

        Raises:
            LocalProtocolError: it is not what `Transport` takes.
            EnvironmentMissingError: the adapter refused it, or is gone.
        """
        if memory.readonly or not memory.contiguous or memory.itemsize != 1 or memory.ndim != 1 or not memory.nbytes:
            found = f"format {memory.format}, {'read-only' if memory.readonly else 'writable'}"
            raise LocalProtocolError("this cannot be registered", expected="writable bytes in a row", found=found)
        self._need_device()
        address, held = address_of(memory.cast("B"))
        try:
            keys = self.adapter.register(address, memory.nbytes)
        except self.adapter.failures as error:
            remedy = "check `ulimit -l`: registered memory is pinned"
            raise EnvironmentMissingError("memory was not registered", found=str(error), remedy=remedy) from error
        self._held.append(held)
        self._arenas[keys.rkey] = (keys.address, keys.address + memory.nbytes)
        return Arena(memory, keys.address, keys.rkey)

    def register_dmabuf(self, descriptor: int, offset: int, length: int, view: memoryview | None = None) -> Arena:
        """Returns the arena of another device's memory, exported as a dma-buf: what a GPU reads and writes directly.

        unconfirmed: tried on no GPU. The arena counts from `offset`, as pyverbs registers it.

        Args:
            descriptor: the dma-buf (of CUDA: cuMemGetHandleForAddressRange). The caller keeps it open.
            offset: of the first byte in it.
            length: bytes.
            view: the same bytes as this process sees them, if it does: only its length is ever looked at here.

        Raises:
            LocalProtocolError: `view` has another length.
            EnvironmentMissingError: adapter, driver or kernel cannot do that.
        """
        self._need_device()
        if view is not None and view.nbytes != length:
            raise LocalProtocolError("the view has another length", expected=str(length), found=str(view.nbytes))
        try:
            keys = self.adapter.register_dmabuf(descriptor, offset, length)
        except self.adapter.failures as error:
            remedy = (
                "kernel, driver and rdma-core must register dma-bufs: Linux 5.12, mlx5 or irdma, pyverbs with DmaBufMR"
            )
            raise EnvironmentMissingError("a dma-buf was not registered", found=str(error), remedy=remedy) from error
        self._arenas[keys.rkey] = (keys.address, keys.address + length)
        return Arena(memoryview(b"") if view is None else view, keys.address, keys.rkey)

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        if order.connection <= self._last_id:
            raise LocalProtocolError("a connection id was used before", found=str(order.connection))
        self._last_id = order.connection
        config = self.config
        where = f"{config.address}:{config.service}, queue {order.qid}"
        wanted = order.depth
        if self._is_removed or wanted > self._room:
            what = _REMOVED if self._is_removed else "the completion queue is full: raise `completions`"
            self._refuse(order.connection, TransportError(what, where=where))
            return
        try:
            one = self._open(order, where)
        except OSError as error:
            self._refuse(order.connection, refused_by_kernel(error, where))
            return
        except self.adapter.failures as error:
            self._refuse(order.connection, TransportError("the adapter refused", where=where, found=str(error)))
            return
        self._room -= wanted
        self._links[order.connection] = self._by_cm[one.cm.key] = one
        one.start()

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        arenas = self._arenas
        for post in batch:
            if (region := post.region) is not None:
                start, end = arenas.get(region.key, (0, -1))
                if not start <= region.address <= region.address + region.length <= end:
                    raise LocalProtocolError(
                        "memory that is not registered",
                        found=f"{region.length} bytes at {region.address}, key {region.key}",
                    )
        touched: list[RdmaConnection] = []
        for post in batch:
            one = self._links.get(post.connection)
            if one is None or one.state is not LinkState.LIVE:
                continue
            slot, capsule = post.slot, post.capsule
            if post.outgoing:
                one.ring.put(slot, post.outgoing)
            if post.incoming_bytes:
                one.payloads[int.from_bytes(capsule[2:4], "little")] = (slot, post.incoming_bytes)
            one.ring.fill(slot, capsule)
            if not one.waiting:
                touched.append(one)
            one.waiting.append(slot)
        for one in touched:
            self._ring_doorbell(one)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        one = self._links.get(connection)
        if one is None:
            if connection in self._refused:
                self._refused.discard(connection)
                self._say(Disconnected(connection, "taken down"))
            return
        if one.state is LinkState.FLUSHING:
            return
        if one.state is LinkState.GONE:
            self._end(one)
            return
        one.shut(now_ns)
        if one.is_flushed(now_ns):
            self._end(one)
        else:
            self._closing.append(one)
            self._signal.set()

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        while True:
            self._drain()
            if self._events and self._busy < _BUSY_POLLS:
                self._busy += 1
                break
            self._busy = 0
            if self._is_removed:
                self._let_go(now_ns)
            for descriptor, _mask in self._epoll.poll(0):
                self._actions.get(descriptor, _nothing)()
            if self._closing:
                self._flush(now_ns)
            if self._events or self._is_removed or not self._arm():
                break
        events, self._events = self._events, []
        return events

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        due = [one.flush_by_ns for one in self._closing]
        if self._let_go_ns is not None:
            due.append(self._let_go_ns)
        return min(due, default=None)

    def fileno(self) -> int:
        """See `Transport`: that of an epoll set."""
        return self._epoll.fileno()

    def close(self) -> None:
        """See `Transport`."""
        if self._epoll.closed:
            return
        for one in self._links.values():
            one.finish()
        self._links.clear()
        self._by_cm.clear()
        self._closing.clear()
        if not self._is_removed:
            self._release_device()
        self._manager.forget_removed()
        self._manager.close()
        self._epoll.close()
        self._signal.close()

    def _arm(self) -> bool:
        """Asks for the notices that are due; returns whether it did, so that one more look is."""
        has_asked = False
        if not self._is_armed:
            self._is_armed = has_asked = True
            self.adapter.arm()
        if not self._sends_armed and (self._closing or self._lags()):
            self._sends_armed = has_asked = True
            self.adapter.arm_sends()
        return has_asked

    def _lags(self) -> bool:
        """Whether a connection has more answers than sends seen to end: perhaps no answer comes to wake anybody."""
        for one in self._links.values():  # noqa: SIM110  # a generator costs more than the rest of the call
            if one.unsent > 0:
                return True
        return False

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._signal.set()

    def _refuse(self, connection: ConnectionId, error: TransportError) -> None:
        self._refused.add(connection)
        self._say(Broken(connection, error))

    def _need_device(self) -> None:
        if self._is_removed:
            raise EnvironmentMissingError(_REMOVED, where=self.adapter.name, remedy="open the engine again")

    def _open(self, order: Connect, where: str) -> RdmaConnection:
        cm = self._manager.create()
        try:
            spare = self._spare.get(order.depth)
            ring = spare.pop() if spare else Ring(self.adapter, order.depth)
        except BaseException:
            cm.destroy()
            raise
        return RdmaConnection(order, self.config, self.adapter, ring, cm, self._addresses, self._say, where)

    def _ring_doorbell(self, one: RdmaConnection) -> None:
        slots, one.waiting = one.waiting, []
        if one.pair is None or one.state is not LinkState.LIVE:
            return
        one.sends[slots[-1]] = slots
        self._signals += 1
        try:
            one.ring.send(one.pair, slots)
        except self.adapter.failures as error:
            one.fail(TransportError("the adapter refused a send", where=one.where, found=str(error)))

    def _drain(self) -> None:  # noqa: C901  # what each I/O costs: no call more than it needs
        """Takes completions until there are events, or no completions."""
        if self._is_removed:
            return
        events, links, adapter = self._events, self._links, self.adapter
        while True:
            # sends first: where a connection breaks, theirs is the reason and receives are merely flushed
            sent = adapter.poll_sends(_TURN) if self._signals else ()
            for wr_id, status, _length in sent:
                self._sent(wr_id, status)
            found = adapter.poll(_TURN)
            if not found and not sent:
                return
            answered: dict[int, list[int]] = {}
            for wr_id, status, length in found:
                serial, slot = wr_id >> WR_BITS, wr_id & SLOT_MASK
                one = links.get(serial)
                if one is None:
                    continue
                one.receives -= 1
                if status or one.state is not LinkState.LIVE:
                    one.flushed(status)
                elif length < RESPONSE_BYTES:
                    one.fail(_short(length, one.where))
                else:
                    answered.setdefault(serial, []).append(slot)
                    one.unsent += 1
                    events.append(_received(one, slot))
            for serial, slots in answered.items():
                self._receive_again(links[serial], slots)
            if events:
                return

    def _sent(self, wr_id: int, status: int) -> None:
        one = self._links.get(wr_id >> WR_BITS)
        if one is None:
            return
        slots: Sequence[int] = ()
        if not wr_id & CHAINED and (found := one.sends.pop(wr_id & SLOT_MASK, None)) is not None:
            slots = found
            self._signals -= 1
        if status or one.state is not LinkState.LIVE:
            one.flushed(status)
            return
        one.unsent -= len(slots)
        connection = one.order.connection
        self._events.extend([_new(Sent, (connection, slot)) for slot in slots])

    def _receive_again(self, one: RdmaConnection, slots: list[int]) -> None:
        """Posts receives anew, before `poll` hands the answers over: each answer allows one command more."""
        if one.pair is None or one.state is not LinkState.LIVE:
            return
        try:
            one.ring.receive(one.pair, slots)
        except self.adapter.failures as error:
            one.fail(TransportError("the adapter refused a receive", where=one.where, found=str(error)))
            return
        one.receives += len(slots)

    def _take_notice(self) -> None:
        if self.adapter.take_notice():
            self._is_armed = False
        else:
            self._sends_armed = False

    def _take_cm_events(self) -> None:
        while (event := self._manager.next_event()) is not None:
            if event.kind == CmEventKind.DEVICE_REMOVAL:
                self._remove(_REMOVED)
            elif (one := self._by_cm.get(event.key)) is not None:
                one.take(event)
                if one.state is LinkState.GONE:  # rejected
                    self._forget(one)

    def _take_async(self) -> None:
        kind = self.adapter.take_async()
        if kind == AsyncKind.DEVICE_FATAL:
            self._remove("the RDMA device failed")
        for one in list(self._links.values()):
            if kind == AsyncKind.CQ_ERR or (kind in _QP_ASYNC and one.pair and self.adapter.has_failed(one.pair)):
                found = AsyncKind(kind).name
                one.fail(TransportError("the adapter reports a broken queue", where=one.where, found=found))

    def _remove(self, reason: str) -> None:
        """Lets go of the device, so that the kernel can take it away; connections end one by one after that."""
        if self._is_removed:
            return
        self._is_removed = True
        self._say(DeviceRemoved(reason))
        for one in list(self._links.values()):
            was_closing = one.state is LinkState.FLUSHING
            one.fail(TransportError(reason, where=one.where))
            one.finish()
            if was_closing:
                self._end(one)
        self._closing.clear()
        self._release_device()
        self._let_go_tries = _LET_GO_TRIES

    def _let_go(self, now_ns: int) -> None:
        """Takes the last hold off a removed device, once it is gone from the machine: soon after its removal began."""
        if self._let_go_tries and (self._let_go_ns is None or self._let_go_ns <= now_ns):
            self._let_go_tries -= 1
            self._let_go_ns = None
            if self._manager.forget_removed() and self._let_go_tries:
                self._let_go_ns = now_ns + _LET_GO_NS

    def _flush(self, now_ns: int) -> None:
        for one in list(self._closing):
            if one.is_flushed(now_ns):
                self._closing.remove(one)
                self._end(one)

    def _end(self, one: RdmaConnection) -> None:
        one.finish()
        self._forget(one)
        self._say(Disconnected(one.identifier, "taken down"))

    def _forget(self, one: RdmaConnection) -> None:
        del self._links[one.identifier]
        self._by_cm.pop(one.cm.key, None)
        self._signals -= len(one.sends)
        self._room += one.order.depth
        self._spare.setdefault(one.order.depth, []).append(one.ring)

    def _release_device(self) -> None:
        for descriptor in (self.adapter.notice_fd, self.adapter.async_fd):
            if self._actions.pop(descriptor, None):
                self._epoll.unregister(descriptor)
        self._spare.clear()
        self._arenas.clear()
        self.adapter.close()
        self._held.clear()


def _device(manager: ConnectionManager, source: str, address: bytes) -> str:
    try:
        name = manager.device_of(address)
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.EADDRNOTAVAIL):
            raise refused_by_kernel(error, source) from error
        name = ""
    if not name:
        remedy = "check `rdma link`: an adapter, or a Soft-RoCE device, must be on the interface with this address"
        raise EnvironmentMissingError("no RDMA device has this address", where=source, remedy=remedy)
    return name


def _received(one: RdmaConnection, slot: int) -> Received:
    ring, start = one.ring, slot * RESPONSE_BYTES
    response = bytes(ring.responses[start : start + RESPONSE_BYTES])
    payload = b""
    if one.payloads and (wanted := one.payloads.pop(int.from_bytes(response[12:14], "little"), None)):
        payload = ring.take(*wanted)
    return _new(Received, (one.order.connection, response, payload))


def _nothing() -> None:
    """A descriptor that was let go while its event was on the way."""


def _short(length: int, where: str) -> RemoteProtocolError:
    return RemoteProtocolError("a response is too short", where=where, expected="16 bytes", found=str(length))
