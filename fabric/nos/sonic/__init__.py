"""Community SONiC: CONFIG_DB (config_db.json) and the generic config updater."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fabric.diff import Change, DiffRules, Flaw, IntendedConfig, Unit
from fabric.nos.base import Identity, LldpSeen, RenderContext, SessionSpec
from fabric.nos.sonic import neighbours, patch, show
from fabric.nos.sonic.capabilities import capabilities
from fabric.nos.sonic.config import load
from fabric.nos.sonic.joints import flaws, units
from fabric.nos.sonic.observable import observable
from fabric.nos.sonic.outside import outside_ports
from fabric.nos.sonic.parse import parse
from fabric.nos.sonic.render import render
from fabric.nos.sonic.rules import RULES
from fabric.nos.sonic.service import refusals
from fabric.nos.sonic.session import SESSION
from fabric.qos import Capabilities, DeviceQos
from fabric.state import PortCounters
from fabric.tree import Path, Tree

__all__ = ("SONIC", "Sonic")


@dataclass(frozen=True, slots=True)
class Sonic:
    """The `fabric.nos.base.Nos` of community SONiC."""

    name: str = "sonic"
    rules: DiffRules = RULES
    session: SessionSpec = SESSION

    def capabilities(self, *, asic: str = "", version: str = "") -> Capabilities:
        """Returns what SONiC can do."""
        return capabilities(asic=asic, version=version)

    def tree(self, text: str) -> Tree:
        """Returns the tree of a config_db.json or a flat dump; of a key given twice, the last."""
        return load(text)[0]

    def parse(self, text: str, *, device: str = "") -> DeviceQos:
        """Returns what the configuration does."""
        return parse(text, device=device)

    def render(self, qos: DeviceQos, context: RenderContext) -> IntendedConfig:
        """Returns what must stand in CONFIG_DB."""
        return render(qos, context)

    def observable(self, qos: DeviceQos, context: RenderContext) -> DeviceQos:
        """Returns what of `qos` can be read back."""
        return observable(qos, context)

    def refusals(self, changes: Sequence[Change], running: Tree, context: RenderContext) -> tuple[str, ...]:
        """Returns why the generic config updater will not take these changes in service."""
        return refusals(changes, running, context)

    def payload(self, changes: Sequence[Change], running: Tree) -> str:
        """Returns a JSON patch for `config apply-patch`."""
        return patch.payload(changes, running)

    def apply(self, text: str, payload: str) -> str:
        """Returns the configuration text after that patch."""
        return patch.apply(text, payload)

    def outside_ports(self, running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
        """Returns the ports outside the intent that feel its device-wide settings."""
        return outside_ports(running, intended)

    def units(self, paths: Collection[Path]) -> tuple[Unit, ...]:
        """Returns rows, those that name one port and queue in several ways together."""
        return units(paths)

    def flaws(self, tree: Tree) -> tuple[Flaw, ...]:
        """Returns rows that name what is not there, contradict each other, or pause without headroom."""
        return flaws(tree)

    def identity(self, running: Tree, text: str) -> Identity:
        """Returns what CONFIG_DB says of the device."""
        del text
        return neighbours.identity(running)

    @property
    def lldp_command(self) -> str:
        """Returns the command that prints the LLDP neighbours."""
        return neighbours.LLDP_COMMAND

    def lldp(self, output: str) -> tuple[LldpSeen, ...]:
        """Returns the LLDP neighbours."""
        return neighbours.lldp(output)

    def counters(self, outputs: Mapping[str, str]) -> tuple[PortCounters, ...]:
        """Returns the counters of every port."""
        return show.counters(outputs)


SONIC = Sonic()
