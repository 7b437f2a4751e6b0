"""Bytes that this project did not make: each vector comes from the struct definitions of SPDK's nvme_spec.h and nvmf_spec.h.

A C program filled the structs of those headers (commit 3230130e6a, bit fields and all) and printed them.
"""

import pytest

from fabric.engine.nvmeof.wire import admin, fabrics, io
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest, CmStatus
from fabric.engine.nvmeof.wire.command import Command, Sqe
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent, EventKind, Notice
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.logs import DiscoveryEntry
from fabric.engine.nvmeof.wire.registers import Cap, Cc, Register
from fabric.engine.nvmeof.wire.sgl import NULL_KEYED, Sgl, SglKind


def keyed(length: int) -> Sgl:
    return Sgl(SglKind.KEYED, 0x1122334455667788, length, 0xA1B2C3D4)


COMMANDS = [
    pytest.param(
        io.read(7, 0x0123456789ABCDEF, 2048),
        0x1234,
        keyed(0x100000),
        "0240341207000000000000000000000000000000000000008877665544332211"
        "000010d4c3b2a140efcdab8967452301ff070000000000000000000000000000",
        id="read",
    ),
    pytest.param(
        io.write(7, 16, 8, force_unit_access=True),
        0x1235,
        keyed(4096),
        "0140351207000000000000000000000000000000000000008877665544332211"
        "001000d4c3b2a140100000000000000007000040000000000000000000000000",
        id="write_fua",
    ),
    pytest.param(
        io.write(7, 3, 1),
        0x1236,
        Sgl(SglKind.IN_CAPSULE, 0, 512),
        "0140361207000000000000000000000000000000000000000000000000000000"
        "0002000000000001030000000000000000000000000000000000000000000000",
        id="write_in_capsule",
    ),
    pytest.param(
        io.flush(9),
        1,
        NULL_KEYED,
        "0040010009000000000000000000000000000000000000000000000000000000"
        "0000000000000040000000000000000000000000000000000000000000000000",
        id="flush",
    ),
    pytest.param(
        io.write_zeroes(9, 5, 100, deallocate=True),
        2,
        NULL_KEYED,
        "0840020009000000000000000000000000000000000000000000000000000000"
        "0000000000000040050000000000000063000002000000000000000000000000",
        id="write_zeroes",
    ),
    pytest.param(
        io.deallocate(9, 2),
        3,
        keyed(32),
        "0940030009000000000000000000000000000000000000008877665544332211"
        "200000d4c3b2a140010000000400000000000000000000000000000000000000",
        id="deallocate",
    ),
    pytest.param(
        admin.identify(admin.Cns.CONTROLLER),
        4,
        keyed(4096),
        "0640040000000000000000000000000000000000000000008877665544332211"
        "001000d4c3b2a140010000000000000000000000000000000000000000000000",
        id="identify_controller",
    ),
    pytest.param(
        admin.identify(admin.Cns.NAMESPACE, 3),
        5,
        keyed(4096),
        "0640050003000000000000000000000000000000000000008877665544332211"
        "001000d4c3b2a140000000000000000000000000000000000000000000000000",
        id="identify_namespace",
    ),
    pytest.param(
        admin.identify(admin.Cns.ACTIVE_NAMESPACES),
        6,
        keyed(4096),
        "0640060000000000000000000000000000000000000000008877665544332211"
        "001000d4c3b2a140020000000000000000000000000000000000000000000000",
        id="identify_active",
    ),
    pytest.param(
        admin.set_number_of_queues(16),
        7,
        NULL_KEYED,
        "0940070000000000000000000000000000000000000000000000000000000000"
        "0000000000000040070000000f000f0000000000000000000000000000000000",
        id="set_queues",
    ),
    pytest.param(
        admin.set_keep_alive_timeout(15000),
        8,
        NULL_KEYED,
        "0940080000000000000000000000000000000000000000000000000000000000"
        "00000000000000400f000000983a000000000000000000000000000000000000",
        id="set_kato",
    ),
    pytest.param(
        admin.set_async_events(Notice.NAMESPACE_ATTRIBUTE | Notice.ANA_CHANGE | Notice.DISCOVERY_LOG_CHANGE),
        9,
        NULL_KEYED,
        "0940090000000000000000000000000000000000000000000000000000000000"
        "00000000000000400b0000000009008000000000000000000000000000000000",
        id="set_events",
    ),
    pytest.param(
        admin.get_log_page(admin.LogPage.DISCOVERY, 0x41000, offset=0x155667788),
        10,
        keyed(0x41000),
        "02400a00ffffffff000000000000000000000000000000008877665544332211"
        "001004d4c3b2a1407000ff030100000088776655010000000000000000000000",
        id="get_log",
    ),
    pytest.param(
        admin.get_log_page(admin.LogPage.CHANGED_NAMESPACES, 4096, retain_event=True),
        11,
        keyed(4096),
        "02400b00ffffffff000000000000000000000000000000008877665544332211"
        "001000d4c3b2a1400480ff030000000000000000000000000000000000000000",
        id="get_log_retain",
    ),
    pytest.param(
        admin.keep_alive(),
        12,
        NULL_KEYED,
        "18400c0000000000000000000000000000000000000000000000000000000000"
        "0000000000000040000000000000000000000000000000000000000000000000",
        id="keep_alive",
    ),
    pytest.param(
        admin.async_event_request(),
        13,
        NULL_KEYED,
        "0c400d0000000000000000000000000000000000000000000000000000000000"
        "0000000000000040000000000000000000000000000000000000000000000000",
        id="async_event",
    ),
    pytest.param(
        admin.abort(3, 0x77),
        14,
        NULL_KEYED,
        "08400e0000000000000000000000000000000000000000000000000000000000"
        "0000000000000040030077000000000000000000000000000000000000000000",
        id="abort",
    ),
    pytest.param(
        fabrics.Connect(qid=3, sqsize=127, kato_ms=0x01020304, disable_sq_flow=True).command(),
        15,
        keyed(1024),
        "7f400f0001000000000000000000000000000000000000008877665544332211"
        "000400d4c3b2a140000003007f00040004030201000000000000000000000000",
        id="connect",
    ),
    pytest.param(
        fabrics.property_get(Register.CAP),
        16,
        NULL_KEYED,
        "7f40100004000000000000000000000000000000000000000000000000000000"
        "0000000000000040010000000000000000000000000000000000000000000000",
        id="property_get_cap",
    ),
    pytest.param(
        fabrics.property_get(Register.CSTS),
        17,
        NULL_KEYED,
        "7f40110004000000000000000000000000000000000000000000000000000000"
        "0000000000000040000000001c00000000000000000000000000000000000000",
        id="property_get_csts",
    ),
    pytest.param(
        fabrics.property_set(Register.CC, Cc.ENABLED),
        18,
        NULL_KEYED,
        "7f40120000000000000000000000000000000000000000000000000000000000"
        "0000000000000040000000001400000001004600000000000000000000000000",
        id="property_set_cc",
    ),
]


