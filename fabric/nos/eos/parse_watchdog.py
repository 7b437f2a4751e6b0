"""The PFC watchdog of an EOS port: its own timers, else the device's; effective only on guaranteed queues. Pure.

Source: switches.md 1.4: seconds; polling beyond min(timeout, recovery)/2 is replaced by a value of EOS's own;
watched are queues with `bandwidth guaranteed` only. That `default timeout` alone switches it on is unconfirmed.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from fabric.nos.eos.keys import NO
from fabric.nos.eos.parse_queues import is_guaranteed
from fabric.nos.eos.sections import Section
from fabric.qos import UNKNOWN, Known, PortPfc, PortWatchdog, TcMap, WatchdogAction, known
from fabric.tree import Value

__all__ = ("WATCHDOG", "device_polling_ms", "device_watchdog", "effective_polling_ms", "watchdog")

WATCHDOG: Final = "priority-flow-control pause watchdog"
_NAMES: Final = ("timeout", "recovery-time", "polling-interval")
_TIMER: Final = re.compile(r"(timeout|polling-interval|recovery-time) ([\d.]+)")
# `errdisable`, the default of a device by the manual (unconfirmed), is none of the three
_ACTIONS: Final = {"drop": WatchdogAction.DROP, "notify-only": WatchdogAction.ALERT}


def device_polling_ms(device: Mapping[str, Value]) -> Known[int | None]:
    """Returns the device-wide polling interval as configured, None without a line, UNKNOWN for `auto`."""
    value = device.get(f"{WATCHDOG} default polling-interval")
    return None if value is None else _milliseconds(value)


def device_watchdog(device: Mapping[str, Value]) -> PortWatchdog:
    """Returns the times and the action that hold on a port that says none of its own."""
    return PortWatchdog(
        priorities=UNKNOWN,
        detection_ms=_milliseconds(device.get(f"{WATCHDOG} default timeout")),
        restoration_ms=_milliseconds(device.get(f"{WATCHDOG} default recovery-time")),
        polling_ms=_milliseconds(device.get(f"{WATCHDOG} default polling-interval")),
        action=_ACTIONS.get(str(device.get(f"{WATCHDOG} action")), UNKNOWN),
    )


def effective_polling_ms(watchdog: PortWatchdog) -> Known[int]:
    """Returns the polling interval, UNKNOWN where EOS puts its own in place of the configured one."""
    polling, detection, restoration = watchdog.polling_ms, watchdog.detection_ms, watchdog.restoration_ms
    if polling is UNKNOWN or detection is UNKNOWN or restoration is UNKNOWN:
        return UNKNOWN
    return polling if 2 * polling <= min(detection, restoration) else UNKNOWN


def watchdog(
    device: Mapping[str, Value], lines: Section, pfc: PortPfc, *, tc_to_queue: TcMap
) -> Known[PortWatchdog | None]:
    """Returns the watchdog of a port, None when it is off.

    Args:
        device: the device's own lines.
        lines: the port's, profile included.
        pfc: which priorities of the port pause; none is watched where they are UNKNOWN.
        tc_to_queue: which queue each of them drains into; a priority is the traffic class of that number.
    """
    own = lines.lines
    timer = own.get(f"{WATCHDOG} port timer")
    switched_on = WATCHDOG in own or timer is not None or f"{WATCHDOG} default timeout" in device
    if not switched_on or own.get(WATCHDOG, "") == NO:
        return None
    found = device_watchdog(device)
    if timer is not None:
        told = {name: _milliseconds(value) for name, value in _TIMER.findall(str(timer))}
        detection, restoration, polling = (told.get(name, UNKNOWN) for name in _NAMES)
        found = replace(found, detection_ms=detection, restoration_ms=restoration, polling_ms=polling)
    action = own.get(f"{WATCHDOG} port action")
    return replace(
        found,
        priorities=_watched(lines, pfc, tc_to_queue),
        polling_ms=effective_polling_ms(found),
        action=found.action if action is None else _ACTIONS.get(str(action), UNKNOWN),
    )


def _watched(lines: Section, pfc: PortPfc, tc_to_queue: TcMap) -> frozenset[int]:
    guaranteed = {index for index, queue in lines.queues.items() if is_guaranteed(queue)}
    return frozenset(one for one in known(pfc.priorities, frozenset()) if tc_to_queue[one] in guaranteed)


def _milliseconds(value: Value) -> Known[int]:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", value):
        return UNKNOWN
    return int(Decimal(value) * 1000)
