"""The hosts' part of each verb: stages in order, who is left out and why, and what the hosts say afterwards."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

from fabric.host.report import HostReport
from fabric.intent import Fabric
from fabric.workflow.environment import Environment
from fabric.workflow.hostoutcomes import failed_ends
from fabric.workflow.hosts import hosts_of, reports_of
from fabric.workflow.playing import BACK, FORWARD, STATUS, STOPPED, Play, Stage
from fabric.workflow.request import Request

__all__ = ("bring_about", "no_longer_managed", "play_of", "read_hosts", "take_back")

Timer: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""`Stopwatch.stage`."""


def play_of(run: Path, request: Request, environment: Environment, *, check: bool = False) -> Play:
    """Returns how the playbooks are called for this run."""
    return Play(
        run=run,
        runner=environment.runner,
        sources=request.sources,
        extra_vars=request.extra_vars,
        vault=request.vault,
        observer=environment.observer,
        check=check,
        disruptive=request.disruptive,
        forks=request.workers,
    )


def bring_about(play: Play, timer: Timer, *, stages: Sequence[Stage] = FORWARD, why_not: str = "") -> None:
    """Brings hosts to what their intents say, targets first; results lie in the run folder afterwards.

    A host whose earlier part did not end well is left alone; the others go on.

    Args:
        play: how playbooks are called; its run has intents.
        timer: times each stage.
        stages: what shall be done.
        why_not: why nothing may be touched, "" when it may.
    """
    for at, stage in enumerate(stages):
        left = dict.fromkeys(hosts_of(play.run, stage.role), why_not) if why_not else _left_out(play, stage)
        for host, reason in left.items():
            play.refuse(stage, (host,), reason, "Mend what is named and run again.")
        going = tuple(host for host in hosts_of(play.run, stage.role) if host not in left)
        if play.asked.to_stop:  # Ctrl-C ends the playbook that runs; no other may begin
            play.refuse(stage, going, STOPPED, "Run again.")
            continue
        if going:
            with timer(stage.name):
                play(stage, going, hold=any(one.role == stage.role for one in stages[at + 1 :]))


def read_hosts(play: Play, timer: Timer) -> tuple[dict[str, HostReport], dict[str, str]]:
    """Returns what each host of the run says of itself, and why one said nothing, by host."""
    hosts = hosts_of(play.run)
    if not hosts:
        return {}, {}
    with timer(STATUS.name):
        why = play(STATUS, hosts)
    reports = reports_of(play.run)
    return reports, {host: why.get(host, "it left no report") for host in hosts if host not in reports}


def no_longer_managed(fabric: Fabric, hosts: Iterable[str]) -> dict[str, str]:
    """Returns why a host of an earlier run may not be contacted now, by host."""
    managed = {one.name for one in fabric.hosts if one.managed} | {one.name for one in fabric.targets if one.managed}
    return {host: "the inventory no longer has it as managed" for host in hosts if host not in managed}


def take_back(play: Play, timer: Timer, *, left_out: Mapping[str, str]) -> None:
    """Takes back what `prepare_back` put into the run folder; results lie there afterwards.

    Args:
        play: how playbooks are called.
        timer: times it.
        left_out: why a host may not be touched, by host.
    """
    with timer(BACK.name):
        play.back([host for host in hosts_of(play.run) if host not in left_out], left_out)


def _left_out(play: Play, stage: Stage) -> dict[str, str]:
    """Returns why a host is not worked on in this stage, by host; what its targets came to, the stage itself asks."""
    bad = failed_ends(play.run)
    reason = "not begun, since an earlier part of this host did not end well"
    return {host: reason for host in hosts_of(play.run, stage.role) if host in bad}
