"""The host's side of NVMe/TCP: all queues to one address, on one selector. Satisfies `Transport[PostSend]`.

Data of the target lands in registered memory without a copy; data for it leaves from there. Once a connection's socket
is closed nothing can write to its memory, so Disconnected follows `disconnect` at once.
"""

import contextlib
import errno
import selectors
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend
from fabric.engine.nvmeof.tcp import Digests, PduWriter, crc32c
from fabric.engine.nvmeof.tcp.stream import Checksum
from fabric.engine.transport.arenas import Arenas
from fabric.engine.transport.base import Arena, Broken, Disconnected, Event
from fabric.engine.transport.signal import Signal
from fabric.engine.transport.tcp.address import open_socket, path_error, resolve
from fabric.engine.transport.tcp.channel import Channel
from fabric.engine.transport.tcp.connection import HostConnection, LinkState
from fabric.engine.transport.tcp.framing import StreamError
from fabric.errors import EngineError, IntegrityError, LocalProtocolError, TransportError

__all__ = ("TcpConfig", "TcpTransport")

_TURN = 64  # system calls for one connection before the next one has its turn
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass(frozen=True, slots=True)
class TcpConfig:
    """How to connect.

    Attributes:
        address, service: IP address and port of the target.
        source: address of this machine to connect from, "" for any.
        tos: type of service, DSCP x 4; None: the system's default. Only what this side sends: a target sets its own.
        digests: CRC-32C over headers, over data.
        connect_timeout_ns: for the TCP handshake and the greeting.
        checksum: CRC-32C; the default is plain Python, some MiB a second, and a caller may have a faster one.
    """

    address: str
    service: int = 4420
    source: str = ""
    tos: int | None = None
    digests: Digests = field(default_factory=Digests)
    connect_timeout_ns: int = 5_000_000_000
    checksum: Checksum = crc32c


