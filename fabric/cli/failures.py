"""From an error to text and an exit code, once for all verbs."""

import functools
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import typer

from fabric.cli.console import clean
from fabric.errors import FabricError
from fabric.serial import to_json

__all__ = ("reported",)

_STOPPED: Final = "stopped by Ctrl-C"
_LEFT: Final = (
    "switches were being changed: what was not confirmed goes back by its own timer. "
    "Provision again, or roll the run back: either waits for that timer"
)
PUSHERS: Final = "push"
"""How the names of the threads begin in which switches are changed."""

P = ParamSpec("P")
R = TypeVar("R")


def reported(verb: Callable[P, R]) -> Callable[P, R]:
    """Returns the verb with its errors printed: text on stderr, or JSON on stdout with --json."""

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return verb(*args, **kwargs)
        except FabricError as error:
            from fabric.cli.exits import exit_of_error  # lazy: it needs `workflow`, and --help does not

            if kwargs.get("as_json"):
                sys.stdout.write(json.dumps(_as_json(error), indent=1) + "\n")
            else:
                sys.stderr.write(clean(f"error: {error}\n"))
            raise typer.Exit(exit_of_error(error)) from error
        except KeyboardInterrupt as error:
            if kwargs.get("as_json"):
                sys.stdout.write(json.dumps({"error": "KeyboardInterrupt", "what": _STOPPED}, indent=1) + "\n")
            else:
                sys.stderr.write(f"{_STOPPED}\n")
            from fabric.cli.exits import Exit  # as above

            if any(one.name.startswith(PUSHERS) for one in threading.enumerate()):
                _stop_now(Exit.INTERRUPTED)
            raise typer.Exit(Exit.INTERRUPTED) from error

    return call


def _stop_now(code: int) -> None:
    """Ends the process while switches are being changed: it was told so twice, and Python would wait for each of them.

    What is under a timer goes back by itself; the journal and the lock tell the next run.
    """
    sys.stderr.write(f"{_LEFT}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _as_json(error: FabricError) -> dict[str, object]:
    return {
        "error": type(error).__name__,
        "what": error.what,
        "where": error.where,
        "expected": error.expected,
        "found": error.found,
        "remedy": error.remedy,
        "problems": [to_json(one) for one in error.problems],
    }
