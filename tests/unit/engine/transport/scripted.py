"""One side of NVMe/TCP played by a test: a target that sends what the test says, and a host that does."""

import socket

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend
from fabric.engine.nvmeof.tcp import (
    Digests,
    IcRequest,
    IcResponse,
    Pdu,
    PduReader,
    PduWriter,
)
from fabric.engine.nvmeof.wire import io
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.transport.base import Arena, Broken, Connected, Event, allocate
from fabric.engine.transport.driver import wait
from fabric.engine.transport.tcp import TcpConfig, TcpServer, TcpTransport
from tests.unit.engine.transport.rig import MIB, SECOND

ONE = ConnectionId(1)


class FakeTarget:
    """A listening socket of the test: it reads PDUs, and sends what the test says."""

    def __init__(self, digests: Digests | None = None) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # so that a sender can be made to wait
        self.listener.settimeout(10)
        port = int(self.listener.getsockname()[1])
        self.digests = digests or Digests()
        config = TcpConfig("127.0.0.1", port, tos=104, digests=self.digests, connect_timeout_ns=5 * SECOND)
        self.transport = TcpTransport(config)
        self.arena: Arena = self.transport.register(allocate(MIB))
        self.writer = PduWriter()
        self.reader = PduReader()
        self.pdus: list[tuple[Pdu, bytes]] = []
        self.events: list[Event] = []
        self.sock: socket.socket | None = None

    def accept(self) -> socket.socket:
        """Lets the host connect, and takes its connection."""
        self.transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
        self.sock, _address = self.listener.accept()
        self.sock.settimeout(10)
        return self.sock

    def greet(self, answer: IcResponse | None = None) -> None:
        """Takes ICReq and answers it."""
        self.accept()
        pdu, _data = self.next_pdu()
        assert isinstance(pdu, IcRequest)
        self.send(answer or IcResponse(4096, pdu.digests))
        self.writer.digests = self.reader.digests = self.digests

    def live(self) -> None:
        """Greets, and waits until the host is connected."""
        self.greet()
        self.until(Connected)

    def send(self, pdu: Pdu, data: bytes = b"") -> None:
        self.raw(self.writer.pack(pdu, data))

    def raw(self, data: bytes) -> None:
        assert self.sock is not None
        self.sock.sendall(data)

    def next_pdu(self) -> tuple[Pdu, bytes]:
        """The next PDU of the host."""
        assert self.sock is not None
        while not self.pdus:
            self.poll()
            if wait([self.sock.fileno()], 10_000_000):
                received = self.sock.recv(1 << 16)
                assert received, "the host closed"
                self.pdus += self.reader.feed(received)
        return self.pdus.pop(0)

    def poll(self, now_ns: int = 0) -> None:
        self.events += self.transport.poll(now_ns)

    def until(self, kind: type[Event], now_ns: int = 0) -> Event:
        """Polls the host until such an event comes."""
        for _ in range(500):
            self.poll(now_ns)
            for event in self.events:
                if isinstance(event, kind):
                    self.events.remove(event)
                    return event
            wait([self.transport.fileno()], 20_000_000)
        raise AssertionError(f"no {kind.__name__}: {self.events}")

    def error(self) -> Exception:
        """What broke the connection."""
        broken = self.until(Broken)
        assert isinstance(broken, Broken)
        return broken.error

    def read(self, length: int, cid: int = 7, offset: int = 0) -> None:
        """Posts a read."""
        command = io.read(1, 0, length // 512).pack(cid, Sgl(SglKind.TRANSPORT, 0, length))
        self.transport.post([PostSend(ONE, 1, 3, command, region=self.arena.region(offset, length))], 0)

    def write(self, length: int, cid: int = 7) -> None:
        """Posts a write."""
        command = io.write(1, 0, length // 512).pack(cid, Sgl(SglKind.TRANSPORT, 0, length))
        self.transport.post([PostSend(ONE, 1, 3, command, region=self.arena.region(0, length))], 0)

    def close(self) -> None:
        self.transport.close()
        self.listener.close()
        if self.sock:
            self.sock.close()


class FakeHost:
    """A socket of the test against a server, in one thread."""

    def __init__(self, server: TcpServer) -> None:
        self.server = server
        self.sock, far = socket.socketpair()
        self.sock.settimeout(10)
        self.reader, self.writer = PduReader(), PduWriter()
        self.pdus: list[tuple[Pdu, bytes]] = []
        server.adopt(far, 0)

    def send(self, pdu: Pdu, data: bytes = b"") -> None:
        self.sock.sendall(self.writer.pack(pdu, data))
        self.server.poll(0)

    def next_pdu(self) -> Pdu | None:
        """The next PDU of the target, None at the end."""
        for _ in range(100):
            if self.pdus:
                return self.pdus.pop(0)[0]
            self.server.poll(0)
            if wait([self.sock.fileno()], 0):
                received = self.sock.recv(1 << 16)
                if not received:
                    return None
                self.pdus += self.reader.feed(received)
        raise AssertionError("the target says nothing")
