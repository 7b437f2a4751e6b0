"""Reads of a KV store go on through what happens to a target, a cable and a caller: each byte right, nothing held at the end.

One engine reads without end while its test does one thing after the other to it; each test looks at its own reads.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.vm.engine.bench import HOST_PORT, RDMA_IN_CI, TARGET, TARGET_PORT, Bench, Talk
from tests.vm.traffic import grown, rxe_counters

pytestmark = pytest.mark.vm

KATO_MS: Final = 15_000


@dataclass(frozen=True, slots=True)
class Reading:
    """An engine that reads, and over what."""

    transport: str
    talk: Talk

    def report(self) -> dict[str, Any]:
        """Returns what its reads came to since the last report; other places that it told of meanwhile are let be."""
        self.talk.say("report")
        report: dict[str, Any] = json.loads(self.talk.until("report"))
        return report

    def assert_right(self) -> dict[str, Any]:
        """Returns the report; every read since the last one brought the right bytes."""
        report = self.report()
        assert report["errors"] == []
        assert report["wrong"] == 0
        assert report["reads"] > 0
        assert report["state"] == "live"
        print(f"{self.transport}: {report}")
        return report


@pytest.fixture(scope="module", params=RDMA_IN_CI)
def reading(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Reading]:
    """Yields an engine that reads until the tests over its transport are done; then it must have let go of all."""
    transport: str = request.param
    with bench.talk("load", bench.url(transport), str(KATO_MS), limit_s=600) as talk:
        talk.until("loaded")
        yield Reading(transport, talk)
        talk.say("stop")
        end = talk.end()
        assert (end["errors"], end["wrong"], end["lost"], end["refused"]) == ([], 0, "", "")
        assert (end["quarantined"], end["leaked"], end["unsettled"], end["open_at_end"]) == (0, 0, 0, 0)


def counters(bench: Bench, machine: str) -> dict[str, int]:
    with bench.driven.site.machine(machine).login() as session:
        return rxe_counters(session)


def test_a_lost_answer_is_sent_again_and_the_engine_hears_nothing_of_it(bench: Bench, reading: Reading) -> None:
    reading.report()
    before = counters(bench, TARGET)
    kind = "send" if reading.transport == "rdma" else "any"  # an answer is the only SEND of a target

    with bench.fault("drop", TARGET_PORT, packet=kind, nth=5):
        end = time.monotonic() + 60
        while not sum(bench.struck().values()):
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(3)  # until it was sent again, and read on

    reading.assert_right()
    if reading.transport == "rdma":
        moved = grown(before, counters(bench, TARGET))
        print(f"counters of the target that moved: {moved}")
        assert moved, "no counter shows the loss"


def test_a_cable_that_is_cut_for_a_while_costs_time_alone(bench: Bench, reading: Reading) -> None:
    """TCP outlasts three seconds; queue pairs that try again for one second break, and are connected again."""
    reading.report()
    with bench.fault("down", HOST_PORT):
        time.sleep(3)
    if reading.transport == "rdma":
        reading.talk.until("back")
    else:
        time.sleep(3)

    reading.assert_right()


def test_reads_finish_when_the_target_goes_and_comes_back(bench: Bench, reading: Reading) -> None:
    reading.report()
    bench.hang_up(reading.transport)
    reading.talk.until("lost")
    time.sleep(1)
    bench.listen(reading.transport)

    reading.talk.until("back")

    reading.assert_right()


def test_a_caller_that_stalls_for_ten_seconds_keeps_its_controller(bench: Bench, reading: Reading) -> None:
    reading.report()
    created = bench.target("dmesg | grep -c 'nvmet: creating nvm controller'")

    reading.talk.say("stall 10")
    reading.talk.until("stalled")

    report = reading.assert_right()  # answered after the stall
    assert report["longest_s"] > 9
    assert bench.target("dmesg | grep -c 'nvmet: creating nvm controller'") == created
