"""From judgements on single ports to findings: one for all ports that share a cause. Knows no rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fabric.state import Finding, Severity, Status, Where
from fabric.units import natural_key

__all__ = ("Judgement", "failed", "group", "passed", "undecided")

_NAMED_PORTS = 4


@dataclass(frozen=True, slots=True)
class Judgement:
    """One rule's answer about one port. Status, priority and details are the cause that ports may share.

    Attributes:
        evidence: what was read on this port. expected: what should have been read.
        remedy: what has to change on this port.
        details: as in `Where`.
    """

    status: Status
    evidence: str
    expected: str = ""
    remedy: str = ""
    priority: int | None = None
    details: tuple[tuple[str, str | int], ...] = ()


def passed(evidence: str) -> Judgement:
    """Returns a PASS."""
    return Judgement(Status.PASS, evidence)


def failed(
    evidence: str,
    expected: str,
    remedy: str,
    *,
    priority: int | None = None,
    details: tuple[tuple[str, str | int], ...] = (),
) -> Judgement:
    """Returns a FAIL."""
    return Judgement(Status.FAIL, evidence, expected, remedy, priority, details)


def undecided(evidence: str, remedy: str, *, priority: int | None = None) -> Judgement:
    """Returns an UNKNOWN; `remedy` says what would let it be decided."""
    return Judgement(Status.UNKNOWN, evidence, remedy=remedy, priority=priority)


def group(
    judged: Iterable[tuple[str, Judgement]], *, rule: str, severity: Severity, device: str
) -> tuple[Finding, ...]:
    """Returns a finding for each cause, ports in natural order.

    All passes make one finding, without a priority or details; a port that did not pass in one respect is not in it.
    """
    pairs = list(judged)
    spoiled = {port for port, one in pairs if one.status is not Status.PASS}
    causes: dict[tuple[Status, int | None, tuple[tuple[str, str | int], ...]], list[tuple[str, Judgement]]] = {}
    for port, one in pairs:
        if one.status is not Status.PASS:
            causes.setdefault((one.status, one.priority, one.details), []).append((port, one))
        elif port not in spoiled:
            causes.setdefault((Status.PASS, None, ()), []).append((port, one))
    return tuple(
        Finding(
            rule=rule,
            status=status,
            severity=severity,
            where=Where(device, _ports(members), priority, details),
            evidence=_merged([(port, one.evidence) for port, one in members]),
            expected=_merged([(port, one.expected) for port, one in members]),
            remedy=_merged([(port, one.remedy) for port, one in members]),
        )
        for (status, priority, details), members in causes.items()
    )


def _ports(members: Sequence[tuple[str, Judgement]]) -> tuple[str, ...]:
    return tuple(sorted({port for port, _ in members}, key=natural_key))


def _merged(texts: Sequence[tuple[str, str]]) -> str:
    by_text: dict[str, list[str]] = {}
    for port, text in texts:
        ports = by_text.setdefault(text, [])
        if port not in ports:
            ports.append(port)
    if len(by_text) == 1:
        return next(iter(by_text))
    return "; ".join(f"{_named(ports)}: {text}" for text, ports in by_text.items() if text)


def _named(ports: Sequence[str]) -> str:
    ordered = sorted(ports, key=natural_key)
    if len(ordered) <= _NAMED_PORTS:
        return ", ".join(ordered)
    return f"{', '.join(ordered[: _NAMED_PORTS - 1])} and {len(ordered) - _NAMED_PORTS + 1} more"
