"""The errors of the whole toolkit, by who must act. Knows no device, file or library.

Every message says what happened, where, what was expected against what was found, and what to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = (
    "AuthError",
    "CommandRejectedError",
    "CommitTimeoutError",
    "ConnectError",
    "DeviceError",
    "DriftError",
    "EngineError",
    "EnvironmentMissingError",
    "FabricError",
    "HostError",
    "IntegrityError",
    "IntentError",
    "LocalProtocolError",
    "PlanError",
    "Problem",
    "RemoteProtocolError",
    "RollbackFailedError",
    "TransportError",
    "UnsupportedFeatureError",
    "one_line",
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input, with its place.

    Attributes:
        what: one sentence.
        place: `file:line` for static YAML, `host NAME, variable VAR` for dynamic sources, else "".
        device: the switch, host or target concerned, or "".
        field: dotted path of the field, or "".
        found: what stands there, as text; "" when absent.
        expected: what may stand there, as text; "" when it goes without saying.
        remedy: what to do; "" when `expected` says it.
    """

    what: str
    place: str = ""
    device: str = ""
    field: str = ""
    found: str = ""
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        where = ": ".join(one_line(part) for part in (self.place, self.device, self.field) if part)
        what = one_line(self.what)
        text = f"{where}: {what}" if where else what
        if self.found or self.expected:
            pair = [f"found {one_line(self.found)}"] if self.found else []
            pair += [f"expected {one_line(self.expected)}"] if self.expected else []
            text += f" ({', '.join(pair)})"
        return f"{text}. {self.remedy}" if self.remedy else text


def one_line(text: str) -> str:
    """Returns `text` with control characters escaped: a newline in a key would forge a second problem."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class FabricError(Exception):
    """Root of all errors that this package raises on purpose.

    Args:
        what: what happened, one sentence without a full stop.
        where: device, file or step; "" when `what` says it.
        expected: what should have been there.
        found: what was there.
        remedy: what the reader should do now.

    Attributes:
        problems: everything that is wrong at once, where one error tells of several things.
    """

    problems: tuple[Problem, ...] = ()

    def __init__(self, what: str, *, where: str = "", expected: str = "", found: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        return str(
            Problem(
                what=self.what,
                device=self.where,
                found=self.found,
                expected=self.expected,
                remedy=self.remedy,
            )
        )


class IntentError(FabricError):
    """The user's inventory or policy is wrong; carries every problem at once (exit code 3)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"the inventory has {count} problem{'' if count == 1 else 's'}")

    def __str__(self) -> str:
        return "\n".join([f"{self.what}:", *(f"  {problem}" for problem in self.problems)])


class PlanError(FabricError):
    """The intent is well formed and cannot be met; may carry every problem at once."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        found: str = "",
        remedy: str = "",
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(what, where=where, expected=expected, found=found, remedy=remedy)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        told = super().__str__()
        return "\n".join([f"{told}:", *(f"  {problem}" for problem in self.problems)]) if self.problems else told


class UnsupportedFeatureError(FabricError):
    """The network OS, ASIC or this release lacks what the intent asks for."""


class EnvironmentMissingError(FabricError):
    """A program, package or library is missing here; `remedy` is the exact fix (exit code 5)."""


class DeviceError(FabricError):
    """A switch did not do what was asked; `where` names it (exit code 4)."""


class ConnectError(DeviceError):
    """No session could be made, or it was lost."""


class AuthError(DeviceError):
    """The device refused the credentials, or its host key is unknown or has changed."""


class CommandRejectedError(DeviceError):
    """The device refused a line or a patch; `found` is the device's own words."""


class CommitTimeoutError(DeviceError):
    """The commit was not confirmed in time; the device went back by itself."""


class DriftError(DeviceError):
    """The device changed between the plan and now."""


class RollbackFailedError(DeviceError):
    """The device could not be brought back; `remedy` has the recovery commands (exit code 4)."""


class HostError(FabricError):
    """A host or an NVMe target did not do what was asked (exit code 4)."""


class EngineError(FabricError):
    """The KV offload engine could not do what was asked."""


class LocalProtocolError(EngineError):
    """We broke the protocol."""


class RemoteProtocolError(EngineError):
    """The peer broke the protocol."""


class TransportError(EngineError):
    """The connection failed."""


class IntegrityError(EngineError):
    """Bytes came back that are not the bytes that were written."""
