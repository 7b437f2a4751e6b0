"""The verbs on the command line: options in, one call of `workflow`, text and an exit code out. No logic.

Heavy imports stand inside the verbs: `fabricctl --help` must not pay for netmiko, Ansible or pydantic.
"""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fabric.cli import options as o
from fabric.cli.bundle import support_bundle
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.hosts import hosts_app
from fabric.cli.importing import import_
from fabric.cli.lab import app as lab_app
from fabric.cli.nvme import nvme_app
from fabric.cli.running import environment_of, finish, request_of
from fabric.cli.target import target_app
from fabric.cli.tune import tune
from fabric.cli.verify import verify

__all__ = ("app",)

_EPILOG = "Exit codes: 0 ok, 1 findings, 2 usage, 3 inventory, 4 device or host, 5 environment, 10 changes (plan)."

app = typer.Typer(
    name="fabricctl",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.add_typer(hosts_app, name="hosts", short_help="Set up, read and connect hosts and targets alone.")
app.add_typer(lab_app, name="lab")
app.add_typer(nvme_app, name="nvme", short_help="Look at NVMe/TCP targets, read and write their blocks.")
app.add_typer(target_app, name="target")
app.command("import")(import_)
app.command("verify")(verify)
app.command("tune")(tune)
app.command("support-bundle")(support_bundle)


def _version(*, wanted: bool) -> None:
    if wanted:
        from fabric import __version__

        typer.echo(f"fabricctl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=lambda value: _version(wanted=value), is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Provision, check and prove RoCEv2 fabrics that carry NVMe-oF for LLM inference.

    \b
    fabricctl init site              write a starter inventory
    fabricctl check -i site          judge the intent before any device is touched
    fabricctl plan -i site -o p.json show what would change, save it
    fabricctl provision p.json       apply exactly that, under a timer, or refuse
    fabricctl verify -i site         prove under load that nothing is lost
    fabricctl tune -i site           find the queue policy that is fastest without losing
    fabricctl rollback runs/RUN      take a run back
    """
    del version


@app.command()
@reported
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder.")], *, as_json: o.Json = False
) -> None:
    """Write a starter inventory that loads as it is.

    \b
    fabricctl init site && fabricctl check -i site
    """
    from fabric.intent import example

    printer = Printer(as_json=as_json)
    written = example(directory)
    printer.document([str(path) for path in written])
    for path in written:
        printer.line(f"wrote {path}")
    printer.line(f"next: fabricctl check -i {directory}")


@app.command()
@reported
def show(
    inventory: o.Inventory,
    *,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
) -> None:
    """Show the intent and its numbers. Contacts nobody.

    \b
    fabricctl show -i inventory/demo
    fabricctl show -i inventory/demo --json | jq '.plan.switches[0].qos'
    """
    from fabric.cli.showing import intent_lines
    from fabric.workflow import intent_and_plan

    printer = Printer(as_json=as_json)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(inventory, extra_vars, limit=limit, vault=vault, hosts=True)
    shown = intent_and_plan(request, environment_of(printer))
    printer.document(shown)
    for text, style in intent_lines(shown):
        printer.line(text, style=style)


@app.command()
@reported
def render(
    inventory: o.Inventory,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write one file a switch to.")] = None,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
) -> None:
    """Print each switch's intended configuration. Contacts nobody.

    \b
    fabricctl render -i inventory/demo --limit leaf3
    fabricctl render -i inventory/demo -o rendered/
    """
    from fabric.workflow import rendered

    printer = Printer(as_json=as_json)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    texts = rendered(request_of(inventory, extra_vars, limit=limit, vault=vault), environment_of(printer))
    if output is not None:
        from fabric.workflow import write_rendered

        for path in write_rendered(texts, output):
            printer.line(f"wrote {path}")
    else:
        for one in texts:
            printer.line(f"! {one.device} ({one.nos})" if len(texts) > 1 else "", style="bold")
            printer.line(one.text.rstrip("\n"))
    printer.document(texts)


@app.command()
@reported
def check(
    inventory: o.Inventory,
    *,
    live: Annotated[bool, typer.Option("--live", help="Judge what the devices run now, not the plan.")] = False,
    switches_only: o.SwitchesOnly = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge the intent, before any device is touched.

    \b
    fabricctl check -i inventory/demo          exit 1 on findings: a gate for CI
    fabricctl check -i inventory/demo --live   judge running configurations, counters and hosts
    """
    from fabric.workflow import check as run_check

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "hosts": not switches_only}
    request = request_of(inventory, extra_vars, **more)
    finish(printer, run_check(request, environment_of(printer), live=live))


@app.command()
@reported
def plan(
    inventory: o.Inventory,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the plan, to apply exactly it.")] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 10 when there are changes.")
    ] = False,
    adopt: o.Adopt = False,
    install: o.Install = False,
    switches_only: o.SwitchesOnly = False,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    workers: o.Workers = 8,
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Read the devices, show what would change. Changes nothing.

    \b
    fabricctl plan -i inventory/demo --full
    fabricctl plan -i inventory/demo -o plan.json && fabricctl provision plan.json
    """
    from fabric.workflow import plan as run_plan
    from fabric.workflow import write_document

    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(
        inventory,
        extra_vars,
        limit=limit,
        runs=runs,
        vault=vault,
        adopt=adopt,
        install=install,
        workers=workers,
        hosts=not switches_only,
    )
    summary, document = run_plan(request, environment_of(printer))
    if output is not None:
        write_document(output, document)
        printer.line(f"plan saved: {output}; apply it with: fabricctl provision {output}")
    finish(printer, summary, full=full, changes_matter=detailed_exitcode)


@app.command()
@reported
def provision(
    plan_file: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="A plan that `plan -o` saved: applied exactly, or refused.")
    ] = None,
    *,
    inventory: o.OptionalInventory = None,
    adopt: o.Adopt = False,
    disruptive: o.Disruptive = False,
    install: o.Install = False,
    force: o.Force = False,
    dry_run: o.DryRun = False,
    switches_only: o.SwitchesOnly = False,
    confirm_s: o.ConfirmS = 300,
    failure_budget: o.FailureBudget = "",
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    workers: o.Workers = 8,
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check, push switches under a timer, set up hosts, read again.

    \b
    fabricctl provision -i inventory/demo
    fabricctl provision plan.json              exactly what was reviewed
    fabricctl provision plan.json --dry-run    the devices judge it, nothing is applied
    fabricctl provision plan.json --failure-budget 10%   one failure more, and all of it is taken back
    """
    from fabric.workflow import PlanDocument, parse_budget, read_document
    from fabric.workflow import provision as run_provision

    printer = Printer(as_json=as_json, quiet=quiet)
    saved = read_document(plan_file, PlanDocument) if plan_file else None
    sources = list(inventory or ()) or [Path(one) for one in (saved.sources if saved else ())]
    _needs_inventory(sources)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(
        sources,
        extra_vars,
        limit=limit,
        runs=runs,
        vault=vault,
        adopt=adopt,
        disruptive=disruptive,
        install=install,
        force=force,
        dry_run=dry_run,
        confirm_s=confirm_s,
        workers=workers,
        failure_budget=parse_budget(failure_budget),
        hosts=not switches_only,
    )
    finish(printer, run_provision(request, environment_of(printer), saved=saved), full=full)


