"""Counts what one stream does: bytes, times, errors, flaws, seconds and bursts. Told by whoever sees it; no clock."""

from collections import Counter
from typing import Final

from fabric.engine.client.latencies import Latencies
from fabric.engine.load.model import Flaw, StreamResult
from fabric.errors import FabricError
from fabric.policy import ShardPolicy

__all__ = ("Ledger",)

_KEPT_FLAWS: Final = 100
_SECOND: Final = 1_000_000_000


class Ledger:
    """What one stream has come to.

    Args:
        name: of the stream.

    Attributes:
        begin_ns: of second 0; it may be set until the first request ends.
        bytes_read, bytes_written, reads, writes, flaw_count: until now.
        errors: by class.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin_ns = 0
        self.bytes_read = self.bytes_written = self.reads = self.writes = self.flaw_count = 0
        self.errors: Counter[str] = Counter()
        self._first_error = ""
        self._flaws: list[Flaw] = []
        self._latencies = Latencies()
        self._series: list[tuple[int, int, int | None]] = []
        self._second, self._second_bytes, self._second_latencies = 0, 0, Latencies()
        self._bursts: int = 0
        self._last_burst = -1
        self._failed_bursts: set[int] = set()

    @property
    def wants_flaws(self) -> bool:
        """Whether one more flaw would be kept; else it is only counted."""
        return len(self._flaws) < _KEPT_FLAWS

    def began(self, burst: int | None) -> None:
        """A request was sent in this burst, None without bursts."""
        if burst is not None and burst != self._last_burst:
            self._last_burst = burst
            self._bursts += 1

    def ended(self, length: int, now_ns: int, took_ns: int | None, *, write: bool) -> None:
        """Bytes were moved; `took_ns` is None where there is no request that took time."""
        second = (now_ns - self.begin_ns) // _SECOND
        if second != self._second:
            self._close_second(second)
        self._second_bytes += length
        if took_ns is not None:
            self._latencies.add(took_ns)
            self._second_latencies.add(took_ns)
        if write:
            self.writes += 1
            self.bytes_written += length
        else:
            self.reads += 1
            self.bytes_read += length

    def failed(self, error: FabricError, burst: int | None) -> None:
        """A request failed."""
        self.errors[type(error).__name__] += 1
        self._first_error = self._first_error or str(error)
        self._fail(burst)

    def flawed(self, flaw: Flaw | None, burst: int | None) -> None:
        """One more flaw; None where nobody looked closer."""
        self.flaw_count += 1
        if flaw is not None and self.wants_flaws:
            self._flaws.append(flaw)
        self._fail(burst)

    def result(self, policy: ShardPolicy | None) -> StreamResult:
        """Returns what it came to; called once, at the end."""
        self._close_second(self._second + 1)
        p50, p99, p999 = (self._latencies.percentile_ns(one) for one in (50, 99, 99.9))
        return StreamResult(
            self.name,
            self.bytes_read,
            self.bytes_written,
            self.reads,
            self.writes,
            tuple(sorted(self.errors.items())),
            p50,
            p99,
            p999,
            tuple(self._flaws),
            self.flaw_count,
            tuple(self._series),
            self._bursts,
            len(self._failed_bursts),
            self._first_error,
            policy,
        )

    def _fail(self, burst: int | None) -> None:
        if burst is not None:
            self._failed_bursts.add(burst)

    def _close_second(self, following: int) -> None:
        if self._second_bytes:
            self._series.append((self._second, self._second_bytes, self._second_latencies.percentile_ns(99)))
        self._second, self._second_bytes, self._second_latencies = following, 0, Latencies()
