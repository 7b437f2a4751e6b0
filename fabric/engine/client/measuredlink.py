"""A link that tells a meter what passes, and changes nothing of it.

Times are read once a batch, from the system's own monotonic clock or what stands for it: not from `now_ns`, which is
older than what the step did since.
"""

from collections.abc import Callable, Iterable, Sequence

from fabric.engine.client.link import Described, Landed, Link, News, QueueLost, QueueOpened, QueueReleased
from fabric.engine.client.orders import Order
from fabric.engine.metrics.meter import Meter
from fabric.engine.queues import Issue, QueueId, RequestId

__all__ = ("MeasuredLink",)


class MeasuredLink:
    """Satisfies `Link`.

    Args:
        inner: does the work.
        meter: counts.
        clock: monotonic nanoseconds.

    Attributes:
        inner, meter: as given.
    """

    def __init__(self, inner: Link, meter: Meter, clock: Callable[[], int]) -> None:
        self.inner = inner
        self.meter = meter
        self._clock = clock

    def start(self, now_ns: int) -> None:
        """See `Link`."""
        self.inner.start(now_ns)

    def namespace(self) -> Described:
        """See `Link`."""
        return self.inner.namespace()

    def register(self, memory: memoryview) -> int:
        """See `Link`."""
        return self.inner.register(memory)

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        """See `Link`."""
        if batch:
            self.meter.issued(batch, self._clock())
        news = self.inner.issue(batch, now_ns, wanted)
        if news:
            self._count(news)
        return news

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        """See `Link`."""
        news = self.inner.order(batch, now_ns, wanted)
        if news:
            self._count(news)
        return news

    def step(self, now_ns: int) -> list[News]:
        """See `Link`."""
        news = self.inner.step(now_ns)
        if news:
            self._count(news)
        return news

    def next_timer_ns(self) -> int | None:
        """See `Link`."""
        return self.inner.next_timer_ns()

    def fileno(self) -> int:
        """See `Link`."""
        return self.inner.fileno()

    def stop(self, now_ns: int) -> bool:
        """See `Link`."""
        return self.inner.stop(now_ns)

    def close(self) -> None:
        """See `Link`."""
        self.inner.close()

    def _count(self, news: Iterable[News]) -> None:
        meter, now_ns = self.meter, self._clock()
        for one in news:
            if type(one) is Landed:  # most are; a class pattern costs more than all else here
                queue, transfer, error, _again = one
                meter.landed(queue, transfer, error, now_ns)
                continue
            match one:
                case QueueOpened(opened):
                    meter.opened(opened)
                case QueueLost(queue):
                    meter.lost(queue)
                case QueueReleased(queue):
                    meter.released(queue)
                case _:
                    pass  # Usable, LinkLost: no queue's
