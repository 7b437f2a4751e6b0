"""What a host is told before it starts. Frozen; knows no machine."""

from dataclasses import dataclass
from typing import Literal

from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN, ConnectData
from fabric.errors import LocalProtocolError

__all__ = ("ADMIN_RESERVE", "MS", "SECOND", "HostConfig")

MS = 1_000_000
SECOND = 1_000_000_000
ADMIN_RESERVE = 8  # admin slots that requests of the caller may not take: events, keep-alive, scan, bring-up
_MAX_DEPTH = 1024  # so that a command id keeps six bits of generation


@dataclass(frozen=True, slots=True)
class HostConfig:
    """How to reach a subsystem, and how patient to be.

    Attributes:
        subnqn, hostnqn, hostid: who connects to what.
        transport: how data is described to the target: keyed SGLs, or by command id.
        io_queues: wanted; fewer when the target allows fewer.
        io_depth: entries of an I/O queue; nvmet takes 128 at most.
        admin_depth: nvmet takes 32 at most, and rejects more.
        kato_ms: keep-alive timeout; 0 is none. 15 s leaves a stalled interpreter time.
        responder_resources: RDMA READs that the target may have open on us: 0 would stall every write.
        io_timeout_ns, admin_timeout_ns: deadline of a command that names none.
        connect_timeout_ns: for the transport to connect, and again for the Connect command.
        ready_poll_ns: how often CSTS is read.
        shutdown_timeout_ns: how long a target may take to shut down.
        reconnect_first_ns, reconnect_cap_ns: the delay doubles from the one to the other.
        controller_loss_ns: after so long without a live controller it is given up; 600 s as in Linux host/fabrics.h.
        stale_retries, stale_delay_ns: for a connection that the peer still holds (SPDK lib/nvme/nvme_rdma.c).
        async_events: Asynchronous Event Requests to hold open; fewer when the target holds fewer.
    """

    subnqn: str
    hostnqn: str
    hostid: bytes
    transport: Literal["rdma", "tcp"] = "rdma"
    io_queues: int = 4
    io_depth: int = 128
    admin_depth: int = 32
    kato_ms: int = 15_000
    responder_resources: int = 16
    io_timeout_ns: int = 30 * SECOND
    admin_timeout_ns: int = 60 * SECOND
    connect_timeout_ns: int = 10 * SECOND
    ready_poll_ns: int = 10 * MS
    shutdown_timeout_ns: int = 10 * SECOND
    reconnect_first_ns: int = 100 * MS
    reconnect_cap_ns: int = 10 * SECOND
    controller_loss_ns: int = 600 * SECOND
    stale_retries: int = 5
    stale_delay_ns: int = 10 * MS
    async_events: int = 4

    def __post_init__(self) -> None:
        """Refuses what could never work.

        Raises:
            LocalProtocolError: a size that no target can take, or names that do not fit.
        """
        self.connect_data().pack()
        bounds = {
            "io_queues": (self.io_queues, 0, 0xFFFF),
            "io_depth": (self.io_depth, 2, _MAX_DEPTH),
            "admin_depth": (self.admin_depth, ADMIN_RESERVE + 2, _MAX_DEPTH),
            "kato_ms": (self.kato_ms, 0, 0xFFFFFFFF),
            "responder_resources": (self.responder_resources, 1 if self.transport == "rdma" else 0, 255),
            "async_events": (self.async_events, 1, ADMIN_RESERVE - 4),
        }
        for name, (value, low, high) in bounds.items():
            if not low <= value <= high:
                raise LocalProtocolError(f"{name} cannot be used", expected=f"{low} to {high}", found=str(value))

    @property
    def is_discovery(self) -> bool:
        """The subsystem is the discovery service: no I/O queues, no namespaces."""
        return self.subnqn == DISCOVERY_NQN

    def connect_data(self, cntlid: int | None = None) -> ConnectData:
        """Returns the data of a Connect; without `cntlid` for the admin queue."""
        if cntlid is None:
            return ConnectData(self.hostid, self.subnqn, self.hostnqn)
        return ConnectData(self.hostid, self.subnqn, self.hostnqn, cntlid)
