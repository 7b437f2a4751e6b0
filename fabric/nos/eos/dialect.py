"""The one object that EOS is to the rest of the house. Holds no logic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.diff import Change, DiffRules, Flaw, IntendedConfig, Unit
from fabric.nos.base import Identity, LldpSeen, RenderContext, SessionSpec
from fabric.nos.eos import neighbours
from fabric.nos.eos.capabilities import capabilities
from fabric.nos.eos.joints import flaws, units
from fabric.nos.eos.observable import observable
from fabric.nos.eos.parse import parse
from fabric.nos.eos.payload import payload
from fabric.nos.eos.render import outside_ports, render
from fabric.nos.eos.session import RULES, SESSION
from fabric.nos.eos.show import counters
from fabric.nos.eos.text import tree
from fabric.nos.eos.typed import apply
from fabric.qos import Capabilities, DeviceQos
from fabric.state import PortCounters
from fabric.tree import Path, Tree

__all__ = ("EOS", "Eos")


@dataclass(frozen=True, slots=True)
class Eos:
    """Arista EOS; satisfies `fabric.nos.base.Nos`."""

    name: str = "eos"
    rules: DiffRules = RULES
    session: SessionSpec = SESSION

    def capabilities(self, *, asic: str = "", version: str = "") -> Capabilities:
        """Returns what EOS on that ASIC can do."""
        return capabilities(asic=asic, version=version)

    def tree(self, text: str) -> Tree:
        """Returns the tree of `show running-config`."""
        return tree(text)

    def parse(self, text: str, *, device: str = "") -> DeviceQos:
        """Returns what the configuration does."""
        return parse(text, device=device)

    def render(self, qos: DeviceQos, context: RenderContext) -> IntendedConfig:
        """Returns what must stand in the configuration."""
        return render(qos, context)

    def observable(self, qos: DeviceQos, context: RenderContext) -> DeviceQos:
        """Returns what `parse` sees of `qos`."""
        return observable(qos, context)

    def refusals(self, changes: Sequence[Change], running: Tree, context: RenderContext) -> tuple[str, ...]:
        """Returns nothing: a configuration session takes every line in service."""
        del changes, running, context
        return ()

    def payload(self, changes: Sequence[Change], running: Tree) -> str:
        """Returns the lines to type."""
        return payload(changes, running)

    def apply(self, text: str, payload: str) -> str:
        """Returns the text that the switch shows after `payload` was typed."""
        return apply(text, payload)

    def outside_ports(self, running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
        """Returns the physical ports outside the intent."""
        return outside_ports(running, intended)

    def units(self, paths: Collection[Path]) -> tuple[Unit, ...]:
        """Returns whole profiles, the QoS lines of an interface, and every other line alone."""
        return units(paths)

    def flaws(self, tree: Tree) -> tuple[Flaw, ...]:
        """Returns interfaces that name a profile or policy that is not there."""
        return flaws(tree)

    def identity(self, running: Tree, text: str) -> Identity:
        """Returns what the configuration says of the device."""
        return neighbours.identity(running, text)

    @property
    def lldp_command(self) -> str:
        """Returns the command that prints the LLDP neighbours."""
        return neighbours.LLDP_COMMAND

    def lldp(self, output: str) -> tuple[LldpSeen, ...]:
        """Returns the LLDP neighbours."""
        return neighbours.lldp(output)

    def counters(self, outputs: Mapping[str, str]) -> tuple[PortCounters, ...]:
        """Returns the counters in the outputs of `session.fetch_counters`."""
        return counters(outputs)


EOS: Final = Eos()
