"""A compliance finding: one rule's answer about one place. Producers, rules and `report` share it."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ("Finding", "Severity", "Status", "Where", "worst")


class Status(StrEnum):
    """The answer. UNKNOWN is not a pass."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """What a FAIL of the rule means: traffic is lost, or it is not as good as it should be."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a finding. One finding names all ports that share a cause.

    Attributes:
        ports: natural order; () for the whole device.
        priority: PFC priority, or None.
        details: further (name, value) pairs that place it: `("dscp", 26)`, `("found_tc", 1)`.
    """

    device: str
    ports: tuple[str, ...] = ()
    priority: int | None = None
    details: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's answer about one place.

    Attributes:
        rule: id, kebab case, `dscp-maps-to-lossy-tc`.
        evidence: what was read, one line.
        expected: what should have been read.
        remedy: what has to change.
    """

    rule: str
    status: Status
    severity: Severity
    where: Where
    evidence: str
    expected: str = ""
    remedy: str = ""


def worst(findings: tuple[Finding, ...]) -> Status:
    """Returns FAIL if an error failed, else UNKNOWN if one is unknown, else PASS; warnings do not count."""
    errors = {finding.status for finding in findings if finding.severity is Severity.ERROR}
    for status in (Status.FAIL, Status.UNKNOWN):
        if status in errors:
            return status
    return Status.PASS
