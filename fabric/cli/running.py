"""What every verb that makes a run needs: the request from options, the environment, and the end with its exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer

if TYPE_CHECKING:
    from fabric.workflow import Environment, Request, Summary

__all__ = ("environment_of", "finish", "request_of")


def request_of(sources: Sequence[Path], extra_vars: Sequence[str] | None, **more: object) -> "Request":
    """Returns the request of the options; `more` are further fields of `Request`."""
    from fabric.workflow import Request  # lazy, as all of `workflow`: --help must not pay for it

    extra = o.extra_variables(extra_vars)
    return Request(sources=tuple(sources), extra_vars=extra, **more)  # type: ignore[arg-type]


def environment_of(printer: Printer) -> "Environment":
    """Returns the environment whose progress the printer shows."""
    from fabric.workflow import Environment

    return Environment(observer=printer.progress)


def finish(
    printer: Printer,
    summary: "Summary",
    *,
    full: bool = False,
    changes_matter: bool = False,
    document: object = None,
) -> None:
    """Prints the run and ends the program with its code.

    Args:
        printer: where to.
        summary: of the run.
        full: whole diffs.
        changes_matter: exit 10 when there are changes and nothing is wrong.
        document: what --json prints, if not the summary.

    Raises:
        typer.Exit: always.
    """
    from fabric.cli.exits import Exit, exit_of_verdict
    from fabric.cli.wording import summary_lines

    printer.document(summary if document is None else document)
    for text, style in summary_lines(summary, full=full):
        printer.line(text, style=style)
    for what in summary.unwritten:
        printer.line(f"not written: {what}", style="red")
    code = exit_of_verdict(summary.verdict)
    if summary.unwritten and code is not Exit.DEVICE:
        code = Exit.ENVIRONMENT
    if code is Exit.OK and changes_matter and summary.changed:
        code = Exit.CHANGES
    raise typer.Exit(code)
