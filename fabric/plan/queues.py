"""Schedulers of the egress queues, and the PFC watchdog. What a network OS cannot do is a problem, never rounded."""

from dataclasses import dataclass

from fabric.intent.model import RocePolicy
from fabric.plan.ledger import Ledger
from fabric.plan.mapping import Classes, numbers
from fabric.qos import (
    PRIORITY_COUNT,
    UNKNOWN,
    Aqm,
    Capabilities,
    DcbxMode,
    Known,
    PortWatchdog,
    QueueQos,
    Scheduler,
    SchedulerKind,
    WatchdogAction,
)

__all__ = ("Schedule", "plan_dcbx", "plan_queues", "plan_schedule", "plan_watchdog")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Queue → scheduler, the same on every port of a switch; a queue without one keeps the OS's own."""

    schedulers: tuple[tuple[int, Scheduler], ...]
    reserved: tuple[int, ...]

    def of(self, queue: int) -> Scheduler | None:
        """Returns the queue's scheduler, or None."""
        return dict(self.schedulers).get(queue)


def plan_schedule(policy: RocePolicy, capabilities: Capabilities, classes: Classes, ledger: Ledger) -> Schedule:
    """Returns the schedulers: DWRR shares as the policy has them, CNPs strict."""
    shares: dict[int, int] = {}
    for share in policy.ets:
        queue = classes.local(share.traffic_class)
        shares[queue] = shares.get(queue, 0) + share.percent
    total = sum(shares.values())
    if shares and total != 100:
        ledger.problem("the DWRR shares do not add up", at="ets", found=f"{total} %", expected="100 %")
    reserved = capabilities.reserved_queues.value
    if taken := sorted(set(reserved) & set(shares)):
        ledger.problem(f"{capabilities.nos} keeps queue {numbers(taken)} for itself", at="ets", found=numbers(taken))
    if shares.pop(classes.cnp, None):
        ledger.note("share-on-strict-queue", f"queue {classes.cnp} carries CNPs and is strict: its share is not used")
    if classes.data not in shares:
        ledger.note("lossless-class-without-share", f"queue {classes.data} carries RoCE data and has no DWRR share")
    found = {queue: Scheduler(SchedulerKind.DWRR, weight=percent, percent=True) for queue, percent in shares.items()}
    found[classes.cnp] = Scheduler(SchedulerKind.STRICT)
    return Schedule(tuple(sorted(found.items())), reserved)


def plan_queues(classes: Classes, schedule: Schedule, aqm: Aqm | None) -> tuple[QueueQos, ...]:
    """Returns the queues of one port: the curve stands on the data queue alone."""
    return tuple(
        QueueQos(
            index=queue,
            scheduler=schedule.of(queue),
            aqm=aqm if queue == classes.data else None,
            lossless_buffer=queue == classes.data,
        )
        for queue in range(PRIORITY_COUNT)
        if queue not in schedule.reserved
    )


def plan_watchdog(
    policy: RocePolicy, capabilities: Capabilities, classes: Classes, ledger: Ledger
) -> PortWatchdog | None:
    """Returns the watchdog of every port, None when it is off. Out of the OS's range is a problem."""
    if not policy.watchdog_enabled:
        ledger.note("watchdog-off", "a port whose peer never stops pausing will hold its traffic for ever")
        return None
    timers = (
        ("watchdog_detection_ms", policy.watchdog_detection_ms, capabilities.watchdog_timer_range_ms.value),
        ("watchdog_restoration_ms", policy.watchdog_restoration_ms, capabilities.watchdog_restoration_range_ms.value),
    )
    for at, found, (low, high) in timers:
        if not low <= found <= high:
            what = f"{capabilities.nos} does not take this time"
            ledger.problem(what, at=at, found=f"{found} ms", expected=f"{low}..{high} ms")
    if policy.watchdog_restoration_ms < policy.watchdog_detection_ms:
        ledger.note("watchdog-restores-early", "the watchdog restores a queue sooner than it detects the next storm")
    actions = capabilities.watchdog_actions.value
    if policy.watchdog_action not in actions:
        what = f"{capabilities.nos} has no such watchdog action"
        ledger.problem(what, at="watchdog_action", found=policy.watchdog_action, expected=", ".join(actions))
    return PortWatchdog(
        priorities=frozenset({classes.data}),
        detection_ms=policy.watchdog_detection_ms,
        restoration_ms=policy.watchdog_restoration_ms,
        polling_ms=_polling(policy, capabilities, ledger),
        action=WatchdogAction(policy.watchdog_action),
    )


def _polling(policy: RocePolicy, capabilities: Capabilities, ledger: Ledger) -> Known[int]:
    """Returns the polling interval: as asked, else the largest that the timers and the OS allow."""
    if capabilities.watchdog_polling_range_ms.value is None:
        if policy.watchdog_polling_ms is not None:
            what = f"{capabilities.nos} has no polling interval to set"
            ledger.problem(what, at="watchdog_polling_ms", found=f"{policy.watchdog_polling_ms} ms")
        return UNKNOWN
    low, high = capabilities.watchdog_polling_range_ms.value
    shorter = min(policy.watchdog_detection_ms, policy.watchdog_restoration_ms)
    limit = min(high, shorter // capabilities.watchdog_polls_per_timer.value)
    polling = limit if policy.watchdog_polling_ms is None else policy.watchdog_polling_ms
    if not low <= polling <= limit:
        ledger.problem(
            f"{capabilities.nos} does not take this polling interval with timers of {shorter} ms",
            at="watchdog_polling_ms",
            found=f"{polling} ms",
            expected=f"{low}..{limit} ms" if low <= limit else f"timers that leave room for {low} ms",
        )
    return polling


def plan_dcbx(policy: RocePolicy, capabilities: Capabilities, ledger: Ledger) -> DcbxMode:
    """Returns the DCBX mode; OFF with a note where the OS lacks the one that the policy asks for.

    PFC is forced on, so that DCBX only tells the peer: without it nothing is lost.
    """
    if policy.dcbx in capabilities.dcbx_modes.value:
        return DcbxMode(policy.dcbx)
    ledger.note("dcbx-not-available", f"{capabilities.nos} has no DCBX mode {policy.dcbx}: it stays off")
    return DcbxMode.OFF
