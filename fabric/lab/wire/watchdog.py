"""The PFC watchdog of one queue. Knows no frame and no port.

State machine: OPERATIONAL until the queue was blocked (paused with something to send) for the whole detection time,
then STORMED until it was free of pauses for the whole restoration time. A polling interval delays both to the next
poll. What the action does to frames is the port's business.

| state | event | next |
|---|---|---|
| operational | blocked for detection_ns | stormed, storms_detected + 1 |
| stormed | not paused for restoration_ns | operational, storms_restored + 1 |
"""

from dataclasses import dataclass, replace

from fabric.qos import WatchdogAction
from fabric.state import WatchdogCounters

__all__ = ("Watchdog", "WatchdogPlan")


@dataclass(frozen=True, slots=True)
class WatchdogPlan:
    """Timers in ns; `polling_ns` 0 for at once."""

    queue: int
    detection_ns: int
    restoration_ns: int
    polling_ns: int
    action: WatchdogAction


class Watchdog:
    """One watched queue."""

    def __init__(self, plan: WatchdogPlan) -> None:
        self.plan = plan
        self.stormed = False
        self.detected = self.restored = 0
        self.tx_ok = self.tx_dropped = self.rx_ok = self.rx_dropped = 0
        self._at_storm = (0, 0, 0, 0)
        self._since_ns: int | None = None

    @property
    def drops(self) -> bool:
        """Returns whether frames of the queue are dropped now."""
        return self.stormed and self.plan.action is WatchdogAction.DROP

    @property
    def forwards(self) -> bool:
        """Returns whether the queue sends in spite of the pause now."""
        return self.stormed and self.plan.action is WatchdogAction.FORWARD

    def observe(self, now_ns: int, *, paused: bool, waiting: bool) -> None:
        """Takes note of the queue: whether a pause holds it, and whether something waits in it."""
        counts = not paused if self.stormed else paused and waiting
        if not counts:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns = now_ns

    def due_ns(self) -> int | None:
        """Returns when the state changes if nothing else happens."""
        if self._since_ns is None:
            return None
        due = self._since_ns + (self.plan.restoration_ns if self.stormed else self.plan.detection_ns)
        polling = self.plan.polling_ns
        return -(-due // polling) * polling if polling else due

    def fire(self, now_ns: int) -> bool:
        """Returns whether the state changed now; it does when `due_ns` has come."""
        due = self.due_ns()
        if due is None or now_ns < due:
            return False
        self._since_ns = None
        self.stormed = not self.stormed
        if self.stormed:
            self.detected += 1
            self._at_storm = (self.tx_ok, self.tx_dropped, self.rx_ok, self.rx_dropped)
        else:
            self.restored += 1
        return True

    def last_storm(self) -> WatchdogCounters:
        """Returns the packets counted since the last storm began; zeros when there was none."""
        tx_ok, tx_dropped, rx_ok, rx_dropped = self._at_storm
        return replace(
            self.counters(),
            tx_ok=self.tx_ok - tx_ok,
            tx_dropped=self.tx_dropped - tx_dropped,
            rx_ok=self.rx_ok - rx_ok,
            rx_dropped=self.rx_dropped - rx_dropped,
        )

    def counters(self) -> WatchdogCounters:
        """Returns the counters as of now."""
        return WatchdogCounters(
            queue=self.plan.queue,
            status="stormed" if self.stormed else "operational",
            storms_detected=self.detected,
            storms_restored=self.restored,
            tx_ok=self.tx_ok,
            tx_dropped=self.tx_dropped,
            rx_ok=self.rx_ok,
            rx_dropped=self.rx_dropped,
        )