@pytest.mark.parametrize(("command", "cid", "sgl", "expected"), COMMANDS)
def test_a_command_has_the_bytes_of_the_headers(command: Command, cid: int, sgl: Sgl, expected: str) -> None:
    assert command.pack(cid, sgl).hex() == expected


@pytest.mark.parametrize(("command", "cid", "sgl", "expected"), COMMANDS)
def test_a_command_is_read_back_from_the_bytes_of_the_headers(
    command: Command, cid: int, sgl: Sgl, expected: str
) -> None:
    sqe = Sqe.parse(bytes.fromhex(expected))

    assert (sqe.command, sqe.cid, sqe.sgl, sqe.has_sgl, sqe.fused) == (command, cid, sgl, True, 0)


def test_deallocate_ranges() -> None:
    expected = bytes.fromhex("0000000008000000100000000000000000000000443322119a78563412000000")
    ranges = (io.LbaRange(0x10, 8), io.LbaRange(0x123456789A, 0x11223344))

    assert io.pack_ranges(ranges) == expected
    assert io.parse_ranges(expected, 2) == ranges


def test_connect_data() -> None:
    data = fabrics.ConnectData(
        hostid=bytes(range(1, 17)),
        subnqn="nqn.2026-11.io.example:kv",
        hostnqn="nqn.2014-08.org.nvmexpress:uuid:h",
        cntlid=0x0203,
    )
    raw = data.pack()

    assert len(raw) == 1024
    assert raw[:20].hex() == "0102030405060708090a0b0c0d0e0f1003020000"
    assert raw[250:290].hex() == ("0000000000006e716e2e323032362d31312e696f2e6578616d706c653a6b76000000000000000000")
    assert raw[506:554].hex() == (
        "0000000000006e716e2e323031342d30382e6f72672e6e766d657870726573733a757569643a68000000000000000000"
    )
    assert fabrics.ConnectData.parse(raw) == data


