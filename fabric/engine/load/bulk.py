"""Lossy traffic beside the lossless: plain TCP between two hosts, to see whether it disturbs. Carries zeroes.

| URL | does |
|---|---|
| `tcp-listen://ADDRESS:PORT?from=PEER` | takes connections here only, from this peer only, and drops what comes |
| `tcp-send://HOST:PORT?bind=ADDRESS` | connects from this address, tries again until it is answered, and sends |

It listens for the job's time and no longer; the agent says so when it begins and when it ends. The job's readers are
the connections of the sender. The type of service is the stream's, 0 without one: priority 0.
"""

import errno
import ipaddress
import os
import select
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from fabric.engine.load.ledger import Ledger
from fabric.engine.load.model import Job, Stream, StreamResult
from fabric.engine.load.worker import Moment, Pacer
from fabric.errors import LocalProtocolError, TransportError

__all__ = ("BulkAddress", "BulkReceiver", "BulkSender", "bulk_address")

_CHUNK_BYTES: Final = 256 << 10
_ROUNDS: Final = 8  # chunks of one connection in a step
_RETRY_NS: Final = 100_000_000
_LINGER_NS: Final = 2_000_000_000  # for senders whose clock is late
_MOST_CONNECTIONS: Final = 1024
_LISTEN, _SEND = "tcp-listen", "tcp-send"


@dataclass(frozen=True, slots=True)
class BulkAddress:
    """One end.

    Attributes:
        is_listener: it listens at `host`; else it connects there.
        peer: who may connect, or the address to connect from; "" for any.
    """

    is_listener: bool
    host: str
    port: int
    peer: str


def bulk_address(url: str) -> BulkAddress | None:
    """Returns what a URL of bulk traffic names, None for any other URL.

    Raises:
        LocalProtocolError: it has another form, or listens on no certain address.
    """
    scheme = url.partition(":")[0]
    if scheme not in (_LISTEN, _SEND):
        return None
    word = "from" if scheme == _LISTEN else "bind"
    try:
        parts = urlsplit(url)
        arguments = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        peer = arguments.pop(word, "")
        addresses = [ipaddress.ip_address(one) for one in (parts.hostname or "", *([peer] if peer else []))]
        if arguments or parts.path or not parts.port:
            raise ValueError("an argument is not known, or the port is missing")
        if scheme == _LISTEN and addresses[0].is_unspecified:
            raise ValueError("it would listen on every address")
    except ValueError as error:
        expected = f"{_LISTEN}://ADDRESS:PORT?from=ADDRESS or {_SEND}://ADDRESS:PORT?bind=ADDRESS"
        raise LocalProtocolError(f"this URL cannot be used: {error}", found=url, expected=expected) from error
    return BulkAddress(scheme == _LISTEN, str(addresses[0]), parts.port, str(addresses[1]) if peer else "")


def _socket(host: str, tos: int | None) -> socket.socket:
    is_six = ":" in host
    made = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    if is_six:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos or 0)
    else:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos or 0)
    return made


class BulkReceiver:
    """The end that listens.

    Args:
        stream: which.
        address: of its URL.

    Raises:
        TransportError: it cannot listen there.
    """

    def __init__(self, stream: Stream, address: BulkAddress) -> None:
        self.ledger = Ledger(stream.name)
        self._peer = address.peer
        self._open: list[socket.socket] = []
        self._linger_ns = 0
        self._scratch = memoryview(bytearray(_CHUNK_BYTES))
        self._listening = _socket(address.host, stream.tos)
        try:
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listening.bind((address.host, address.port))
            self._listening.listen()
        except OSError as error:
            self._listening.close()
            where = f"{address.host} port {address.port}"
            raise TransportError("it cannot listen", where=where, found=error.strerror or "") from error

    def step(self, moment: Moment) -> bool:
        """Takes connections and what comes over them; after the end, what comes until the senders have ended too."""
        if not moment.is_counted:
            self._listening.close()
            self._linger_ns = self._linger_ns or moment.now_ns + _LINGER_NS
            if moment.now_ns >= self._linger_ns:
                self.abort()
        is_new = moment.is_counted and self._accept()
        received = [self._receive(one, moment) for one in tuple(self._open)]
        return is_new or any(received)

    def _accept(self) -> bool:
        try:
            taken, whence = self._listening.accept()
        except OSError:
            return False
        is_welcome = not self._peer or ipaddress.ip_address(whence[0].partition("%")[0]) == ipaddress.ip_address(
            self._peer
        )
        if not is_welcome or len(self._open) >= _MOST_CONNECTIONS:
            taken.close()
            return True
        taken.setblocking(False)
        self._open.append(taken)
        return True

    def _receive(self, one: socket.socket, moment: Moment) -> bool:
        length = 0
        for _ in range(_ROUNDS):
            try:
                more = one.recv_into(self._scratch)
            except BlockingIOError:
                break
            except OSError as error:
                self._drop(one)
                if moment.is_counted:
                    self.ledger.failed(TransportError("a connection broke", found=error.strerror or ""), moment.burst)
                break
            if not more:
                self._drop(one)
                break
            length += more
        if length and moment.is_counted:
            self.ledger.ended(length, moment.now_ns, None, write=False)
        return length > 0

    def _drop(self, one: socket.socket) -> None:
        self._open.remove(one)
        one.close()

    def descriptors(self) -> tuple[tuple[int, int], ...]:
        """Returns what to wait on."""
        listening = [] if self._linger_ns else [self._listening]
        return tuple((one.fileno(), select.POLLIN) for one in (*listening, *self._open))

    def due_ns(self) -> int | None:
        """Returns when it waits for senders no longer."""
        return self._linger_ns or None

    @property
    def is_idle(self) -> bool:
        """Whether no sender is connected. One whose clock is late would take an earlier end for a broken connection."""
        return not self._open

    def abort(self) -> None:
        """Closes what is open."""
        for one in tuple(self._open):
            self._drop(one)

    def result(self) -> StreamResult:
        """Returns what came."""
        return self.ledger.result(None)

    def close(self) -> None:
        """Closes all sockets."""
        self.abort()
        self._listening.close()


