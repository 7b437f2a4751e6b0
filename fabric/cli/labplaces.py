"""What the verbs on a running lab share: where they act, and the lab itself. Prints nothing."""

import math
from typing import TYPE_CHECKING, Annotated

import typer

from fabric.cli.console import Printer
from fabric.errors import FabricError

if TYPE_CHECKING:
    from fabric.lab.site import Site
    from fabric.workflow import Environment

__all__ = ("Place", "environment_of", "finite", "site_of", "split")

Place = Annotated[str, typer.Argument(metavar="SWITCH:PORT", help="A port of an emulated switch, leaf1:Ethernet0.")]


def split(place: str) -> tuple[str, str]:
    """Returns switch and port.

    Raises:
        FabricError: the text names none.
    """
    switch, colon, port = place.partition(":")
    if not (switch and colon and port):
        raise FabricError("this is no SWITCH:PORT", found=repr(place), expected="leaf1:Ethernet0, for example")
    return switch, port


def finite(seconds: float) -> float:
    """Returns a length of time that ends.

    Raises:
        FabricError: it does not.
    """
    if not math.isfinite(seconds):
        raise FabricError("--seconds is no length of time", found=str(seconds))
    return seconds


def environment_of(printer: Printer) -> "Environment":
    """Returns the clock, and an observer that prints progress."""
    from fabric.workflow import Environment  # lazy: `--help` does not need it

    return Environment(observer=printer.progress)


def site_of(printer: Printer) -> "Site":
    """Returns the lab that runs.

    Raises:
        HostError: none does.
    """
    from fabric.workflow.lab import opened_lab  # lazy: as above

    return opened_lab(environment_of(printer))
