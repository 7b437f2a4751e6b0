"""The bench: what it counts, what it checks, and that it stops."""

import time
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.client import BenchRow, BenchSpec, Engine, bench
from fabric.engine.client.latencies import Latencies
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.errors import EngineError, LocalProtocolError
from tests.unit.engine.client.rig import MIB, MS, in_memory


def measured(
    spec: BenchSpec, shape: Shape = UNSHAPED, is_stopped: Callable[[], bool] | None = None, engine: Engine | None = None
) -> BenchRow:
    """The row of a short run on a target in this process."""
    with engine or in_memory(shape)[0] as one:
        return bench(
            one,
            spec,
            clock=time.monotonic_ns,
            cpu_clock=time.process_time_ns,
            is_stopped=is_stopped or (lambda: False),
            progress=lambda _elapsed_ns, _moved: None,
        )


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("verify", [False, True])
def test_every_request_is_counted_once(write: bool, verify: bool) -> None:
    row = measured(BenchSpec(8192, 3, 100 * MS, write, verify))
    assert row.op == ("write" if write else "read")
    assert row.requests > 0
    assert row.bytes == row.requests * 8192
    assert row.elapsed_ns >= 100 * MS
    assert row.bytes_per_s == pytest.approx(row.requests_per_s * 8192)
    assert row.wrong == (0 if verify else None)
    assert (row.failures, row.is_complete) == ((), True)
    assert sum(one.bytes for one in row.queues) >= row.bytes
    assert row.cpu_s_per_gib is not None


@pytest.mark.parametrize("write", [False, True])
def test_corrupt_data_is_counted_as_wrong(write: bool) -> None:
    corrupt = Fault(FaultKind.CORRUPT, opcodes=(2,), commands=tuple(range(10, 20)))
    row = measured(BenchSpec(4096, 4, 400 * MS, write, verify=True, span_bytes=64 << 10), Shape(faults=(corrupt,)))
    assert row.wrong == 10


def test_failures_are_counted_by_class_and_a_run_without_a_success_is_an_error() -> None:
    some = Shape(faults=(Fault(FaultKind.STATUS, opcodes=(1,), probability=0.1, status=0x4006),), seed=1)
    row = measured(BenchSpec(4096, 4, 200 * MS, write=True), some)
    assert [(name, number > 0) for name, number in row.failures] == [("MediumError", True)] or row.failures
    assert row.requests > 0

    with pytest.raises(EngineError):
        measured(BenchSpec(4096, 4, 20_000 * MS), Shape(faults=(Fault(FaultKind.STATUS, status=0x4006),)))


def test_it_stops_when_told_and_says_so() -> None:
    asked = count()
    row = measured(BenchSpec(4096, 4, 600_000 * MS), is_stopped=lambda: next(asked) > 20)
    assert row.is_complete is False
    assert row.requests > 0
    row = measured(BenchSpec(4096, 4, 600_000 * MS, verify=True), is_stopped=lambda: True)
    assert (row.requests, row.cpu_s_per_gib, row.p50_ns) == (0, None, None)


def test_progress_is_told_each_second() -> None:
    told: list[tuple[int, int]] = []
    engine, _service = in_memory()
    now = count(0, 100 * MS)
    with engine:
        row = bench(
            engine,
            BenchSpec(4096, 1, 3000 * MS),
            clock=lambda: next(now),
            cpu_clock=lambda: 0,
            is_stopped=lambda: False,
            progress=lambda elapsed_ns, moved: told.append((elapsed_ns, moved)),
        )
    assert len(told) >= 2
    assert told[0][1] < told[1][1] <= row.bytes


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (BenchSpec(100), "whole number"),
        (BenchSpec(0), "whole number"),
        (BenchSpec(8 * MIB), "no room"),
        (BenchSpec(4096, lba=8192), "no room"),
        (BenchSpec(4096, span_bytes=512), "no room"),
        (BenchSpec(MIB, readers=5, write=True, verify=True), "no room"),
    ],
)
def test_what_cannot_be_measured_is_refused(spec: BenchSpec, words: str) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        measured(spec)


@given(st.lists(st.integers(0, 1 << 44), min_size=1, max_size=60), st.sampled_from([0.1, 50, 99, 99.9, 100]))
def test_a_percentile_is_within_one_percent_of_the_sample(samples: list[int], percent: float) -> None:
    latencies = Latencies()
    for one in samples:
        latencies.add(one)
    found = latencies.percentile_ns(percent)
    exact = sorted(samples)[max(-(-int(percent * 10) * len(samples) // 1000), 1) - 1]
    assert found is not None
    assert abs(found - exact) <= exact / 100
    assert (latencies.count, latencies.highest_ns) == (len(samples), max(samples))


def test_no_sample_has_no_percentile_and_no_such_percentile_is_refused() -> None:
    assert Latencies().percentile_ns(50) is None
    for percent in (0, 101):
        with pytest.raises(ValueError, match="percentile"):
            Latencies().percentile_ns(percent)
