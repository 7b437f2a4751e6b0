"""Properties of the tuner's data: ladders, JSON, the law, the front of what is feasible."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fabric.qos import UNKNOWN
from fabric.serial import from_json, to_json
from fabric.tune import Knobs, Limits, Outcome, ScalingLaw, Space, Trial, fit_law, is_feasible
from fabric.tune.nnls import nnls
from fabric.tune.sampling import latin_hypercube

KIB = 1 << 10
ladders = st.lists(st.integers(1, 65535), min_size=1, max_size=8, unique=True).map(lambda steps: tuple(sorted(steps)))
windows = ladders.map(lambda steps: tuple(one << 20 for one in steps))
spaces = st.builds(
    Space,
    queues=ladders,
    depth=ladders,
    transfer_bytes=st.just((64 * KIB, 128 * KIB, 1024 * KIB)),
    dealing=st.sampled_from([("least-bytes",), ("least-bytes", "round-robin")]),
    target_bytes=windows,
    receiver_bytes=windows,
)
shares = st.one_of(st.just(UNKNOWN), st.floats(0, 1))
outcomes = st.builds(
    Outcome,
    bytes_per_s=st.floats(0, 1e12),
    p50_ns=st.integers(0, 10**9),
    p99_ns=st.integers(0, 10**9),
    lost=st.one_of(st.just(UNKNOWN), st.integers(0, 3)),
    pause_share=shares,
    marks_share=shares,
    errors=st.integers(0, 1),
)
counts = st.integers(1, 1000)
knobs = st.builds(Knobs, queues=counts, depth=counts, transfer_bytes=st.just(64 * KIB), dealing=st.just("least-bytes"))


@given(spaces, st.data())
def test_every_place_of_a_space_is_found_again(space: Space, data: st.DataObject) -> None:
    place = tuple(data.draw(st.integers(0, size - 1)) for size in space.sizes())
    found = space.at(place)
    assert space.place(found) == place
    assert space.nearest(found) == found
    assert found.policy() is not None
    assert all(other != found and space.nearest(other) == other for other in space.neighbours(found))


@given(spaces, st.integers(1, 20), st.integers(0, 10**6))
def test_a_hypercube_uses_each_part_of_a_ladder_once(space: Space, count: int, seed: int) -> None:
    places = latin_hypercube(space, count, seed)
    assert len(places) == count
    for index, size in enumerate(space.sizes()):
        column = sorted(place[index] for place in places)
        assert all(0 <= step < size for step in column)
        if count == size:
            assert column == list(range(size))
        if count > 2 * size:  # each step has a part that lies wholly inside it
            assert {*column} == {*range(size)}


@given(knobs, outcomes, st.floats(0.01, 1), st.integers(0, 10**6))
def test_trials_and_outcomes_are_json_both_ways(one: Knobs, outcome: Outcome, fidelity: float, seed: int) -> None:
    trial = Trial(3, one, fidelity, seed, "step")
    for value in (trial, outcome):
        assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


@given(outcomes)
def test_what_is_unknown_or_lost_is_never_feasible(outcome: Outcome) -> None:
    sound = outcome.lost is not UNKNOWN and outcome.lost == 0 and outcome.errors == 0
    judged = Limits(0.999, 0.999)
    within = all(share is not UNKNOWN and share <= 0.999 for share in (outcome.pause_share, outcome.marks_share))
    assert is_feasible(outcome, judged) == (sound and within)
    # A limit of 1 does not judge a share, and so lets an unknown one pass; loss is judged whatever the limits.
    assert is_feasible(outcome, Limits(1.0, 1.0)) == sound


@given(knobs, knobs)
def test_what_covers_a_setting_has_no_less_in_flight(one: Knobs, other: Knobs) -> None:
    if one.covers(other):
        assert all(one.flying_bytes(targets) >= other.flying_bytes(targets) for targets in (1, 4))
    assert one.covers(one)


@given(st.floats(1e6, 1e10), st.floats(0, 0.9), st.floats(0, 0.1))
def test_a_law_is_found_again_from_its_own_points(rate: float, contention: float, crosstalk: float) -> None:
    law = ScalingLaw(rate, contention, crosstalk, 0.0)
    found = fit_law((n, law.at(n)) for n in (1, 2, 4, 8, 16))
    assert found is not None
    assert all(abs(found.at(n) / law.at(n) - 1) < 1e-6 for n in range(1, 33))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=8))
def test_no_coefficient_is_negative_and_none_is_worse_than_nothing(rows: list[tuple[float, float, float]]) -> None:
    wanted = [float(index + 1) for index in range(len(rows))]
    found, residual = nnls(rows, wanted)
    assert min(found) >= 0
    assert residual <= sum(one * one for one in wanted) ** 0.5 + 1e-9
