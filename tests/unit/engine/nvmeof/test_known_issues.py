"""The known ways in which hosts and targets disagree (hosts.md 7.4): each as the target answers it, and as we act."""

import pytest

from fabric.engine.nvmeof.errors import ConnectRefusedError
from fabric.engine.nvmeof.host import ControllerState, Lost, Read
from fabric.engine.nvmeof.target import NVMET, SPDK, FetchData, PeerId, Respond, TargetProfile
from fabric.engine.nvmeof.wire import fabrics, io
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest, CmStatus
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.fabrics import Connect, ConnectData, ConnectField
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.errors import LocalProtocolError
from tests.unit.engine.nvmeof.rig import ARENA_KEY, HOST_ID, HOST_NQN, NQN, config, rig
from tests.unit.engine.nvmeof.test_pair import PROFILES


class Bare:
    """A target driven by hand: what is sent is what the test wrote."""

    def __init__(self, profile: TargetProfile) -> None:
        self.pair = rig(profile)
        self.target = self.pair.target

    def cm(self, private_data: bytes, *, responder_resources: int = 16, peer: int = 1) -> bytes:
        """The private data of the reply."""
        self.target.connect_request(PeerId(peer), private_data, responder_resources=responder_resources)
        (output,) = self.target.drain()
        return bytes(output.private_data)  # type: ignore[union-attr]

    def answer(self, command: Command, sgl: Sgl, *, peer: int = 1, data: bytes = b"", raw: bytes | None = None) -> Cqe:
        """The answer to a capsule; its data is given when the target asks."""
        capsule = raw if raw is not None else command.pack(9, sgl)
        self.target.capsule(PeerId(peer), capsule, 0)
        outputs = list(self.target.drain())
        for output in outputs:
            if isinstance(output, FetchData):
                self.target.data_fetched(output.task, data, 0)
        outputs += self.target.drain()
        (answer,) = [one for one in outputs if isinstance(one, Respond)]
        return Cqe.parse(answer.response)

    def connect(self, qid: int, *, peer: int = 1, nqn: str = NQN, host: str = HOST_NQN, cntlid: int = 0xFFFF) -> Cqe:
        """The answer to a Connect on a fresh connection."""
        self.cm(CmRequest(qid, 32, 31).pack(), peer=peer)
        data = ConnectData(HOST_ID, nqn, host, cntlid).pack()
        return self.answer(Connect(qid, 31, 15000 if not qid else 0).command(), keyed(1024), peer=peer, data=data)

    def enable(self) -> int:
        """A ready controller; its id."""
        cntlid = self.connect(0).result
        self.answer(fabrics.property_set(0x14, 0x460001), keyed(0))
        return cntlid


def keyed(length: int) -> Sgl:
    return Sgl(SglKind.KEYED, 4096, length, ARENA_KEY)


# -- responder_resources 0


def test_spdk_rejects_a_host_that_allows_no_rdma_read() -> None:
    reply = Bare(SPDK).cm(CmRequest(0, 32, 31).pack(), responder_resources=0)

    assert CmReject.parse(reply).status is CmStatus.INVALID_IRD


def test_nvmet_accepts_a_host_that_allows_no_rdma_read() -> None:
    reply = Bare(NVMET).cm(CmRequest(0, 32, 31).pack(), responder_resources=0)

    assert CmAccept.parse(reply).crqsize == 32


def test_we_refuse_to_allow_no_rdma_read() -> None:
    with pytest.raises(LocalProtocolError, match="responder_resources cannot be used"):
        config(responder_resources=0)


# -- the connection manager


def test_nvmet_rejects_an_admin_queue_above_32() -> None:
    bare = Bare(NVMET)

    assert CmReject.parse(bare.cm(CmRequest(0, 33, 32).pack())).status is CmStatus.INVALID_HOST_SQ_SIZE
    assert CmAccept.parse(bare.cm(CmRequest(1, 33, 32).pack(), peer=2)).crqsize == 33


def test_spdk_takes_an_admin_queue_of_128_and_caps_what_is_longer() -> None:
    bare = Bare(SPDK)

    assert CmAccept.parse(bare.cm(CmRequest(0, 128, 127).pack())).crqsize == 128
    assert CmAccept.parse(bare.cm(CmRequest(1, 512, 511).pack(), peer=2)).crqsize == 128


@pytest.mark.parametrize(
    ("profile", "private_data", "status"),
    [
        (NVMET, b"", CmStatus.INVALID_LENGTH),
        (NVMET, b"\1\0", CmStatus.INVALID_RECORD_FORMAT),
        (SPDK, bytes(31), CmStatus.INVALID_LENGTH),
        (SPDK, b"\1" + bytes(31), CmStatus.INVALID_RECORD_FORMAT),
    ],
)
def test_private_data_that_a_target_cannot_read_is_rejected(
    profile: TargetProfile, private_data: bytes, status: CmStatus
) -> None:
    assert CmReject.parse(Bare(profile).cm(private_data)).status is status


def test_a_host_asking_nvmet_for_too_long_an_admin_queue_learns_what_to_do() -> None:
    pair = rig(NVMET, admin_depth=33)

    pair.bring_up()

    (lost,) = pair.of(Lost)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, ConnectRefusedError)
    assert "lower admin_depth to 32" in str(lost.error)


# -- Connect


@PROFILES
def test_a_wrong_subsystem_is_refused_and_named(profile: TargetProfile) -> None:
    cqe = Bare(profile).connect(0, nqn="nqn.2026-11.io.example:other")

    assert cqe.status & 0x7FF == Status.CONNECT_INVALID_PARAMETER
    assert fabrics.refused_field(cqe.result) is ConnectField.SUBNQN


