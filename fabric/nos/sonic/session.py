"""How to talk to a SONiC device: commands and the words of a refusal. Data only."""

from typing import Final

from fabric.nos.base import SessionSpec

__all__ = ("SESSION",)

SESSION: Final = SessionSpec(
    transport="ssh-exec",
    device_type="linux",
    fetch="show runningconfiguration all",
    fetch_counters={
        "interfaces": "show interfaces counters",
        "pfc": "show pfc counters",
        "pg_drop": "show priority-group drop counters",
        "queue": "show queue counters",
        "wred": "show queue wredcounters",
        "watchdog": "show pfcwd stats",
    },
    error_patterns=(
        r"^Error\b",
        r"^Usage:",
        r"Failed to apply patch",  # sonic-utilities config/main.py apply_patch: unconfirmed
        r"is illegal- validating function",  # generic_config_updater/gu_common.py
        r"Traceback \(most recent call last\)",
        r"command not found",
        r"Permission denied",
    ),
)
