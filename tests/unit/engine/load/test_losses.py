"""A target that stops answering in the middle: failures are counted, and the job ends although nothing settles."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fabric.engine.client import TargetSpec, soft_target
from fabric.engine.load import Grounds, Region, Stream, prepare, run_job
from fabric.lab.alarms import WallClock
from fabric.policy import ShardPolicy
from tests.unit.engine.load.rig import MIB, RUN, Told, job

PATIENT = ShardPolicy(queues=1, depth=8)


class Target:
    """A target that goes deaf when it is told to: its connections stay, and nobody serves them."""

    def __init__(self, url: str) -> None:
        self.stream = Stream("s1", url, PATIENT)
        self.is_deaf = threading.Event()


@pytest.fixture(name="target")
def _target() -> Iterator[Target]:
    with soft_target(TargetSpec(MIB)) as served:
        target = Target(served.url)
        thread = threading.Thread(target=served.serve, args=(WallClock(), target.is_deaf.is_set))
        thread.start()
        try:
            yield target
        finally:
            target.is_deaf.set()
            thread.join(20)


REGION = Region(0, MIB // 512)


@pytest.mark.slow
def test_reads_that_miss_their_deadline_are_errors_and_the_job_ends(target: Target) -> None:
    impatient = replace(target.stream, policy=replace(PATIENT, deadline_ns=300_000_000))
    told, begin = Told(), time.monotonic()
    threading.Timer(1.0, target.is_deaf.set).start()  # connected by then, on a busy machine too
    wanted = job((impatient,), REGION, check=False, seconds=2.0)
    result = run_job(wanted, grounds=Grounds(), outside=told.outside())
    (one,) = result.streams
    assert one.reads > 0
    assert sum(count for _name, count in one.errors) >= wanted.readers
    assert one.first_error
    assert time.monotonic() - begin < 15


def test_who_stops_a_job_on_a_deaf_target_waits_little(target: Target) -> None:
    told, begin = Told(), time.monotonic()

    def is_stopped() -> bool:
        now = time.monotonic() - begin
        if now > 0.2:
            target.is_deaf.set()
        return now > 0.4

    result = run_job(
        job((target.stream,), REGION, check=False, seconds=60.0), grounds=Grounds(), outside=told.outside(is_stopped)
    )
    assert not result.is_complete
    assert result.streams[0].errors == ()  # given up by ourselves
    assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_a_write_that_was_lost_is_not_judged(target: Target) -> None:
    grounds, told = Grounds(), Told()
    prepare(target.stream, REGION, run_id=RUN, has_consent=True, grounds=grounds, outside=told.outside())
    impatient = replace(target.stream, policy=replace(PATIENT, deadline_ns=300_000_000))
    threading.Timer(0.3, target.is_deaf.set).start()
    result = run_job(job((impatient,), REGION, write_share=0.5, seconds=0.6), grounds=grounds, outside=told.outside())
    assert result.streams[0].flaw_count == 0
    assert result.streams[0].errors