@PROFILES
def test_the_operator_is_told_to_check_a_wrong_subsystem(profile: TargetProfile) -> None:
    pair = rig(profile, subnqn="nqn.2026-11.io.example:other")

    pair.bring_up()

    (lost,) = pair.of(Lost)
    assert isinstance(lost, Lost)
    assert "check the subsystem NQN" in str(lost.error)
    assert pair.host.state is ControllerState.LOST


@PROFILES
def test_a_host_that_is_not_allowed_is_refused(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.target._subsystems[NQN].allowed_hosts = frozenset({"nqn.2014-08.org.nvmexpress:uuid:another"})

    pair.bring_up()

    (lost,) = pair.of(Lost)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, ConnectRefusedError)
    assert "0x184" in str(lost.error)


@pytest.mark.parametrize(
    ("profile", "status", "field"),
    [
        (NVMET, Status.CONNECT_INVALID_PARAMETER | DNR, ConnectField.QID),
        (SPDK, Status.INVALID_QUEUE_IDENTIFIER, None),
    ],
)
def test_a_queue_id_above_the_maximum(profile: TargetProfile, status: int, field: ConnectField | None) -> None:
    bare = Bare(profile)
    cntlid = bare.enable()

    cqe = bare.connect(200, peer=2, cntlid=cntlid)

    assert cqe.status == status
    assert fabrics.refused_field(cqe.result) is field


@pytest.mark.parametrize(
    ("profile", "status"),
    [(NVMET, Status.COMMAND_SEQUENCE_ERROR | DNR), (SPDK, Status.INVALID_QUEUE_IDENTIFIER)],
)
def test_a_second_connect_on_a_queue_id(profile: TargetProfile, status: int) -> None:
    bare = Bare(profile)
    cntlid = bare.enable()
    assert bare.connect(1, peer=2, cntlid=cntlid).status == 0

    assert bare.connect(1, peer=3, cntlid=cntlid).status == status


@pytest.mark.parametrize(
    ("profile", "status"),
    [(NVMET, Status.INVALID_OPCODE | DNR), (SPDK, Status.COMMAND_SEQUENCE_ERROR)],
)
def test_a_second_connect_on_a_connection(profile: TargetProfile, status: int) -> None:
    bare = Bare(profile)
    bare.enable()
    data = ConnectData(HOST_ID, NQN, HOST_NQN).pack()

    assert bare.answer(Connect(0, 31).command(), keyed(1024), data=data).status == status


@PROFILES
def test_a_queue_of_a_controller_that_is_gone_names_the_controller(profile: TargetProfile) -> None:
    cqe = Bare(profile).connect(1, cntlid=77)

    assert fabrics.refused_field(cqe.result) is ConnectField.CNTLID


# -- SGLs


@pytest.mark.parametrize(
    ("profile", "length", "status"),
    [
        (NVMET, 256, Status.SGL_LENGTH_INVALID | DNR),
        (NVMET, 1024, Status.SGL_LENGTH_INVALID | DNR),
        (SPDK, 256, Status.SGL_LENGTH_INVALID),
    ],
)
def test_an_sgl_of_another_length_than_the_transfer(profile: TargetProfile, length: int, status: int) -> None:
    bare = Bare(profile)
    bare.connect(1, peer=2, cntlid=bare.enable())

    assert bare.answer(io.read(1, 0, 1), keyed(length), peer=2).status == status


@PROFILES
def test_an_sgl_of_another_length_does_not_leave_the_host(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()

    with pytest.raises(LocalProtocolError, match="has not the length of its blocks"):
        pair.host.submit(1, Read(1, 0, 1, pair.region(0, 1024)), pair.now_ns)


@pytest.mark.parametrize(
    ("profile", "status"),
    [(NVMET, Status.INVALID_FIELD | DNR), (SPDK, Status.SGL_TYPE_INVALID)],
)
def test_a_null_sgl_of_type_0(profile: TargetProfile, status: int) -> None:
    bare = Bare(profile)
    bare.connect(1, peer=2, cntlid=bare.enable())

    assert bare.answer(io.flush(1), Sgl(0), peer=2).status == status


def test_nvmet_refuses_a_command_without_psdt() -> None:
    bare = Bare(NVMET)
    bare.enable()
    raw = bytearray(fabrics.property_get(0x1C).pack(9, keyed(0)))
    raw[1] = 0

    assert bare.answer(Command(0), keyed(0), raw=bytes(raw)).status == Status.INVALID_FIELD | DNR


@pytest.mark.parametrize(
    ("profile", "offset", "status"),
    [
        (NVMET, 0x1C, Status.INVALID_FIELD | DNR),
        (SPDK, 0x1C, Status.CONNECT_INVALID_PARAMETER),
    ],
)
def test_a_property_read_with_a_wrong_size(profile: TargetProfile, offset: int, status: int) -> None:
    bare = Bare(profile)
    bare.enable()

    assert bare.answer(Command(0x7F, 4, 1, offset), keyed(0)).status == status


@pytest.mark.parametrize(
    ("profile", "status"),
    [(NVMET, Status.INVALID_OPCODE | DNR), (SPDK, Status.COMMAND_SEQUENCE_ERROR)],
)
def test_a_command_before_connect(profile: TargetProfile, status: int) -> None:
    bare = Bare(profile)
    bare.cm(CmRequest(0, 32, 31).pack())

    assert bare.answer(fabrics.property_get(0), keyed(0)).status == status
