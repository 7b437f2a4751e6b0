"""What a user asks for: where the inventory is, and how far a run may go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.intent import VaultOptions
from fabric.serial import Json
from fabric.workflow.budget import FailureBudget

__all__ = ("DEFAULT_CONFIRM_S", "Request")

DEFAULT_CONFIRM_S: Final = 300  # long enough to re-read a device, short enough to wait for


@dataclass(frozen=True, slots=True)
class Request:
    """One run.

    Attributes:
        sources: inventory files, folders or scripts, later ones winning.
        limit: an Ansible host pattern; "" for all.
        extra_vars: as `ansible-playbook -e`.
        runs: where run folders are made.
        adopt: change device-wide settings although ports outside the intent feel it.
        disruptive: changes that interrupt traffic may be applied.
        install: install by load and reload where the network OS offers that, whatever it would take in service.
        force: push although the compliance check failed.
        dry_run: let each device judge its change by its own means, and apply nothing.
        confirm_s: seconds after which an unconfirmed change goes back by itself.
        strict: a rollback refuses a device in which others changed what the run owns, instead of keeping theirs.
        workers: how many devices are worked on at once.
        failure_budget: how many switches may fail before a provisioning stops and takes back what it had done; None:
            each has its own end.
        hosts: hosts and targets too, through the playbooks; False: switches only.
    """

    sources: tuple[Path, ...]
    limit: str = ""
    vault: VaultOptions | None = field(default=None, repr=False)
    runs: Path = Path("runs")
    extra_vars: Mapping[str, Json] = field(default_factory=dict)
    adopt: bool = False
    disruptive: bool = False
    install: bool = False
    force: bool = False
    dry_run: bool = False
    strict: bool = False
    confirm_s: int = DEFAULT_CONFIRM_S
    workers: int = 8
    failure_budget: FailureBudget | None = None
    hosts: bool = False
