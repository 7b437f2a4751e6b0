"""Codecs: what is packed is read back, and no input makes a parser fail in another way than it documents."""

import random
from collections.abc import Callable

import pytest
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
from fabric.engine.nvmeof.wire import identify, io, logs
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest
from fabric.engine.nvmeof.wire.command import Command, Sqe
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent
from fabric.engine.nvmeof.wire.fabrics import Connect, ConnectData, ConnectGrant, refused_field
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.nvmeof.wire.status import disposition, text
from fabric.errors import RemoteProtocolError

u8, u16, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64))
nqns = st.text("abcdefghijklmnopqrstuvwxyz0123456789.:-", min_size=1, max_size=223)


@st.composite
def sgls(draw: st.DrawFn) -> Sgl:
    kind = draw(u8)
    if kind >> 4 == 4:
        return Sgl(kind, draw(u64), draw(st.integers(0, (1 << 24) - 1)), draw(u32))
    return Sgl(kind, draw(u64), draw(u32))


@given(st.builds(Command, u8, u32, u32, u32, u32, u32, u32, u32), u16, sgls())
def test_a_command_is_read_back(command: Command, cid: int, sgl: Sgl) -> None:
    sqe = Sqe.parse(command.pack(cid, sgl))

    assert (sqe.command, sqe.cid, sqe.sgl) == (command, cid, sgl)


transfers = st.tuples(u32, u64, st.integers(1, 1 << 16))
memories = st.tuples(u64, st.integers(0, (1 << 24) - 1), u32)


@given(u16, transfers, st.booleans(), memories)
def test_the_fast_way_to_pack_a_transfer_makes_the_same_bytes(
    cid: int, transfer: tuple[int, int, int], durable: bool, memory: tuple[int, int, int]
) -> None:
    wrote, read = io.write(*transfer, force_unit_access=durable), io.read(*transfer)

    for command in (wrote, read):
        words = (command.opcode, *transfer[:2], command.cdw12)
        assert io.pack_keyed_transfer(cid, words, memory) == command.pack(cid, Sgl(SglKind.KEYED, *memory))
        assert io.pack_tcp_transfer(cid, words, memory) == command.pack(cid, Sgl(SglKind.TRANSPORT, 0, memory[1]))
        assert io.pack_tcp_write(cid, words, memory) == command.pack(cid, Sgl(SglKind.IN_CAPSULE, 0, memory[1]))


@given(st.builds(Cqe, u16, st.integers(0, 0x7FFF), u64, u16, u16))
def test_a_completion_is_read_back(cqe: Cqe) -> None:
    assert Cqe.parse(cqe.pack()) == cqe


@given(st.builds(Connect, u16, u16, u32, st.booleans(), u16))
def test_a_connect_is_read_back(connect: Connect) -> None:
    assert Connect.of(connect.command()) == connect


@given(st.builds(ConnectData, st.binary(min_size=16, max_size=16), nqns, nqns, u16))
def test_connect_data_is_read_back(data: ConnectData) -> None:
    assert ConnectData.parse(data.pack()) == data


@given(st.builds(CmRequest, u16, u16, u16, u16), st.integers(0, 64))
def test_cm_private_data_is_read_back_from_a_padded_area(request: CmRequest, padding: int) -> None:
    assert CmRequest.parse(request.pack() + bytes(padding)) == request


@given(st.lists(st.builds(io.LbaRange, u64, u32), min_size=1, max_size=256))
def test_ranges_are_read_back(ranges: list[io.LbaRange]) -> None:
    assert io.parse_ranges(io.pack_ranges(ranges), len(ranges)) == tuple(ranges)


@given(st.sets(st.integers(1, 0xFFFFFFFE), max_size=1500), u32)
def test_active_namespaces_are_read_back(nsids: set[int], after: int) -> None:
    listed = identify.parse_active_namespaces(identify.pack_active_namespaces(list(nsids), after))

    assert listed == tuple(sorted(nsid for nsid in nsids if nsid > after))[:1024]


