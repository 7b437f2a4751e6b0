"""What `tune` has found for hosts, as it stands on them: a load is cut and dealt as the engine there would do it."""

from collections.abc import Iterable

from fabric.policy import PROFILE_PATH, ShardProfile, profile_from_text
from fabric.workflow.verifying.hostcounters import Machine
from fabric.workflow.verifying.reaching import Ways

__all__ = ("deployed_profiles",)


def deployed_profiles(ways: Ways, machines: Iterable[Machine]) -> dict[str, ShardProfile]:
    """Returns by host the profile that `provision` put there; hosts without one, or that do not answer, are left out.

    Raises:
        IntentError: what stands there is no profile, or one that may not be used.
    """
    machines = list(machines)
    texts = ways.each(machines, lambda _, way: way.executor.read(PROFILE_PATH) or "", failed=lambda _machine, _why: "")
    return {
        one.name: profile_from_text(text, place=f"{one.name}:{PROFILE_PATH}")
        for one, text in zip(machines, texts, strict=True)
        if text
    }
