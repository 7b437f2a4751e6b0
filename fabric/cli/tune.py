"""`fabricctl tune`: options in, one call of `workflow.tuning`, the study and an exit code out. No logic."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.running import environment_of, request_of
from fabric.observe import Event

if TYPE_CHECKING:
    from fabric.workflow import Environment, Request, Summary
    from fabric.workflow.tuning import Tuned, TuneOptions

__all__ = ("tune",)

_GOALS: Final = ("throughput", "last-byte", "fairness")
_EVERY_TRIAL: Final = ("verify.load.", "verify.quiesce.", "push.fetch.")

GoalOption = Annotated[str, typer.Option("--goal", metavar="|".join(_GOALS), help="What is made best.")]
P99 = Annotated[float | None, typer.Option("--p99-ms", min=0.001, help="The most that the p99 of a request may be.")]
Trials = Annotated[int, typer.Option("--trials", min=12, max=10_000, help="At most so many.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0.5, help="Of a trial at full fidelity.")]
Profile = Annotated[
    str,
    typer.Option("--profile", metavar="NAME|FILE", help="Load, as for verify: incast, pairwise, …; or a YAML file."),
]
Scratch = Annotated[
    list[str] | None,
    typer.Option(
        "--scratch",
        metavar="TARGET|NQN[/NSID]",
        help="What may be OVERWRITTEN; without it the load only reads, and payload is not compared.",
    ),
]
Resume = Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a study that was stopped.")]
Share = Annotated[
    float,
    typer.Option("--pause-percent", min=0, max=100, help="Of the time that a place may be paused; more is infeasible."),
]
Marks = Annotated[
    float,
    typer.Option("--marks-percent", min=0, max=100, help="Of the packets that may be marked; more is infeasible."),
]
CheckedRun = Annotated[
    Path | None,
    typer.Option(
        "--checked", metavar="RUN", help="Findings of this provisioning or check --live stand for the checks."
    ),
]


@reported
def tune(
    inventory: o.Inventory,
    *,
    goal: GoalOption = "throughput",
    p99_ms: P99 = None,
    trials: Trials = 60,
    seconds: Seconds = 10.0,
    profile: Profile = "incast",
    scratch: Scratch = None,
    resume: Resume = None,
    write: Annotated[bool, typer.Option("--write", help="Apply the diff to the inventory.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="One trial of the deployed profile: does it still hold?")
    ] = False,
    gentle: Annotated[bool, typer.Option("--gentle", help="A load for a fabric in production.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Tune although a check failed.")] = False,
    pause_percent: Share = 1.0,
    marks_percent: Marks = 5.0,
    checked: CheckedRun = None,
    extra_vars: o.ExtraVars = None,
    limit: o.Limit = "",
    runs: o.Runs = Path("runs"),
    workers: o.Workers = 8,
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find the queue policy that is fastest without losing a packet; show it as a diff of the inventory.

    Exit 0: found, or it still holds. 1: nothing may be deployed, it no longer holds, or checks failed.

    \b
    fabricctl tune -i site --scratch target1
    fabricctl tune -i site --goal last-byte --p99-ms 5 --write
    fabricctl tune -i site --resume runs/20261130-020000-tune
    fabricctl tune -i site --check
    """
    from fabric.tune import Goal  # lazy: --help needs none of it
    from fabric.workflow.tuning import TuneOptions

    if goal not in _GOALS:
        raise typer.BadParameter(f"--goal: expected one of {', '.join(_GOALS)}")
    if check and (write or resume is not None):
        raise typer.BadParameter("--check neither searches nor writes: without --write and --resume")
    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "workers": workers, "hosts": True}
    request = request_of(inventory, extra_vars, **more)
    asked = TuneOptions(
        goal=Goal(goal),
        p99_ms=p99_ms,
        pause_share=pause_percent / 100,
        marks_share=marks_percent / 100,
        trials=trials,
        seconds=seconds,
        profile=profile,
        scratch=tuple(scratch or ()),
        gentle=gentle,
        go_on=force,
        checked=checked,
    )
    environment = _calm(environment_of(printer))
    if check:
        _check(printer, request, environment, asked)
    else:
        _tune(printer, request, environment, asked, resume=resume, write=write)


def _tune(
    printer: Printer,
    request: "Request",
    environment: "Environment",
    asked: "TuneOptions",
    *,
    resume: Path | None,
    write: bool,
) -> None:
    from fabric.workflow.tuning import tune as run_tune  # lazy: as above

    done = run_tune(request, environment, asked, resume=resume, write=write)
    printer.document(done)
    _show(printer, done)
    _end(printer, done.summary)


def _check(printer: Printer, request: "Request", environment: "Environment", asked: "TuneOptions") -> None:
    from fabric.workflow.tuning import check_profile  # lazy: as above

    done = check_profile(request, environment, asked)
    printer.document(done)
    for one in done.why:
        printer.line(f"no longer: {one}", style="red")
    _end(printer, done.summary)


def _calm(environment: "Environment") -> "Environment":
    """Returns the environment without what is the same in every trial: the trial's own line tells enough."""
    from dataclasses import replace

    show = environment.observer

    def observer(event: Event) -> None:
        if not event.name.startswith(_EVERY_TRIAL):
            show(event)

    return replace(environment, observer=observer)


def _show(printer: Printer, done: "Tuned") -> None:
    from fabric.tune import to_text  # lazy: as above

    if done.report is not None:
        printer.line()
        for line in to_text(done.report).splitlines():
            printer.line(line)
    if done.diff:
        printer.line()
        for line in done.diff.splitlines():
            printer.line(line, style={"+": "green", "-": "red"}.get(line[:1], ""))
        printer.line("written into the inventory" if done.is_written else "not written: --write does it", style="bold")
        printer.line("deploy it: fabricctl provision")


def _end(printer: Printer, summary: "Summary") -> None:
    from fabric.cli.exits import exit_of_verdict  # lazy: as above

    printer.line(summary.said, style="bold")
    for limit in summary.limits:
        printer.line(f"limit: {limit}", style="dim")
    printer.line(f"report: {summary.run_folder}/report.html")
    raise typer.Exit(exit_of_verdict(summary.verdict))
