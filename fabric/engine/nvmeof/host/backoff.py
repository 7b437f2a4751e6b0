"""How long to wait before the next try. Knows no clock: it counts tries."""

from dataclasses import dataclass

from fabric.engine.nvmeof.host.config import HostConfig

__all__ = ("Backoff",)


@dataclass(slots=True)
class Backoff:
    """The tries since the last success.

    Attributes:
        config: the delays.
        attempts: tries that count.
        stale: tries in a row that met an earlier connection of ours.
    """

    config: HostConfig
    attempts: int = 0
    stale: int = 0

    def delay_ns(self, *, stale: bool = False) -> int:
        """Returns the wait before the next try, and counts it.

        A stale connection is gone in milliseconds: it is tried again at once, five times (SPDK
        lib/nvme/nvme_rdma.c, NVME_RDMA_STALE_CONN_RETRY_MAX), before it counts like any other failure.
        """
        if stale and self.stale < self.config.stale_retries:
            self.stale += 1
            return self.config.stale_delay_ns
        self.stale = 0
        self.attempts += 1
        doublings = min(self.attempts - 1, 30)
        return min(self.config.reconnect_first_ns << doublings, self.config.reconnect_cap_ns)

    def reset(self) -> None:
        """Forgets the tries after a success."""
        self.attempts = self.stale = 0
