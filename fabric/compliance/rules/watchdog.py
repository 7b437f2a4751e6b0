"""Watchdog theme: a queue that stays paused is set free, with timers that fit each other.

Source: switches.md 4.3 rows 25-27; EOS RoCE guide on polling (at most half the shorter timer).
"""

from collections.abc import Iterator
from typing import Final

from fabric.compliance.closure import carries_lossless
from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.qos import UNKNOWN, Known, PortQos, PortWatchdog, Unknown
from fabric.state import Severity

__all__ = (
    "PFC_WITHOUT_WATCHDOG",
    "WATCHDOG_ACTION_DIFFERS",
    "WATCHDOG_MISSES_LOSSLESS_PRIORITY",
    "WATCHDOG_TIMERS_INCONSISTENT",
)


def _missing(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    if not subject.expected.watchdog or not carries_lossless(subject, port):
        return
    priority = subject.expected.data_priority
    if port.watchdog is UNKNOWN:
        yield undecided("the text does not show the watchdog", "read it from the device", priority=priority)
    elif port.watchdog is None:
        yield failed(
            "no PFC watchdog",
            f"a watchdog on priority {priority}",
            f"switch the watchdog on{hint(subject.qos.nos, 'watchdog', priority=priority)}: without it one NIC that "
            "pauses for ever stops the fabric",
            priority=priority,
        )
    else:
        yield passed("the watchdog is on")


def _watchdog(subject: Subject, port: PortQos) -> PortWatchdog | None:
    if not subject.expected.watchdog or not carries_lossless(subject, port) or isinstance(port.watchdog, Unknown):
        return None
    return port.watchdog


def _misses(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    watchdog, priority = _watchdog(subject, port), subject.expected.data_priority
    if watchdog is None:
        return
    watched = watchdog.priorities
    if watched is UNKNOWN:
        yield undecided(
            "the text does not show which priorities are watched", "read them from the device", priority=priority
        )
        return
    paused = _paused(subject, port)
    names = ", ".join(map(str, sorted(watched))) or "none"
    for one in sorted(paused - watched):
        yield failed(
            f"PFC pauses priority {one}, and the watchdog watches priorities: {names}",
            f"priority {one} watched",
            f"let the watchdog watch priority {one}{hint(subject.qos.nos, 'watchdog', priority=one)}"
            + ("" if one == priority else f", or take PFC off priority {one}"),
            priority=one,
        )
    if paused <= watched:
        yield passed(f"the watchdog watches priority {', '.join(map(str, sorted(paused)))}")


def _paused(subject: Subject, port: PortQos) -> frozenset[int]:
    """Returns every priority that may stay paused: the policy's, and whatever else pauses for certain."""
    active = port.pfc.active
    return frozenset({subject.expected.data_priority}) | (frozenset() if active is UNKNOWN else active)


def _timers(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    watchdog, priority = _watchdog(subject, port), subject.expected.data_priority
    if watchdog is None:
        return
    polling = watchdog.polling_ms
    if polling is UNKNOWN and subject.qos.watchdog_polling_ms is not None:
        polling = subject.qos.watchdog_polling_ms
    detect, restore = watchdog.detection_ms, watchdog.restoration_ms
    polls = _polls_in_timer(subject)
    wrong = [
        text
        for is_wrong, text in (
            (_less(restore, detect), f"restoration {restore} ms is below detection {detect} ms"),
            (_less(detect, polling, polls), f"detection {detect} ms is below {_times(polls)}polling {polling} ms"),
            (_less(restore, polling, polls), f"restoration {restore} ms is below {_times(polls)}polling {polling} ms"),
        )
        if is_wrong
    ]
    if wrong:
        yield failed(
            "; ".join(wrong),
            f"{_times(polls)}polling ≤ detection ≤ restoration",
            "correct the timers: the device refuses them or puts its own in their place",
            priority=priority,
        )
    elif UNKNOWN in (polling, detect, restore):
        yield undecided("one of the timers is not in the text", "read the timers from the device", priority=priority)
    else:
        yield passed(f"polling {polling} ms, detection {detect} ms, restoration {restore} ms")


def _less(timer: Known[int], other: Known[int], times: int = 1) -> bool:
    return timer is not UNKNOWN and other is not UNKNOWN and timer < other * times


def _polls_in_timer(subject: Subject) -> int:
    """How many polls must fit into the shorter timer: what the OS is known to demand, else one."""
    fact = None if subject.capabilities is None else subject.capabilities.watchdog_polls_per_timer
    return 1 if fact is None or fact.unconfirmed else fact.value


def _times(polls: int) -> str:
    return "" if polls == 1 else f"{polls} times "


def _action(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    watchdog, wanted = _watchdog(subject, port), subject.expected.watchdog_action
    if watchdog is None or wanted is None:
        return
    priority = subject.expected.data_priority
    if watchdog.action is UNKNOWN:
        yield undecided("the text does not show the action", "read it from the device", priority=priority)
    elif watchdog.action.value == wanted:
        yield passed(f"action {wanted}")
    else:
        yield failed(
            f"action {watchdog.action}",
            f"action {wanted}",
            f"set the action to {wanted}: hops with different actions lose packets in different places",
            priority=priority,
        )


PFC_WITHOUT_WATCHDOG: Final = PortRule(
    "pfc-without-watchdog", "A port that pauses has a PFC watchdog.", Severity.WARNING, _missing
)
WATCHDOG_MISSES_LOSSLESS_PRIORITY: Final = PortRule(
    "watchdog-misses-lossless-priority",
    "The watchdog watches every priority that PFC pauses.",
    Severity.WARNING,
    _misses,
)
WATCHDOG_TIMERS_INCONSISTENT: Final = PortRule(
    "watchdog-timers-inconsistent", "The watchdog's timers fit each other.", Severity.WARNING, _timers
)
WATCHDOG_ACTION_DIFFERS: Final = PortRule(
    "watchdog-action-differs", "The watchdog does what the policy says.", Severity.WARNING, _action
)
