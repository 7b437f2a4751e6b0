"""The hosts' part of a run, as Ansible performs it: which playbook, on which hosts, with what; and what was missing.

The playbooks stand alone too. Called from here they get the extra variables `run` (the run folder, absolute) and
`disruptive`, and a limit that names each host; what they did is read from the run folder afterwards, never from their
output. Every host gets a result: one that left none, because nobody could log in or a task died, gets FAILED here.

| playbook | hosts | parts |
|---|---|---|
| targets.yml | targets | nic, target |
| hosts.yml | hosts | nic |
| connect.yml | hosts | connect |
| status.yml | both | reads, `record_report` |
| back.yml | both | what `load_change` has: connect of hosts, nic of hosts, target and nic of targets |
| disconnect.yml | hosts | disconnects what the intent connects; part connect |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from fabric.errors import FabricError, HostError
from fabric.host.change import Part, PartChange
from fabric.observe import Observer
from fabric.remote.ansible import PlaybookRun, VaultOptions
from fabric.resources import data_path
from fabric.serial import Json
from fabric.state import DeviceResult, Outcome
from fabric.workflow.hosts import (
    LINUX,
    back_result,
    changes_of,
    failed_result,
    load_change,
    part_result,
    record_result,
    results_of,
)

__all__ = (
    "BACK",
    "CONNECT",
    "DISCONNECT",
    "FORWARD",
    "HOSTS",
    "STATUS",
    "STOPPED",
    "TARGETS",
    "Play",
    "PlaybookRunner",
    "Stage",
)

_WELL: Final = frozenset({Outcome.UNCHANGED, Outcome.COMMITTED})
STOPPED: Final = "the run was stopped before this host's turn"
_STOPPED: Final = "canceled"  # ansible-runner's word after Ctrl-C


class PlaybookRunner(Protocol):
    """What runs one playbook; `fabric.remote.ansible.run_playbook`, or a test's own."""

    def __call__(  # noqa: PLR0913 - the words of `run_playbook`
        self,
        playbook: Path,
        *,
        sources: Sequence[Path] = (),
        extra_vars: Mapping[str, Json] | None = None,
        vault: VaultOptions | None = None,
        limit: str = "",
        observer: Observer = ...,
        check: bool = False,
        forks: int = 0,
    ) -> PlaybookRun:
        """Returns how the playbook ended; with `check` in check mode, `forks` hosts at once (0: Ansible's default)."""
        ...


@dataclass(frozen=True, slots=True)
class Stage:
    """One playbook of the hosts' part.

    Attributes:
        name: of the stage, as timings have it.
        role: of the hosts concerned, "" for both.
        parts: what it works on.
    """

    name: str
    playbook: str
    role: str
    parts: tuple[Part, ...]


TARGETS: Final = Stage("targets", "targets.yml", "target", (Part.NIC, Part.TARGET))
HOSTS: Final = Stage("hosts", "hosts.yml", "host", (Part.NIC,))
CONNECT: Final = Stage("connect", "connect.yml", "host", (Part.CONNECT,))
FORWARD: Final = (TARGETS, HOSTS, CONNECT)
STATUS: Final = Stage("read hosts", "status.yml", "", ())
BACK: Final = Stage("hosts back", "back.yml", "", ())
DISCONNECT: Final = Stage("disconnect", "disconnect.yml", "host", (Part.CONNECT,))


@dataclass(slots=True)
class Asked:
    """What somebody asked for while playbooks ran."""

    to_stop: bool = False


