"""`fabricctl hosts …`: hosts and targets alone. Options in, one call of `workflow`, text and an exit code out."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.running import environment_of, finish, request_of

if TYPE_CHECKING:
    from fabric.workflow import Environment, Request, Summary

__all__ = ("hosts_app",)

hosts_app = typer.Typer(
    name="hosts",
    help="Set up, read and connect hosts and targets alone, through the playbooks. No switch is contacted.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DetailedExitcode = Annotated[bool, typer.Option("--detailed-exitcode", help="Exit 10 when there are changes.")]


@hosts_app.command("plan")
@reported
def plan(
    inventory: o.Inventory,
    *,
    detailed_exitcode: DetailedExitcode = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Read hosts and targets, show what would change. Changes nothing.

    \b
    fabricctl hosts plan -i inventory/lab --limit host1 --full
    """
    from fabric.workflow import plan_hosts

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(inventory, extra_vars, limit=limit, runs=runs, vault=vault)
    finish(printer, plan_hosts(request, environment_of(printer)), full=full, changes_matter=detailed_exitcode)


@hosts_app.command("apply")
@reported
def apply(
    inventory: o.Inventory,
    *,
    disruptive: o.Disruptive = False,
    dry_run: o.DryRun = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Set up targets and hosts, connect, read again.

    \b
    fabricctl hosts apply -i inventory/lab
    """
    from fabric.workflow import apply_hosts

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "disruptive": disruptive, "dry_run": dry_run}
    request = request_of(inventory, extra_vars, **more)
    finish(printer, apply_hosts(request, environment_of(printer)), full=full)


@hosts_app.command("status")
@reported
def status(
    inventory: o.Inventory,
    *,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Show NICs, connections and published subsystems.

    \b
    fabricctl hosts status -i inventory/lab --json | jq '.reports[].reading.state.nics'
    """
    from fabric.cli.hoststatus import status_lines
    from fabric.workflow import hosts_status

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(inventory, extra_vars, limit=limit, runs=runs, vault=vault)
    found = hosts_status(request, environment_of(printer))
    for text, style in status_lines(found.reports):
        printer.line(text, style=style)
    finish(printer, found.summary, document=found)


@hosts_app.command("connect")
@reported
def connect(
    inventory: o.Inventory,
    *,
    disruptive: o.Disruptive = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Connect hosts to their subsystems, now and at boot.

    \b
    fabricctl hosts connect -i inventory/lab --limit host1
    """
    from fabric.workflow import connect_hosts

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "disruptive": disruptive}
    _run(connect_hosts, printer, request_of(inventory, extra_vars, **more), full=full)


@hosts_app.command("disconnect")
@reported
def disconnect(
    inventory: o.Inventory,
    *,
    disruptive: o.Disruptive = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Disconnect hosts from their subsystems, now and at boot.

    \b
    fabricctl hosts disconnect -i inventory/lab --limit host1 --disruptive
    """
    from fabric.workflow import disconnect_hosts

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "disruptive": disruptive}
    _run(disconnect_hosts, printer, request_of(inventory, extra_vars, **more), full=full)


def _run(
    verb: "Callable[[Request, Environment], Summary]", printer: Printer, request: "Request", *, full: bool
) -> None:
    finish(printer, verb(request, environment_of(printer)), full=full)
