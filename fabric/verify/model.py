"""What a verdict is made of, and the verdict. Types alone, JSON both ways by `fabric.serial`.

`Evidence` is complete: whoever has its JSON can judge again, elsewhere and later. Knows no device, engine or file.
"""

from dataclasses import dataclass
from enum import StrEnum

from fabric.qos import UNKNOWN, Known
from fabric.state import Finding, Snapshot, SourceKind

__all__ = (
    "ClassResult",
    "DeviceVerdict",
    "End",
    "Evidence",
    "FlawSummary",
    "Grade",
    "Hop",
    "JobSummary",
    "LinkPath",
    "LinkResult",
    "LossFinding",
    "Moved",
    "PauseShare",
    "StreamSummary",
    "SwitchQueue",
    "TrafficClass",
    "Verdict",
    "VerdictStatus",
)


class VerdictStatus(StrEnum):
    """PASS: nothing was lost in n packets. FAIL: loss or damage is proven. INVALID: the run proves nothing."""

    PASS = "pass"  # noqa: S105  (no password)
    FAIL = "fail"
    INVALID = "invalid"


class Grade(StrEnum):
    """How much was observed.

    A: every loss counter at both ends of every pair, every switch, and the books of packets balance. B: what one of
    two ends or a switch does not count, another place does. C: one place alone would have seen the loss.
    """

    A = "A"
    B = "B"
    C = "C"


# --- evidence -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SwitchQueue:
    """Where one switch puts a class: egress queue and priority group."""

    device: str
    queue: int
    group: int


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One class of traffic.

    Attributes:
        name: `storage`. priority: PFC priority, 802.1p and on hosts.
        lossless: nothing of it may be lost.
        switches: those that use another queue or group than the one of the same number as the priority.
    """

    name: str
    priority: int
    lossless: bool
    switches: tuple[SwitchQueue, ...] = ()

    def at(self, device: str) -> SwitchQueue:
        """Returns the queue and the group at that switch."""
        own = (one for one in self.switches if one.device == device)
        return next(own, SwitchQueue(device, self.priority, self.priority))


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable.

    Attributes:
        port: netdev `data0` or switch port `Ethernet4`.
        rdma: RDMA port on the netdev, `rxe0/1`; "" for none.
    """

    device: str
    port: str
    kind: SourceKind
    rdma: str = ""

    def is_at(self, device: str, place: str) -> bool:
        """Returns whether it is that port, by the name of the netdev, of the switch port or of the RDMA port."""
        return self.device == device and place in {self.port, self.rdma}

    def __str__(self) -> str:
        return f"{self.device}/{self.port}"


@dataclass(frozen=True, slots=True)
class Hop:
    """One cable, in the direction from a host to a target."""

    near: End
    far: End

    @property
    def name(self) -> str:
        """Returns `h1/data0 - leaf1/Ethernet4`, the same for both directions."""
        return " - ".join(sorted((str(self.near), str(self.far))))


@dataclass(frozen=True, slots=True)
class LinkPath:
    """One way that packets between a host and a target may take; several where there are equal ones."""

    host: str
    target: str
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class FlawSummary:
    """A wrong byte that a host found. kind: `wrong`, `stale`, `torn`, `misplaced`, `unwritten`, `guard`."""

    lba: int
    offset_bytes: int
    kind: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """What the commands between one host and one target came to.

    Attributes:
        errors: (class, count). flaws: the first few; flaw_count: all.
        checked: whether payload was compared at all.
        bursts: synchronised ones. bursts_failed: those in which a command failed or a byte was wrong.
    """

    host: str
    target: str
    name: str = ""
    reads: int = 0
    writes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    errors: tuple[tuple[str, int], ...] = ()
    flaws: tuple[FlawSummary, ...] = ()
    flaw_count: int = 0
    checked: bool = True
    bursts: int = 0
    bursts_failed: int = 0


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One load.

    Attributes:
        bursts: synchronised bursts of the whole load. bursts_failed: in which anything failed.
        is_complete: whether it ran for the time asked, at every host.
        why: what kept it from that.
    """

    name: str
    seconds: float
    streams: tuple[StreamSummary, ...] = ()
    bursts: int = 0
    bursts_failed: int = 0
    is_complete: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that was found out.

    Attributes:
        before, after: around the load; `after` once it has quiesced.
        idle: two snapshots without load: what counts by itself.
        jobs: what was loaded. links: every way between every pair that was loaded.
        classes: the lossless ones, and the others that matter.
        prechecks: compliance, watchdogs, links, before the load.
        samples: further snapshots during the load, in order, for pause shares over short spans.
        asked_packets: the volume without which a PASS is worth nothing.
        load_started_ns, load_ended_ns: on the clock of the snapshots; None where nobody kept it.
        go_on: the load was run although a precheck failed, as asked.
        confidence: of the bound.
        unmanaged: hosts and targets that the inventory forbids to read; what stands at the other end of their cables
            is read for them, and the grade is lower.
    """

    before: Snapshot
    after: Snapshot
    idle: tuple[Snapshot, Snapshot] | None = None
    jobs: tuple[JobSummary, ...] = ()
    links: tuple[LinkPath, ...] = ()
    classes: tuple[TrafficClass, ...] = ()
    prechecks: tuple[Finding, ...] = ()
    samples: tuple[Snapshot, ...] = ()
    asked_packets: int = 0
    load_started_ns: int | None = None
    load_ended_ns: int | None = None
    go_on: bool = False
    confidence: float = 0.95
    unmanaged: tuple[str, ...] = ()


