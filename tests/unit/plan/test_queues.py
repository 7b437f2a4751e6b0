"""Schedulers, watchdog and DCBX: within what the network OS can do, or refused."""

from typing import Any

import pytest

from fabric.errors import PlanError
from fabric.intent.model import EtsShare, RocePolicy
from fabric.qos import UNKNOWN, DcbxMode, Fact, PortWatchdog, Scheduler, SchedulerKind, WatchdogAction
from tests.unit.plan.intents import eos, notes, plan_one, switch


def shares(planned: Any) -> dict[int, Scheduler | None]:
    return {queue.index: queue.scheduler for queue in planned.qos.ports[0].queues}


def dwrr(percent: int) -> Scheduler:
    return Scheduler(SchedulerKind.DWRR, weight=percent, percent=True)


def test_sonic_serves_default_and_data_by_share_and_cnps_strictly() -> None:
    found = shares(plan_one(switch()))
    assert {queue: one for queue, one in found.items() if one} == {
        0: dwrr(50),
        3: dwrr(50),
        6: Scheduler(SchedulerKind.STRICT),
    }
    assert list(found) == list(range(8))


def test_eos_gives_the_default_share_to_its_own_default_class_and_keeps_queue_7() -> None:
    found = shares(plan_one(eos()))
    assert {queue: one for queue, one in found.items() if one} == {
        1: dwrr(50),
        3: dwrr(50),
        6: Scheduler(SchedulerKind.STRICT),
    }
    assert 7 not in found


def test_share_of_class_1_goes_to_the_other_side_on_eos() -> None:
    policy = RocePolicy(ets=(EtsShare(0, 40), EtsShare(1, 10), EtsShare(3, 50)))
    found = shares(plan_one(eos(policy=policy)))
    assert (found[0], found[1]) == (dwrr(10), dwrr(40))


def test_only_the_data_queue_has_a_lossless_buffer() -> None:
    queues = plan_one(switch()).qos.ports[0].queues
    assert [queue.index for queue in queues if queue.lossless_buffer is True] == [3]


def test_shares_must_add_up() -> None:
    with pytest.raises(PlanError, match=r"leaf1: ets: the DWRR shares do not add up \(found 90 %, expected 100 %\)"):
        plan_one(switch(policy=RocePolicy(ets=(EtsShare(0, 40), EtsShare(3, 50)))))


def test_no_share_at_all_leaves_scheduling_to_the_network_os() -> None:
    planned = plan_one(switch(policy=RocePolicy(ets=())))
    assert {queue: one for queue, one in shares(planned).items() if one} == {6: Scheduler(SchedulerKind.STRICT)}
    assert notes(planned, "lossless-class-without-share")


def test_share_of_a_reserved_queue_is_refused() -> None:
    with pytest.raises(PlanError, match="leaf1: ets: eos keeps queue 7 for itself"):
        plan_one(eos(policy=RocePolicy(ets=(EtsShare(7, 50), EtsShare(3, 50)))))


def test_share_of_the_strict_queue_is_not_used() -> None:
    planned = plan_one(switch(policy=RocePolicy(ets=(EtsShare(6, 10), EtsShare(0, 40), EtsShare(3, 50)))))
    assert shares(planned)[6] == Scheduler(SchedulerKind.STRICT)
    assert notes(planned, "share-on-strict-queue")


def test_data_queue_without_a_share_is_noted() -> None:
    planned = plan_one(switch(policy=RocePolicy(ets=(EtsShare(0, 100),))))
    assert shares(planned)[3] is None
    assert notes(planned, "lossless-class-without-share")


def watchdog(planned: Any) -> PortWatchdog:
    found = planned.qos.ports[0].watchdog
    assert isinstance(found, PortWatchdog)
    return found


def test_watchdog_polls_as_slowly_as_timers_and_network_os_allow() -> None:
    sonic, arista = plan_one(switch()), plan_one(eos())
    assert watchdog(sonic).polling_ms == sonic.qos.watchdog_polling_ms == 200
    assert watchdog(arista).polling_ms == arista.qos.watchdog_polling_ms == 100
    assert watchdog(sonic).action is WatchdogAction.DROP
    assert watchdog(sonic).priorities == frozenset({3})
    slow = RocePolicy(watchdog_detection_ms=5000, watchdog_restoration_ms=9000)
    assert watchdog(plan_one(switch(policy=slow))).polling_ms == 1000


def test_watchdog_that_is_off_is_said_to_be() -> None:
    planned = plan_one(switch(policy=RocePolicy(watchdog_enabled=False)))
    assert planned.qos.ports[0].watchdog is None
    assert planned.qos.watchdog_polling_ms is None
    assert notes(planned, "watchdog-off")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"watchdog_detection_ms": 99},
            "watchdog_detection_ms: sonic does not take this time (found 99 ms, expected 100..5000 ms)",
        ),
        ({"watchdog_restoration_ms": 60_001}, "watchdog_restoration_ms: sonic does not take this time (found 60001 ms"),
        ({"watchdog_polling_ms": 300}, "with timers of 200 ms (found 300 ms, expected 100..200 ms)"),
        ({"watchdog_polling_ms": 50}, "(found 50 ms, expected 100..200 ms)"),
        ({"watchdog_restoration_ms": 50}, "expected timers that leave room for 100 ms"),
    ],
)
def test_watchdog_out_of_range_is_refused_and_never_rounded(changes: dict[str, int], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_one(switch(policy=RocePolicy(**changes)))  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_eos_polls_at_most_at_half_the_shorter_timer() -> None:
    with pytest.raises(PlanError, match=r"found 101 ms, expected 5..100 ms"):
        plan_one(eos(policy=RocePolicy(watchdog_polling_ms=101)))


def test_action_that_the_network_os_lacks_is_refused() -> None:
    with pytest.raises(PlanError, match=r"eos has no such watchdog action \(found forward, expected drop, alert\)"):
        plan_one(eos(policy=RocePolicy(watchdog_action="forward")))


def test_restoration_before_detection_is_noted() -> None:
    policy = RocePolicy(watchdog_detection_ms=400, watchdog_restoration_ms=200)
    assert notes(plan_one(switch(policy=policy)), "watchdog-restores-early")


def test_hidden_polling_is_unknown_and_cannot_be_asked_for() -> None:
    hidden = Fact(None, "test")
    assert watchdog(plan_one(switch(), watchdog_polling_range_ms=hidden)).polling_ms is UNKNOWN
    with pytest.raises(PlanError, match="sonic has no polling interval to set"):
        plan_one(switch(policy=RocePolicy(watchdog_polling_ms=100)), watchdog_polling_range_ms=hidden)


def test_dcbx_is_off_where_there_is_none() -> None:
    sonic, arista = plan_one(switch()), plan_one(eos())
    assert (sonic.qos.ports[0].dcbx, sonic.qos.ports[0].pfc.send_tlv) == (DcbxMode.OFF, False)
    assert notes(sonic, "dcbx-not-available")
    assert (arista.qos.ports[0].dcbx, arista.qos.ports[0].pfc.send_tlv) == (DcbxMode.IEEE, True)
    assert not notes(plan_one(switch(policy=RocePolicy(dcbx="off"))), "dcbx-not-available")
