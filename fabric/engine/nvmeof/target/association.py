"""One controller as the target keeps it: properties, keep-alive timer, event requests, queues. Knows no bytes.

Source: Linux target/core.c (nvmet_update_cc, nvmet_start_ctrl, nvmet_add_async_event); SPDK lib/nvmf/ctrlr.c
(nvmf_prop_set_cc).
"""

from dataclasses import dataclass, field

from fabric.engine.nvmeof.target.model import Subsystem
from fabric.engine.nvmeof.target.outputs import PeerId, TaskId
from fabric.engine.nvmeof.target.profile import TargetProfile
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import SQHD_DISABLED, Cqe
from fabric.engine.nvmeof.wire.events import AsyncEvent, EventKind, Notice
from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN
from fabric.engine.nvmeof.wire.identify import IdentifyController
from fabric.engine.nvmeof.wire.registers import Cap, Cc, Csts
from fabric.engine.nvmeof.wire.sgl import Sgl

__all__ = ("Association", "Peer", "Task", "cap_of")

_NS_PER_MS = 1_000_000
_NOTICE_OF = {
    EventKind.NAMESPACE_CHANGED: Notice.NAMESPACE_ATTRIBUTE,
    EventKind.DISCOVERY_CHANGED: Notice.DISCOVERY_LOG_CHANGE,
}
_TIMEOUT_UNITS = 15  # CAP.TO of nvmet (nvmet_init_cap): 7.5 s


def cap_of(profile: TargetProfile) -> Cap:
    """Returns the capabilities of every controller of a target."""
    return Cap.make(max_queue_entries=profile.max_depth, timeout_units=_TIMEOUT_UNITS)


@dataclass(slots=True)
class Task:
    """A command that is being carried out.

    Attributes:
        identifier: its id towards transport and storage.
        peer: on which connection it came.
        cid: the host's id of it.
        command, sgl: what is asked and where its data lies.
        data: what the host sent, once it is here.
    """

    identifier: TaskId
    peer: "Peer"
    cid: int
    command: Command
    sgl: Sgl
    data: bytes = b""


@dataclass(slots=True)
class Peer:
    """A connection: a queue, once it has connected.

    Attributes:
        identifier: the transport's id.
        qid: what the host announced, or said in Connect.
        depth: granted entries.
        association: its controller, after Connect.
        sqhd: head of the submission queue, None when it is not reported.
    """

    identifier: PeerId
    qid: int
    depth: int
    association: "Association | None" = None
    sqhd: int | None = 0

    def answer(self, cid: int, status: int = 0, result: int = 0) -> Cqe:
        """Returns the answer to `cid`; the head moves at completion, as nvmet's does."""
        if self.sqhd is None:
            return Cqe(cid, status, result, SQHD_DISABLED, self.qid)
        self.sqhd = (self.sqhd + 1) % self.depth
        return Cqe(cid, status, result, self.sqhd, self.qid)


@dataclass(slots=True)
class Association:
    """A host's controller.

    Attributes:
        cntlid: its id.
        subsystem: what it serves; None for the discovery service.
        hostnqn, hostid: whose it is.
        profile: the target's ways.
        kato_ms: keep-alive timeout; 0 is none.
        expires_ns: when the host counts as gone.
        cc, csts: properties.
        peers: connections by queue id.
        events: event requests that wait, oldest first.
    """

    cntlid: int
    subsystem: Subsystem | None
    hostnqn: str
    hostid: bytes
    profile: TargetProfile
    kato_ms: int
    expires_ns: int | None = None
    cc: int = 0
    csts: int = 0
    notices: int = 0
    peers: dict[int, Peer] = field(default_factory=dict)
    events: list[tuple[Peer, int]] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    _unsent: list[EventKind] = field(default_factory=list)
    _masked: set[EventKind] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Rounds the keep-alive timeout as the target does; a discovery controller always has one."""
        self.set_kato(self.kato_ms)
        self.notices = self.identify().oaes

    @property
    def is_ready(self) -> bool:
        """CC.EN is set and CSTS.RDY says so."""
        return bool(self.cc & Cc.ENABLE and self.csts & Csts.READY)

    def set_kato(self, kato_ms: int) -> None:
        """Takes a keep-alive timeout."""
        step = self.profile.kato_step_ms
        if kato_ms:
            kato_ms = max(-(-kato_ms // step) * step, self.profile.kato_least_ms)
        elif self.subsystem is None:
            kato_ms = self.profile.discovery_kato_ms
        self.kato_ms = kato_ms

    def touch(self, now_ns: int) -> None:
        """Starts the keep-alive timer again."""
        self.expires_ns = now_ns + self.kato_ms * _NS_PER_MS if self.kato_ms else None

    def configure(self, value: int) -> None:
        """Takes a new CC."""
        old, self.cc = self.cc, value
        if value & Cc.ENABLE and not old & Cc.ENABLE:
            wrong = value & Cc.SIZES_MASK != Cc.SIZES or value & (Cc.MPS_MASK | Cc.AMS_MASK)
            self.csts = Csts.FATAL if wrong else Csts.READY
        elif old & Cc.ENABLE and not value & Cc.ENABLE:
            self.csts = 0
        if value & Cc.SHUTDOWN_MASK and not old & Cc.SHUTDOWN_MASK:
            self.csts = self.csts & ~Csts.READY | Csts.SHUTDOWN_COMPLETE
            self.cc &= ~Cc.ENABLE
            self.expires_ns, self.kato_ms = None, 0

    def announce(self, kind: EventKind) -> None:
        """Notes an event; one kind is not announced again before its log page is read."""
        if self.notices & _NOTICE_OF[kind] and kind not in self._masked:
            self._masked.add(kind)
            self._unsent.append(kind)

    def read_log(self, kind: EventKind) -> None:
        """Notes that the log page of an event was read."""
        self._masked.discard(kind)

    def deliverable(self) -> list[tuple[Peer, int, AsyncEvent]]:
        """Returns events with the requests that they answer; both are used up."""
        delivered = []
        while self._unsent and self.events:
            peer, cid = self.events.pop(0)
            delivered.append((peer, cid, AsyncEvent.notice(self._unsent.pop(0))))
        return delivered

    def identify(self) -> IdentifyController:
        """Returns what the controller says of itself."""
        profile, subsystem = self.profile, self.subsystem
        capsule = profile.in_capsule_bytes
        return IdentifyController(
            serial=subsystem.serial if subsystem else "discovery",
            model=subsystem.model if subsystem else "fabricctl target",
            firmware="1",
            cntlid=self.cntlid,
            subnqn=subsystem.nqn if subsystem else DISCOVERY_NQN,
            mdts=profile.mdts,
            oaes=Notice.NAMESPACE_ATTRIBUTE if subsystem else Notice.DISCOVERY_LOG_CHANGE,
            ctratt=1 | (1 << 6 if profile.traffic_keeps_alive else 0),
            aerl=profile.event_requests - 1,
            kas_100ms=profile.kato_step_ms // 100,
            max_commands=profile.max_depth,
            namespaces=1024,
            oncs=1 << 2 | 1 << 3,
            sgls=1 | 1 << 2 | 1 << 20,
            command_capsule=(64 + capsule) // 16,
            kind=1 if subsystem else 2,
            volatile_cache=1,
        )
