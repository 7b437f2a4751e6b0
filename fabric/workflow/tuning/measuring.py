"""One trial on a fabric: the policy to every host, the load, the counters before and after it.

The snapshot after a trial is the one before the next: nothing falls between two trials. Changes nothing anywhere but
what was named as scratch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fabric.engine.load import Job
from fabric.errors import HostError
from fabric.policy import ShardPolicy
from fabric.state import Snapshot
from fabric.tune import Goal, Outcome
from fabric.verify import Evidence, LinkPath, Verdict, VerdictStatus
from fabric.workflow.expanding import Expansion, Round
from fabric.workflow.tuning.outcomes import outcome_of
from fabric.workflow.verifying.loading import RoundResult, run_round, summary_of
from fabric.workflow.verifying.phases import idle_pair, prepare, settled
from fabric.workflow.verifying.setting import Setting, links_of

__all__ = ("FabricMeasurer", "Measured", "bulk_free", "ready")

_BURST_NS: Final = 1_000_000  # long enough for every reader to send once
_REST_NS: Final = 20_000_000
_DRAINED: Final = 10  # times the time that a burst takes on the wire: its last byte is there by then
_SHORTEST_S: Final = 0.5
_BULK: Final = ("tcp-send:", "tcp-listen:")


@dataclass(frozen=True, slots=True)
class Measured:
    """One trial. evidence: all snapshots, where the verdict is no PASS; it can be judged again from them."""

    outcome: Outcome
    verdict: Verdict
    rounds: tuple[RoundResult, ...]
    evidence: Evidence | None = None


@dataclass(slots=True)
class FabricMeasurer:
    """Measures policies on the fabric of a setting, one after the other.

    Attributes:
        expansion: the load. idle: two snapshots without load. before: the last snapshot.
        goal: of the study. seconds: of a trial at full fidelity.
    """

    setting: Setting
    expansion: Expansion
    idle: tuple[Snapshot, Snapshot]
    goal: Goal
    seconds: float
    before: Snapshot
    links: tuple[LinkPath, ...] = ()
    speeds_mbps: Mapping[tuple[str, str], int] = field(default_factory=dict)
    is_marked: bool = True

    def measure(self, policy: ShardPolicy, *, fidelity: float = 1.0, seed: int = 0) -> Measured:
        """Returns what the policy came to.

        Raises:
            HostError: a host gave no result; the trial proves nothing and is to be measured again.
        """
        setting = self.setting
        clock = setting.asked.environment.clock
        seconds = max(_SHORTEST_S, fidelity * self.seconds / len(self.expansion.rounds))
        started_ns = clock.now_ns()
        rounds = tuple(self._round(one, policy, seconds, seed) for one in self.expansion.rounds)
        ended_ns = clock.now_ns()
        after = settled(setting, self.before)
        evidence = Evidence(
            before=self.before,
            after=after,
            idle=self.idle,
            jobs=tuple(map(summary_of, rounds)),
            links=self.links,
            classes=setting.asked.classes,
            load_started_ns=started_ns,
            load_ended_ns=ended_ns,
            unmanaged=setting.asked.unmanaged,
        )
        self.before = after
        outcome, verdict = outcome_of(
            evidence, rounds, goal=self.goal, speeds_mbps=self.speeds_mbps, is_marked=self.is_marked
        )
        return Measured(outcome, verdict, rounds, None if verdict.status is VerdictStatus.PASS else evidence)

    def _round(self, one: Round, policy: ShardPolicy, seconds: float, seed: int) -> RoundResult:
        jobs = {name: self._job(job, policy, seconds, seed) for name, job in one.jobs.items()}
        done = run_round(replace(one, jobs=jobs), self.setting.agents, self.setting.asked.environment)
        for host, why in done.errors:
            remedy = "Nothing was changed on hosts. See to the host, then go on with --resume."
            raise HostError(
                "the host gave no result, and the trial proves nothing", where=host, found=why, remedy=remedy
            )
        return done

    def _job(self, job: Job, policy: ShardPolicy, seconds: float, seed: int) -> Job:
        streams = tuple(one if one.url.startswith(_BULK) else replace(one, policy=policy) for one in job.streams)
        job = replace(job, streams=streams, seconds=seconds, seed=seed)
        return _in_bursts(job, self._slowest_mbps()) if self.goal is Goal.LAST_BYTE else job

    def _slowest_mbps(self) -> int:
        fabric = self.setting.asked.loaded.fabric
        return min(nic.speed_mbps for one in fabric.hosts if one.name in self.setting.asked.hosts for nic in one.nics)


def _in_bursts(job: Job, speed_mbps: int) -> Job:
    """Returns the job with k concurrent reads at once, and a rest until all are there: the slowest is the last byte."""
    together = job.readers * len(job.streams) * job.size_bytes
    wire_ns = together * 8 * 1000 // speed_mbps
    off_ns = max(_REST_NS, _DRAINED * wire_ns)
    return replace(job, on_ns=_BURST_NS, off_ns=off_ns, seconds=max(job.seconds, 3 * (off_ns + _BURST_NS) / 1e9))


def bulk_free(job: Job) -> Job:
    """Returns the job without the lossy traffic beside it."""
    return replace(job, streams=tuple(one for one in job.streams if not one.url.startswith(_BULK)))


def ready(setting: Setting, expansion: Expansion, goal: Goal, seconds: float) -> FabricMeasurer:
    """Returns the measurer, scratch written and the idle pair taken.

    Raises:
        FabricError: scratch could not be written.
    """
    asked = setting.asked
    prepare(setting, expansion)
    idle = idle_pair(setting)
    fabric = asked.loaded.fabric
    return FabricMeasurer(
        setting,
        expansion,
        idle,
        goal,
        seconds,
        before=setting.collector.snapshot("before", settle=True) if asked.options.scratch else idle[1],
        links=links_of(setting, expansion),
        speeds_mbps={(switch.name, port.name): port.speed_mbps for switch in fabric.switches for port in switch.ports},
        is_marked=any(one.policy.ecn_enabled for one in fabric.hosts)
        or any(one.policy.ecn_enabled for one in fabric.targets),
    )
