"""A host against a target: up, I/O, events, down; with the checks of nvmet and of SPDK."""

import pytest

from fabric.engine.nvmeof.host import (
    Closed,
    Completed,
    ControllerState,
    Deallocate,
    Flush,
    Read,
    Ready,
    Write,
    WriteZeroes,
)
from fabric.engine.nvmeof.target import NVMET, SPDK, TargetProfile
from fabric.engine.nvmeof.wire.io import LbaRange
from tests.unit.engine.nvmeof.rig import rig

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
def test_what_is_written_is_read_back(profile: TargetProfile) -> None:
    pair = rig(profile)
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
def test_a_small_write_travels_in_its_capsule(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()

    wrote = pair.host.submit(1, Write(1, 3, 1, b"k" * 512, force_unit_access=True), pair.now_ns)
    pair.settle()

    assert isinstance(pair.end_of(wrote), Completed)
    assert len(pair.sent[-1].capsule) == 64 + 512
    assert pair.disk()[3 * 512 : 4 * 512] == b"k" * 512


@PROFILES
def test_zeroes_deallocation_and_flush(profile: TargetProfile) -> None:
    pair = rig(profile)
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
def test_an_orderly_shutdown_tells_the_target_and_leaves_nothing(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()

    pair.host.stop(pair.now_ns)
    pair.advance(1_000_000_000)

    assert pair.host.state is ControllerState.CLOSED
    assert isinstance(pair.events[-1], Closed)
    assert pair.target.controllers == ()
