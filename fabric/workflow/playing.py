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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from fabric.errors import HostError
from fabric.host.change import Part
from fabric.observe import Event, Observer
from fabric.remote.ansible import PlaybookRun, VaultOptions
from fabric.resources import data_path
from fabric.serial import Json
from fabric.state import DeviceResult, Outcome
from fabric.workflow.hosts import LINUX, failed_result, record_result, results_of

__all__ = ("BACK", "CONNECT", "DISCONNECT", "FORWARD", "HOSTS", "STATUS", "TARGETS", "Play", "PlaybookRunner", "Stage")


class PlaybookRunner(Protocol):
    """What runs one playbook; `fabric.remote.ansible.run_playbook`, or a test's own."""

    def __call__(
        self,
        playbook: Path,
        *,
        sources: Sequence[Path] = (),
        extra_vars: Mapping[str, Json] | None = None,
        vault: VaultOptions | None = None,
        limit: str = "",
        observer: Observer = ...,
        check: bool = False,
    ) -> PlaybookRun:
        """Returns how the playbook ended; with `check` in check mode."""
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


@dataclass(frozen=True, slots=True)
class Play:
    """How the playbooks of one run are called.

    Attributes:
        run: the run folder.
        runner: runs them.
        sources, extra_vars, vault: of the request.
        check: in check mode: nothing changes.
        disruptive: changes that interrupt traffic may be performed.
    """

    run: Path
    runner: PlaybookRunner
    sources: tuple[Path, ...]
    extra_vars: Mapping[str, Json]
    vault: VaultOptions | None
    observer: Observer
    check: bool = False
    disruptive: bool = False

    def __call__(self, stage: Stage, hosts: Sequence[str]) -> dict[str, str]:
        """Runs the playbook of `stage` on `hosts`; returns why a host failed, by host, as far as Ansible said it.

        A part of `stage.parts` that left no result has one afterwards.
        """
        if not hosts:
            return {}
        heard = _Heard(self.observer)
        ended = self.runner(
            data_path("playbooks", stage.playbook),
            sources=self.sources,
            extra_vars={**self.extra_vars, "run": str(self.run.absolute()), "disruptive": self.disruptive},
            vault=self.vault,
            limit=",".join(hosts),
            observer=heard,
            check=self.check,
        )
        why = heard.why | {host: heard.why.get(host, "a task failed") for host in ended.failed_hosts if host}
        silent = "" if ended.is_ok or why else f"ansible-playbook ended as {ended.status} ({ended.exit_code})"
        for host, part in self._missing(stage, hosts):
            error = HostError(
                why.get(host) or silent or "it left no result",
                remedy=f"Look at it by itself: ansible-playbook -i … playbooks/{stage.playbook} --limit {host} -v",
            )
            record_result(self.run, part, failed_result(host, error))
        return why if not silent else dict.fromkeys(hosts, silent)

    def refuse(self, stage: Stage, hosts: Sequence[str], reason: str, remedy: str = "") -> None:
        """Records for each part of `stage` that it was not touched, and why."""
        refused = DeviceResult("", LINUX, Outcome.REFUSED, error=reason, remedy=remedy)
        for host in hosts:
            for part in stage.parts:
                record_result(self.run, part, replace(refused, device=host))

    def _missing(self, stage: Stage, hosts: Sequence[str]) -> Iterator[tuple[str, Part]]:
        """Yields the parts without a result: after one that failed, the next is not begun, which is no failure."""
        results = results_of(self.run)
        for host in hosts:
            for part in stage.parts:
                if (host, part) not in results:
                    yield host, part
                    break


class _Heard:
    """Passes events on, and keeps what Ansible said of hosts that failed."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.why: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        if event.name.endswith(".failed") and event.device:
            self.why.setdefault(event.device, event.message)
        self._observer(event)
