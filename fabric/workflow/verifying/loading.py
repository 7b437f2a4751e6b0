"""The load of a verification: a profile bent to what was asked, its rounds on all hosts, and what they came to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fabric.engine.load import Job, JobResult, StreamResult
from fabric.errors import FabricError
from fabric.intent import Fabric
from fabric.observe import Event
from fabric.verify import FlawSummary, JobSummary, StreamSummary
from fabric.workflow.agents import Agents
from fabric.workflow.environment import Environment
from fabric.workflow.expanding import Round
from fabric.workflow.loads import LoadProfile, Phase
from fabric.workflow.verifying.options import VerifyOptions

__all__ = ("RoundResult", "bent", "loaded_pairs", "run_round", "summary_of")

_LEAD_S: Final = 2.0  # until all start: time to open the streams, and some more for each
_LEAD_PER_STREAM_S: Final = 1.0
_GENTLE_READERS: Final = 2
_GENTLE_SHARE: Final = 20  # of a NIC's speed: one in so many
_GENTLE_SPAN_BYTES: Final = 64 << 20
_BULK: Final = ("tcp-send:", "tcp-listen:")


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round, as it goes into the run folder.

    Attributes:
        jobs: (host, what it was told). results: (host, what it did). errors: (host, why it gave no result).
    """

    name: str
    jobs: tuple[tuple[str, Job], ...]
    results: tuple[tuple[str, JobResult], ...] = ()
    errors: tuple[tuple[str, str], ...] = ()


def bent(profile: LoadProfile, options: VerifyOptions, fabric: Fabric) -> LoadProfile:
    """Returns the profile as long as was asked, gentle when asked, and without writes where nothing may be written."""
    phases = tuple(_bent_phase(one, options, fabric) for one in profile.phases)
    span = min(profile.span_bytes, _GENTLE_SPAN_BYTES) if options.gentle else profile.span_bytes
    return replace(profile, phases=phases, span_bytes=span)


def _bent_phase(phase: Phase, options: VerifyOptions, fabric: Fabric) -> Phase:
    if options.seconds is not None:
        phase = replace(phase, seconds=options.seconds)
    if not options.scratch:
        phase = replace(phase, write_percent=0, is_checked=False)
    if options.gentle:
        slowest = min((nic.speed_mbps for host in fabric.hosts for nic in host.nics), default=_GENTLE_SHARE)
        cap = max(1, slowest // _GENTLE_SHARE)
        phase = replace(
            phase,
            readers=min(phase.readers, _GENTLE_READERS),
            rate_mbps=cap if phase.rate_mbps is None else min(cap, phase.rate_mbps),
            burst=None,
            background=None,
        )
    return phase


def run_round(one: Round, agents: Agents, environment: Environment) -> RoundResult:
    """Returns what a round came to; all its jobs start at one time."""
    streams = max((len(job.streams) for job in one.jobs.values()), default=0)
    seconds = max((job.seconds for job in one.jobs.values()), default=0.0)
    told = f"{one.name}: {len(one.jobs)} machine{'s' if len(one.jobs) != 1 else ''}, {seconds:g} s"
    environment.observer(
        Event("verify.load.started", message=told, data={"round": one.name, "seconds": seconds, "hosts": len(one.jobs)})
    )
    answers = agents.run(one.jobs, lead_s=_LEAD_S + streams * _LEAD_PER_STREAM_S)
    environment.observer(Event("verify.load.done", message=one.name))
    return RoundResult(
        one.name,
        tuple(one.jobs.items()),
        tuple(answers.results.items()),
        tuple((host, _said(error)) for host, error in answers.errors.items()),
    )


def _said(error: FabricError) -> str:
    return error.what + (f" ({error.found})" if error.found else "")


def summary_of(one: RoundResult) -> JobSummary:
    """Returns a round as a verdict needs it; bulk traffic beside it counts only where it did not run."""
    jobs = dict(one.jobs)
    streams: list[StreamSummary] = []
    why = [f"{host}: {said}" for host, said in one.errors]
    for host, result in one.results:
        if not result.is_complete:
            why.append(f"{host} was stopped after {result.seconds:.1f} s")
        urls = {stream.name: stream.url for stream in jobs[host].streams}
        for row in result.streams:
            if not urls.get(row.name, "").startswith(_BULK):
                streams.append(_stream(host, row, is_checked=jobs[host].check))
            elif row.errors:
                why.append(f"{host}: lossy traffic beside the load failed: {row.first_error or row.errors[0][0]}")
    return JobSummary(
        name=one.name,
        seconds=max((result.seconds for _, result in one.results), default=0.0),
        streams=tuple(streams),
        bursts=max((row.bursts for row in streams), default=0),
        bursts_failed=_failed_bursts(streams),
        is_complete=not why,
        why="; ".join(why),
    )


def _failed_bursts(streams: Sequence[StreamSummary]) -> int:
    """Of the whole load: bursts are the same everywhere, and each stream may have failed in another one."""
    return min(max((row.bursts for row in streams), default=0), sum(row.bursts_failed for row in streams))


def _stream(host: str, row: StreamResult, *, is_checked: bool) -> StreamSummary:
    return StreamSummary(
        host=host,
        target=row.name.partition("/")[0],
        name=row.name,
        reads=row.reads,
        writes=row.writes,
        bytes_read=row.bytes_read,
        bytes_written=row.bytes_written,
        errors=row.errors,
        flaws=tuple(
            FlawSummary(one.lba, one.offset_in_sector, one.kind.value, one.expected, one.found) for one in row.flaws
        ),
        flaw_count=row.flaw_count,
        checked=is_checked,
        bursts=row.bursts,
        bursts_failed=row.bursts_failed,
    )


def loaded_pairs(rounds: Sequence[Round]) -> tuple[tuple[str, str], ...]:
    """Returns (host, target) of every stream to a namespace."""
    return tuple(
        dict.fromkeys(
            (host, stream.name.partition("/")[0])
            for one in rounds
            for host, job in one.jobs.items()
            for stream in job.streams
            if not stream.url.startswith(_BULK)
        )
    )
