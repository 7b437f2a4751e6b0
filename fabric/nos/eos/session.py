"""How to talk to EOS and in which order its lines go: data.

Source: switches.md 1.4 (commands, `| json`), 1.9 (sessions); samples/SOURCES.md names the command of each output.
"""

from typing import Final

from fabric.diff import DiffRules
from fabric.nos.base import SessionSpec

__all__ = ("COUNTER_COMMANDS", "RULES", "SESSION")

COUNTER_COMMANDS: Final = {
    "interfaces": "show interfaces counters | json",
    "errors": "show interfaces counters errors | json",
    "pfc": "show priority-flow-control counters | json",
    "ecn": "show qos interfaces ecn counters queue | json",
    "drops": "show interfaces counters queue drops | json",
}

SESSION: Final = SessionSpec(
    transport="netmiko",
    device_type="arista_eos",
    fetch="show running-config",
    fetch_counters=COUNTER_COMMANDS,
    # `% ` opens every refusal of the EOS parser: Invalid input, Incomplete command, Ambiguous command, Unavailable
    # command, and the range errors; warnings open with `! `
    error_patterns=(r"(?m)^% ?[A-Z].*", r"(?m)^Error:.*"),
)

RULES: Final = DiffRules(
    # a profile must exist before a port names it, and goes only when none does
    order=(
        ("qos map .*", "**"),
        ("qos rewrite dscp",),
        ("priority-flow-control .*", "**"),
        ("qos profile .*", "**"),
        ("interface Port-Channel.*", "**"),
        ("interface .*", "**"),
    ),
    # switches.md 1.9 names the re-bind of a profile as what can still lose traffic, without evidence (unconfirmed);
    # profiles are changed in place, so that a re-bind happens only when a port is taken over.
    disruptive=(),
    # what a curve need not say: 100 percent, weight 0 (defaults unconfirmed; whether EOS shows them, too)
    unsaid=(
        (
            ("(?:interface|qos profile) .*", ".*", "random-detect .*"),
            "(?: (?:max-mark|drop)-probability 100| weight 0)(?= |$)",
        ),
    ),
)
