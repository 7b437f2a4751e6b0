"""NVMe/TCP on real sockets, one side scripted by the test: greetings, bad targets, bad hosts, slow and dead peers."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.engine.nvmeof.host import Completed, Connect, ConnectionId, Failed, PostSend, Read, Region, Write
from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    IcResponse,
    Pdu,
    PduReader,
    PduWriter,
    ReadyToTransfer,
    Terminate,
    crc32c,
)
from fabric.engine.nvmeof.wire import fabrics, io
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.transport.base import Arena, Broken, Connected, Disconnected, Event, Received, Sent, allocate
from fabric.engine.transport.driver import wait
from fabric.engine.transport.storage import FileStorage
from fabric.engine.transport.tcp import ServerConfig, TcpConfig, TcpServer, TcpTransport, serve
from fabric.errors import IntegrityError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.transport.rig import KEY, MIB, SECOND, World, service

ONE = ConnectionId(1)
Make = Callable[..., World]


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


@pytest.fixture
def fake() -> Iterator[Callable[..., FakeTarget]]:
    made: list[FakeTarget] = []

    def make(digests: Digests | None = None) -> FakeTarget:
        made.append(FakeTarget(digests))
        return made[-1]

    yield make
    for one in made:
        one.close()


Fake = Callable[..., FakeTarget]
GOOD = Cqe(7).pack()


def test_the_socket_is_marked_before_the_first_packet(fake: Fake) -> None:
    one = fake()
    one.accept()
    (connection,) = one.transport._connections.values()
    assert connection.channel.sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 104


def test_ipv6_is_marked_by_its_traffic_class() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    transport = TcpTransport(TcpConfig("::1", listener.getsockname()[1], tos=104))
    transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    (connection,) = transport._connections.values()
    assert connection.channel.sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 104
    transport.close()
    listener.close()


def test_data_in_pieces_lands_in_place_and_success_needs_no_answer(fake: Fake) -> None:
    one = fake()
    one.live()
    one.read(1536)
    pdu, _data = one.next_pdu()
    assert isinstance(pdu, CapsuleCommand)
    for start in (0, 512, 1024):
        one.send(
            DataPdu(True, 7, 0, start, 512, last=start == 1024, success=start == 1024), bytes([start // 512]) * 512
        )

    received = one.until(Received)

    assert isinstance(received, Received)
    assert Cqe.parse(received.response) == Cqe(7, sqhd=0xFFFF)
    assert bytes(one.arena.view[:1536]) == b"\0" * 512 + b"\1" * 512 + b"\2" * 512


def test_an_answer_waits_until_the_commands_data_has_left(fake: Fake) -> None:
    one = fake()
    one.live()
    (connection,) = one.transport._connections.values()
    connection.channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    one.write(MIB)
    one.next_pdu()
    one.until(Sent)
    one.send(ReadyToTransfer(7, 9, 0, MIB))
    one.send(CapsuleResponse(GOOD))  # a target may answer early, and the memory is still being sent
    for _ in range(20):
        one.poll()
        wait([one.transport.fileno()], 5_000_000)
    assert not any(isinstance(event, Received) for event in one.events)

    came, last = 0, False
    while not last:
        pdu, data = one.next_pdu()
        assert isinstance(pdu, DataPdu)
        assert (pdu.offset, pdu.tag, len(data) <= 4096) == (came, 9, True)
        came, last = came + len(data), pdu.last

    assert came == MIB
    one.until(Received)


BAD_PDUS: list[tuple[str, list[Pdu], list[bytes]]] = [
    ("data that nobody asked for", [DataPdu(True, 8, 0, 0, 512)], [b"x" * 512]),
    ("data that nobody asked for", [DataPdu(True, 7, 0, 512, 512)], [b"x" * 512]),
    ("data that nobody asked for", [DataPdu(True, 7, 0, 0, 1024)], [b"x" * 1024]),
    ("data that nobody asked for", [DataPdu(True, 7, 0, 0, 512)] * 2, [b"x" * 512] * 2),
    ("data that a target cannot send", [DataPdu(False, 7, 0, 0, 512)], [b"x" * 512]),
    ("asked for that is not there", [ReadyToTransfer(7, 1, 0, 512)], [b""]),
    ("a PDU out of turn", [IcResponse(4096)], [b""]),
    ("a PDU out of turn", [IcRequest()], [b""]),
    ("a PDU out of turn", [CapsuleCommand(bytes(64))], [b""]),
]


@pytest.mark.parametrize(("words", "pdus", "datas"), BAD_PDUS)
def test_what_a_target_may_not_send_ends_the_connection_with_a_word(
    fake: Fake, words: str, pdus: list[Pdu], datas: list[bytes]
) -> None:
    one = fake()
    one.live()
    one.read(512)
    one.next_pdu()
    for pdu, data in zip(pdus, datas, strict=True):
        one.send(pdu, data)

    error = one.error()

    assert isinstance(error, RemoteProtocolError)
    assert words in str(error)
    assert not any(one.arena.view[512:])
    pdu, _data = one.next_pdu()
    assert isinstance(pdu, Terminate)
    one.transport.disconnect(ONE, 0)
    assert isinstance(one.until(Disconnected), Disconnected)


def test_a_good_answer_without_its_data_is_one_of_integrity(fake: Fake) -> None:
    one = fake()
    one.live()
    one.read(1024)
    one.send(DataPdu(True, 7, 0, 0, 512), b"x" * 512)
    one.send(CapsuleResponse(GOOD))

    error = one.error()

    assert isinstance(error, IntegrityError)
    assert "without all of its data" in str(error)


@pytest.mark.parametrize(("part", "kind"), [("header", RemoteProtocolError), ("data", IntegrityError)])
def test_a_wrong_digest_ends_the_connection(fake: Fake, part: str, kind: type[Exception]) -> None:
    one = fake(Digests(header=True, data=True))
    one.live()
    one.read(512)
    one.next_pdu()
    packed = bytearray(one.writer.pack(DataPdu(True, 7, 0, 0, 512), b"x" * 512))
    packed[24 if part == "header" else -1] ^= 1  # 24: behind the header of C2HData
    one.raw(bytes(packed))

    error = one.error()

    assert isinstance(error, kind)
    assert f"a {part} digest is wrong" in str(error)
    assert not any(isinstance(event, Received) for event in one.events)


def test_a_digest_that_the_target_does_not_take_is_told(fake: Fake) -> None:
    one = fake(Digests(header=True))
    one.greet(IcResponse(4096, Digests()))
    assert "does not take the digests" in str(one.error())


def test_a_termination_says_why(fake: Fake) -> None:
    one = fake()
    one.live()
    one.send(Terminate(True, FatalStatus.LIMIT_EXCEEDED), b"x" * 72)
    assert "limit exceeded" in str(one.error())


def test_a_target_killed_in_the_middle_of_a_transfer(fake: Fake) -> None:
    one = fake()
    one.live()
    one.read(4096)
    one.raw(one.writer.pack(DataPdu(True, 7, 0, 0, 4096), b"x" * 4096)[:1000])
    assert one.sock is not None
    one.sock.close()

    assert isinstance(one.error(), TransportError)
    one.transport.disconnect(ONE, 0)
    one.until(Disconnected)
    assert one.transport.next_timer_ns() is None


def test_nobody_listens(fake: Fake) -> None:
    one = fake()
    one.listener.close()
    one.transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    assert "nothing listens there" in str(one.error())


@pytest.mark.parametrize("accepts", [True, False])
def test_a_target_that_never_greets_is_left_at_the_deadline(fake: Fake, accepts: bool) -> None:
    one = fake()
    if accepts:
        one.accept()
    else:
        one.transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    for _ in range(5):
        one.poll()
        wait([one.transport.fileno()], 5_000_000)
    assert one.transport.next_timer_ns() == 5 * SECOND
    assert not any(isinstance(event, Broken) for event in one.events)

    one.poll(5 * SECOND)

    assert "no connection in time" in str(one.error())


def test_names_are_not_looked_up() -> None:
    with pytest.raises(LocalProtocolError, match="Look the name up"):
        TcpTransport(TcpConfig("storage.example"))


def test_an_address_of_another_machine_cannot_be_a_source(fake: Fake) -> None:
    one = fake()
    transport = TcpTransport(TcpConfig("127.0.0.1", one.transport.config.service, source="192.0.2.1"))
    transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    (broken,) = transport.poll(0)
    assert isinstance(broken, Broken)
    assert "no such address" in str(broken.error)
    transport.disconnect(ONE, 0)
    assert transport.poll(0) == [Disconnected(ONE, "taken down")]
    transport.close()


# -- the target's side


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


@pytest.fixture
def server() -> Iterator[TcpServer]:
    one = TcpServer(service("tcp"))
    yield one
    one.close()


@pytest.fixture
def stranger(server: TcpServer) -> Iterator[FakeHost]:
    one = FakeHost(server)
    yield one
    one.sock.close()


def connect_command(length: int, cid: int = 1) -> CapsuleCommand:
    """A Connect whose data has to be asked for."""
    return CapsuleCommand(fabrics.Connect(0, 31).command().pack(cid, Sgl(SglKind.TRANSPORT, 0, length)))


def refused(host: FakeHost) -> int:
    """The status of the termination that comes, after which the target hangs up."""
    pdu = host.next_pdu()
    while pdu is not None and not isinstance(pdu, Terminate):
        pdu = host.next_pdu()
    assert isinstance(pdu, Terminate)
    assert pdu.to_host
    assert host.next_pdu() is None
    host.sock.close()
    for _ in range(3):
        host.server.poll(0)
    assert host.server.connections == 0
    return pdu.status


def test_a_command_before_the_greeting_is_out_of_turn(stranger: FakeHost) -> None:
    stranger.send(CapsuleCommand(bytes(64)))
    assert refused(stranger) == FatalStatus.SEQUENCE_ERROR


def test_a_second_greeting_is_out_of_turn(stranger: FakeHost) -> None:
    stranger.send(IcRequest())
    stranger.send(IcRequest())
    assert refused(stranger) == FatalStatus.SEQUENCE_ERROR


def test_data_that_was_not_asked_for_is_refused(stranger: FakeHost) -> None:
    stranger.send(IcRequest())
    stranger.send(DataPdu(False, 1, 0, 0, 512), bytes(512))
    assert refused(stranger) == FatalStatus.OUT_OF_RANGE


def test_a_write_beyond_mdts_is_not_waited_for(stranger: FakeHost) -> None:
    stranger.send(IcRequest())
    stranger.send(connect_command(0xFFFFFFFF))
    assert refused(stranger) == FatalStatus.LIMIT_EXCEEDED


def test_more_data_than_was_asked_for_is_refused(stranger: FakeHost) -> None:
    stranger.send(IcRequest())
    stranger.send(connect_command(1024))
    stranger.next_pdu()
    ready = stranger.next_pdu()
    assert isinstance(ready, ReadyToTransfer)
    stranger.send(DataPdu(False, ready.cid, ready.tag, 0, 1025), bytes(1025))
    assert refused(stranger) == FatalStatus.OUT_OF_RANGE


def test_more_commands_than_a_queue_has_entries_are_refused(stranger: FakeHost) -> None:
    stranger.send(IcRequest())
    for cid in range(129):
        stranger.send(connect_command(1024, cid))
    assert refused(stranger) == FatalStatus.LIMIT_EXCEEDED


def test_a_host_with_wrong_digests_is_dropped(stranger: FakeHost, server: TcpServer) -> None:
    both = Digests(header=True, data=True)
    stranger.send(IcRequest(1, both))
    stranger.next_pdu()
    stranger.writer.digests = stranger.reader.digests = both
    packed = bytearray(stranger.writer.pack(CapsuleCommand(bytes(64)), b"x" * 8))
    packed[-1] ^= 1
    stranger.sock.sendall(packed)
    assert stranger.next_pdu() is None
    assert server.connections == 0


def test_a_host_that_never_greets_is_dropped(stranger: FakeHost, server: TcpServer) -> None:
    server.poll(9 * SECOND)
    assert server.connections == 1
    assert server.next_timer_ns() == 10 * SECOND

    server.poll(10 * SECOND)

    assert server.connections == 0


def test_further_connections_than_allowed_are_closed() -> None:
    one = TcpServer(service("tcp"), ServerConfig(max_connections=1))
    clients = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(2)]
    for _ in range(3):
        wait([one.fileno()], 20_000_000)
        one.poll(0)
    assert one.connections == 1
    assert clients[1].recv(1) == b""
    for client in clients:
        client.close()
    one.close()


def test_a_port_in_use_says_so(server: TcpServer) -> None:
    with pytest.raises(TransportError, match="something listens there already"):
        TcpServer(service("tcp"), ServerConfig(service=server.port))


def test_a_slow_reader_holds_up_its_own_connection_only(make: Make) -> None:
    one = make("tcp", io_depth=32)
    assert one.server is not None
    for _ in range(31):
        one.host.submit(1, Read(1, 0, 2048, one.arena.region(0, MIB)), one.now_ns)
    one.driver.flush(one.now_ns)
    for _ in range(50):  # the host does not read
        one.server.poll(one.now_ns)
        wait([one.server.fileno()], 1_000_000)
    backlogs = [peer.channel.backlog for peer in one.server._peers.values()]
    assert 0 < max(backlogs) <= 40 * MIB
    assert sorted(backlogs)[:-1] == [0] * (len(backlogs) - 1)

    one.settle(lambda: len(one.ends()) == 31)

    assert all(isinstance(end, Completed) for end in one.ends())


def test_a_server_that_goes_away_under_load_fails_requests_and_nothing_else(make: Make) -> None:
    one = make("tcp")
    assert one.server is not None
    requests = [one.host.submit(1, Write(1, 0, 1024, one.arena.region(0, MIB // 2)), one.now_ns) for _ in range(4)]
    one.driver.flush(one.now_ns)
    one.server.poll(one.now_ns)
    one.server.close()
    one.server = None

    for _ in range(100):
        one.step()
        wait([one.transport.fileno()], 5_000_000)
        if len(one.ends()) == 4:
            break

    assert all(isinstance(one.end_of(request), Failed) for request in requests)


def test_serve_stops_when_told_and_serves_a_file(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(8192 * 512))
    storage = FileStorage({KEY: path})
    one = TcpServer(service("tcp", storage=storage))
    asked = []

    def until() -> bool:
        asked.append(1)
        return len(asked) > 2

    serve(one, FakeClock(), until)

    assert len(asked) == 3
    with pytest.raises(OSError, match="Bad file descriptor"):
        _ = one.port
    storage.close()


def test_regions_are_told_by_the_whole_command_id(fake: Fake) -> None:
    one = fake()
    one.live()
    one.read(512, cid=0x0107, offset=0)
    one.read(512, cid=0x0207, offset=512)
    one.send(DataPdu(True, 0x0207, 0, 0, 512), b"2" * 512)
    one.send(CapsuleResponse(Cqe(0x0207).pack()))
    one.until(Received)
    assert bytes(one.arena.view[:1024]) == bytes(512) + b"2" * 512
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720 B.4's check value: what the digests are made with
    assert Region(0, 512, one.arena.key) == one.arena.region(0, 512)
