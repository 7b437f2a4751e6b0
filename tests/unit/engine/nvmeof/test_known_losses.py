"""The known ways in which hosts and targets lose each other (hosts.md 7.4): stalls, lost and late messages, devices."""

import pytest

from fabric.engine.nvmeof.errors import CommandTimeoutError, ControllerLostError, QueueLostError
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
from fabric.engine.nvmeof.target import NVMET, SPDK, TargetProfile
from fabric.errors import TransportError
from tests.unit.engine.nvmeof.rig import MS, SECOND, Message, Rig, arrive, rig
from tests.unit.engine.nvmeof.test_pair import PROFILES


def lose(kind: str, pair: Rig, *, count: int = 1) -> None:
    """Loses the next messages of a kind."""
    left = [count]

    def fate(message: Message) -> list[int]:
        if message.kind == kind and left[0]:
            left[0] -= 1
            return []
        return [0]

    pair.fate = fate


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
