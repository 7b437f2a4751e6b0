"""The order of a verification.

    checks ──▶ idle pair ──▶ [prepare] ──▶ load, all hosts at one time ──▶ quiesce ──▶ snapshot ──▶ verdict
       └─ failed: no load, INVALID

The second snapshot of the idle pair is the one before the load. Nothing is reset, configured or installed anywhere;
only what was named as scratch is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from fabric.observe import Event
from fabric.qos import UNKNOWN
from fabric.state import Finding, Snapshot
from fabric.verify import Evidence, LinkPath, judge
from fabric.workflow.environment import Environment
from fabric.workflow.expanding import Expansion
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.verifying.collecting import cache_s
from fabric.workflow.verifying.concluding import Verified, conclude_verdict
from fabric.workflow.verifying.loading import RoundResult, run_round, summary_of
from fabric.workflow.verifying.options import VerifyOptions
from fabric.workflow.verifying.prechecks import agent_findings, earlier_findings, is_refused, live_findings
from fabric.workflow.verifying.setting import Asked, Setting, asked_of, expanded, links_of, opened

__all__ = ("Drill", "Measured", "idle_pair", "measured", "prechecked", "prepare", "settled", "verify")

_MARGIN_S: Final = 0.5  # clocks and commands take time too
_BACK_S: Final = 120.0  # a host that rebooted under the load is waited for: it is asked which boot this is


class Drill(Protocol):
    """Something that is done to a fabric on purpose while the load runs."""

    def arm(self, links: Sequence[LinkPath]) -> None:
        """Begins; the counters have been read."""
        ...

    def disarm(self) -> None:
        """Ends, whatever became of the load. Called once after `arm`."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """One load with its evidence."""

    evidence: Evidence
    rounds: tuple[RoundResult, ...] = ()


def verify(request: Request, environment: Environment, options: VerifyOptions) -> Verified:
    """Returns whether the fabric loses a packet of its lossless classes under load, and writes it into a run folder.

    Raises:
        IntentError, PlanError, UnsupportedFeatureError: inventory or profile is wrong; nobody was contacted.
        FabricError: a run that stands for the checks is none, or a target could not be asked for its size.
    """
    asked = asked_of(replace(request, hosts=True), environment, options)
    folder = RunFolder.create(request.runs, "verify", environment.clock.unix_s())
    folder.write("fabric", asked.loaded.fabric)
    with opened(asked, folder) as setting:
        found = measured(setting)
        verdict = judge(found.evidence)
    return conclude_verdict(setting, found.evidence, verdict, found.rounds)


def prechecked(setting: Setting) -> tuple[Finding, ...]:
    """Returns what stands against a load, or for it: agents, and compliance live or as an earlier run found it."""
    asked = setting.asked
    agents = agent_findings(asked.agents_on, dict(setting.agents.errors))
    with asked.watch.stage("checks"):
        if asked.options.checked is not None:
            rules = earlier_findings(asked.options.checked, asked.loaded.fabric.name)
        else:
            _tell(asked, "checks", "configuration, counters, hosts")
            rules = live_findings(
                asked.loaded, asked.plan, setting.ways, asked.machines, asked.request, asked.environment
            )
    return (*agents, *rules)


def measured(setting: Setting, *, drill: Drill | None = None) -> Measured:
    """Returns the evidence of one whole verification; without a load where checks failed."""
    asked = setting.asked
    prechecks = prechecked(setting)
    if is_refused(prechecks) and not asked.options.go_on:
        now_s = asked.environment.clock.unix_s()
        return Measured(
            Evidence(Snapshot("before", now_s), Snapshot("after", now_s), classes=asked.classes, prechecks=prechecks)
        )
    with asked.watch.stage("sizes"):
        expansion = expanded(setting)
    idle = idle_pair(setting)
    frame = Evidence(
        before=idle[1],
        after=idle[1],
        idle=idle,
        links=links_of(setting, expansion),
        classes=asked.classes,
        prechecks=prechecks,
        asked_packets=asked.options.packets,
        go_on=asked.options.go_on,
        unmanaged=asked.unmanaged,
    )
    return _loaded(setting, expansion, frame, drill)


def idle_pair(setting: Setting) -> tuple[Snapshot, Snapshot]:
    """Returns two snapshots without load between them; the second is the one before the load."""
    asked = setting.asked
    with asked.watch.stage("idle"):
        first = setting.collector.snapshot("idle")
        wait_s = max(asked.options.idle_s, cache_s(first) + _MARGIN_S)
        _tell(asked, "idle", f"{wait_s:.0f} s without load")
        asked.environment.clock.sleep_s(wait_s)
        return first, setting.collector.snapshot("before", settle=True)


def _loaded(setting: Setting, expansion: Expansion, frame: Evidence, drill: Drill | None) -> Measured:
    asked, clock = setting.asked, setting.asked.environment.clock
    started_ns = clock.now_ns()
    if drill is not None:
        drill.arm(frame.links)
    try:
        prepare(setting, expansion)
        with asked.watch.stage("load"):
            rounds, samples = _rounds(setting, expansion, frame)
    finally:
        if drill is not None:
            drill.disarm()
    ended_ns = clock.now_ns()
    with asked.watch.stage("quiesce"):
        after = settled(setting, frame.before)
    evidence = replace(
        frame,
        after=after,
        jobs=tuple(map(summary_of, rounds)),
        samples=samples,
        load_started_ns=started_ns,
        load_ended_ns=ended_ns,
    )
    return Measured(evidence, rounds)


def settled(setting: Setting, before: Snapshot) -> Snapshot:
    """Returns the snapshot after a load, once what comes late has come and counters' caches are fresh."""
    asked = setting.asked
    wait_s = max(asked.options.quiesce_s, cache_s(before)) + _MARGIN_S
    _tell(asked, "quiesce", f"{wait_s:.0f} s for what comes late")
    asked.environment.clock.sleep_s(wait_s)
    return setting.collector.snapshot("after", wait_s=_BACK_S, settle=True)


