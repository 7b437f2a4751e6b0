import io
import zlib
from dataclasses import replace
from typing import Any

import pytest

from fabric.lab.wire.frame import CE, ECT1, checksum, parse, with_dscp, with_mark
from fabric.lab.wire.pcap import PcapWriter, read_pcap
from fabric.lab.wire.pfc import is_mac_control, pause_ns, pfc_frame, read_pfc
from fabric.lab.wire.roce import invariant_crc, payload_span, read_bth
from tests.unit.lab.wire.wiring import flow

IPV6: dict[str, Any] = {
    "source_ip": bytes.fromhex("fd000000000000000000000000000001"),
    "destination_ip": bytes(15) + b"\x02",
}


def test_fields_of_a_tagged_frame_are_read() -> None:
    headers = parse(replace(flow(1, 2), vlan=(5, 100)).frame(7, b"payload!"))
    assert headers is not None
    assert (headers.pcp, headers.dscp, headers.ecn, headers.l3_at, headers.ip_version) == (5, 26, 2, 18, 4)


def test_fields_of_an_ipv6_frame_are_read() -> None:
    headers = parse(replace(flow(1, 2), **IPV6).frame(7, b"payload!"))
    assert headers is not None
    assert (headers.pcp, headers.dscp, headers.ecn, headers.l3_at, headers.ip_version) == (None, 26, 2, 14, 6)


def test_a_frame_shorter_than_its_header_is_none() -> None:
    assert parse(bytes(13)) is None


def test_a_frame_cut_in_its_ip_header_carries_no_dscp() -> None:
    headers = parse(flow(1, 2).frame(0, b"")[:30])
    assert headers is not None
    assert headers.dscp is None
    assert headers.ecn == 0


def test_a_mark_is_set_on_ipv6_and_nothing_else_changes() -> None:
    frame = replace(flow(1, 2), **IPV6).frame(7, b"payload!")
    headers = parse(frame)
    assert headers is not None
    marked = with_mark(frame, headers)
    assert marked is not None
    after = parse(marked)
    assert after is not None
    assert (after.ecn, after.dscp) == (CE, 26)
    assert [at for at, (one, other) in enumerate(zip(frame, marked, strict=True)) if one != other] == [15]


def test_a_packet_that_knows_no_ecn_is_not_marked() -> None:
    frame = flow(1, 2, ecn=0).frame(0, b"abcd")
    headers = parse(frame)
    assert headers is not None
    assert with_mark(frame, headers) is None


def test_a_rewritten_dscp_keeps_ecn_and_checksum() -> None:
    frame = flow(1, 2, ecn=ECT1).frame(0, b"abcd")
    headers = parse(frame)
    assert headers is not None
    changed = with_dscp(frame, headers, 10)
    after = parse(changed)
    assert after is not None
    assert (after.dscp, after.ecn) == (10, ECT1)
    assert checksum(changed[14:34]) == 0


def test_a_frame_without_ip_keeps_its_bytes() -> None:
    frame = bytes(12) + b"\x08\x06" + bytes(46)
    headers = parse(frame)
    assert headers is not None
    assert with_dscp(frame, headers, 10) == frame


@pytest.mark.parametrize("changes", [{}, IPV6, {"vlan": (3, 7)}])
def test_a_mark_leaves_the_invariant_crc_right(changes: dict[str, Any]) -> None:
    frame = replace(flow(1, 2), **changes).frame(7, b"odd")
    headers = parse(frame)
    assert headers is not None
    marked = with_mark(frame, headers)
    assert marked is not None
    assert invariant_crc(marked) == invariant_crc(frame) == frame[-4:]


def test_the_invariant_crc_covers_what_the_annex_says() -> None:
    frame = flow(1, 2).frame(7, b"data")
    masked = bytearray(frame[14:-4])
    for at in (1, 8, 10, 11, 26, 27, 32):  # type of service, TTL, checksum, UDP checksum, the byte with FECN
        masked[at] = 0xFF
    assert frame[-4:] == zlib.crc32(b"\xff" * 8 + masked).to_bytes(4, "little")


def test_the_base_transport_header_is_read_back() -> None:
    frame = flow(1, 2, queue_pair=77).frame(123_456, b"12345")
    bth = read_bth(frame)
    assert bth is not None
    assert (bth.opcode, bth.pad, bth.queue_pair, bth.psn) == (0x07, 3, 77, 123_456)
    span = payload_span(frame)
    assert span is not None
    assert frame[slice(*span)] == b"12345"


def test_a_packet_without_payload_has_no_span() -> None:
    assert payload_span(flow(1, 2).frame(0, b"")) is None
    assert payload_span(bytes(64)) is None


def test_both_directions_of_a_flow_are_each_other() -> None:
    assert flow(1, 2).reversed().reversed() == flow(1, 2)
    assert flow(1, 2).reversed().source_mac == flow(1, 2).destination_mac


def test_a_pfc_frame_has_the_standard_bytes() -> None:
    frame = pfc_frame(bytes(6), {3: 0xFFFF, 0: 0})
    assert frame[:18].hex() == "0180c2000001" + "000000000000" + "8808" + "0101" + "0009"
    assert len(frame) == 60
    assert read_pfc(frame) == {0: 0, 3: 0xFFFF}
    assert is_mac_control(frame)


def test_an_8023x_pause_is_no_pfc_frame() -> None:
    assert read_pfc(bytes(12) + bytes.fromhex("88080001") + bytes(44)) is None
    assert read_pfc(flow(1, 2).frame(0, b"")) is None


def test_a_quantum_is_512_bit_times() -> None:
    assert pause_ns(1, 100_000_000_000) == 5
    assert pause_ns(0xFFFF, 1_000_000_000) == 33_553_920


def test_a_capture_comes_back_as_written() -> None:
    file = io.BytesIO()
    writer = PcapWriter(file, start_unix_ns=1_700_000_000_000_000_000)
    writer.write(b"one", 5)
    writer.write(b"other", 1_000_000_007)
    file.seek(0)
    assert list(read_pcap(file)) == [
        (1_700_000_000_000_000_005, b"one"),
        (1_700_000_001_000_000_007, b"other"),
    ]


def test_a_capture_cut_short_yields_its_whole_records() -> None:
    file = io.BytesIO()
    writer = PcapWriter(file)
    writer.write(b"one", 5)
    writer.write(b"other", 6)
    assert list(read_pcap(io.BytesIO(file.getvalue()[:-1]))) == [(5, b"one")]


def test_what_is_no_capture_is_refused() -> None:
    with pytest.raises(ValueError, match="no little-endian pcap"):
        list(read_pcap(io.BytesIO(bytes(24))))
