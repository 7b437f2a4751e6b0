"""A host against a target: up, I/O, events, down; with the checks of nvmet and of SPDK."""

import pytest

from fabric.engine.nvmeof.errors import NotReadyError, QueueFullError
from fabric.engine.nvmeof.host import (
    Admin,
    Closed,
    Completed,
    ControllerState,
    Deallocate,
    Failed,
    Flush,
    IoRequest,
    Read,
    Ready,
    Reconnecting,
    Write,
    WriteZeroes,
)
from fabric.engine.nvmeof.target import NVMET, SPDK, PeerId, StorageRead, TargetProfile
from fabric.engine.nvmeof.wire import admin
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.io import LbaRange
from fabric.engine.nvmeof.wire.status import Disposition, Status
from fabric.errors import IntegrityError, LocalProtocolError
from tests.unit.engine.nvmeof.rig import NQN, Message, arrive, rig

TRANSPORTS = pytest.mark.parametrize("transport", ["rdma", "tcp"])
PROFILES = pytest.mark.parametrize("profile", [NVMET, SPDK], ids=lambda one: one.name)


@PROFILES
def test_a_controller_comes_up_and_says_what_it_can(profile: TargetProfile) -> None:
    pair = rig(profile)

    pair.bring_up()

    (ready,) = pair.of(Ready)
    assert isinstance(ready, Ready)
    assert (ready.queues, ready.namespaces) == ((1, 2), (1,))
    assert pair.host.state is ControllerState.LIVE
    assert pair.host.limits.max_transfer_bytes == 4096 << profile.mdts
    assert pair.host.limits.in_capsule_bytes == 4096


@PROFILES
@TRANSPORTS
def test_what_is_written_is_read_back(profile: TargetProfile, transport: str) -> None:
    pair = rig(profile, transport=transport)
    pair.bring_up()
    pattern = bytes(range(256)) * 16
    pair.arena[0:4096] = pattern

    wrote = pair.host.submit(1, Write(1, 8, 8, pair.region(0, 4096)), pair.now_ns)
    pair.settle()
    read = pair.host.submit(2, Read(1, 8, 8, pair.region(1, 4096)), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(wrote), Completed)
    assert isinstance(pair.end_of(read), Completed)
    assert pair.arena[4096:8192] == pattern
    assert pair.disk()[4096:8192] == pattern


@PROFILES
@TRANSPORTS
def test_a_small_write_travels_in_its_capsule(profile: TargetProfile, transport: str) -> None:
    pair = rig(profile, transport=transport)
    pair.bring_up()

    wrote = pair.host.submit(1, Write(1, 3, 1, b"k" * 512, force_unit_access=True), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(wrote), Completed)
    assert len(pair.sent[-1].capsule) == 64 + 512
    assert pair.disk()[3 * 512 : 4 * 512] == b"k" * 512


@PROFILES
@TRANSPORTS
@pytest.mark.parametrize("blocks", [8, 9])
def test_memory_travels_in_the_capsule_over_tcp_alone_and_only_where_it_fits(
    profile: TargetProfile, transport: str, blocks: int
) -> None:
    """Linux nvmet never asks for a write that would fit: it waits for it behind the entry."""
    pair = rig(profile, transport=transport)
    pair.bring_up()
    kinds: list[str] = []

    def noted(one: Message) -> list[int]:
        kinds.append(one.kind)
        return arrive(one)

    pair.fate = noted

    wrote = pair.host.submit(1, Write(1, 3, blocks, pair.region(0, blocks * 512)), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(wrote), Completed)
    assert pair.disk()[3 * 512 : (3 + blocks) * 512] == pair.arena[: blocks * 512]
    in_capsule = transport == "tcp" and blocks * 512 <= pair.host.limits.in_capsule_bytes
    assert pair.sent[-1].carries_region is in_capsule
    assert ("fetch" in kinds) is not in_capsule


@PROFILES
@TRANSPORTS
def test_zeroes_deallocation_and_flush(profile: TargetProfile, transport: str) -> None:
    pair = rig(profile, transport=transport)
    pair.bring_up()
    pair.disk()[:] = b"x" * len(pair.disk())

    requests = [
        pair.host.submit(1, WriteZeroes(1, 0, 2), pair.now_ns),
        pair.host.submit(1, Deallocate(1, (LbaRange(4, 1), LbaRange(6, 2))), pair.now_ns),
        pair.host.submit(2, Flush(1), pair.now_ns),
    ]
    pair.settle()

    assert all(isinstance(pair.end_of(one), Completed) for one in requests)
    zero = [index for index in range(10) if not any(pair.disk()[index * 512 : index * 512 + 512])]
    assert zero == [0, 1, 4, 6, 7]


@PROFILES
@TRANSPORTS
def test_an_orderly_shutdown_tells_the_target_and_leaves_nothing(profile: TargetProfile, transport: str) -> None:
    pair = rig(profile, transport=transport)
    pair.bring_up()

    pair.host.stop(pair.now_ns)
    pair.advance(1_000_000_000)

    assert pair.host.state is ControllerState.CLOSED
    assert isinstance(pair.events[-1], Closed)
    assert pair.target.controllers == ()


def test_more_ranges_than_a_capsule_holds_travel_through_scratch() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.disk()[:] = b"x" * len(pair.disk())
    ranges = tuple(LbaRange(2 * index, 1) for index in range(256))

    request = pair.host.submit(1, Deallocate(1, ranges), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(request), Completed)
    assert pair.disk()[::512].count(0) == 256


