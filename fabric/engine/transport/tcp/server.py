"""The target's side of NVMe/TCP: a listening socket and its connections, on one selector; on loopback by default.

`TcpServer` is polled, with the time as an argument; `serve` polls one until it is told to stop.
"""

import contextlib
import itertools
import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass

from fabric.clock import Clock
from fabric.engine.nvmeof.target import Accept, Drop, PeerId, Reject
from fabric.engine.nvmeof.tcp import Digests, PduWriter, crc32c
from fabric.engine.nvmeof.tcp.stream import Checksum
from fabric.engine.transport.driver import wait
from fabric.engine.transport.service import Service
from fabric.engine.transport.tcp.address import mark, open_socket, path_error, resolve
from fabric.engine.transport.tcp.channel import Channel
from fabric.engine.transport.tcp.framing import StreamError
from fabric.engine.transport.tcp.peer import PeerState, TargetPeer
from fabric.errors import EngineError

__all__ = ("ServerConfig", "TcpServer", "serve")

_TURN = 64  # system calls for one connection before the next one has its turn
_DISCARD_BYTES = 1 << 16
_CLOSING_NS = 1_000_000_000  # how long a termination may take to be read; Linux nvmet closes at once
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_STOP_POLL_NS = 100_000_000
_BOTH = Digests(header=True, data=True)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Where to listen and how.

    Attributes:
        address, service: IP address and port; 0 takes a free port.
        tos: type of service of what this side sends, all data of reads among it; None: the system's default.
        digests: those that a host may ask for.
        max_connections: further ones are closed at once.
        greeting_timeout_ns: a connection that has not greeted by then is closed.
        checksum: CRC-32C.
    """

    address: str = "127.0.0.1"
    service: int = 0
    tos: int | None = None
    digests: Digests = _BOTH
    max_connections: int = 1024
    greeting_timeout_ns: int = 10_000_000_000
    checksum: Checksum = crc32c


_LOOPBACK = ServerConfig()


class TcpServer:
    """A service on the network.

    Args:
        service: what is served; its target must speak "tcp".
        config: where and how.

    Raises:
        LocalProtocolError: the address is no IP address.
        TransportError: it cannot be listened on.
    """

    def __init__(self, service: Service, config: ServerConfig = _LOOPBACK) -> None:
        self.service = service
        self.config = config
        family, address = resolve(config.address, config.service)
        self._listener = open_socket(family, config.tos)
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(address)
            self._listener.listen()
        except OSError as error:
            self._listener.close()
            raise path_error(error, f"{config.address}:{config.service}") from error
        self._peers: dict[PeerId, TargetPeer] = {}
        self._ids = itertools.count(1)
        self._selector = selectors.EpollSelector()
        self._selector.register(self._listener, _READ)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listener.getsockname()[1])

    @property
    def connections(self) -> int:
        """How many there are, closing ones included."""
        return len(self._peers)

    def poll(self, now_ns: int) -> bool:
        """Does what there is to do; returns whether there was anything."""
        ready = self._selector.select(0)
        for key, mask in ready:
            peer = key.data
            if peer is None:
                self._accept(now_ns)
            elif peer.state is not PeerState.CLOSED:
                self._serve(peer, mask, now_ns)
        outputs = self._pump(now_ns)
        for peer in list(self._peers.values()):
            if peer.deadline_ns is not None and peer.deadline_ns <= now_ns:
                self._close(peer, now_ns)
        return bool(ready) or outputs

    def adopt(self, sock: socket.socket, now_ns: int) -> None:
        """Takes a connected stream socket, and closes it in the end."""
        sock.setblocking(False)
        deadline_ns = now_ns + self.config.greeting_timeout_ns
        peer = TargetPeer(PeerId(next(self._ids)), self.service, self.config.digests, deadline_ns, now_ns)
        peer.attach(Channel(sock, peer, PduWriter(checksum=self.config.checksum)))
        self._peers[peer.identifier] = peer
        self._selector.register(sock, _READ, peer)

    def next_timer_ns(self) -> int | None:
        """Returns when `poll` should be called although the descriptor is not readable."""
        due = [peer.deadline_ns for peer in self._peers.values() if peer.deadline_ns is not None]
        if (at_ns := self.service.next_timer_ns()) is not None:
            due.append(at_ns)
        return min(due) if due else None

    def fileno(self) -> int:
        """Returns a descriptor that is readable when `poll` has something to do."""
        return self._selector.fileno()

    def close(self) -> None:
        """Closes every socket; hosts see their connections end."""
        for peer in self._peers.values():
            peer.channel.drop()
        self._peers.clear()
        self._selector.close()
        self._listener.close()

    def _accept(self, now_ns: int) -> None:
        while True:
            try:
                sock, _address = self._listener.accept()
            except OSError:  # none is left, or the one that was is gone again
                return
            if len(self._peers) >= self.config.max_connections:
                sock.close()
                continue
            mark(sock, self.config.tos)
            self.adopt(sock, now_ns)

    def _serve(self, peer: TargetPeer, mask: int, now_ns: int) -> None:
        peer.now_ns = now_ns
        if mask & _READ:
            self._guard(peer, lambda: self._receive(peer), now_ns)
        self._send(peer, now_ns)

    def _receive(self, peer: TargetPeer) -> None:
        for _ in range(_TURN):
            if peer.state is PeerState.CLOSING:
                ended = not peer.channel.sock.recv(_DISCARD_BYTES)
            elif peer.may_read:
                ended = not peer.channel.receive()
            else:
                return
            if ended:
                raise ConnectionResetError
            self._pump(peer.now_ns)

    def _pump(self, now_ns: int) -> bool:
        """Hands the service's outputs to their connections; returns whether there were any."""
        touched: dict[PeerId, TargetPeer] = {}
        while outputs := self.service.poll(now_ns):
            for output in outputs:
                peer = self._peers.get(output.peer)
                if peer is None or peer.state is not PeerState.LIVE or isinstance(output, Accept):
                    continue
                if isinstance(output, Drop | Reject):
                    self._close(peer, now_ns)
                    continue
                peer.now_ns = now_ns
                self._guard(peer, lambda peer=peer, output=output: peer.carry(output), now_ns)  # type: ignore[misc]
                touched[output.peer] = peer
        for peer in touched.values():
            self._send(peer, now_ns)
        return bool(touched)

    def _send(self, peer: TargetPeer, now_ns: int) -> None:
        if peer.identifier in self._peers:
            self._guard(peer, lambda: self._finish(peer), now_ns)
        if peer.identifier in self._peers:
            self._watch(peer)

    def _finish(self, peer: TargetPeer) -> None:
        if peer.channel.send() and peer.state is PeerState.CLOSING:
            peer.channel.sock.shutdown(socket.SHUT_WR)

    def _watch(self, peer: TargetPeer) -> None:
        channel = peer.channel
        wanted = (_READ if peer.may_read else 0) | (_WRITE if channel.backlog else 0)
        if self._selector.get_key(channel.sock).events != wanted:
            self._selector.modify(channel.sock, wanted, peer)

    def _guard(self, peer: TargetPeer, action: Callable[[], None], now_ns: int) -> None:
        """Does something with a connection; what goes wrong ends it, with a word to the host where that helps."""
        try:
            action()
        except BlockingIOError:
            return
        except StreamError as error:
            if peer.state in (PeerState.CLOSED, PeerState.CLOSING) or error.status is None:
                self._close(peer, now_ns)
                return
            peer.state, peer.deadline_ns = PeerState.CLOSING, now_ns + _CLOSING_NS
            self.service.disconnected(peer.identifier, now_ns)
            peer.channel.terminate(error, to_host=True)
            self._send(peer, now_ns)
        except (OSError, EngineError):  # the host is gone, or said that it goes
            self._close(peer, now_ns)

    def _close(self, peer: TargetPeer, now_ns: int) -> None:
        if self._peers.pop(peer.identifier, None) is None:
            return
        was_closing, peer.state = peer.state is PeerState.CLOSING, PeerState.CLOSED
        with contextlib.suppress(KeyError):
            self._selector.unregister(peer.channel.sock)
        peer.channel.drop()
        if not was_closing:
            self.service.disconnected(peer.identifier, now_ns)


def serve(server: TcpServer, clock: Clock, until: Callable[[], bool]) -> None:
    """Serves until `until` says so; that is asked ten times a second and after each event. Closes the server."""
    try:
        while not until():
            now_ns = clock.now_ns()
            while server.poll(now_ns):
                now_ns = clock.now_ns()
            due_ns = server.next_timer_ns()
            left_ns = _STOP_POLL_NS if due_ns is None else min(_STOP_POLL_NS, max(0, due_ns - now_ns))
            wait([server.fileno()], left_ns)
    finally:
        server.close()