# --- verdict --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LossFinding:
    """One thing that was wrong.

    Attributes:
        rule: id, kebab case. status: FAIL: loss or damage; INVALID: the run proves nothing.
        device: where; "" where it cannot be told. place: link or port, with direction; candidates separated by ` or `.
        cause: id of the probable cause, `pfc-off`. evidence: what was counted, one line.
        score: how well the cause fits, 0..100.
    """

    rule: str
    status: VerdictStatus
    device: str
    place: str
    cause: str
    evidence: str
    remedy: str = ""
    score: int = 0


@dataclass(frozen=True, slots=True)
class Moved:
    """A counter that should have stood still."""

    place: str
    counter: str
    by: int
    meaning: str


@dataclass(frozen=True, slots=True)
class ClassResult:
    """One lossless class. packets: received by hosts and targets."""

    name: str
    packets: Known[int] = UNKNOWN
    lost: Known[int] = UNKNOWN
    bound_95: Known[float] = UNKNOWN


@dataclass(frozen=True, slots=True)
class LinkResult:
    """The books of one part of the way: a cable in one direction, or all cables into one switch.

    Attributes:
        sent, received: packets of the class. lost: their difference; UNKNOWN with `why` where they do not compare.
    """

    link: str
    direction: str
    sent: Known[int] = UNKNOWN
    received: Known[int] = UNKNOWN
    lost: Known[int] = UNKNOWN
    why: str = ""


@dataclass(frozen=True, slots=True)
class DeviceVerdict:
    """One device: FAIL where a counter moved that must not; INVALID where its window is void."""

    device: str
    status: VerdictStatus
    moved: tuple[Moved, ...] = ()
    unobservable: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PauseShare:
    """The largest share of any span of time for which one place was paused, or paused its peer. way: `rx`, `tx`."""

    device: str
    place: str
    priority: int
    way: str
    share: Known[float]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer.

    Attributes:
        packets: n of the lossless classes. lost: of them, as far as the books tell.
        bound_95: upper bound on the loss rate, one-sided, at the confidence of the evidence; UNKNOWN without n.
        bursts, burst_bound_95: likewise per burst; UNKNOWN without bursts.
        counted_by: what n counts, for people.
        marks_before_pauses: True, False, or UNKNOWN where nothing was congested or it was not counted.
        storms: where pauses never ended. victims: hosts paused on behalf of others' congestion.
        unobservable: what could not be seen, and lowered the grade.
        invalid: why the run proves nothing. notes: what is bounded and moved, for people.
    """

    status: VerdictStatus
    grade: Grade
    packets: Known[int] = UNKNOWN
    lost: Known[int] = UNKNOWN
    bound_95: Known[float] = UNKNOWN
    bursts: int = 0
    bursts_failed: int = 0
    burst_bound_95: Known[float] = UNKNOWN
    asked_packets: int = 0
    confidence: float = 0.95
    counted_by: str = ""
    findings: tuple[LossFinding, ...] = ()
    per_class: tuple[ClassResult, ...] = ()
    per_link: tuple[LinkResult, ...] = ()
    per_device: tuple[DeviceVerdict, ...] = ()
    pause_share: tuple[PauseShare, ...] = ()
    storms: tuple[str, ...] = ()
    marks_before_pauses: Known[bool] = UNKNOWN
    victims: tuple[str, ...] = ()
    unobservable: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
