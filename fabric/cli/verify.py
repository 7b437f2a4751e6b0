"""`fabricctl verify`: options in, one call of `workflow.verifying`, the verdict and an exit code out. No logic."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.running import environment_of, request_of
from fabric.observe import Event

if TYPE_CHECKING:
    from fabric.workflow import Environment, Request
    from fabric.workflow.verifying import Verified, VerifyOptions, Watched

__all__ = ("verify",)

_EVERY_S: Final = 5.0
_MIB: Final = 1 << 20
_STYLES: Final = {"PASS": "bold green", "FAIL": "bold red", "INVALID": "bold yellow"}

Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME|FILE",
        help="Load: bursts, incast, isolation, mixed, outcast, pairwise, watch; or a YAML file. "
        "Default: incast, with --watch: watch.",
        show_default=False,
    ),
]
Seconds = Annotated[
    int | None,
    typer.Option("--seconds", min=1, help="Length of each phase of the load; with --watch: of all of it."),
]
Packets = Annotated[
    int, typer.Option("--packets", min=0, help="Repeat the load until so many lossless packets have been sent.")
]
Scratch = Annotated[
    list[str] | None,
    typer.Option(
        "--scratch",
        metavar="TARGET|NQN[/NSID]",
        help="What may be OVERWRITTEN; without it the load only reads, and payload is not compared.",
    ),
]
Checked = Annotated[
    Path | None,
    typer.Option(
        "--checked", metavar="RUN", help="Findings of this provisioning or check --live stand for the checks."
    ),
]
Listen = Annotated[
    str, typer.Option("--listen", metavar="ADDRESS:PORT", help="With --watch: serve metrics there; 127.0.0.1:9475.")
]


@reported
def verify(
    inventory: o.Inventory,
    *,
    profile: Profile = "",
    seconds: Seconds = None,
    packets: Packets = 0,
    scratch: Scratch = None,
    prove: Annotated[bool, typer.Option("--prove", help="Drop one packet (lab only): it must be found.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Light reads that go on; exit 1 on a loss.")] = False,
    listen: Listen = "",
    gentle: Annotated[bool, typer.Option("--gentle", help="A load for a fabric in production.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Load although a check failed.")] = False,
    checked: Checked = None,
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
    """Prove under load that nothing is lost, or say where.

    Exit 0: PASS. 1: FAIL, something was lost. 4: INVALID, the run proves nothing.

    \b
    fabricctl verify -i site --scratch target1 --packets 3000000
    fabricctl verify -i site --profile mixed --scratch target1 --seconds 60
    fabricctl verify -i inventory/lab --scratch target1 --prove
    fabricctl verify -i site --watch --listen 127.0.0.1:9475
    """
    from fabric.workflow.verifying import DEFAULT_PROFILE, WATCH_PROFILE, VerifyOptions  # lazy: --help needs none of it
    from fabric.workflow.verifying import prove as run_prove
    from fabric.workflow.verifying import verify as run_verify

    if prove and watch:
        raise typer.BadParameter("--prove and --watch: one of them")
    if listen and not watch:
        raise typer.BadParameter("--listen serves the metrics of --watch")
    printer = Printer(as_json=as_json, quiet=quiet)
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    more = {"limit": limit, "runs": runs, "vault": vault, "workers": workers, "hosts": True}
    request = request_of(inventory, extra_vars, **more)
    asked = VerifyOptions(
        profile=profile or (WATCH_PROFILE if watch else DEFAULT_PROFILE),
        seconds=None if watch else seconds,
        packets=packets,
        scratch=tuple(scratch or ()),
        gentle=gentle,
        go_on=force,
        checked=checked,
    )
    environment = _with_progress(environment_of(printer), printer)
    if watch:
        _watch(printer, request, environment, asked, (seconds, listen))
    done = (run_prove if prove else run_verify)(request, environment, asked)
    printer.document(done)
    _show(printer, done)
    _end(done)


def _watch(
    printer: Printer,
    request: "Request",
    environment: "Environment",
    asked: "VerifyOptions",
    rest: tuple[int | None, str],
) -> NoReturn:
    from fabric.cli.exits import Exit  # lazy: as above
    from fabric.workflow.verifying import WatchOptions
    from fabric.workflow.verifying import watch as run_watch

    seconds, listen = rest
    with _terminated_as_interrupted():
        found = run_watch(request, environment, asked, WatchOptions(seconds, _address(listen) if listen else None))
    printer.document(found)
    if found.last is not None:
        _show(printer, found.last)
    printer.line(_watched(found))
    if found.last is not None and found.last.verdict.status.value == "fail":
        raise typer.Exit(Exit.FINDINGS)
    proven = sum(count for name, count in found.windows if name != "invalid")
    raise typer.Exit(Exit.OK if proven or found.last is None else Exit.DEVICE)


def _watched(found: "Watched") -> str:
    windows = ", ".join(f"{count} {name}" for name, count in found.windows) or "no window came to its end"
    bound = "" if found.bound_95 is None else f"; loss rate <= {found.bound_95:.3g} at 95%"
    return f"watched: {windows}; n = {found.packets:,} packets{bound}"


def _show(printer: Printer, done: "Verified") -> None:
    from fabric.verify import verdict_text  # lazy: as above

    printer.line()
    for number, line in enumerate(verdict_text(done.verdict).splitlines()):
        printer.line(line, style=_STYLES.get(line.partition(" ")[0], "") if not number else "")
    if done.proof is not None:
        printer.line(done.summary.said, style="bold")
    for limit in done.summary.limits:
        printer.line(f"limit: {limit}", style="dim")
    printer.line(f"report: {done.summary.run_folder}/report.html")


def _end(done: "Verified") -> NoReturn:
    from fabric.cli.exits import exit_of_verdict  # lazy: as above

    raise typer.Exit(exit_of_verdict(done.summary.verdict))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 1 << 16):
        raise typer.BadParameter("--listen: expected ADDRESS:PORT, 127.0.0.1:9475")
    return host.strip("[]"), int(port)


def _with_progress(environment: "Environment", printer: Printer) -> "Environment":
    """Returns the environment with a line every few seconds of a load, what all hosts did together."""
    from dataclasses import replace

    show, state = environment.observer, _Progress(printer)

    def observer(event: Event) -> None:
        state.hear(event)
        show(event)

    return replace(environment, observer=observer)


class _Progress:
    """Adds up what agents say once a second, and tells it now and then, with the time that is left."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._seconds = 0.0
        self._latest: dict[str, Mapping[str, object]] = {}
        self._told_s = 0.0

    def hear(self, event: Event) -> None:
        """Takes one event."""
        if event.name == "verify.load.started":
            self._seconds, self._latest = float(event.data.get("seconds") or 0), {}
            self._told_s = time.monotonic()
        elif event.name == "load.progress":
            self._latest[event.device] = event.data
            if time.monotonic() - self._told_s >= _EVERY_S:
                self._told_s = time.monotonic()
                self._tell()

    def _tell(self) -> None:
        if self._printer.quiet:
            return
        rows = list(self._latest.values())

        def total(name: str) -> int:
            return sum(value for row in rows if isinstance(value := row.get(name), int))

        second = max((value for row in rows if isinstance(value := row.get("second"), int)), default=0)
        left = max(0.0, self._seconds - second)
        errors, flaws = total("errors"), total("flaw_count")
        sys.stderr.write(
            f"  load: second {second} of {self._seconds:g}, {total('bytes') / _MIB:.1f} MiB, {errors} errors, "
            f"{flaws} wrong sectors; {left:.0f} s left\n"
        )
        sys.stderr.flush()


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM is the orderly end of a watch, as Ctrl-C is."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