@dataclass(slots=True)
class _Line:
    """One connection of a sender."""

    made: socket.socket
    is_connected: bool = False


class BulkSender:
    """The end that connects.

    Args:
        stream: which.
        address: of its URL.
        job: how many connections.
        pacer: shared with all streams.
    """

    def __init__(self, stream: Stream, address: BulkAddress, job: Job, pacer: Pacer) -> None:
        self.ledger = Ledger(stream.name)
        self._stream, self._address, self._wanted, self._pacer = stream, address, job.readers, pacer
        self._open: list[_Line] = []
        self._zeroes = memoryview(bytes(_CHUNK_BYTES))
        self._retry_ns = 0
        self._may_send = False

    def step(self, moment: Moment) -> bool:
        """Connects what is missing, sends what there is room for; after the end, closes."""
        if not moment.is_counted:
            self.abort()
        self._may_send = moment.is_on and self._pacer.is_open(moment.now_ns)
        if moment.is_counted and len(self._open) < self._wanted and moment.now_ns >= self._retry_ns:
            self._retry_ns = moment.now_ns + _RETRY_NS
            for _ in range(self._wanted - len(self._open)):
                self._connect(moment)
        sent = [self._send(one, moment) for one in tuple(self._open)]
        return any(sent)

    def _connect(self, moment: Moment) -> None:
        made = _socket(self._address.host, self._stream.tos)
        try:
            if self._address.peer:
                made.bind((self._address.peer, 0))
            made.connect_ex((self._address.host, self._address.port))
        except OSError as error:
            made.close()
            self._count(error.errno or 0, moment)
            return
        self._open.append(_Line(made))

    def _send(self, line: _Line, moment: Moment) -> bool:
        if not line.is_connected:
            return self._finish_connecting(line, moment)
        length = 0
        for _ in range(_ROUNDS):
            if not self._may_send:
                break
            try:
                more = line.made.send(self._zeroes)
            except BlockingIOError:
                break
            except OSError as error:
                self._drop(line)
                self._count(error.errno or 0, moment)
                break
            length += more
            self._pacer.spend(more, moment.now_ns)
            self._may_send = self._pacer.is_open(moment.now_ns)
        if length and moment.is_counted:
            self.ledger.ended(length, moment.now_ns, None, write=True)
            self.ledger.began(moment.burst)
        return length > 0

    def _finish_connecting(self, line: _Line, moment: Moment) -> bool:
        if not select.select((), (line.made,), (), 0)[1]:
            return False
        code = line.made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._drop(line)
            if code != errno.ECONNREFUSED:  # the other end is not there yet
                self._count(code, moment)
            return False
        line.is_connected = True
        return True

    def _count(self, code: int, moment: Moment) -> None:
        if moment.is_counted:
            self.ledger.failed(TransportError("a connection broke", found=os.strerror(code)), moment.burst)

    def _drop(self, line: _Line) -> None:
        self._open.remove(line)
        line.made.close()

    def descriptors(self) -> tuple[tuple[int, int], ...]:
        """Returns what to wait on: room in a connection, where there is something to send."""
        return tuple(
            (one.made.fileno(), select.POLLOUT) for one in self._open if self._may_send or not one.is_connected
        )

    def due_ns(self) -> int | None:
        """Returns when to connect again, or when the cap lets more out."""
        due = [] if len(self._open) >= self._wanted else [self._retry_ns]
        if self._pacer.due_ns is not None:
            due.append(self._pacer.due_ns)
        return min(due) if due else None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is connected."""
        return not self._open

    def abort(self) -> None:
        """Closes all connections."""
        for one in tuple(self._open):
            self._drop(one)

    def result(self) -> StreamResult:
        """Returns what was sent; TCP took it, which is not that it arrived."""
        if not self.ledger.writes and not self.ledger.errors:
            where = f"{self._address.host} port {self._address.port}"
            self.ledger.failed(TransportError("nobody answered", where=where), None)
        return self.ledger.result(None)

    def close(self) -> None:
        """Closes all connections."""
        self.abort()
