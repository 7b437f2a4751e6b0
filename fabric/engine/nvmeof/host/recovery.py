"""When to try a lost controller again, and when to give it up. Knows times, no queue."""

from fabric.engine.nvmeof.host.backoff import Backoff
from fabric.engine.nvmeof.host.config import HostConfig

__all__ = ("Recovery",)


class Recovery:
    """The way back of one controller.

    Args:
        config: delays and the loss timeout.
    """

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._backoff = Backoff(config)
        self._give_up_ns: int | None = None
        self.retry_ns: int | None = None

    @property
    def attempts(self) -> int:
        """Tries since the controller was last live."""
        return self._backoff.attempts

    def begin(self, now_ns: int) -> None:
        """Notes that the controller is not live; the loss timeout runs from the first such call."""
        if self._give_up_ns is None:
            self._give_up_ns = now_ns + self._config.controller_loss_ns

    def succeeded(self) -> None:
        """Notes that the controller is live."""
        self._give_up_ns = self.retry_ns = None
        self._backoff.reset()

    def schedule(self, now_ns: int, *, stale: bool) -> int:
        """Returns when the next try is, and remembers it."""
        self.retry_ns = now_ns + self._backoff.delay_ns(stale=stale)
        return self.retry_ns

    def is_retry_due(self, now_ns: int) -> bool:
        """Returns whether to try now; says so once."""
        if self.retry_ns is None or self.retry_ns > now_ns:
            return False
        self.retry_ns = None
        return True

    def is_lost(self, now_ns: int) -> bool:
        """Returns whether the loss timeout is over."""
        return self._give_up_ns is not None and self._give_up_ns <= now_ns

    def cancel(self) -> None:
        """Ends all waiting."""
        self._give_up_ns = self.retry_ns = None

    def next_timer_ns(self) -> int | None:
        """Returns when to look again."""
        due = [at for at in (self.retry_ns, self._give_up_ns) if at is not None]
        return min(due) if due else None
