"""The known ways in which hosts and targets disagree (hosts.md 7.4): each as the target answers it, and as we act."""

import pytest

from fabric.engine.nvmeof.errors import (
    CommandTimeoutError,
    ConnectRefusedError,
    ControllerLostError,
    QueueLostError,
)
from fabric.engine.nvmeof.host import (
    Completed,
    ControllerState,
    Failed,
    Lost,
    QuarantineReleased,
    QueueDown,
    QueueState,
    Read,
    Ready,
    Reconnecting,
    SlotState,
    Write,
)
from fabric.engine.nvmeof.target import NVMET, SPDK, FetchData, PeerId, Respond, TargetProfile
from fabric.engine.nvmeof.wire import fabrics, io
from fabric.engine.nvmeof.wire.cm import CmAccept, CmReject, CmRequest, CmStatus
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.fabrics import Connect, ConnectData, ConnectField
from fabric.engine.nvmeof.wire.sgl import Sgl, SglKind
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.errors import LocalProtocolError, TransportError
from tests.unit.engine.nvmeof.rig import (
    ARENA_KEY,
    HOST_ID,
    HOST_NQN,
    MS,
    NQN,
    SECOND,
    Message,
    Rig,
    arrive,
    config,
    rig,
)
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


def lose(kind: str, pair: Rig, *, count: int = 1) -> None:
    """Loses the next messages of a kind."""
    left = [count]

    def fate(message: Message) -> list[int]:
        if message.kind == kind and left[0]:
            left[0] -= 1
            return []
        return [0]

    pair.fate = fate


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


# -- keep-alive


@PROFILES
def test_a_host_that_stalls_too_long_comes_back_and_replays(profile: TargetProfile) -> None:
    pair = rig(profile, kato_ms=15_000, io_timeout_ns=600 * SECOND)
    pair.bring_up()
    first = pair.target.controllers[0].cntlid
    pair.hold_storage = True
    stalled = pair.host.submit(1, Read(1, 0, 8, pair.region(0, 4096)), pair.now_ns)
    pair.settle()

    pair.now_ns += 40 * SECOND  # the thread stands still: no tick of the host, only of the target
    pair.target.tick(pair.now_ns)
    pair.hold_storage = False
    pair.settle()

    end = pair.end_of(stalled)
    assert isinstance(end, Failed)
    assert (end.held, isinstance(end.error, QueueLostError)) == (True, True)
    released = [one for one in pair.events if isinstance(one, QuarantineReleased) and stalled in one.requests]
    assert len(released) == 1
    pair.advance(1 * SECOND)
    assert pair.host.state is ControllerState.LIVE
    assert pair.target.controllers[0].cntlid != first
    replayed = pair.host.submit(1, Read(1, 0, 8, pair.region(0, 4096)), pair.now_ns)
    pair.settle()
    assert isinstance(pair.end_of(replayed), Completed)


@PROFILES
def test_a_stall_shorter_than_the_timeout_costs_nothing(profile: TargetProfile) -> None:
    pair = rig(profile, kato_ms=15_000)
    pair.bring_up()

    for _ in range(5):
        pair.now_ns += 10 * SECOND
        pair.host.tick(pair.now_ns)
        pair.settle()
        pair.target.tick(pair.now_ns)
        pair.settle()

    assert pair.host.state is ControllerState.LIVE
    assert not pair.of(QueueDown)


@PROFILES
def test_an_idle_host_is_kept_for_an_hour(profile: TargetProfile) -> None:
    pair = rig(profile, kato_ms=15_000)
    pair.bring_up()

    pair.advance(3600 * SECOND)

    assert pair.host.state is ControllerState.LIVE
    assert not pair.of(Reconnecting)


def test_traffic_keeps_nvmet_alive_without_keep_alive_commands() -> None:
    pair = rig(NVMET, kato_ms=10_000)
    pair.bring_up()
    for _ in range(20):
        pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
        pair.advance(2 * SECOND)

    assert not [one for one in pair.sent if one.capsule[0] == 0x18]
    assert pair.host.state is ControllerState.LIVE


def test_traffic_does_not_keep_spdk_alive() -> None:
    pair = rig(SPDK, kato_ms=10_000)
    pair.bring_up()
    for _ in range(20):
        pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
        pair.advance(2 * SECOND)

    assert len([one for one in pair.sent if one.capsule[0] == 0x18]) >= 7
    assert pair.host.state is ControllerState.LIVE


# -- lost and late


@PROFILES
def test_a_response_that_is_only_late_changes_nothing(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()
    pair.fate = lambda message: [50] if message.kind == "answer" else [0]

    request = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(request), Completed)
    assert not pair.of(QueueDown)


