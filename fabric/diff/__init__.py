"""Running and intended to an ordered change set and its rollback. Pure.

Conventions that a network OS package relies on: a container (row, context) has a path of its own only while nothing
is below it; removing all paths below a container means that the container itself goes; the rollback of a change set
brings back empty containers that were there.
"""

from fabric.diff.model import Change, ChangeSet, DiffRules, IntendedConfig, Op, Pattern, matches
from fabric.diff.remediation import changes, digest, future, owned_part, rollback_of

__all__ = (
    "Change",
    "ChangeSet",
    "DiffRules",
    "IntendedConfig",
    "Op",
    "Pattern",
    "changes",
    "digest",
    "future",
    "matches",
    "owned_part",
    "rollback_of",
)
