"""The demo on the terminal: each step as it ends, then what to open and what to type next."""

import time
from pathlib import Path

from fabric.cli.console import Printer
from fabric.cli.exits import Exit
from fabric.cli.wording import summary_lines
from fabric.workflow import Environment
from fabric.workflow.demo import DemoLab, Step, demo_lab, demo_steps

__all__ = ("run_demo",)


def run_demo(printer: Printer, runs: Path, *, serve: bool) -> Exit:
    """Runs the demo and returns its exit code: FINDINGS when a step did not come out as expected.

    Args:
        printer: where it is told.
        runs: where the demo's folder is made.
        serve: keep the fabric up until Ctrl-C.
    """
    start_s = time.monotonic()
    steps: list[Step] = []
    with demo_lab(runs, Environment(observer=printer.progress)) as lab:
        printer.line(f"{len(lab.fronts)} emulated switches listen on {_ports(lab)}", style="bold")
        for number, step in enumerate(demo_steps(lab), start=1):
            steps.append(step)
            _tell(printer, number, step)
        took_s = time.monotonic() - start_s
        printer.document(steps)
        _close(printer, lab, steps, took_s)
        if serve:
            _keep(printer, lab)
    return Exit.OK if all(step.ok for step in steps) else Exit.FINDINGS


def _tell(printer: Printer, number: int, step: Step) -> None:
    printer.line()
    printer.line(f"── {number}. {step.title}", style="bold cyan")
    printer.line(f"$ {step.command}", style="dim")
    for text, style in summary_lines(step.summary):
        printer.line(text, style=style)
    mark, style = ("as expected", "bold green") if step.ok else ("NOT AS EXPECTED", "bold red")
    printer.line(f"{mark}: {step.expected}", style=style)


def _close(printer: Printer, lab: DemoLab, steps: list[Step], took_s: float) -> None:
    held = sum(step.ok for step in steps)
    last = steps[-1].summary
    overlay = lab.request.sources[-1]
    printer.line()
    printer.line(f"{held} of {len(steps)} steps came out as expected.", style="bold")
    printer.line(f"open: {last.run_folder}/report.html")
    printer.line(f"every stage as JSON: {lab.folder}")
    printer.line("type next: fabricctl demo --serve, and in another terminal:")
    printer.line(f"  fabricctl plan -i {lab.request.sources[0]} -i {overlay}", style="dim")
    printer.line(f"demo took {took_s:.1f} s")
    printer.line("Your own fabric: fabricctl init site && fabricctl check -i site")


def _keep(printer: Printer, lab: DemoLab) -> None:
    printer.line()
    printer.line(f"The fabric stays up. Inventory: {lab.request.sources[-1]}. Ctrl-C ends it.", style="bold")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        printer.line("stopped")


def _ports(lab: DemoLab) -> str:
    fronts = lab.fronts.values()
    return ", ".join(f"{front.host}:{front.port} ({front.name}, {front.nos})" for front in fronts)
