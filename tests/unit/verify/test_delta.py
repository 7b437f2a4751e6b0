import pytest

from fabric.qos import UNKNOWN, Known
from fabric.state import Counter, CounterSet, Missing, Snapshot
from fabric.verify.delta import difference, moved
from tests.unit.verify.evidence import HOST, TARGET


@pytest.mark.parametrize(
    ("before", "after", "bits", "step"),
    [
        (5, 5, 64, 0),
        (5, 9, 64, 4),
        (2**32 - 2, 3, 32, 5),
        (2**64 - 1, 0, 64, 1),
        (100, 0, 32, UNKNOWN),  # a reset: no wrap moves nearly the whole width
        (100, 99, 64, UNKNOWN),
        (100, 99, 0, UNKNOWN),
        (UNKNOWN, 9, 64, UNKNOWN),
        (9, UNKNOWN, 64, UNKNOWN),
        (2**31, 2**31 - 1, 32, UNKNOWN),
    ],
)
def test_a_counter_moves_modulo_its_width_and_falls_only_by_a_reset(
    before: Known[int], after: Known[int], bits: int, step: Known[int]
) -> None:
    found = moved(Counter("out_of_sequence", before, bits), after)
    assert found.value == step
    assert bool(found.why) is (step is UNKNOWN)


def a_set(*counters: Counter, at_ns: int = 0, epoch: str = "a", cache_ns: int = 0) -> CounterSet:
    return CounterSet(HOST, epoch, at_ns, span_ns=10, cache_ns=cache_ns, counters=counters)


def window(before: CounterSet, after: CounterSet) -> list[str]:
    found = difference(Snapshot("a", 0, (before,)), Snapshot("b", 0, (after,)), started_ns=50, ended_ns=80)
    (one,) = found.windows
    if one.voids:
        assert all(delta.value is UNKNOWN for delta in one.deltas)
    return [void.kind for void in one.voids]


SEQ = Counter("out_of_sequence", 4)


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (a_set(SEQ), a_set(SEQ, at_ns=100), []),
        (a_set(SEQ), a_set(SEQ, at_ns=100, epoch="b"), ["epoch"]),
        (a_set(SEQ), a_set(Counter("out_of_sequence", 3), at_ns=100), ["reset"]),
        (a_set(SEQ), a_set(at_ns=100), ["vanished"]),
        (a_set(), a_set(SEQ, at_ns=100), ["vanished"]),
        (a_set(Counter("nobody_knows_it", 1)), a_set(at_ns=100), []),
        (a_set(SEQ, at_ns=45), a_set(SEQ, at_ns=100), ["early"]),
        (a_set(SEQ), a_set(SEQ, at_ns=100, cache_ns=21), ["stale"]),
        (a_set(SEQ), a_set(SEQ, at_ns=100, cache_ns=20), []),
    ],
)
def test_what_voids_a_window(before: CounterSet, after: CounterSet, kinds: list[str]) -> None:
    assert window(before, after) == kinds


def test_two_readings_within_one_cache_are_one() -> None:
    found = difference(Snapshot("a", 0, (a_set(SEQ),)), Snapshot("b", 0, (a_set(SEQ, at_ns=5, cache_ns=10),)))
    assert [void.kind for void in found.voids] == ["stale"]


def test_a_source_that_answered_once_voids_and_one_that_never_did_is_listed() -> None:
    gone = Missing(HOST, "connection refused")
    once = difference(Snapshot("a", 0, (a_set(SEQ),)), Snapshot("b", 0, missing=(gone,)))
    assert [void.kind for void in once.voids] == ["vanished"]
    late = difference(Snapshot("a", 0, missing=(gone,)), Snapshot("b", 0, (a_set(SEQ),)))
    assert [void.kind for void in late.voids] == ["vanished"]
    never = difference(Snapshot("a", 0, missing=(gone,)), Snapshot("b", 0, missing=(gone,)))
    assert (never.voids, never.unobservable) == ((), ((HOST, "connection refused"),))


def test_what_nobody_counts_is_unknown_and_never_zero() -> None:
    found = difference(Snapshot("a", 0, (a_set(SEQ),)), Snapshot("b", 0, (a_set(SEQ, at_ns=100),)))
    assert found.windows[0].value("out_of_sequence") == 0
    assert found.windows[0].value("packet_seq_err") is UNKNOWN
    assert found.windows[0].source != TARGET