pdus = st.one_of(
    st.builds(IcRequest, st.integers(1, 1 << 32), st.builds(Digests, st.booleans(), st.booleans()), st.integers(0, 31)),
    st.builds(
        IcResponse,
        st.integers(1024, 1 << 28).map(lambda words: words * 4),
        st.builds(Digests, st.booleans(), st.booleans()),
        st.integers(0, 31),
    ),
    st.builds(CapsuleResponse, st.binary(min_size=16, max_size=16)),
    st.builds(ReadyToTransfer, u16, u16, u32, u32),
    st.builds(Terminate, st.booleans(), u16, u32),
)


@st.composite
def framed(draw: st.DrawFn) -> tuple[Pdu, bytes]:
    data = draw(st.binary(max_size=300))
    if draw(st.booleans()):
        return CapsuleCommand(draw(st.binary(min_size=64, max_size=64))), data
    if draw(st.booleans()):
        to_host = draw(st.booleans())
        last, success = draw(st.booleans()), draw(st.booleans()) and to_host
        return DataPdu(to_host, draw(u16), draw(u16), draw(u32), len(data), last, success), data
    return draw(pdus), b""


@given(
    st.lists(framed(), max_size=6),
    st.builds(Digests, st.booleans(), st.booleans()),
    st.integers(0, 31),
    st.lists(st.integers(1, 200)),
)
def test_a_stream_is_cut_into_its_pdus_wherever_it_is_broken(
    sent: list[tuple[Pdu, bytes]], digests: Digests, alignment: int, cuts: list[int]
) -> None:
    writer, reader = PduWriter(digests, alignment), PduReader(digests)
    stream = b"".join(writer.pack(pdu, data) for pdu, data in sent)
    received = []
    for cut in cuts:
        received += list(reader.feed(stream[:cut]))
        stream = stream[cut:]
    received += list(reader.feed(stream))

    assert received == sent


PARSERS: dict[str, Callable[[bytes], object]] = {
    "cm request": CmRequest.parse,
    "cm accept": CmAccept.parse,
    "cm reject": CmReject.parse,
    "command": Sqe.parse,
    "completion": Cqe.parse,
    "sgl": Sgl.parse,
    "connect data": ConnectData.parse,
    "controller": identify.IdentifyController.parse,
    "namespace": identify.IdentifyNamespace.parse,
    "namespace ids": identify.parse_namespace_ids,
    "active namespaces": identify.parse_active_namespaces,
    "changed namespaces": logs.parse_changed_namespaces,
    "discovery header": logs.DiscoveryHeader.parse,
    "discovery entries": lambda data: logs.parse_discovery_entries(data, len(data) // 1024 + 1),
    "ranges": lambda data: io.parse_ranges(data, 3),
    "pdu stream": lambda data: list(PduReader().feed(data)),
    "pdu stream with digests": lambda data: list(PduReader(Digests(True, True)).feed(data)),
}


def noise(source: random.Random) -> bytes:
    """Bytes of every length that matters: empty, short, page-sized; half of them mostly zero, so that headers pass."""
    size = source.choice((0, 1, 3, 7, 8, 15, 16, 24, 31, 32, 63, 64, 128, 1023, 1024, 2048, 4095, 4096))
    if source.random() < 0.5:
        return source.randbytes(size)
    raw = bytearray(size)
    for _ in range(min(size, source.randrange(12))):
        raw[source.randrange(min(size, 200))] = source.randrange(256)
    return bytes(raw)


@pytest.mark.parametrize("name", PARSERS)
def test_no_input_makes_a_parser_fail_otherwise_than_documented(name: str) -> None:
    source = random.Random(f"nvmeof {name}")  # noqa: S311, a repeatable fuzz
    for _ in range(2000):
        data = noise(source)
        try:
            PARSERS[name](data)
        except RemoteProtocolError:
            continue


def test_no_result_makes_a_reader_of_words_fail() -> None:
    source = random.Random("nvmeof words")  # noqa: S311, likewise
    for _ in range(2000):
        word = source.getrandbits(source.choice((8, 16, 32, 64)))
        ConnectGrant.of(word)
        refused_field(word)
        AsyncEvent.of(word)
        disposition(word & 0x7FFF)
        text(word & 0x7FFF)