def test_cm_private_data() -> None:
    request = CmRequest(qid=5, hrqsize=128, hsqsize=127, cntlid=0x1122)

    assert request.pack().hex() == "0000050080007f00221100000000000000000000000000000000000000000000"
    assert CmAccept(128).pack().hex() == "0000800000000000000000000000000000000000000000000000000000000000"
    assert CmReject(CmStatus.INVALID_IRD).pack().hex() == "00000700"


def test_completion() -> None:
    raw = bytes.fromhex("443322118877665502010300050404a3")
    cqe = Cqe(cid=0x0405, status=0x182 | 2 << 11 | 0x4000, result=0x5566778811223344, sqhd=0x0102, sqid=3)

    assert Cqe.parse(raw) == cqe
    assert (cqe.pack()[:14], cqe.pack()[15]) == (raw[:14], raw[15])


def test_capabilities() -> None:
    cap = Cap(0x208200F01007F)

    assert Cap.make(max_queue_entries=128, timeout_units=15, command_sets=0x41).raw == cap.raw & ~(0xF << 48)
    assert (cap.max_queue_entries, cap.ready_timeout_ns, cap.min_page_shift) == (128, 8_000_000_000, 14)
    assert cap.has_all_command_sets


def test_discovery_event() -> None:
    event = AsyncEvent.of(0x70F002)

    assert event.kind is EventKind.DISCOVERY_CHANGED
    assert event == AsyncEvent.notice(EventKind.DISCOVERY_CHANGED)
    assert event.result == 0x70F002


def test_discovery_entry() -> None:
    entry = DiscoveryEntry(1, 2, 2, "nqn.a:b", "10.0.0.1", "4420", 0x0102, 0xFFFF, 32, 2, 1)
    raw = entry.pack()

    assert raw[:16].hex() == "010202020201ffff2000010000000000"
    assert (raw[32:36], raw[256:263], raw[512:520], raw[768:771]) == (b"4420", b"nqn.a:b", b"10.0.0.1", b"\1\1\1")


CONTROLLER_BYTES = (
    "4:53 5:45 6:52 7:49 8:41 9:4c 10:20 11:20 12:20 13:20 14:20 15:20 "
    "16:20 17:20 18:20 19:20 20:20 21:20 22:20 23:20 24:4c 25:69 26:6e 27:75 "
    "28:78 29:20 30:20 31:20 32:20 33:20 34:20 35:20 36:20 37:20 38:20 39:20 "
    "40:20 41:20 42:20 43:20 44:20 45:20 46:20 47:20 48:20 49:20 50:20 51:20 "
    "52:20 53:20 54:20 55:20 56:20 57:20 58:20 59:20 60:20 61:20 62:20 63:20 "
    "64:36 65:2e 66:31 67:20 68:20 69:20 70:20 71:20 77:08 78:34 79:12 81:03 "
    "82:01 96:40 128:01 132:09 259:03 320:0a 515:04 517:04 520:0c 525:01 536:05 538:10 "
    "768:6e 769:71 770:6e 771:2e 772:32 773:30 774:32 775:36 776:2d 777:31 778:31 779:2e "
    "780:69 781:6f 782:2e 783:65 784:78 785:61 786:6d 787:70 788:6c 789:65 790:3a 791:6b "
    "792:76 1792:04 1793:01 1796:01 1803:01 "
)


def test_identify_controller() -> None:
    page = bytearray(4096)
    for pair in CONTROLLER_BYTES.split():
        at, value = pair.split(":")
        page[int(at)] = int(value, 16)

    parsed = IdentifyController.parse(bytes(page))

    assert parsed == IdentifyController(
        serial="SERIAL",
        model="Linux",
        firmware="6.1",
        cntlid=0x1234,
        subnqn="nqn.2026-11.io.example:kv",
        mdts=8,
        version=0x10300,
        ctratt=1 << 6,
        retry_delays_100ms=(1, 0, 9),
        aerl=3,
        kas_100ms=10,
        max_commands=1024,
        namespaces=1024,
        oncs=0xC,
        sgls=0x100005,
        command_capsule=260,
        max_descriptors=1,
        kind=0,
        volatile_cache=1,
    )
    assert (parsed.traffic_keeps_alive, parsed.has_keyed_sgl, parsed.takes_capsule_offset) == (True, True, True)
    assert (parsed.in_capsule_bytes, parsed.max_transfer_bytes(12)) == (4096, 1 << 20)
