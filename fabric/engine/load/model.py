"""What a load is and what it came to: plain data, JSON both ways by `fabric.serial`. Knows neither engine nor clock."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fabric.errors import LocalProtocolError
from fabric.policy import ShardPolicy

__all__ = (
    "SECTOR_BYTES",
    "Flaw",
    "FlawKind",
    "Job",
    "JobResult",
    "Region",
    "Stream",
    "StreamResult",
    "checked_job",
)

SECTOR_BYTES: Final = 4096
_MOST_BYTES: Final = 1 << 30
_LONGEST_S: Final = 7 * 86_400.0
_MOST_READERS: Final = 4096
_MOST_MEMORY: Final = 4 << 30


class FlawKind(StrEnum):
    """What is wrong with bytes that were read.

    WRONG: none of those below. STALE: another version of this sector, or one of an earlier run. TORN: parts of two
    sectors or versions. MISPLACED: a sector of another place. UNWRITTEN: the buffer was not written there although the
    read ended well. GUARD: memory beside the buffer was written.
    """

    WRONG = "wrong"
    STALE = "stale"
    TORN = "torn"
    MISPLACED = "misplaced"
    UNWRITTEN = "unwritten"
    GUARD = "guard"


@dataclass(frozen=True, slots=True)
class Flaw:
    """One sector that was not what it had to be, or one guard.

    Attributes:
        stream: its name.
        lba: the first block of the sector; of a guard: of the read.
        offset_in_sector: the first byte that differs. Of a guard: from the begin of the buffer, so negative before it.
        expected, found: in words, with the bytes from there on where nothing better can be said.
    """

    stream: str
    lba: int
    offset_in_sector: int
    kind: FlawKind
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Stream:
    """One way to one namespace, or one end of bulk traffic.

    Attributes:
        name: unique within its job.
        url: what `fabric.engine.open` takes; or `tcp-send://HOST:PORT?bind=ADDRESS`, or
            `tcp-listen://ADDRESS:PORT?from=ADDRESS`: see `bulk`.
        policy: how reads are cut and dealt. Of bulk traffic: unused.
        tos: type of service, DSCP x 4; None: the system's default.
    """

    name: str
    url: str
    policy: ShardPolicy = field(default_factory=ShardPolicy)
    tos: int | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """The blocks of a namespace that a load may use: `blocks` of them from `first_lba` on."""

    first_lba: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Job:
    """What to do, for how long.

    Attributes:
        name: for people. run_id: 64 bits, stands in each sector; what `prepare` was told.
        seed: of the places.
        streams: at the same time, each for itself.
        size_bytes: of a request; with `check` a multiple of 4096, else of the block.
        readers: requests that each stream keeps open; of bulk traffic: its connections.
        write_share: of requests, 0 to 1. Writes change what stands in the region; nobody else may use it meanwhile.
        on_ns, off_ns: a burst and the pause after it, from the start on; `on_ns` 0: no pauses.
        start_unix_s: when; None: at once. Hosts that start together have clocks that agree.
        seconds: how long.
        region: of each stream's namespace.
        check: what is read is self-describing and every byte is verified; the region has been prepared.
        max_bytes_per_s: of all streams together; None: no cap.
    """

    name: str
    run_id: int
    seed: int
    streams: tuple[Stream, ...]
    size_bytes: int
    readers: int
    write_share: float
    on_ns: int
    off_ns: int
    start_unix_s: float | None
    seconds: float
    region: Region
    check: bool
    max_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What one stream came to.

    Attributes:
        reads, writes: that ended well in time, with their bytes.
        errors: class of error → how many requests; a stream that could not be opened has one.
        p50_ns, p99_ns, p999_ns: of requests, within 1 %; None without one.
        flaws: the first 100. flaw_count: all.
        series: (second from the start, bytes, p99 or None).
        bursts: in which a request was sent. bursts_failed: in which one failed or had a flaw.
        first_error: its words, "" without one.
        policy: what was obeyed: wishes, lowered to what the target granted; None when it was not opened.
    """

    name: str
    bytes_read: int = 0
    bytes_written: int = 0
    reads: int = 0
    writes: int = 0
    errors: tuple[tuple[str, int], ...] = ()
    p50_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    flaws: tuple[Flaw, ...] = ()
    flaw_count: int = 0
    series: tuple[tuple[int, int, int | None], ...] = ()
    bursts: int = 0
    bursts_failed: int = 0
    first_error: str = ""
    policy: ShardPolicy | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job came to.

    Attributes:
        started_unix_s: when the first request could go. seconds: from then until no new one could.
        cpu_s: of this process in that time.
        is_complete: nobody stopped it.
    """

    name: str
    started_unix_s: float
    seconds: float
    streams: tuple[StreamResult, ...]
    cpu_s: float
    is_complete: bool = True


def checked_job(job: Job) -> Job:
    """Returns the job itself.

    Raises:
        LocalProtocolError: it cannot be run; everything that is wrong is named.
    """
    if found := tuple(_wrong(job)):
        raise LocalProtocolError("this job cannot be run", where=job.name, found="; ".join(found))
    return job


def _wrong(job: Job) -> Iterator[str]:
    bounds = (
        ("run_id", job.run_id, 0, (1 << 64) - 1),
        ("size_bytes", job.size_bytes, 512, _MOST_BYTES),
        ("readers", job.readers, 1, _MOST_READERS),
        ("write_share", job.write_share, 0, 1),
        ("on_ns", job.on_ns, 0, round(_LONGEST_S * 1e9)),
        ("off_ns", job.off_ns, 0, round(_LONGEST_S * 1e9)),
        ("seconds", job.seconds, 0, _LONGEST_S),
        ("region.first_lba", job.region.first_lba, 0, (1 << 64) - 1),
        ("region.blocks", job.region.blocks, 1, (1 << 64) - 1),
    )
    yield from (
        f"{name} is {value}, not {low} to {high}" for name, value, low, high in bounds if not low <= value <= high
    )
    if not job.streams:
        yield "it has no stream"
    if len({one.name for one in job.streams}) < len(job.streams):
        yield "two streams have one name"
    memory = len(job.streams) * job.readers * job.size_bytes
    if memory > _MOST_MEMORY:
        yield f"its buffers take {memory} bytes, not {_MOST_MEMORY} or less: fewer readers, or smaller requests"
    if job.check and job.size_bytes % SECTOR_BYTES:
        yield f"size_bytes is {job.size_bytes}: with check it is a multiple of {SECTOR_BYTES}"
    if job.max_bytes_per_s is not None and job.max_bytes_per_s < 1:
        yield f"max_bytes_per_s is {job.max_bytes_per_s}, not 1 or more"
    if job.off_ns and not job.on_ns:
        yield "there are pauses and no bursts: on_ns is 0"
    yield from (
        f"the tos of {one.name} is {one.tos}, not 0 to 255" for one in job.streams if not 0 <= (one.tos or 0) <= 255
    )
