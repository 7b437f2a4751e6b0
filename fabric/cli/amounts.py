"""Amounts that people type: bytes with a unit, faults with a probability. Knows no verb."""

import re
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from fabric.engine.transport.faults import Fault

__all__ = ("byte_count", "fault_of")

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_BYTES: Final = re.compile(r"(\d+)\s*([kmgt]?)(?:ib|b)?", re.IGNORECASE)
_NS_PER_MS: Final = 1_000_000


def byte_count(text: str | int) -> int:
    """Returns bytes for `4096`, `64KiB`, `64k`, `1MiB`, `2G`: powers of 1024.

    Raises:
        BadParameter: it is none of these.
    """
    found = _BYTES.fullmatch(str(text).strip())  # click hands a default over as it is
    if found is None:
        raise typer.BadParameter(f"{text!r} is no number of bytes: 4096, 64KiB, 1GiB")
    return int(found[1]) * _UNITS[found[2].lower()]


def fault_of(text: str, delay_ms: float) -> "Fault":
    """Returns the fault of `drop=0.01`, `delay=0.5`, `status`: of so many I/O commands, all without a number.

    Raises:
        BadParameter: there is no such fault, or the probability is not 0 to 1.
    """
    from fabric.engine.nvmeof.wire.status import Status  # lazy, as all of the engine: --help must not pay for it
    from fabric.engine.transport.faults import Fault, FaultKind

    name, given, share = text.partition("=")
    try:
        kind, probability = FaultKind(name), float(share) if given else 1.0
    except ValueError as error:
        known = ", ".join(FaultKind)
        raise typer.BadParameter(f"{text!r} is no fault: NAME or NAME=PROBABILITY, of {known}") from error
    if not 0 <= probability <= 1:
        raise typer.BadParameter(f"{text!r}: a probability is 0 to 1")
    return Fault(kind, probability=probability, delay_ns=round(delay_ms * _NS_PER_MS), status=Status.INTERNAL_ERROR)
