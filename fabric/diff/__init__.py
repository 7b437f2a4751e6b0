"""Running and intended to an ordered change set and its rollback; and a rollback of what others changed since. Pure.

Conventions that a network OS package relies on: a container (row, context) has a path of its own only while nothing
is below it; removing all paths below a container means that the container itself goes; the rollback of a change set
brings back empty containers that were there.
"""

from fabric.diff.model import Change, ChangeSet, DiffRules, IntendedConfig, Op, Pattern, matcher, matches
from fabric.diff.remediation import changes, digest, future, owned_part, rollback_of
from fabric.diff.threeway import Flaw, Kept, Merge, State, Unit, exactly, merge

__all__ = (
    "Change",
    "ChangeSet",
    "DiffRules",
    "Flaw",
    "IntendedConfig",
    "Kept",
    "Merge",
    "Op",
    "Pattern",
    "State",
    "Unit",
    "changes",
    "digest",
    "exactly",
    "future",
    "matcher",
    "matches",
    "merge",
    "owned_part",
    "rollback_of",
)
