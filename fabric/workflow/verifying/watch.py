"""Light reads between all pairs that go on, judged window by window, until a packet is lost or somebody stops it.

A window is a load, a wait for what comes late, and the counters of everybody; its first snapshot is the last one of the
window before. A window that proves nothing (a host rebooted) is counted and told, and the watch goes on.
"""

from dataclasses import dataclass, replace
from typing import Final

from fabric.errors import FabricError
from fabric.observe import Event
from fabric.state import Finding, Snapshot
from fabric.verify import Evidence, Verdict, VerdictStatus, judge
from fabric.workflow.environment import Environment
from fabric.workflow.expanding import Expansion
from fabric.workflow.request import Request
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.verifying.concluding import Verified, conclude_verdict, reason_of
from fabric.workflow.verifying.loading import RoundResult, run_round, summary_of
from fabric.workflow.verifying.options import VerifyOptions
from fabric.workflow.verifying.phases import idle_pair, prechecked, prepare, settled
from fabric.workflow.verifying.prechecks import is_refused
from fabric.workflow.verifying.setting import Asked, Setting, asked_of, expanded, links_of, opened
from fabric.workflow.verifying.watchmetrics import Totals, WatchMetrics, served

__all__ = ("WATCH_PROFILE", "WatchOptions", "Watched", "watch")

WATCH_PROFILE: Final = "watch"
_AGAIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How long, and who may read the metrics.

    Attributes:
        total_s: None: until somebody stops it.
        listen: address and port of the metrics, None: nothing listens.
    """

    total_s: float | None = None
    listen: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """What a watch came to.

    Attributes:
        windows: (verdict, how many). packets: over all of them. bound_95: on the loss rate; None without a packet.
        last: of the last window, None when there was none.
    """

    windows: tuple[tuple[str, int], ...]
    packets: int
    bound_95: float | None
    last: Verified | None


@dataclass(slots=True)
class _Window:
    """The last window, as it is concluded."""

    setting: Setting
    evidence: Evidence
    verdict: Verdict
    rounds: tuple[RoundResult, ...] = ()


class _Watch:
    def __init__(self, asked: Asked, folder: RunFolder, options: WatchOptions, metrics: WatchMetrics | None) -> None:
        self._asked, self._folder, self._metrics = asked, folder, metrics
        self._clock = asked.environment.clock
        self._end_ns = None if options.total_s is None else self._clock.now_ns() + round(options.total_s * 1e9)
        self._prechecks: tuple[Finding, ...] | None = None
        self.totals = Totals()
        self.last: _Window | None = None

    def run(self) -> None:
        """Watches until a loss, the end of the time, or Ctrl-C."""
        try:
            while not self._is_over():
                with opened(self._asked, self._folder) as setting:
                    self._watch(setting)
                if not self._is_over():
                    self._clock.sleep_s(_AGAIN_S)
        except KeyboardInterrupt:  # the orderly end of a watch; agents have been told to stop by now
            self._asked.environment.observer(Event("verify.watch.done", message="stopped"))

    def _is_over(self) -> bool:
        if self.last is not None and self.last.verdict.status is VerdictStatus.FAIL:
            return True
        if self.last is not None and not self.last.evidence.jobs:
            return True  # checks failed: there will be no load
        return self._end_ns is not None and self._clock.now_ns() >= self._end_ns

    def _watch(self, setting: Setting) -> None:
        """Windows over one set of sessions; ends when one of them is lost, too."""
        if self._prechecks is None:
            found = prechecked(setting)
            if is_refused(found) and not self._asked.options.go_on:
                self._refuse(setting, found)
                return
            self._prechecks = found
        elif setting.agents.errors:
            return
        try:
            expansion = expanded(setting)
            prepare(setting, expansion)
        except FabricError as error:  # a target that is away now may come back
            if self.last is None:
                raise
            self._asked.environment.observer(Event("verify.watch.failed", message=str(error)))
            return
        idle = idle_pair(setting)
        before = idle[1]
        while not self._is_over() and not setting.agents.errors:
            before = self._window(setting, expansion, idle, before)

    def _refuse(self, setting: Setting, found: tuple[Finding, ...]) -> None:
        now_s = self._clock.unix_s()
        empty = Snapshot("before", now_s)
        evidence = Evidence(empty, Snapshot("after", now_s), classes=self._asked.classes, prechecks=found)
        self.last = _Window(setting, evidence, judge(evidence))

    def _window(
        self, setting: Setting, expansion: Expansion, idle: tuple[Snapshot, Snapshot], before: Snapshot
    ) -> Snapshot:
        started_ns = self._clock.now_ns()
        rounds = tuple(run_round(one, setting.agents, self._asked.environment) for one in expansion.rounds)
        ended_ns = self._clock.now_ns()
        after = settled(setting, before)
        evidence = Evidence(
            before=before,
            after=after,
            idle=idle,
            jobs=tuple(map(summary_of, rounds)),
            links=links_of(setting, expansion),
            classes=self._asked.classes,
            prechecks=self._prechecks or (),
            load_started_ns=started_ns,
            load_ended_ns=ended_ns,
            go_on=self._asked.options.go_on,
            unmanaged=self._asked.unmanaged,
        )
        verdict = judge(evidence)
        self.last = _Window(setting, evidence, verdict, rounds)
        self.totals.add(verdict)
        if self._metrics is not None:
            self._metrics.observe(verdict, rounds, self.totals, unix_s=self._clock.unix_s())
        bound = self.totals.bound_95
        told = f"{verdict.status.value}; {self.totals.packets:,} packets so far" + (
            f", loss rate <= {bound:.3g} at 95%" if bound is not None else ""
        )
        if why := reason_of(verdict):
            told += f"; {why}"
        data = {"verdict": verdict.status.value, "packets": self.totals.packets, "lost": self.totals.lost}
        self._asked.environment.observer(Event("verify.window.done", message=told, data=data))
        return after


def watch(request: Request, environment: Environment, options: VerifyOptions, watching: WatchOptions) -> Watched:
    """Returns what was seen until a packet was lost, the time was over, or Ctrl-C came; writes it into a run folder.

    Raises:
        EnvironmentMissingError: the metrics cannot be served; nobody was contacted.
        IntentError, PlanError, FabricError: as `verify`.
    """
    asked = asked_of(replace(request, hosts=True), environment, options)
    with served(watching.listen) as metrics:
        folder = RunFolder.create(request.runs, "watch", environment.clock.unix_s())
        folder.write("fabric", asked.loaded.fabric)
        running = _Watch(asked, folder, watching, metrics)
        running.run()
    last = running.last
    totals = running.totals
    verified = (
        None if last is None else conclude_verdict(last.setting, last.evidence, last.verdict, last.rounds, verb="watch")
    )
    return Watched(tuple(totals.windows.items()), totals.packets, totals.bound_95, verified)
