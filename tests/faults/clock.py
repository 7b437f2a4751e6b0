"""A clock for both sides of a dialogue: it runs at the machine's pace, and waits cost nothing.

Who sleeps long moves it instead. The product and the emulated devices get the same one, so a device's commit timer has
run out when the product has waited for it. `hurry` makes short sleeps move it too: for a silence that must end by a
time limit.
"""

import threading
import time
from typing import Final

__all__ = ("JumpClock",)

_REAL_S: Final = 0.02  # of each sleep really passes: the other side's threads must get their turn


class JumpClock:
    """Satisfies `Clock`; for several threads.

    Args:
        hurry: how much faster than it takes a short sleep passes.
    """

    def __init__(self) -> None:
        self.hurry = 1.0
        self._ahead_ns = 0
        self._lock = threading.Lock()

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._ahead_ns

    def unix_s(self) -> float:
        return time.time() + self._ahead_ns / 1e9

    def sleep_s(self, seconds: float) -> None:
        real_s = min(seconds, _REAL_S)
        time.sleep(real_s)
        with self._lock:
            self._ahead_ns += round((seconds * self.hurry - real_s) * 1e9)
