"""A link that a thread steps when its caller does not, so that the target keeps hearing of this host. On request only.

A caller may stall for longer than the keep-alive timeout: a long call into a GPU library, a debugger, a garbage
collection elsewhere. If it has released the interpreter's lock, the thread here runs: four times in a timeout it looks
whether the link was stepped since it looked last, and steps it if not. What it hears waits for the caller's next step.
So the thread keeps alive and connects again; it deals nothing and ends no future.

All that the caller and the thread share is behind the link, and one lock is around it. An engine without the thread has
neither. This is the one module of the client that makes a thread.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final

from fabric.engine.client.descriptor import Descriptor
from fabric.engine.client.link import Described, Link, LinkLost, News, QueueLost
from fabric.engine.client.orders import Order
from fabric.engine.queues import Issue, QueueId, RequestId
from fabric.errors import EngineError

__all__ = ("KeptLink",)

_LOOKS: Final = 4  # a Keep Alive is due after half a timeout, and one look may be late by a whole period
_NS_PER_S: Final = 1_000_000_000


class KeptLink:
    """Satisfies `Link`.

    Args:
        inner: does the work.
        timeout_ns: the keep-alive timeout.
        clock: monotonic nanoseconds.

    Attributes:
        inner: as given.
    """

    def __init__(self, inner: Link, timeout_ns: int, clock: Callable[[], int]) -> None:
        self.inner = inner
        self._clock = clock
        self._period_s = timeout_ns / _LOOKS / _NS_PER_S
        self._lock = threading.Lock()
        self._heard: list[News] = []
        self._now_ns = 0
        self._is_stepped = False
        self._descriptor = Descriptor(inner.fileno())
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvme-keep-alive", daemon=True)

    def start(self, now_ns: int) -> None:
        """See `Link`."""
        with self._lock:
            self.inner.start(self._later(now_ns))
        self._thread.start()

    def namespace(self) -> Described:
        """See `Link`."""
        with self._lock:
            return self.inner.namespace()

    def register(self, memory: memoryview) -> int:
        """See `Link`."""
        with self._lock:
            return self.inner.register(memory)

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """See `Link`. What the thread heard is told first."""
        with self._lock:
            heard = self._told()
            # what was dealt to a queue before its loss was told is not sent: with the loss it counts as flown on it
            gone = {one.queue for one in heard if isinstance(one, QueueLost)}
            left = [one for one in batch if one.queue not in gone] if gone else batch
            return heard + self.inner.issue(left, self._later(now_ns), wanted)

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        """See `Link`."""
        with self._lock:
            return self._told() + self.inner.order(batch, self._later(now_ns), wanted)

    def step(self, now_ns: int) -> list[News]:
        """See `Link`."""
        with self._lock:
            self._is_stepped = True
            return self._told() + self.inner.step(self._later(now_ns))

    def next_timer_ns(self) -> int | None:
        """See `Link`."""
        with self._lock:
            return self.inner.next_timer_ns()

    def fileno(self) -> int:
        """See `Link`: readable too when the thread has heard something."""
        return self._descriptor.fileno()

    def stop(self, now_ns: int) -> bool:
        """See `Link`."""
        with self._lock:
            return self.inner.stop(self._later(now_ns))

    def close(self) -> None:
        """See `Link`. Ends the thread first."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self.inner.close()
        self._descriptor.close()

    def _told(self) -> list[News]:
        if not self._heard:
            return []
        self._descriptor.clear()
        heard, self._heard = self._heard, []
        return heard

    def _later(self, now_ns: int) -> int:
        # the caller read its clock before it waited for the lock, and time must not run back
        self._now_ns = max(self._now_ns, now_ns)
        return self._now_ns

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            with self._lock:
                if self._is_stepped:
                    self._is_stepped = False
                else:
                    self._listen()

    def _listen(self) -> None:
        try:
            news = self.inner.step(self._later(self._clock()))
        except EngineError as error:  # the caller's step would have raised it; here nobody would hear
            news = [LinkLost(error)]
        if news:
            self._heard += news
            self._descriptor.set()
