"""NVMe/TCP at the host, on real sockets against a scripted target: greetings, bad targets, dead and silent ones."""

import socket
from collections.abc import Callable, Iterator

import pytest

from fabric.engine.nvmeof.host import Connect, Region
from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    IcResponse,
    Pdu,
    ReadyToTransfer,
    Terminate,
    crc32c,
)
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.transport.base import Broken, Disconnected, Received, Sent
from fabric.engine.transport.driver import wait
from fabric.engine.transport.tcp import TcpConfig, TcpTransport
from fabric.errors import IntegrityError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.transport.rig import MIB, SECOND, World
from tests.unit.engine.transport.scripted import ONE, FakeTarget

Make = Callable[..., World]


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
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    transport = TcpTransport(TcpConfig("::1", listener.getsockname()[1], tos=104))
    transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    (connection,) = transport._connections.values()
    assert connection.channel.sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 104
    transport.close()
    listener.close()


def test_without_a_type_of_service_the_system_chooses() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    transport = TcpTransport(TcpConfig("127.0.0.1", listener.getsockname()[1]))
    transport.connect(Connect(ONE, 1, 8, b"", 1), 0)
    (connection,) = transport._connections.values()
    plain = socket.socket()
    marks = [one.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) for one in (connection.channel.sock, plain)]
    assert marks[0] == marks[1]
    plain.close()
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
