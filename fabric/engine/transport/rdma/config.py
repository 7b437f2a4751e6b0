"""How to connect over RDMA. Frozen data."""

from dataclasses import dataclass

from fabric.errors import LocalProtocolError

__all__ = ("RdmaConfig",)


@dataclass(frozen=True, slots=True)
class RdmaConfig:
    """Where to and how.

    Attributes:
        address, service: IP address and port of the target.
        source: address of this machine to connect from, "" for the one that the route takes; it names the adapter.
        tos: type of service, DSCP x 4, of both directions: the target takes it from the connection request. None:
            the kernel's default for the adapter (`default_roce_tos` of rdma_cm).
        ack_timeout: a packet is sent again after 4.096 us x 2^n, at both ends; None: the kernel's, about 2 s.
        retry_count: how often; at most 6 on Soft-RoCE, where 7 is for ever.
        rnr_retry_count: how often when the peer had no receive posted; 7 is for ever.
        resolve_timeout_ms: for the neighbour, and for the route.
        flush_timeout_ns: how long the completions of a queue pair in ERROR are waited for before it is destroyed.
        completions: entries of the one completion queue; twice the depth of every queue must fit.
    """

    address: str
    service: int = 4420
    source: str = ""
    tos: int | None = None
    ack_timeout: int | None = None
    retry_count: int = 7
    rnr_retry_count: int = 7
    resolve_timeout_ms: int = 3000
    flush_timeout_ns: int = 2_000_000_000
    completions: int = 16_384

    def __post_init__(self) -> None:
        """Refuses what does not fit its field.

        Raises:
            LocalProtocolError: a number out of range.
        """
        bounds = {
            "tos": (self.tos, 255),
            "ack_timeout": (self.ack_timeout, 31),
            "retry_count": (self.retry_count, 7),
            "rnr_retry_count": (self.rnr_retry_count, 7),
        }
        for name, (value, high) in bounds.items():
            if value is not None and not 0 <= value <= high:
                raise LocalProtocolError(f"{name} cannot be used", expected=f"0 to {high}", found=str(value))
