"""Knobs and their ladders."""

import pytest

from fabric.errors import IntentError
from fabric.policy import Parameter, ShardPolicy
from fabric.tune import Knobs, Space, connect_defaults, serial
from fabric.tune.knobs import ladder

KIB, MIB = 1 << 10, 1 << 20


def test_knobs_and_policy_are_one() -> None:
    assert Knobs.of(ShardPolicy()).policy() == ShardPolicy()
    knobs = Knobs(7, 9, 128 * KIB, "round-robin", MIB, 2 * MIB)
    assert Knobs.of(knobs.policy()) == knobs


def test_what_is_not_tuned_comes_from_the_base() -> None:
    base = ShardPolicy(dealing="rendezvous", parameters=(Parameter("salt", 3),), redeals=3)
    kept = Knobs(2, 4, 64 * KIB, "rendezvous").policy(base)
    assert (kept.parameters, kept.redeals) == (base.parameters, 3)
    assert Knobs(2, 4, 64 * KIB, "least-bytes").policy(base).parameters == ()


def test_a_setting_that_is_no_policy_is_refused() -> None:
    with pytest.raises(IntentError):
        Knobs(0, 1, 64 * KIB).policy()


def test_flying_bytes_are_bounded_by_depth_target_and_receiver() -> None:
    assert Knobs(2, 4, 64 * KIB).flying_bytes(3) == 3 * 512 * KIB
    assert Knobs(16, 64, 64 * KIB, "least-bytes", MIB, 32 * MIB).flying_bytes(3) == 3 * MIB
    assert Knobs(16, 64, 64 * KIB, "least-bytes", MIB, 2 * MIB).flying_bytes(3) == 2 * MIB
    assert Knobs(1, 1, 4 * MIB, "least-bytes", MIB, 2 * MIB).flying_bytes() == 4 * MIB


def test_ladders_double() -> None:
    assert ladder(1, 16) == (1, 2, 4, 8, 16)
    assert ladder(1, 12, between=True) == (1, 2, 3, 4, 6, 8, 12)
    assert ladder(3, 10) == (3, 6, 10)
    assert ladder(5, 5, between=True) == (5,)


def test_a_space_below_what_a_controller_grants() -> None:
    space = Space.between(queues=8, depth=31, mdts_bytes=256 * KIB, window_bytes=MIB)
    assert space.queues == (1, 2, 3, 4, 6, 8)
    assert space.depth[-1] == 31
    assert space.transfer_bytes == (64 * KIB, 128 * KIB, 256 * KIB)
    assert space.receiver_bytes == (256 * KIB, 512 * KIB, MIB)
    assert Space.between(queues=1, depth=1, mdts_bytes=16 * KIB).transfer_bytes == (16 * KIB,)


def test_all_that_is_wrong_with_a_space_is_said() -> None:
    with pytest.raises(IntentError) as caught:
        Space((), (0, 1), (2, 1), dealing=())
    assert [one.field for one in caught.value.problems] == ["queues", "depth", "transfer_bytes", "dealing"]
    with pytest.raises(IntentError, match="1 to 65535"):
        Space((1, 70_000), (1,), (MIB,))
    with pytest.raises(IntentError, match="no transfer fits"):
        Space((1,), (1,), (MIB,), target_bytes=(64 * KIB,))


def test_windows_are_raised_to_hold_a_transfer() -> None:
    space = Space((1,), (1,), (MIB,), target_bytes=(64 * KIB, 2 * MIB), receiver_bytes=(64 * KIB, 2 * MIB))
    assert space.at((0, 0, 0, 0, 0, 0)) == Knobs(1, 1, MIB, "least-bytes", MIB, MIB)


def test_neighbours_differ_in_one_knob_by_one_step() -> None:
    space = Space((1, 2, 4), (1, 8), (64 * KIB,), ("least-bytes", "round-robin"), (MIB,), (MIB,))
    here = Knobs(2, 1, 64 * KIB, "least-bytes", MIB, MIB)
    found = {(one.queues, one.depth, one.dealing) for one in space.neighbours(here)}
    assert found == {(4, 1, "least-bytes"), (1, 1, "least-bytes"), (2, 8, "least-bytes"), (2, 1, "round-robin")}


def test_neighbours_that_are_no_other_setting_are_stepped_over() -> None:
    space = Space((1, 2, 4, 8), (1,), (64 * KIB,), ("least-bytes",), (MIB,), (MIB,))
    here = Knobs(2, 1, 64 * KIB, "least-bytes", MIB, MIB)
    assert {one.queues for one in space.neighbours(here, lambda one: one.queues not in (1, 4))} == {8}


def test_a_place_off_the_ladders_is_the_nearest_by_ratio() -> None:
    space = Space((1, 4, 16), (1,), (64 * KIB,))
    assert space.nearest(Knobs(9, 77, MIB, "unheard-of")) == Knobs(16, 1, 64 * KIB)
    assert space.floor("queues", 15) == 4
    assert space.floor("queues", 0) == 1


def test_the_baselines_are_policies() -> None:
    assert connect_defaults(12, MIB).policy().queues == 12
    assert connect_defaults(12, MIB).depth == 128
    assert serial(MIB).flying_bytes(1) == MIB