def test_requests_that_cannot_be_right_do_not_leave_the_host() -> None:
    pair = rig(SPDK)
    pair.bring_up()
    sent = len(pair.sent)
    wrong: list[IoRequest] = [
        Read(9, 0, 1, pair.region(0, 512)),
        Read(1, 4096, 1, pair.region(0, 512)),
        Write(1, 0, 1, b"short"),
        Write(1, 0, 16, bytes(8192)),
        Read(1, 0, 512, pair.region(0, 512 * 512)),
        WriteZeroes(1, 4000, 200),
        Deallocate(1, ()),
    ]

    for request in wrong:
        with pytest.raises(LocalProtocolError):
            pair.host.submit(1, request, pair.now_ns)

    pair.pump()
    assert len(pair.sent) == sent
    assert pair.host.queue(1).slots.in_use == 0


def test_a_full_queue_says_so_and_takes_more_after_a_completion() -> None:
    pair = rig(NVMET, io_depth=4)
    pair.bring_up()
    for left in (3, 2, 1):
        assert pair.host.room(1) == left
        pair.host.submit(1, Flush(1), pair.now_ns)
    assert pair.host.room(1) == 0

    with pytest.raises(QueueFullError, match="at most 3 commands"):
        pair.host.submit(1, Flush(1), pair.now_ns)
    pair.settle()

    pair.host.submit(1, Flush(1), pair.now_ns)


def test_nothing_is_taken_before_ready_or_after_stop() -> None:
    pair = rig(NVMET)
    with pytest.raises(NotReadyError):
        pair.host.submit(1, Flush(1), 0)
    pair.bring_up()
    pair.host.stop(pair.now_ns)

    assert (pair.host.room(1), pair.host.live_queues) == (0, ())
    with pytest.raises(NotReadyError):
        pair.host.submit(1, Flush(1), pair.now_ns)
    with pytest.raises(NotReadyError):
        pair.host.submit_admin(Admin(admin.keep_alive()), pair.now_ns)


def test_an_admin_command_brings_its_data() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    request = pair.host.submit_admin(Admin(admin.identify(1), incoming_bytes=4096), pair.now_ns)
    pair.settle()

    end = pair.end_of(request)
    assert isinstance(end, Completed)
    assert IdentifyController.parse(end.data).subnqn == NQN


def test_callers_cannot_starve_the_admin_queue() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    for _ in range(31 - 8 - 4):
        pair.host.submit_admin(Admin(admin.keep_alive()), pair.now_ns)

    with pytest.raises(QueueFullError, match="the admin queue is in use"):
        pair.host.submit_admin(Admin(admin.keep_alive()), pair.now_ns)
    assert pair.host.queue(0).slots.in_use == 31 - 8


def test_a_queue_is_added_and_removed_while_others_carry_requests() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.hold_storage = True
    kept = pair.host.submit(1, Flush(1), pair.now_ns)
    gone = pair.host.submit(2, Flush(1), pair.now_ns)

    added = pair.host.add_queue(pair.now_ns)
    pair.settle()
    pair.host.remove_queue(2, pair.now_ns)
    pair.settle()
    for work in pair.held_work:
        pair.store(work)
    pair.settle()

    assert (added, pair.host.live_queues) == (3, (1, 3))
    assert isinstance(pair.end_of(kept), Completed)
    assert isinstance(pair.end_of(gone), Failed)
    with pytest.raises(NotReadyError, match="no such queue"):
        pair.host.remove_queue(2, pair.now_ns)
    assert pair.host.add_queue(pair.now_ns) == 2


def test_no_more_queues_are_added_than_the_target_allows() -> None:
    pair = rig(SPDK, io_queues=127, io_depth=2)
    pair.bring_up()

    with pytest.raises(NotReadyError, match="allows no further queue"):
        pair.host.add_queue(pair.now_ns)


def test_the_queue_shrinks_to_what_the_target_grants() -> None:
    pair = rig(SPDK, io_depth=1024)
    pair.bring_up()

    assert pair.host.queue(1).slots.count == 127


def test_an_error_of_the_medium_is_one_of_integrity() -> None:
    pair = rig(NVMET)
    pair.bring_up()
    pair.hold_storage = True
    request = pair.host.submit(1, Read(1, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()

    (work,) = pair.held_work
    assert isinstance(work, StorageRead)
    pair.target.stored(work.task, status=Status.UNRECOVERED_READ_ERROR)
    pair.settle()

    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert isinstance(end.error, IntegrityError)
    assert (end.disposition, end.held) == (Disposition.INTEGRITY, False)


def test_a_target_that_never_gets_ready_is_left_after_its_own_timeout() -> None:
    pair = rig(NVMET)
    original = pair.target.capsule

    def never_ready(peer: PeerId, data: bytes, now_ns: int) -> None:
        original(peer, data, now_ns)
        for association in pair.target.controllers:
            association.csts = 0

    pair.target.capsule = never_ready  # type: ignore[method-assign]
    pair.bring_up()
    pair.advance(9_000_000_000)

    (first, *_rest) = pair.of(Reconnecting)
    assert isinstance(first, Reconnecting)
    assert "did not become ready" in str(first.error)
    assert 8_000_000_000 <= first.at_ns <= 8_500_000_000


def test_a_fatal_controller_is_not_waited_for() -> None:
    pair = rig(NVMET)
    original = pair.target.capsule

    def fatal(peer: PeerId, data: bytes, now_ns: int) -> None:
        original(peer, data, now_ns)
        for association in pair.target.controllers:
            association.csts = 2

    pair.target.capsule = fatal  # type: ignore[method-assign]
    pair.bring_up()

    (first,) = pair.of(Reconnecting)
    assert isinstance(first, Reconnecting)
    assert "fatal status" in str(first.error)
