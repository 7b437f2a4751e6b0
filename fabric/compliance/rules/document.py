"""Mapping theme, the text itself: names that nobody defines, and keys that stand twice.

Source: samples of both kinds in public device templates (duplicate QUEUE keys, unresolved service profiles).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fabric.compliance.rule import Subject
from fabric.qos import DeviceQos, Reference
from fabric.state import Finding, Severity, Status, Where

__all__ = ("DUPLICATE_CONFIG_KEY", "UNDEFINED_REFERENCE")

_NAMED = 8


@dataclass(frozen=True, slots=True)
class ReferenceRule:
    """A rule on names in the text of the whole device.

    Attributes:
        found: what the parser saw.
        verb: what is wrong with each of them.
    """

    id: str
    title: str
    severity: Severity
    found: Callable[[DeviceQos], tuple[Reference, ...]]
    verb: str
    expected: str
    remedy: str

    def evaluate(self, subject: Subject) -> Iterable[Finding]:
        """Returns one finding: FAIL with every name, or PASS."""
        names = tuple(dict.fromkeys((one.kind, one.name) for one in self.found(subject.qos)))
        listed = ", ".join(f"{kind} {name}" for kind, name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield Finding(
            rule=self.id,
            status=Status.FAIL if names else Status.PASS,
            severity=self.severity,
            where=Where(subject.qos.device),
            evidence=f"{self.verb}: {listed}{more}" if names else "none",
            expected=self.expected if names else "",
            remedy=self.remedy if names else "",
        )


UNDEFINED_REFERENCE: Final = ReferenceRule(
    "undefined-reference",
    "Every name that the configuration uses is defined in it.",
    Severity.WARNING,
    lambda qos: qos.undefined,
    "used and not defined",
    "a definition of each name",
    "define the names, or take their use away; the device may ignore the binding without a word",
)
DUPLICATE_CONFIG_KEY: Final = ReferenceRule(
    "duplicate-config-key",
    "No key stands twice in the configuration.",
    Severity.WARNING,
    lambda qos: qos.duplicates,
    "given twice, the last one won",
    "each key once",
    "merge the two: what the first one said is lost",
)
