"""What a target answers to commands that our own host never sends so."""

import pytest

from fabric.engine.nvmeof.target import NVMET, SPDK, PeerId
from fabric.engine.nvmeof.wire import admin, fabrics, io
from fabric.engine.nvmeof.wire.cm import CmRequest
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import SQHD_DISABLED
from fabric.engine.nvmeof.wire.events import Notice
from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN, Connect, ConnectData, ConnectField
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.registers import Cc, Register
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.nvmeof.wire.status import DNR, Status
from tests.unit.engine.nvmeof.rig import HOST_ID, HOST_NQN, NQN
from tests.unit.engine.nvmeof.test_known_issues import Bare, keyed

INVALID_FIELD = Status.INVALID_FIELD | DNR
FULL = 4096


@pytest.mark.parametrize(
    ("command", "length", "status"),
    [
        (admin.identify(99), FULL, INVALID_FIELD),
        (admin.identify(admin.Cns.NAMESPACE, 0), FULL, Status.INVALID_NAMESPACE | DNR),
        (admin.identify(admin.Cns.NAMESPACE, 77), FULL, 0),
        (admin.identify(admin.Cns.NAMESPACE_DESCRIPTORS, 1), FULL, 0),
        (admin.identify(admin.Cns.NAMESPACE_DESCRIPTORS, 77), FULL, Status.INVALID_NAMESPACE | DNR),
        (admin.identify(admin.Cns.CONTROLLER), 1024, Status.SGL_LENGTH_INVALID | DNR),
        (admin.get_log_page(0x42, 512), 512, INVALID_FIELD),
        (admin.get_log_page(admin.LogPage.DISCOVERY, 1024), 1024, INVALID_FIELD),
        (Command(admin.AdminOpcode.SET_FEATURES, 0, admin.Feature.NUMBER_OF_QUEUES, 0xFFFF), 0, INVALID_FIELD),
        (Command(admin.AdminOpcode.SET_FEATURES, 0, 0x55), 0, INVALID_FIELD),
        (admin.set_async_events(Notice.ANA_CHANGE), 0, INVALID_FIELD),
        (admin.set_keep_alive_timeout(20_000), 0, 0),
        (admin.keep_alive(), 0, 0),
        (admin.abort(0, 1), 0, 0),
        (Command(0x80), 0, Status.INVALID_OPCODE | DNR),
        (Command(0x7F, 0x06), 0, Status.INVALID_OPCODE | DNR),
        (fabrics.property_set(Register.CSTS, 0), 0, INVALID_FIELD),
        (fabrics.property_get(Register.VS), 0, 0),
    ],
)
def test_admin_commands(command: Command, length: int, status: int) -> None:
    bare = Bare(NVMET)
    bare.enable()

    assert bare.answer(command, keyed(length)).status == status


@pytest.mark.parametrize(
    ("command", "sgl", "data", "status"),
    [
        (io.read(9, 0, 1), keyed(512), b"", Status.INVALID_NAMESPACE | DNR),
        (io.read(1, 4096, 1), keyed(512), b"", Status.LBA_OUT_OF_RANGE | DNR),
        (Command(io.IoOpcode.COMPARE, 1), keyed(512), bytes(512), Status.INVALID_OPCODE | DNR),
        (io.write(2, 0, 1), keyed(512), bytes(512), Status.NAMESPACE_WRITE_PROTECTED | DNR),
        (io.deallocate(1, 2), keyed(16), bytes(16), Status.SGL_LENGTH_INVALID | DNR),
        (io.deallocate(1, 1), keyed(16), b"short", Status.SGL_LENGTH_INVALID | DNR),
        (io.deallocate(1, 1), keyed(16), io.pack_ranges([io.LbaRange(4096, 1)]), Status.LBA_OUT_OF_RANGE | DNR),
        (io.read(1, 0, 1), Sgl(SglKind.IN_CAPSULE, 0, 512), b"", INVALID_FIELD),
        (io.write(1, 0, 16), Sgl(SglKind.IN_CAPSULE, 0, 8192), b"", Status.SGL_OFFSET_INVALID | DNR),
        (io.write(1, 0, 1), Sgl(SglKind.IN_CAPSULE, 0, 512), b"", Status.DATA_TRANSFER_ERROR | DNR),
        (io.read(1, 0, 1), Sgl(0x30, 0, 512), b"", Status.SGL_TYPE_INVALID | DNR),
        (fabrics.property_set(Register.CC, 0), keyed(0), b"", Status.INVALID_OPCODE | DNR),
    ],
)
def test_io_commands(command: Command, sgl: Sgl, data: bytes, status: int) -> None:
    bare = Bare(NVMET)
    bare.target.add_namespace(NQN, 2, IdentifyNamespace(100, 9, write_protected=True))
    bare.connect(1, peer=2, cntlid=bare.enable())

    assert bare.answer(command, sgl, peer=2, data=data).status == status


