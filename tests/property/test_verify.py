"""Properties of the loss check: a verdict never says PASS when a counter that must stand has moved."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fabric.qos import UNKNOWN
from fabric.serial import from_json, to_json
from fabric.state import Counter
from fabric.verify import Evidence, Verdict, VerdictStatus, judge, verdict_text
from fabric.verify.bound import exact_zero, upper_bound
from fabric.verify.delta import moved
from fabric.verify.events import Rule
from fabric.verify.meanings import meaning
from tests.unit.verify.evidence import NAMES, SOURCES, evidence

ZERO = [
    (source, name)
    for source in SOURCES
    for name in NAMES[source.family]
    if (found := meaning(source.family, name)) is not None
    and (found.row.rule, found.row.mixed) == (Rule.ZERO, False)
    and found.index in {None, 3}
]


@given(st.lists(st.tuples(st.sampled_from(ZERO), st.integers(1, 2**20)), min_size=1, max_size=4))
def test_no_pass_when_a_counter_that_must_stand_moved(moves: list[tuple[tuple[object, str], int]]) -> None:
    by_source: dict[object, dict[str, int]] = {}
    for (source, name), step in moves:
        by_source.setdefault(source, {})[name] = step
    verdict = judge(evidence(by_source))  # type: ignore[arg-type]
    assert verdict.status is not VerdictStatus.PASS
    assert verdict.findings
    assert verdict_text(verdict)
    assert from_json(Verdict, to_json(verdict)) == verdict


@given(st.sampled_from(ZERO))
def test_a_counter_that_nobody_read_is_no_move_and_is_not_taken_for_zero(place: tuple[object, str]) -> None:
    source, name = place
    verdict = judge(evidence({source: {name: UNKNOWN}}))  # type: ignore[dict-item]
    assert verdict.status is VerdictStatus.PASS  # the others stood, and others saw
    assert all(one.counter != name for device in verdict.per_device for one in device.moved)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**31 - 1), st.sampled_from([32, 64]))
def test_a_counter_moves_by_what_was_counted_whatever_it_showed(start: int, step: int, bits: int) -> None:
    before = start % (1 << bits)
    assert moved(Counter("x", before, bits), (before + step) % (1 << bits)).value == step


@given(st.integers(0, 50), st.integers(51, 10**9), st.floats(0.5, 0.999))
def test_a_bound_lies_above_what_was_seen_and_falls_with_more_trials(
    events: int, trials: int, confidence: float
) -> None:
    bound = upper_bound(events, trials, confidence=confidence)
    assert events / trials < bound <= 1
    assert upper_bound(events, 2 * trials, confidence=confidence) < bound
    assert upper_bound(events + 1, trials, confidence=confidence) > bound
    assert exact_zero(trials, confidence=confidence) <= bound


@given(st.permutations(SOURCES))
def test_the_order_of_sources_does_not_matter(order: list[object]) -> None:
    found = evidence({SOURCES[0]: {"out_of_sequence": 1}, SOURCES[2]: {"packet_seq_err": 1}})
    ranks = {source: rank for rank, source in enumerate(order)}

    def shuffled(one: Evidence) -> Evidence:
        sets = tuple(sorted(one.after.sets, key=lambda own: ranks[own.source]))
        return replace(one, after=replace(one.after, sets=sets))

    assert judge(shuffled(found)) == judge(found)
