"""`fabricctl nvme replay`: a recorded run again, to see if this engine does the same. Text and an exit code out."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from pathlib import Path
from typing import Annotated

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.serial import to_json

__all__ = ("Trace", "replay")

Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Record the run, for `nvme replay`; replaced.")
]


@reported
def replay(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="A trace.", show_default=False)],
    *,
    as_json: o.Json = False,
) -> None:
    """Run an engine again from a trace; ends with 1 where it does another thing than was recorded.

    \b
    fabricctl nvme read URL --trace run.trace
    fabricctl nvme replay run.trace
    """
    from fabric.engine.trace import replay as run_again  # lazy: --help must not pay for the engine

    report = run_again(trace)
    printer = Printer(as_json=as_json)
    fields = to_json(report)
    printer.document({"same": report.same} | fields if isinstance(fields, dict) else fields)
    printer.line(str(report))
    if not report.same:
        from fabric.cli.exits import Exit  # lazy: it needs `workflow`, and --help does not

        raise typer.Exit(Exit.FINDINGS)
