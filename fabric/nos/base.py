"""What every network OS package offers. Dialects are data and pure functions; nothing here opens a connection."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fabric.diff import Change, DiffRules, Flaw, IntendedConfig, Unit
from fabric.qos import Capabilities, DeviceQos, Kept
from fabric.state import PortCounters
from fabric.tree import EMPTY, Path, Tree

__all__ = ("Identity", "LldpSeen", "Nos", "RenderContext", "SessionSpec")


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What a renderer may know of the device beside its `DeviceQos`.

    Attributes:
        running: the running tree, EMPTY when nobody read it: decides which names are taken and which
            buffer model holds.
        adopt: device-wide settings may change.
        install: the whole QoS is being installed with a reload (SONiC first install), so that what the
            device refuses to change in service may be part of it.
        kept: what stays as `running` has it, whatever the `DeviceQos` says.
    """

    version: str = ""
    asic: str = ""
    hwsku: str = ""
    running: Tree = EMPTY
    adopt: bool = False
    install: bool = False
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """How to talk to the device, as data.

    Attributes:
        transport: `netmiko` or `ssh-exec`. device_type: netmiko's name.
        fetch: the command that prints the whole running configuration.
        fetch_counters: name → command, for `counters`.
        error_patterns: regular expressions of a refusal, searched in the output of each line.
    """

    transport: str
    device_type: str
    fetch: str
    fetch_counters: Mapping[str, str]
    error_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What a configuration says of the device that it is from; "" where it does not.

    Attributes:
        hwsku: SONiC HwSKU or EOS model.
        aliases: what LLDP may call a port → the port's name.
    """

    hostname: str = ""
    hwsku: str = ""
    version: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LldpSeen:
    """One neighbour that a device sees, as it was advertised; "" for what was not.

    Attributes:
        port: ours. system, port_id, description: theirs.
    """

    port: str
    system: str
    port_id: str
    description: str = ""


class Nos(Protocol):
    """One network OS."""

    @property
    def name(self) -> str:
        """Returns the name in inventories: `eos`."""
        ...

    @property
    def rules(self) -> DiffRules:
        """Returns the order in which changes must be made."""
        ...

    @property
    def session(self) -> SessionSpec:
        """Returns how to talk to it."""
        ...

    def capabilities(self, *, asic: str = "", version: str = "") -> Capabilities:
        """Returns what this OS on that ASIC can do."""
        ...

    def tree(self, text: str) -> Tree:
        """Returns the tree of a configuration in the OS's own language.

        Raises:
            FabricError: the text is not of this OS.
        """
        ...

    def parse(self, text: str, *, device: str = "") -> DeviceQos:
        """Returns what the configuration does, defaults of the OS applied, UNKNOWN where the text cannot tell."""
        ...

    def render(self, qos: DeviceQos, context: RenderContext) -> IntendedConfig:
        """Returns what must stand in the configuration for the device to do `qos`."""
        ...

    def observable(self, qos: DeviceQos, context: RenderContext) -> DeviceQos:
        """Returns what is left of `qos` once this OS has derived its own part: `parse(render(q))` equals it."""
        ...

    def refusals(self, changes: Sequence[Change], running: Tree, context: RenderContext) -> tuple[str, ...]:
        """Returns why the device will not take these changes in service, but by an install; () if it will."""
        ...

    def payload(self, changes: Sequence[Change], running: Tree) -> str:
        """Returns the changes in the device's own language: lines to type, or a JSON patch."""
        ...

    def apply(self, text: str, payload: str) -> str:
        """Returns the configuration text that `payload` makes of `text`: the device, simulated."""
        ...

    def outside_ports(self, running: Tree, intended: IntendedConfig) -> tuple[str, ...]:
        """Returns the ports outside the intent that would feel its device-wide settings."""
        ...

    def units(self, paths: Collection[Path]) -> tuple[Unit, ...]:
        """Returns the paths by what may be restored of a run alone, each in one unit: a row, a profile."""
        ...

    def flaws(self, tree: Tree) -> tuple[Flaw, ...]:
        """Returns what does not hold together: names that nothing has, rows that contradict each other.

        Judges what a rollback beside foreign changes could break, and no more; what a device may mean by it is the
        business of `fabric.compliance`.
        """
        ...

    def identity(self, running: Tree, text: str) -> Identity:
        """Returns what the configuration says of the device; `text` is what `running` was read from."""
        ...

    @property
    def lldp_command(self) -> str:
        """Returns the command that prints the LLDP neighbours, for `lldp`."""
        ...

    def lldp(self, output: str) -> tuple[LldpSeen, ...]:
        """Returns the LLDP neighbours in the output of a command of this OS, each as often as it is seen.

        Raises:
            FabricError: the text is no such output.
        """
        ...

    def counters(self, outputs: Mapping[str, str]) -> tuple[PortCounters, ...]:
        """Returns the counters in the outputs of `session.fetch_counters`, by the same names."""
        ...
