"""Rules over plan and observed state; each answers PASS, FAIL or UNKNOWN. Opens nothing, asks nobody."""

from fabric.compliance.evaluate import evaluate, evaluate_links, link_rules, rules
from fabric.compliance.grouping import Judgement
from fabric.compliance.rule import Expected, HostMtu, LinkRule, PortRule, PortState, Rule, Subject, expected_of
from fabric.compliance.subjects import subjects_of

__all__ = (
    "Expected",
    "HostMtu",
    "Judgement",
    "LinkRule",
    "PortRule",
    "PortState",
    "Rule",
    "Subject",
    "evaluate",
    "evaluate_links",
    "expected_of",
    "link_rules",
    "rules",
    "subjects_of",
)
