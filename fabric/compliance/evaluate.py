"""All rules on all devices. Knows the rules by name alone: nothing is imported until a rule is asked for.

Third parties add rules through the entry-point groups `fabric.rules` and `fabric.link_rules`.
"""

from collections.abc import Sequence
from typing import Final

from fabric.compliance.rule import LinkRule, Rule, Subject
from fabric.intent.model import Link
from fabric.registry import Registry
from fabric.state import Finding, Status
from fabric.units import natural_key

__all__ = ("evaluate", "evaluate_links", "link_rules", "rules")

_HOME = "fabric.compliance.rules"

rules: Final[Registry[Rule]] = Registry(
    "fabric.rules",
    {
        "port-without-qos": f"{_HOME}.mapping:PORT_WITHOUT_QOS",
        "dscp-not-trusted": f"{_HOME}.mapping:DSCP_NOT_TRUSTED",
        "dscp-maps-to-lossy-tc": f"{_HOME}.mapping:DSCP_MAPS_TO_LOSSY_TC",
        "dscp-maps-to-other-tc": f"{_HOME}.mapping:DSCP_MAPS_TO_OTHER_TC",
        "unlisted-dscp-in-lossless-class": f"{_HOME}.mapping:UNLISTED_DSCP_IN_LOSSLESS_CLASS",
        "dscp-rewritten-on-egress": f"{_HOME}.mapping:DSCP_REWRITTEN",
        "pfc-not-on-data-priority": f"{_HOME}.pfc:PFC_NOT_ON_DATA_PRIORITY",
        "pfc-on-other-priority": f"{_HOME}.pfc:PFC_ON_OTHER_PRIORITY",
        "pfc-mode-depends-on-dcbx": f"{_HOME}.pfc:PFC_MODE_DEPENDS_ON_DCBX",
        "pfc-asymmetric": f"{_HOME}.pfc:PFC_ASYMMETRIC",
        "lossless-class-not-closed": f"{_HOME}.pfc:LOSSLESS_CLASS_NOT_CLOSED",
        "other-class-in-lossless-buffer": f"{_HOME}.pfc:OTHER_CLASS_IN_LOSSLESS_BUFFER",
        "cnp-not-in-strict-queue": f"{_HOME}.cnp:CNP_NOT_IN_STRICT_QUEUE",
        "cnp-class-is-paused": f"{_HOME}.cnp:CNP_CLASS_IS_PAUSED",
        "cnp-queue-has-curve": f"{_HOME}.cnp:CNP_QUEUE_HAS_CURVE",
        "undefined-reference": f"{_HOME}.document:UNDEFINED_REFERENCE",
        "duplicate-config-key": f"{_HOME}.document:DUPLICATE_CONFIG_KEY",
        "ecn-off-on-lossless-queue": f"{_HOME}.ecn:ECN_OFF_ON_LOSSLESS_QUEUE",
        "wred-drop-on-lossless-queue": f"{_HOME}.ecn:WRED_DROP_ON_LOSSLESS_QUEUE",
        "ecn-thresholds-reversed": f"{_HOME}.ecn:ECN_THRESHOLDS_REVERSED",
        "ecn-step-curve": f"{_HOME}.ecn:ECN_STEP_CURVE",
        "ecn-pmax-zero": f"{_HOME}.ecn:ECN_PMAX_ZERO",
        "ecn-thresholds-unscaled": f"{_HOME}.ecn:ECN_THRESHOLDS_UNSCALED",
        "lossless-pg-without-headroom": f"{_HOME}.headroom:LOSSLESS_PG_WITHOUT_HEADROOM",
        "headroom-below-computed": f"{_HOME}.headroom:HEADROOM_BELOW_COMPUTED",
        "mtu-below-policy": f"{_HOME}.mtu:MTU_BELOW_POLICY",
        "mtu-below-host-mtu": f"{_HOME}.mtu:MTU_BELOW_HOST_MTU",
        "pfc-without-watchdog": f"{_HOME}.watchdog:PFC_WITHOUT_WATCHDOG",
        "watchdog-misses-lossless-priority": f"{_HOME}.watchdog:WATCHDOG_MISSES_LOSSLESS_PRIORITY",
        "watchdog-timers-inconsistent": f"{_HOME}.watchdog:WATCHDOG_TIMERS_INCONSISTENT",
        "watchdog-action-differs": f"{_HOME}.watchdog:WATCHDOG_ACTION_DIFFERS",
    },
)
"""Rules on one device, by id."""

link_rules: Final[Registry[LinkRule]] = Registry(
    "fabric.link_rules", {"mtu-differs-across-link": f"{_HOME}.mtu:MTU_DIFFERS_ACROSS_LINK"}
)
"""Rules on the cables between devices, by id."""

_RANK: Final = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.PASS: 2}


def evaluate(subjects: Sequence[Subject], chosen: Sequence[Rule] | None = None) -> tuple[Finding, ...]:
    """Returns the findings of every rule on every subject, sorted by device, rule, status and place.

    Args:
        subjects: the devices to be judged.
        chosen: the rules; None for all that are registered.
    """
    active = [rules.get(name) for name in rules.names()] if chosen is None else chosen
    return _sorted([finding for one in subjects for rule in active for finding in rule.evaluate(one)])


def evaluate_links(
    subjects: Sequence[Subject], links: Sequence[Link], chosen: Sequence[LinkRule] | None = None
) -> tuple[Finding, ...]:
    """Returns the findings of every link rule on the links between `subjects`, sorted likewise."""
    active = [link_rules.get(name) for name in link_rules.names()] if chosen is None else chosen
    return _sorted([one for rule in active for one in rule.evaluate_links(tuple(subjects), tuple(links))])


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=_key))


def _key(finding: Finding) -> tuple[object, ...]:
    where = finding.where
    return (
        natural_key(where.device),
        finding.rule,
        _RANK[finding.status],
        tuple(natural_key(port) for port in where.ports),
        -1 if where.priority is None else where.priority,
        tuple((name, str(value)) for name, value in where.details),
    )