@dataclass(frozen=True, slots=True)
class Play:
    """How the playbooks of one run are called.

    Attributes:
        run: the run folder.
        runner: runs them.
        sources, extra_vars, vault: of the request.
        check: in check mode: nothing changes.
        disruptive: changes that interrupt traffic may be performed.
        forks: hosts at once.
        asked: whether somebody asked for the end: Ctrl-C.
    """

    run: Path
    runner: PlaybookRunner
    sources: tuple[Path, ...]
    extra_vars: Mapping[str, Json]
    vault: VaultOptions | None
    observer: Observer
    check: bool = False
    disruptive: bool = False
    forks: int = 0
    asked: Asked = field(default_factory=Asked)

    def __call__(self, stage: Stage, hosts: Sequence[str], *, hold: bool = False) -> dict[str, str]:
        """Runs the playbook of `stage` on `hosts`; returns why a host failed, by host.

        Every part of `stage.parts` has a result afterwards, until one that did not end well.

        Args:
            stage: which.
            hosts: those concerned.
            hold: another stage follows for the same hosts, so that they keep the run's lock.
        """
        if not hosts:
            return {}
        more: Mapping[str, Json] = {"hold": True} if hold else {}
        try:
            ended = self.runner(
                data_path("playbooks", stage.playbook),
                sources=self.sources,
                extra_vars={**self.extra_vars, "run": str(self.run.absolute()), "disruptive": self.disruptive, **more},
                vault=self.vault,
                limit=",".join(hosts),
                observer=self.observer,
                check=self.check,
                forks=self.forks,
            )
        except FabricError as error:  # something is missing here: what earlier stages did must be told all the same
            ended = PlaybookRun("failed", 1, (), is_changed=False, said=str(error))
        self.asked.to_stop = self.asked.to_stop or ended.status == _STOPPED
        why = _reasons(ended, hosts)
        for host, part in self._missing(stage, hosts):
            record_result(self.run, part, self._left_none(host, part, why.get(host, ""), stage, ended))
        return why

    def back(self, hosts: Sequence[str], left_out: Mapping[str, str]) -> None:
        """Runs `BACK`; each change of the run has a result afterwards, REFUSED for the hosts left out, by reason."""
        why = self(BACK, hosts)
        for change in changes_of(self.run):
            results = results_of(self.run)
            if (change.host, change.part) in results:
                continue
            ended = [one.outcome for (host, _), one in results.items() if host == change.host]
            if change.host not in left_out and any(one not in _WELL for one in ended):
                self._not_begun(change)
                continue
            error = HostError(
                left_out.get(change.host) or why.get(change.host) or "it left no result",
                remedy="Make the host reachable and run the same rollback again.",
            )
            failed = Outcome.FAILED if self.check else Outcome.ROLLBACK_FAILED
            outcome = Outcome.REFUSED if change.host in left_out else failed
            record_result(self.run, change.part, back_result(change, outcome, error))

    def _not_begun(self, change: PartChange) -> None:
        error = HostError(
            "not begun, since an earlier part of this host was not taken back",
            remedy="Mend what is named there and run the same rollback again.",
        )
        record_result(self.run, change.part, back_result(change, Outcome.REFUSED, error))

    def refuse(self, stage: Stage, hosts: Sequence[str], reason: str, remedy: str = "") -> None:
        """Records for each part of `stage` that it was not touched, and why."""
        refused = DeviceResult("", LINUX, Outcome.REFUSED, error=reason, remedy=remedy)
        for host in hosts:
            for part in stage.parts:
                record_result(self.run, part, replace(refused, device=host))

    def _missing(self, stage: Stage, hosts: Sequence[str]) -> Iterator[tuple[str, Part]]:
        """Yields the first part of each host without a result, unless one before it did not end well."""
        results = results_of(self.run)
        for host in hosts:
            for part in stage.parts:
                result = results.get((host, part))
                if result is None:
                    yield host, part
                if result is None or result.outcome not in _WELL:
                    break

    def _left_none(self, host: str, part: Part, why: str, stage: Stage, ended: PlaybookRun) -> DeviceResult:
        """Returns how a part ended that has no result of its own."""
        change = load_change(self.run, host, part)
        if change is not None and not self.check:
            error = HostError(
                why or "it left no result",
                remedy="The change was begun. Provision again, or take this run back: both read the host anew.",
            )
            return part_result(change, Outcome.UNCERTAIN, error)
        if ended.status == _STOPPED:
            error = HostError(STOPPED, remedy="Run again.")
            return replace(failed_result(host, error), outcome=Outcome.REFUSED)
        remedy = f"See more with: ansible-playbook -v --limit {host} … playbooks/{stage.playbook}"
        return failed_result(host, HostError(why or "it left no result", remedy=remedy))


def _reasons(ended: PlaybookRun, hosts: Sequence[str]) -> dict[str, str]:
    """Returns why each host failed; where Ansible failed as a whole, that for each."""
    failed = [host for host in ended.failed_hosts if host in hosts]
    why = {host: ended.reasons.get(host, "a task failed").removeprefix(f"{host}: ") for host in failed}
    if ended.is_ok or why:
        return why
    return dict.fromkeys(hosts, ended.said or f"ansible-playbook ended as {ended.status} ({ended.exit_code})")
