"""What would change on one switch if its inventory said this: the plan and the diff, without a device. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fabric.diff import Change, Op, changes
from fabric.errors import FabricError
from fabric.intent.model import Fabric, Switch
from fabric.nos import Nos, RenderContext
from fabric.plan import make_plan
from fabric.qos import Aspect
from fabric.tree import Tree
from fabric.workflow.subjects import capabilities_of

__all__ = ("Keeps", "Outcome", "Trial", "with_keeps")

Keeps = Mapping[str, frozenset[Aspect]]
"""Port → what stays there."""
_TOKENS: Final = re.compile(r"[|, ]+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a provision would change; `error` says why it would not even be planned."""

    changes: tuple[Change, ...] = ()
    error: FabricError | None = None

    @property
    def empty(self) -> bool:
        """Returns whether nothing would change."""
        return self.error is None and not self.changes


class Trial:
    """One switch whose inventory is being found. Holds its running configuration.

    Args:
        switch: with its ports and policy.
        nos: its network OS.
        running: its configuration.
    """

    def __init__(self, switch: Switch, nos: Nos, running: Tree) -> None:
        self.switch = switch
        self._nos = nos
        self._running = running
        self._names = frozenset(port.name for port in switch.ports)
        self._seen: dict[tuple[tuple[str, frozenset[Aspect]], ...], Outcome] = {}

    def of(self, keeps: Keeps) -> Outcome:
        """Returns what would change when these parts stay."""
        key = tuple(sorted((port, parts) for port, parts in keeps.items() if parts))
        if key not in self._seen:
            self._seen[key] = self._run(keeps)
        return self._seen[key]

    def _run(self, keeps: Keeps) -> Outcome:
        switch = replace(with_keeps(self.switch, keeps), adopt=False)
        try:
            plan = make_plan(Fabric("import", (_alone(switch),)), capabilities_of).switches[0]
            context = RenderContext(
                version=plan.version, asic=plan.asic, hwsku=plan.hwsku, running=self._running, kept=plan.kept
            )
            intended = self._nos.render(plan.qos, context)
        except FabricError as error:
            return Outcome(error=error)
        found = changes(self._running, intended, self._nos.rules)
        return Outcome(changes=(*found.forward, *found.held_back))

    def by_port(self, outcome: Outcome) -> Counter[str]:
        """Returns how many changes name each port; "" for those that name none."""
        counts: Counter[str] = Counter()
        for one in outcome.changes:
            tokens = {token for part in one.path for token in _TOKENS.split(part)}
            named = tokens & self._names
            counts.update(named or {""})
        return counts


def with_keeps(switch: Switch, keeps: Keeps) -> Switch:
    """Returns the switch with these parts of its ports kept."""
    ports = tuple(replace(port, keep=keeps.get(port.name, frozenset())) for port in switch.ports)
    return replace(switch, ports=ports)


def _alone(switch: Switch) -> Switch:
    """Returns the switch without its neighbours, which are not planned here."""
    return replace(switch, ports=tuple(replace(port, peer=None) for port in switch.ports))


def told(change: Change) -> str:
    """Returns a change in one line."""
    path = " | ".join(change.path)
    match change.op:
        case Op.ADD:
            return f"+ {path}{_value(change.after)}"
        case Op.REMOVE:
            return f"- {path}{_value(change.before)}"
        case Op.REPLACE:
            return f"~ {path}{_value(change.before)} becomes{_value(change.after)}"


def _value(value: object) -> str:
    return "" if value is None else f" {value}"
