"""Which namespaces a verification uses: what somebody gave for overwriting, or, without that, all for reads alone."""

from collections.abc import Sequence
from dataclasses import replace

from fabric.errors import PlanError
from fabric.intent import Fabric
from fabric.plan import FabricPlan
from fabric.registry import nearest
from fabric.workflow.agents import Agents
from fabric.workflow.expanding import Scratch, Wishes, volume_streams

__all__ = ("Volume", "described", "given_volumes", "read_volumes")

Volume = tuple[str, int]
"""NQN and namespace id."""


def given_volumes(fabric: Fabric, words: Sequence[str]) -> tuple[Volume, ...]:
    """Returns the namespaces that the words of `--scratch` name.

    Raises:
        PlanError: one names nothing; everything is told that could be named.
    """
    found: dict[Volume, None] = {}
    for word in words:
        found.update(dict.fromkeys(_meant(fabric, word)))
    return tuple(found)


def read_volumes(fabric: Fabric, hosts: Sequence[str]) -> tuple[Volume, ...]:
    """Returns every namespace that one of these hosts connects to."""
    wanted = {nqn for one in fabric.hosts if one.name in hosts for nqn in one.connect}
    return tuple(
        (subsystem.nqn, space.nsid)
        for target in fabric.targets
        for subsystem in target.subsystems
        if subsystem.nqn in wanted
        for space in subsystem.namespaces
    )


def described(
    fabric: Fabric, plan: FabricPlan, volumes: Sequence[Volume], agents: Agents, *, transport: str, wishes: Wishes
) -> tuple[Scratch, ...]:
    """Returns the namespaces with the sizes that their targets tell.

    Raises:
        PlanError: no host with an agent connects to one.
        FabricError: a target did not tell.
    """
    near = replace(fabric, hosts=tuple(one for one in fabric.hosts if one.name in agents.alive))
    asked = volume_streams(near, plan, volumes, transport=transport, wishes=wishes)
    found = []
    for (nqn, nsid), (host, stream) in zip(volumes, asked, strict=True):
        told = agents.describe({host: stream})
        if error := told.errors.get(host):
            raise error
        size = told.results[host]
        found.append(Scratch(nqn, nsid, size.block_bytes, size.blocks))
    return tuple(found)


def _meant(fabric: Fabric, word: str) -> tuple[Volume, ...]:
    name, slash, number = word.rpartition("/")
    if not (slash and number.isdecimal()):
        name, number = word, ""
    every = [
        (target.name, subsystem.nqn, space.nsid)
        for target in fabric.targets
        for subsystem in target.subsystems
        for space in subsystem.namespaces
    ]
    found = tuple((nqn, nsid) for target, nqn, nsid in every if name in {target, nqn} and number in {"", str(nsid)})
    if not found:
        known = sorted({one for target, nqn, nsid in every for one in (f"{target}/{nsid}", f"{nqn}/{nsid}")})
        near = nearest(word, known)
        raise PlanError(
            "--scratch names no namespace",
            found=word,
            expected=", ".join(known) or "there is none in the inventory",
            remedy=f"Did you mean {near}?" if near else "Name a target, or an NQN; /NSID behind it for one namespace.",
        )
    return found