class TcpTransport:
    """All connections of a host to one target address.

    Args:
        config: where to and how.

    Raises:
        LocalProtocolError: an address is no IP address.
    """

    def __init__(self, config: TcpConfig) -> None:
        self.config = config
        self._family, self._peer = resolve(config.address, config.service)
        self._source = resolve(config.source, 0)[1] if config.source else None
        self._arenas = Arenas()
        self._connections: dict[ConnectionId, HostConnection] = {}
        self._events: list[Event] = []
        self._signal = Signal()
        self._selector = selectors.EpollSelector()
        self._selector.register(self._signal, _READ)
        self._last_id = -1

    def register(self, memory: memoryview) -> Arena:
        """See `Transport`."""
        return self._arenas.register(memory)

    def connect(self, order: Connect, now_ns: int) -> None:
        """See `Transport`."""
        if order.connection <= self._last_id:
            raise LocalProtocolError("a connection id was used before", found=str(order.connection))
        self._last_id = order.connection
        config = self.config
        where = f"{config.address}:{config.service}, queue {order.qid}"
        deadline_ns = now_ns + config.connect_timeout_ns
        scratch = self._arenas.scratch(order.depth)
        one = HostConnection(order, scratch, config.digests, deadline_ns, self._say, where)
        self._connections[order.connection] = one
        try:
            sock = open_socket(self._family, config.tos, self._source)
        except OSError as error:
            self._break(one, path_error(error, where))
            return
        one.attach(Channel(sock, one, PduWriter(checksum=config.checksum)))
        code = sock.connect_ex(self._peer)
        if code not in (0, errno.EINPROGRESS):
            self._break(one, path_error(OSError(code, ""), where))
            return
        self._selector.register(sock, _WRITE, one)

    def post(self, batch: Sequence[PostSend], now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        views = [self._arenas.view(post.region) if post.region is not None else None for post in batch]
        touched: dict[ConnectionId, HostConnection] = {}
        for post, view in zip(batch, views, strict=True):
            one = self._connections.get(post.connection)
            if one is not None and one.state is LinkState.LIVE:
                one.post(post, self._arenas.slot(one.memory, post.slot), view)
                touched[post.connection] = one
        for one in touched.values():
            self._guard(one, one.channel.send)
            self._watch(one)

    def disconnect(self, connection: ConnectionId, now_ns: int) -> None:
        """See `Transport`."""
        del now_ns
        one = self._connections.pop(connection, None)
        if one is not None:
            self._release(one)
            self._say(Disconnected(connection, "taken down"))

    def poll(self, now_ns: int) -> list[Event]:
        """See `Transport`."""
        while self._turn() and not self._events:
            pass
        for one in list(self._connections.values()):
            if one.state in (LinkState.CONNECTING, LinkState.GREETING) and one.deadline_ns <= now_ns:
                state = "TCP handshake" if one.state is LinkState.CONNECTING else "greeting"
                self._break(one, TransportError("no connection in time", where=one.where, found=f"waiting for {state}"))
        events, self._events = self._events, []
        self._signal.clear()
        return events

    def next_timer_ns(self) -> int | None:
        """See `Transport`."""
        opening = (LinkState.CONNECTING, LinkState.GREETING)
        return min((one.deadline_ns for one in self._connections.values() if one.state in opening), default=None)

    def fileno(self) -> int:
        """See `Transport`: the selector's own descriptor."""
        return self._selector.fileno()

    def close(self) -> None:
        """See `Transport`."""
        for one in self._connections.values():
            self._release(one)
        self._connections.clear()
        self._arenas.clear()
        self._selector.close()
        self._signal.close()

    def _say(self, event: Event) -> None:
        self._events.append(event)
        self._signal.set()

    def _turn(self) -> bool:
        """Gives each ready connection its turn; returns whether one may have more to do."""
        more = False
        for key, mask in self._selector.select(0):
            one = key.data
            if isinstance(one, HostConnection) and one.state is not LinkState.BROKEN:
                more |= self._serve(one, mask)
        return more

    def _serve(self, one: HostConnection, mask: int) -> bool:
        more = False
        if mask & _WRITE and one.state is LinkState.CONNECTING:
            self._guard(one, lambda: self._finish_handshake(one))
        if mask & _READ and one.state in (LinkState.GREETING, LinkState.LIVE):
            more = self._guard(one, lambda: self._receive(one))
        if one.state is not LinkState.BROKEN:
            self._guard(one, one.channel.send)
            self._watch(one)
        return more

    def _finish_handshake(self, one: HostConnection) -> bool:
        if code := one.channel.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, "")
        one.greet()
        return True

    def _receive(self, one: HostConnection) -> bool:
        channel = one.channel
        for _ in range(_TURN):
            try:
                if not channel.receive():
                    raise TransportError("the target closed the connection", where=one.where)
            except BlockingIOError:
                return False
        return True

    def _watch(self, one: HostConnection) -> None:
        if one.state is LinkState.BROKEN:
            return
        sock = one.channel.sock
        wanted = _READ | _WRITE if one.channel.backlog else _READ
        if self._selector.get_key(sock).events != wanted:
            self._selector.modify(sock, wanted, one)

    def _guard(self, one: HostConnection, action: Callable[[], bool]) -> bool:
        """Does something with a connection; what goes wrong breaks it. Returns what the action said."""
        try:
            return action()
        except StreamError as error:
            one.channel.terminate(error, to_host=False)
            digest = IntegrityError(error.what, where=one.where, found=error.found) if error.status is None else error
            self._break(one, digest)
        except OSError as error:
            self._break(one, path_error(error, one.where))
        except EngineError as error:
            self._break(one, error)
        return False

    def _break(self, one: HostConnection, error: EngineError) -> None:
        if one.state is LinkState.BROKEN:
            return
        one.state = LinkState.BROKEN
        self._say(Broken(one.identifier, error))
        if one.is_attached:
            self._hush(one)

    def _hush(self, one: HostConnection) -> None:
        """Says a last word, if the kernel takes it at once, and stops listening; memory is not touched again."""
        sock = one.channel.sock
        if sock in self._selector.get_map():
            self._selector.unregister(sock)
        with contextlib.suppress(OSError):  # a peer that is gone would not have listened
            one.channel.send()
        one.channel.drop()

    def _release(self, one: HostConnection) -> None:
        if one.state is not LinkState.BROKEN and one.is_attached:
            self._selector.unregister(one.channel.sock)
            one.channel.drop()
        one.state = LinkState.BROKEN
        self._arenas.forget(one.memory.key)
