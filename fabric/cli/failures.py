"""From an error to text and an exit code, once for all verbs."""

import functools
import json
import sys
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import typer

from fabric.cli.console import clean
from fabric.errors import FabricError
from fabric.serial import to_json

__all__ = ("reported",)

_STOPPED: Final = "stopped by Ctrl-C"

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

            raise typer.Exit(Exit.INTERRUPTED) from error

    return call


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
