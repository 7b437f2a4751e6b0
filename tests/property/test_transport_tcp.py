"""NVMe/TCP on sockets: framing against the reference reader, any cut of the stream, and whatever a stranger sends."""

import itertools
import socket
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    IcRequest,
    IcResponse,
    Pdu,
    PduReader,
    PduWriter,
    ReadyToTransfer,
    Terminate,
)
from fabric.engine.transport.tcp import TcpServer
from fabric.engine.transport.tcp.channel import Channel
from fabric.engine.transport.tcp.framing import StreamError
from fabric.errors import RemoteProtocolError
from tests.unit.engine.transport.rig import service

WORD = st.integers(0, 0xFFFF)
LONG = st.integers(0, 0xFFFFFFFF)
DIGESTS = st.builds(Digests, st.booleans(), st.booleans())


@st.composite
def with_data(draw: st.DrawFn) -> tuple[Pdu, bytes]:
    data = draw(st.binary(max_size=6000))
    pdu: Pdu
    match draw(st.integers(0, 2)):
        case 0:
            pdu = CapsuleCommand(draw(st.binary(min_size=64, max_size=64)))
        case 1:
            pdu = DataPdu(draw(st.booleans()), draw(WORD), draw(WORD), draw(LONG), len(data), draw(st.booleans()))
        case _:
            pdu, data = Terminate(draw(st.booleans()), draw(WORD), draw(LONG)), data[:128]
    return pdu, data


PDUS = st.lists(
    st.one_of(
        with_data(),
        st.tuples(
            st.one_of(
                st.builds(IcRequest, st.integers(1, 16), DIGESTS, st.integers(0, 31)),
                st.builds(
                    IcResponse, st.integers(1024, 65536).map(lambda words: words * 4), DIGESTS, st.integers(0, 31)
                ),
                st.builds(CapsuleResponse, st.binary(min_size=16, max_size=16)),
                st.builds(ReadyToTransfer, WORD, WORD, LONG, LONG),
            ),
            st.just(b""),
        ),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class Collector:
    """Keeps every PDU with its data, which it let the channel put into memory of its own."""

    taken: list[tuple[Pdu, bytes]] = field(default_factory=list)

    def place(self, pdu: Pdu, length: int) -> memoryview:
        del pdu
        return memoryview(bytearray(length))

    def take(self, pdu: Pdu, data: memoryview) -> None:
        self.taken.append((pdu, bytes(data)))


class Piecewise:
    """A socket that gives a stream in the pieces that a test cut."""

    def __init__(self, stream: bytes, cuts: list[int]) -> None:
        bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
        self.pieces = [stream[start:end] for start, end in itertools.pairwise(bounds)]

    def recvmsg_into(self, buffers: list[memoryview]) -> tuple[int, None, int, None]:
        if not self.pieces:
            raise BlockingIOError
        piece, count = self.pieces.pop(0), 0
        for buffer in buffers:
            part = piece[count : count + buffer.nbytes]
            buffer[: len(part)] = part
            count += len(part)
        if count < len(piece):
            self.pieces.insert(0, piece[count:])
        return count, None, 0, None


def read_all(stream: bytes, cuts: list[int], digests: Digests) -> tuple[list[tuple[Pdu, bytes]], bool]:
    """What a channel makes of a stream, and whether it refused it in the end."""
    sink = Collector()
    channel = Channel(Piecewise(stream, cuts), sink, PduWriter(digests), digests)  # type: ignore[arg-type]
    try:
        while True:
            channel.receive()
    except BlockingIOError:
        return sink.taken, False
    except StreamError:
        return sink.taken, True


def read_reference(stream: bytes, digests: Digests) -> tuple[list[tuple[Pdu, bytes]], bool, bool]:
    """The same, and whether it waits for the rest of a PDU, which it judges only when it is whole."""
    taken: list[tuple[Pdu, bytes]] = []
    reader = PduReader(digests)
    try:
        taken.extend(reader.feed(stream))
    except RemoteProtocolError:
        return taken, True, False
    return taken, False, bool(reader._pending)


@given(PDUS, DIGESTS, st.integers(0, 31), st.lists(st.integers(0, 20_000), max_size=20))
def test_any_cut_of_a_stream_gives_the_same_pdus(
    pdus: list[tuple[Pdu, bytes]], digests: Digests, alignment: int, cuts: list[int]
) -> None:
    writer = PduWriter(digests, alignment)
    stream = b"".join(writer.pack(pdu, data) for pdu, data in pdus)

    assert read_all(stream, cuts, digests) == (pdus, False)


@given(PDUS, DIGESTS, DIGESTS, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4))
def test_the_channel_refuses_what_the_reference_reader_refuses(
    pdus: list[tuple[Pdu, bytes]], sent: Digests, agreed: Digests, changes: list[tuple[int, int]]
) -> None:
    stream = bytearray(b"".join(PduWriter(sent).pack(pdu, data) for pdu, data in pdus))
    for at, value in changes:
        stream[at % len(stream)] = value

    taken, refused = read_all(bytes(stream), [], agreed)
    expected, refused_too, waits = read_reference(bytes(stream), agreed)

    assert taken == expected
    assert refused is refused_too or (refused and waits)


@given(PDUS, DIGESTS, st.integers(0, 31))
def test_the_parts_of_a_pdu_are_the_pdu(pdus: list[tuple[Pdu, bytes]], digests: Digests, alignment: int) -> None:
    writer = PduWriter(digests, alignment)
    for pdu, data in pdus:
        head, tail = writer.parts(pdu, memoryview(data))
        assert head + data + tail == writer.pack(pdu, data)


@st.composite
def strangers(draw: st.DrawFn) -> bytes:
    """A greeting or not, PDUs in any order, some bytes changed."""
    writer = PduWriter()
    parts = [writer.pack(IcRequest())] if draw(st.integers(0, 3)) else []
    parts += [writer.pack(pdu, data) for pdu, data in draw(PDUS)]
    stream = bytearray(b"".join(parts))
    for at, value in draw(st.lists(st.tuples(st.integers(0, 4096), st.integers(0, 255)), max_size=3)):
        stream[at % len(stream)] = value
    return bytes(stream) if draw(st.booleans()) else bytes(stream) + draw(st.binary(max_size=64))


@given(strangers())
def test_a_server_survives_whatever_it_is_sent_and_forgets_it(stream: bytes) -> None:
    server = TcpServer(service("tcp"))
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.adopt(far, 0)
        near.sendall(stream)
        near.shutdown(socket.SHUT_WR)
        for _ in range(20):
            if not server.poll(0) and not server.connections:
                break
        assert server.connections == 0
        assert server.service.target.open_tasks == 0
        assert server.service.target.controllers == ()
    finally:
        near.close()
        server.close()