def prepare(setting: Setting, expansion: Expansion) -> None:
    """Writes scratch, where there is any: what stands in it is known to the agents that wrote it, and to no others.

    Raises:
        FabricError: it could not be written.
    """
    asked = setting.asked
    if not asked.options.scratch:
        return
    _tell(asked, "prepare", f"{len(expansion.preparations)} namespaces are written")
    with asked.watch.stage("prepare"):
        found = setting.agents.prepare(expansion.preparations)
    for error in found.errors.values():
        raise error


def _rounds(
    setting: Setting, expansion: Expansion, frame: Evidence
) -> tuple[tuple[RoundResult, ...], tuple[Snapshot, ...]]:
    """The load, again and again until as many packets as asked have been sent; counters of the ends after each time."""
    asked = setting.asked
    clock, wanted = asked.environment.clock, asked.options.packets
    end_ns = clock.now_ns() + round(asked.options.longest_s * 1e9)
    rounds: list[RoundResult] = []
    samples: list[Snapshot] = []
    sent = 0
    while True:
        for one in expansion.rounds:
            rounds.append(run_round(one, setting.agents, asked.environment))
            if rounds[-1].errors:  # a host is gone: what it did not send proves nothing, and the rest would not either
                return tuple(rounds), tuple(samples)
        if not wanted or clock.now_ns() >= end_ns:
            return tuple(rounds), tuple(samples)
        samples.append(setting.collector.snapshot(f"sample-{len(samples) + 1}", switches=False))
        before, sent = sent, _sent(frame, samples[-1], rounds)
        _tell(asked, "packets", f"{sent:,} of {wanted:,}")
        if sent >= wanted or sent <= before:
            return tuple(rounds), tuple(samples)


def _sent(frame: Evidence, now: Snapshot, rounds: Sequence[RoundResult]) -> int:
    packets = judge(replace(frame, after=now, idle=None, jobs=tuple(map(summary_of, rounds)))).packets
    return 0 if packets is UNKNOWN else packets


def _tell(asked: Asked, stage: str, message: str) -> None:
    asked.environment.observer(Event(f"verify.{stage}.started", message=message))
