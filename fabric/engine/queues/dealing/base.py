"""What a dealing policy is. Bounds, order and fairness are not its business: it picks among queues that may take it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from fabric.engine.queues.load import LivePath, LiveQueue
from fabric.engine.queues.request import Transfer
from fabric.errors import IntentError, Problem
from fabric.policy import Parameter

__all__ = ("Dealing", "MakeDealing", "arguments")


class Dealing(Protocol):
    """Chooses among the queues of one target; the dealer has one for each target."""

    def added(self, queue: LiveQueue) -> None:
        """Takes note of a new queue; it has room."""
        ...

    def removed(self, queue: LiveQueue) -> None:
        """Forgets a queue: it was removed or lost, and `is_open` is False already."""
        ...

    def changed(self, queue: LiveQueue) -> None:
        """Takes note that the load of a queue has changed; called while the queue has room."""
        ...

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        """Returns a queue with room on one of `paths`.

        Args:
            transfer: what is to go.
            paths: not empty; on each, the receiver has room for the transfer and a queue has room for one more.
        """
        ...


MakeDealing: TypeAlias = Callable[[Sequence[Parameter]], Dealing]


def arguments(policy: str, given: Sequence[Parameter], known: Mapping[str, tuple[int, int, int]]) -> dict[str, int]:
    """Returns the value of each known parameter.

    Args:
        policy: name of the dealing policy, for messages.
        given: what the user wrote.
        known: name → default, lowest and highest value.

    Raises:
        IntentError: a name is unknown or a value is no whole number in range; all of it is listed.
    """
    wrong = []
    values = {name: default for name, (default, _, _) in known.items()}
    for one in given:
        if one.name not in known:
            expected = ", ".join(sorted(known)) or "none"
            wrong.append(Problem(f"{policy} has no such parameter", "", "", "parameters", one.name, expected))
            continue
        _, low, high = known[one.name]
        if not isinstance(one.value, int) or isinstance(one.value, bool) or not low <= one.value <= high:
            at, expected = f"parameters.{one.name}", f"{low} to {high}"
            wrong.append(Problem("out of range", field=at, found=repr(one.value), expected=expected))
            continue
        values[one.name] = one.value
    if wrong:
        raise IntentError(wrong)
    return values