@pytest.mark.parametrize(
    ("connect", "data", "field", "code"),
    [
        (Connect(0, 31, recfmt=1), {}, None, Status.CONNECT_FORMAT),
        (Connect(0, 0), {}, ConnectField.SQSIZE, Status.CONNECT_INVALID_PARAMETER),
        (Connect(0, 128), {}, ConnectField.SQSIZE, Status.CONNECT_INVALID_PARAMETER),
        (Connect(0, 31), {"cntlid": 5}, ConnectField.CNTLID, Status.CONNECT_INVALID_PARAMETER),
        (Connect(1, 31), {"cntlid": 1, "subnqn": DISCOVERY_NQN}, ConnectField.CNTLID, Status.CONNECT_INVALID_PARAMETER),
        (Connect(1, 31), {"cntlid": 1, "hostnqn": "nqn.a:b"}, ConnectField.CNTLID, Status.CONNECT_INVALID_PARAMETER),
    ],
)
def test_connects(connect: Connect, data: dict[str, object], field: ConnectField | None, code: int) -> None:
    bare = Bare(NVMET)
    assert bare.enable() == 1
    bare.cm(CmRequest(connect.qid, 32, 31).pack(), peer=2)
    said: dict[str, object] = {"hostid": HOST_ID, "subnqn": NQN, "hostnqn": HOST_NQN} | data
    packed = ConnectData(**said).pack()  # type: ignore[arg-type]

    cqe = bare.answer(connect.command(), keyed(1024), peer=2, data=packed)

    assert cqe.status & 0x7FF == code
    assert (fabrics.refused_field(cqe.result) if field else None) is field


@pytest.mark.parametrize("raw", [bytes(1023), b"\xff" * 1024])
def test_connect_data_that_cannot_be_read(raw: bytes) -> None:
    bare = Bare(NVMET)
    bare.cm(CmRequest(0, 32, 31).pack())

    assert bare.answer(Connect(0, 31).command(), keyed(len(raw)), data=raw).status & DNR


def test_too_many_event_requests() -> None:
    bare = Bare(NVMET)
    bare.enable()
    for _ in range(4):
        bare.target.capsule(PeerId(1), admin.async_event_request().pack(1, keyed(0)), 0)

    assert bare.answer(admin.async_event_request(), keyed(0)).status == Status.ASYNC_EVENT_LIMIT | DNR


def test_keep_alive_without_a_timeout() -> None:
    for profile, status in ((NVMET, Status.KEEP_ALIVE_INVALID), (SPDK, 0)):
        bare = Bare(profile)
        bare.enable()
        bare.answer(admin.set_keep_alive_timeout(0), keyed(0))

        assert bare.answer(admin.keep_alive(), keyed(0)).status == status


def test_a_controller_is_enabled_disabled_and_refuses_odd_entry_sizes() -> None:
    bare = Bare(NVMET)
    bare.enable()

    def csts() -> int:
        return bare.answer(fabrics.property_get(Register.CSTS), keyed(0)).result

    assert csts() == 1
    bare.answer(fabrics.property_set(Register.CC, 0), keyed(0))
    assert csts() == 0
    assert bare.answer(admin.identify(1), keyed(FULL)).status == Status.COMMAND_SEQUENCE_ERROR | DNR
    bare.answer(fabrics.property_set(Register.CC, Cc.ENABLE | 7 << 16 | 4 << 20), keyed(0))
    assert csts() == 2


def test_spdk_reads_capabilities_in_halves() -> None:
    bare = Bare(SPDK)
    bare.enable()
    whole = bare.answer(fabrics.property_get(Register.CAP), keyed(0)).result

    low, high = (bare.answer(Command(0x7F, 4, 0, offset), keyed(0)).result for offset in (0, 4))

    assert low | high << 32 == whole


def test_a_queue_without_flow_control_reports_no_head() -> None:
    bare = Bare(NVMET)
    bare.cm(CmRequest(0, 32, 31).pack())
    data = ConnectData(HOST_ID, NQN, HOST_NQN).pack()

    cqe = bare.answer(Connect(0, 31, disable_sq_flow=True).command(), keyed(1024), data=data)

    assert cqe.sqhd == SQHD_DISABLED


def test_the_head_moves_at_completion_and_wraps() -> None:
    bare = Bare(NVMET)
    bare.enable()

    heads = [bare.answer(fabrics.property_get(Register.CSTS), keyed(0)).sqhd for _ in range(32)]

    assert heads == [*range(3, 32), 0, 1, 2]


def test_a_fused_command_is_refused() -> None:
    bare = Bare(NVMET)
    bare.enable()
    raw = bytearray(admin.keep_alive().pack(9, keyed(0)))
    raw[1] |= 1

    assert bare.answer(Command(0), keyed(0), raw=bytes(raw)).status == INVALID_FIELD


def test_a_short_capsule_ends_the_controller() -> None:
    bare = Bare(NVMET)
    bare.enable()

    bare.target.capsule(PeerId(1), bytes(63), 0)

    assert [type(one).__name__ for one in bare.target.drain()] == ["Drop", "SetTimer"]
    assert bare.target.controllers == ()


def test_a_short_capsule_before_connect_drops_the_connection() -> None:
    bare = Bare(NVMET)
    bare.cm(CmRequest(0, 32, 31).pack())

    bare.target.capsule(PeerId(1), b"", 0)

    assert [type(one).__name__ for one in bare.target.drain()] == ["Drop"]


def test_inputs_for_what_is_gone_are_ignored() -> None:
    bare = Bare(NVMET)

    bare.target.capsule(PeerId(9), bytes(64), 0)
    bare.target.disconnected(PeerId(9))
    bare.target.stored(1)  # type: ignore[arg-type]
    bare.target.data_fetched(1, b"", 0)  # type: ignore[arg-type]

    assert bare.target.drain() == ()
