"""Place and probable cause: every rule asked, the best first, and what no rule explains.

The rules are data (`switchrules`, `pathrules`); here is only how their answers are ordered. Knows no counter by name.
"""

from typing import Final

from fabric.state import SourceKind
from fabric.verify.events import Event
from fabric.verify.facts import Reading, is_above
from fabric.verify.model import LossFinding, VerdictStatus
from fabric.verify.pathrules import PATH_RULES
from fabric.verify.rules import LocateRule
from fabric.verify.scene import Scene
from fabric.verify.switchrules import SWITCH_RULES

__all__ = ("RULES", "locate")

RULES: Final[tuple[LocateRule, ...]] = (*SWITCH_RULES, *PATH_RULES)


def locate(scene: Scene) -> tuple[LossFinding, ...]:
    """Returns what was wrong, where, and why probably: losses before the rest, the best fit first."""
    found: list[LossFinding] = []
    explained: set[Event] = set()
    for rule in RULES:
        hits = tuple(rule.find(scene))
        explained |= rule.explains if hits else set()
        found += [
            LossFinding(rule.name, hit.status, hit.device, hit.place, rule.cause, hit.evidence, rule.remedy, hit.score)
            for hit in hits
        ]
    found += [_unexplained(one) for one in _left(scene, explained)]
    if scene.missing and not any(one.status is VerdictStatus.FAIL for one in found):
        found.append(_somewhere(scene))
    return tuple(sorted(found, key=lambda one: (one.status is not VerdictStatus.FAIL, -one.score)))


def _left(scene: Scene, explained: set[Event]) -> list[Reading]:
    facts = scene.facts
    moved = [one for one in facts.readings if facts.must_stand(one) and is_above(one.value)]
    return [one for one in moved if one.event not in explained | scene.excused]


def _unexplained(one: Reading) -> LossFinding:
    return LossFinding(
        rule="counter-moved",
        status=VerdictStatus.FAIL,
        device=one.source.device,
        place=f"{one.source.device}/{one.source.place}",
        cause=one.event.value,
        evidence=f"{one.name} +{one.value}",
        remedy="read the counters of both ends of this port" if one.source.kind is SourceKind.SWITCH else "",
        score=30,
    )


def _somewhere(scene: Scene) -> LossFinding:
    return LossFinding(
        rule="missing-packets",
        status=VerdictStatus.FAIL,
        device="",
        place="",
        cause="unknown",
        evidence=f"{scene.missing} packets were sent and not received, and no counter tells where",
        remedy="read the counters of every switch on the way, by queue",
        score=20,
    )
