"""How a rule about hosts answers: findings with the place, and what of it nobody has seen from a real tool."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fabric.state import Finding, Severity, Status, Where

__all__ = ("ERROR", "WARNING", "Rule", "at_nic", "doubtful", "reason", "tos_serves", "tos_words")

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule's id and what a FAIL of it means."""

    id: str
    severity: Severity = ERROR

    def passed(self, where: Where, evidence: str) -> Finding:
        """Returns a PASS."""
        return Finding(self.id, Status.PASS, self.severity, where, evidence)

    def failed(
        self, where: Where, evidence: str, expected: str, remedy: str, *, severity: Severity | None = None
    ) -> Finding:
        """Returns a FAIL; `severity` where this place has another than the rule."""
        return Finding(self.id, Status.FAIL, severity or self.severity, where, evidence, expected, remedy)

    def unknown(self, where: Where, evidence: str, expected: str = "", remedy: str = "") -> Finding:
        """Returns an UNKNOWN; `remedy` says what would let it be decided."""
        return Finding(self.id, Status.UNKNOWN, self.severity, where, evidence, expected, remedy)


def at_nic(host: str, netdev: str, priority: int | None = None) -> Where:
    """Returns the place of a finding on a NIC."""
    return Where(host, (netdev,), priority)


def reason(unread: Iterable[str], *words: str) -> str:
    """Returns `not read`, with what the tool said where one of `words` names it."""
    said = next((line for line in unread if any(word in line for word in words)), "")
    return f"not read ({said})" if said else "not read"


def doubtful(evidence: str, names: Iterable[str]) -> str:
    """Returns the evidence, and by name what of it rests on a layout that no sample shows."""
    listed = ", ".join(dict.fromkeys(names))
    return f"{evidence} [unconfirmed: {listed}]" if listed else evidence


def tos_serves(wanted: int, found: int) -> bool:
    """Returns whether `found` carries the wanted DSCP, and ECT where that is wanted: 106 serves for 104.

    Source: hosts.md 4.1: 104 and 106 carry the same DSCP; only a NIC that copies the byte needs ECT in it.
    """
    return wanted >> 2 == found >> 2 and not (wanted & 0b11 and not found & 0b11)


def tos_words(tos: int) -> str:
    """Returns `106 (DSCP 26, ECN-capable)`."""
    return f"{tos} (DSCP {tos >> 2}{', ECN-capable' if tos & 0b11 else ''})"