@PROFILES
def test_a_capsule_dropped_under_memory_pressure_times_out_and_resets_its_queue_alone(profile: TargetProfile) -> None:
    pair = rig(profile, io_timeout_ns=5 * SECOND)
    pair.bring_up()
    connection = pair.host.queue(1).connection
    lose("capsule", pair)

    dropped = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()
    other = pair.host.submit(2, Read(1, 0, 1, pair.region(1, 512)), pair.now_ns)
    pair.advance(6 * SECOND)

    end = pair.end_of(dropped)
    assert isinstance(end, Failed)
    assert (isinstance(end.error, CommandTimeoutError), end.held) == (True, True)
    assert isinstance(pair.end_of(other), Completed)
    assert QuarantineReleased(connection, 1, (dropped,)) in pair.events  # type: ignore[arg-type]
    assert [one.qid for one in pair.of(QueueDown)] == [1]  # type: ignore[union-attr]
    assert pair.host.live_queues == (1, 2)
    assert len(pair.target.controllers) == 1


@PROFILES
def test_memory_is_held_until_the_queue_is_gone(profile: TargetProfile) -> None:
    pair = rig(profile, io_timeout_ns=5 * SECOND)
    pair.bring_up()
    lose("answer", pair)
    request = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()
    slots = pair.host.queue(1).slots

    pair.now_ns += 5 * SECOND
    pair.host.tick(pair.now_ns)
    pair.pump()

    assert pair.host.queue(1).state is QueueState.CLOSING
    assert SlotState.QUARANTINED in slots.states
    assert not pair.of(QuarantineReleased)
    pair.settle()
    (released,) = pair.of(QuarantineReleased)
    assert isinstance(released, QuarantineReleased)
    assert released.requests == (request,)


@PROFILES
def test_an_answer_that_nobody_waits_for_takes_the_queue_down(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()
    pair.fate = lambda message: [0, 3] if message.kind == "answer" else [0]

    request = pair.host.submit(1, Write(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()
    pair.fate = arrive
    pair.advance(SECOND)

    assert isinstance(pair.end_of(request), Completed)
    downs = [one for one in pair.events if isinstance(one, QueueDown)]
    assert "an answer to no open command" in str(downs[0].error)
    assert pair.host.live_queues == (1, 2)


# -- the device


@PROFILES
def test_a_removed_device_ends_everything_with_one_clean_error(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()
    pair.hold_storage = True
    request = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()

    pair.host.device_removed(pair.now_ns, reason="rxe0")
    pair.settle()
    pair.advance(3600 * SECOND)

    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert end.held
    (lost,) = pair.of(Lost)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, ControllerLostError)
    assert "the network device was removed" in str(lost.error)
    assert len(pair.of(QuarantineReleased)) == 1
    assert len(pair.of(Ready)) == 1


@PROFILES
def test_a_stale_connection_is_tried_again_every_10_ms(profile: TargetProfile) -> None:
    pair = rig(profile)
    tries: list[int] = []

    def refuse(_connect: object) -> tuple[bytes, bool] | None:
        tries.append(pair.now_ns)
        return (b"", True) if len(tries) <= 5 else None

    pair.refuse = refuse
    pair.bring_up()
    pair.advance(SECOND)

    assert tries[:6] == [index * 10 * MS for index in range(6)]
    assert pair.host.state is ControllerState.LIVE


@PROFILES
def test_a_controller_that_does_not_come_back_is_given_up(profile: TargetProfile) -> None:
    pair = rig(profile, controller_loss_ns=60 * SECOND)
    pair.bring_up()
    pair.refuse = lambda _connect: (b"", False)

    pair.break_connection(0, TransportError("the cable was pulled"))
    pair.advance(120 * SECOND)

    (lost,) = pair.of(Lost)
    assert isinstance(lost, Lost)
    assert isinstance(lost.error, ControllerLostError)
    waits = [one for one in pair.events if isinstance(one, Reconnecting)]
    assert len(waits) >= 8
    assert pair.host.state is ControllerState.LOST


def test_a_queue_that_the_target_never_lets_go_of_costs_a_new_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The news of our disconnect was lost with the cable: nvmet holds the queue, and refuses it as created already."""
    pair = rig(NVMET)
    pair.bring_up()
    deaf = {pair.host.queue(2).connection}
    told = pair.target.disconnected
    monkeypatch.setattr(pair.target, "disconnected", lambda peer: None if peer in deaf else told(peer))

    pair.break_connection(2)
    pair.advance(500 * MS)
    assert [*pair.host.live_queues] == [1], "one that is let go of soon is waited for"
    pair.advance(5 * SECOND)

    assert len(pair.of(Ready)) == 2
    assert pair.host.live_queues == (1, 2)
