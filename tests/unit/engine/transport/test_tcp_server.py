"""NVMe/TCP at the target: strangers that break the rules, slow hosts, and a server that goes away."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.engine.nvmeof.host import Completed, Failed, Read, Write
from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    ReadyToTransfer,
    Terminate,
)
from fabric.engine.nvmeof.wire import fabrics
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.transport.driver import wait
from fabric.engine.transport.storage import FileStorage
from fabric.engine.transport.tcp import ServerConfig, TcpServer, serve
from fabric.errors import TransportError
from tests.unit.engine.transport.rig import KEY, MIB, SECOND, World, service
from tests.unit.engine.transport.scripted import FakeHost

Make = Callable[..., World]


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
