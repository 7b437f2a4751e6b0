"""Which fault strikes now. Counts and matches; knows no socket."""

import re
import threading
from collections.abc import Sequence

from fabric.lab.spec import Fault, FaultKind

__all__ = ("FaultBox",)


class _Armed:
    __slots__ = ("fault", "seen", "struck")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.seen = 0
        self.struck = 0

    def spent(self) -> bool:
        return bool(self.fault.times) and self.struck >= self.fault.times


class FaultBox:
    """The faults of one device; may be asked from several threads."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._armed = [_Armed(fault) for fault in faults]
        self._lock = threading.Lock()
        self._strikes = 0

    @property
    def strikes(self) -> int:
        """Returns how often any fault has struck."""
        return self._strikes

    def add(self, fault: Fault) -> None:
        """Arms one more fault."""
        with self._lock:
            self._armed.append(_Armed(fault))

    def clear(self) -> None:
        """Disarms all."""
        with self._lock:
            self._armed.clear()

    def strike(self, kind: FaultKind, text: str = "") -> Fault | None:
        """Returns the first fault of that kind that strikes `text`, and counts it; None if none does."""
        with self._lock:
            for one in self._armed:
                if one.fault.kind is kind and not one.spent() and re.search(one.fault.match, text):
                    one.seen += 1
                    is_late = kind is FaultKind.DROP_AT and one.fault.nth and one.seen > one.fault.nth
                    if one.seen < one.fault.nth or is_late:
                        continue
                    one.struck += 1
                    self._strikes += 1
                    return one.fault
        return None

    def delay_s(self, text: str) -> float:
        """Returns the seconds that the answer to `text` is held back."""
        fault = self.strike(FaultKind.DELAY, text)
        return fault.seconds if fault else 0.0