@app.command()
@reported
def rollback(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder of a provisioning.")],
    *,
    inventory: o.OptionalInventory = None,
    disruptive: o.Disruptive = False,
    switches_only: o.SwitchesOnly = False,
    dry_run: o.DryRun = False,
    strict: o.Strict = False,
    confirm_s: o.ConfirmS = 300,
    extra_vars: o.ExtraVars = None,
    runs: o.Runs = Path("runs"),
    workers: o.Workers = 8,
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
    full: o.Full = False,
) -> None:
    """Take a run back: hosts first, then the switches.

    What others changed since is kept and told: then the exit is 1.

    \b
    fabricctl rollback runs/20261129-171122-provision --dry-run
    fabricctl rollback runs/20261129-171122-provision
    """
    from fabric.workflow import rollback as run_rollback
    from fabric.workflow import sources_of_run

    printer = Printer(as_json=as_json, quiet=quiet)
    sources = list(inventory or ()) or list(sources_of_run(run))
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    request = request_of(
        sources,
        extra_vars,
        runs=runs,
        vault=vault,
        disruptive=disruptive,
        dry_run=dry_run,
        strict=strict,
        confirm_s=confirm_s,
        workers=workers,
        hosts=not switches_only,
    )
    finish(printer, run_rollback(run, request, environment_of(printer)), full=full)


@app.command()
@reported
def doctor(*, as_json: o.Json = False) -> None:
    """Say what this machine lacks, with the exact fix.

    Exit 5 if something is missing that the main job needs.
    """
    from fabric.cli.exits import Exit
    from fabric.workflow import doctor as run_doctor

    printer = Printer(as_json=as_json)
    found = run_doctor()
    printer.document(found)
    for one in found:
        printer.line(f"{'ok     ' if one.ok else 'missing' if one.needed else 'absent '} {one.name}: {one.told}")
        if not one.ok:
            printer.line(f"        → {one.remedy}")
    if any(one.needed and not one.ok for one in found):
        raise typer.Exit(Exit.ENVIRONMENT)


@app.command()
@reported
def demo(
    *,
    runs: o.Runs = Path("runs"),
    serve: Annotated[bool, typer.Option("--serve", help="Keep the fabric up afterwards, to try things on it.")] = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run the main job on six emulated switches here.

    \b
    fabricctl demo
    fabricctl demo --serve     then plan, provision and roll back by hand
    """
    from fabric.cli.demo import run_demo

    printer = Printer(as_json=as_json, quiet=quiet)
    raise typer.Exit(run_demo(printer, runs, serve=serve))


def _needs_inventory(sources: Sequence[Path]) -> None:
    if not sources:
        raise typer.BadParameter("name an inventory (-i) or a saved plan")
