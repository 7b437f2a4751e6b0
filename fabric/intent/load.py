"""Reads an Ansible inventory into a `Fabric` and the way to each device; every problem at once, with its place.

pydantic and ruamel are imported when a load starts, not with this module: `import fabric.intent` stays cheap.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.errors import IntentError, Problem
from fabric.intent.access import DeviceAccess
from fabric.intent.flaws import Flaw, Spot, to_problems
from fabric.intent.model import Fabric
from fabric.intent.places import Places, all_files, child_place, syntax_problems
from fabric.intent.placing import placed
from fabric.intent.soundness import unreadable
from fabric.intent.traps import number_traps
from fabric.observe import Event, Observer, silent
from fabric.remote.ansible import RawInventory, RawProblem, VaultOptions, read_inventory
from fabric.serial import Json

__all__ = ("Loaded", "VaultOptions", "load")

_CYCLE: Final = re.compile(r"Adding group '([^']+)' as child to '([^']+)' creates")  # ansible-core, inventory/group.py


@dataclass(frozen=True, slots=True)
class Loaded:
    """What an inventory says.

    Attributes:
        fabric: the whole fabric, whatever the limit: a port's plan depends on its peer.
        access: device → how to log in; holds the secrets, never serialise it.
        selected: the devices that the limit leaves, in natural order.
        places: finds the line of a variable; None for a fabric that came from elsewhere.
    """

    fabric: Fabric
    access: Mapping[str, DeviceAccess]
    selected: tuple[str, ...] = ()
    places: Places | None = field(default=None, repr=False, compare=False)

    def placed(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        """Returns problems that came up later with the lines that they hang on, each once."""
        return placed(problems, self.places) if self.places is not None else tuple(problems)


def load(
    sources: Sequence[Path],
    *,
    vault: VaultOptions | None = None,
    limit: str = "",
    extra_vars: Mapping[str, Json] | None = None,
    known_nos: Iterable[str] = (),
    observer: Observer = silent,
) -> Loaded:
    """Returns the fabric of an inventory, with Ansible's own precedence, Jinja and vault.

    Args:
        sources: what `ansible-playbook -i` takes: files, folders, executable scripts; the last one wins.
        vault: how to open vaulted parts.
        limit: an Ansible host pattern, "" for all.
        extra_vars: as `ansible-playbook -e`.
        known_nos: the network OSes that there are, to refuse others with their line; () takes any.
        observer: hears `intent.load.started`, `.progress` for each warning of Ansible, and `.done`.

    Raises:
        IntentError: every problem of the inventory.
        EnvironmentMissingError: ansible-core is missing.
    """
    observer(Event("intent.load.started", message=", ".join(str(source) for source in sources)))
    missing = tuple(_missing(sources))
    if missing:
        raise IntentError(missing)
    broken = tuple(unreadable(sources, all_files))
    if broken:
        raise IntentError(broken)
    from fabric.intent.devices import FABRIC_WIDE  # lazy: pydantic, 0.1 s

    inventory = read_inventory(sources, vault=vault, limit=limit, extra_vars=extra_vars, once=sorted(FABRIC_WIDE))
    for warning in inventory.warnings:
        observer(Event("intent.load.progress", message=warning))
    loaded = _build(sources, inventory, known_nos)
    observer(
        Event("intent.load.done", data={"switches": len(loaded.fabric.switches), "links": len(loaded.fabric.links)})
    )
    return loaded


def _missing(sources: Sequence[Path]) -> Iterator[Problem]:
    if not sources:
        yield Problem("there is no inventory", remedy="Name one: -i inventory/demo")
    for source in sources:
        if not source.exists() and "," not in str(source):  # `leaf1,leaf2` is a list of hosts
            yield Problem("there is no such file or folder", place=str(source))


def _build(sources: Sequence[Path], inventory: RawInventory, known_nos: Iterable[str]) -> Loaded:
    from fabric.intent.build import build  # lazy: pydantic
    from fabric.intent.devices import FABRIC_WIDE

    unread = [problem for problem in inventory.problems if not problem.host]
    if unread:
        raise IntentError(tuple(syntax_problems(sources)) or tuple(_unread(problem, sources) for problem in unread))
    places = Places(sources, inventory.hosts)
    built = build(inventory, known_nos)
    flaws = [_unrendered(problem) for problem in inventory.problems]
    problems = to_problems((*flaws, *built.flaws, *number_traps(sources, places)), inventory, places, FABRIC_WIDE)
    if problems:
        raise IntentError(problems)
    selected = tuple(name for name in built.access if name in inventory.selected)
    return Loaded(built.fabric, built.access, selected, places)


def _unread(problem: RawProblem, sources: Sequence[Path]) -> Problem:
    what = f"Ansible cannot read the inventory: {problem.message.rstrip('.')}"
    cycle = _CYCLE.search(problem.message)
    place = child_place(sources, cycle[2], cycle[1]) if cycle is not None else ""
    return Problem(what, place or problem.source, remedy=_remedy(problem))


def _unrendered(problem: RawProblem) -> Flaw:
    what = f"Ansible cannot render the variable: {problem.message.rstrip('.')}"
    return Flaw(what, Spot(problem.host, problem.variable), remedy=_remedy(problem))


def _remedy(problem: RawProblem) -> str:
    is_vault = "vault" in problem.message.lower() or "decrypt" in problem.message.lower()
    return "Give the vault password: --vault-password-file FILE, or --vault-id LABEL@FILE." if is_vault else ""
