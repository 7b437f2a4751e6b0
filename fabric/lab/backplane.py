"""Between the SSH side of an emulated switch and its data plane: configuration down, counters up.

Locks. A command holds its device's lock and waits for the forwarding thread, never longer than a limit; that thread
takes no device's lock and waits for nobody. So there is no circle. What reads a configuration comes in as an argument:
the lab may not see `fabric.nos`.
"""

from collections.abc import Callable, Mapping, Sequence

from fabric.errors import FabricError
from fabric.lab.device import DataPlane, Device, Neighbour, PortReading
from fabric.lab.wire.actions import Action
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.guest import Endpoint
from fabric.lab.wire.wiring import Wiring
from fabric.observe import Event, Observer, silent
from fabric.qos import DeviceQos
from fabric.state import PortCounters

__all__ = ("Backplane", "Reader")

Reader = Callable[[str, str], DeviceQos]
"""Returns what the running configuration of a device says: (device, text). Raises FabricError when it cannot."""


class Backplane(DataPlane):
    """The data plane of one switch, as its front sees it: `Front.attach(Backplane(…))`.

    Args:
        name: of the switch in the wiring, and what `read` is told.
        wiring: must run, else every question waits for its limit.
        read: of a running configuration.
        neighbours: by switch and port; those of other switches are left out.
        observer: hears of each configuration that the data plane obeys from now, or cannot.
        timeout_s: how long one question may take.
    """

    def __init__(
        self,
        name: str,
        wiring: Wiring,
        read: Reader,
        *,
        neighbours: Mapping[Endpoint, Neighbour],
        observer: Observer = silent,
        timeout_s: float = 2.0,
    ) -> None:
        self._name = name
        self._wiring = wiring
        self._read = read
        self._neighbours = {port: one for (switch, port), one in neighbours.items() if switch == name}
        self._observer = observer
        self._timeout_s = timeout_s
        self._text: str | None = None
        self._ports = wiring.ports(name)

    def settle(self, device: Device) -> None:
        """Makes the data plane obey the running configuration if it has changed.

        One that cannot be read leaves the old one in force and is told to the observer once. When the forwarding thread
        does not answer, the next command tries again.
        """
        text = device.running()
        if text == self._text:
            return
        shut = device.shut_ports()
        try:
            qos = self._read(self._name, text)
            unresolved = self._wiring.ask(self._name, lambda core, now: _obey(core, qos, shut, now), self._timeout_s)
        except TimeoutError as error:
            self._tell("failed", f"the data plane did not take it: {error}")
            return
        except (FabricError, ValueError) as error:  # a configuration of which no plan can be made is a ValueError
            self._text = text
            self._tell("failed", f"the data plane keeps the old configuration: {error}")
            return
        self._text = text
        self._tell("done", "; ".join(unresolved))

    def readings(self) -> Mapping[str, PortReading]:
        """Returns the ports of the wiring; UNKNOWN counters when it does not answer in time."""
        try:
            return self._wiring.ask(self._name, lambda core, _: (_readings(core), ()), self._timeout_s)
        except TimeoutError:
            return {port: PortReading(PortCounters(port)) for port in self._ports}

    def neighbours(self) -> Mapping[str, Neighbour]:
        """Returns who is at the other end of the cables that are whole."""
        up = {port for port, one in self.readings().items() if one.is_up}
        return {port: one for port, one in self._neighbours.items() if port in up}

    def _tell(self, how: str, message: str) -> None:
        self._observer(Event(f"lab.configuration.{how}", device=self._name, message=message))


def _obey(
    core: SwitchCore, qos: DeviceQos, shut: frozenset[str], now_ns: int
) -> tuple[tuple[str, ...], Sequence[Action]]:
    actions = core.configure(qos, now_ns)
    for port in core.ports:
        if core.is_enabled(port) == (port in shut):
            actions += core.set_enabled(port, enabled=port not in shut, now_ns=now_ns)
    return core.unresolved, actions


def _readings(core: SwitchCore) -> dict[str, PortReading]:
    return {
        port: PortReading(
            counters=core.counters(port),
            storms=core.storms(port),
            early_bytes=core.early_bytes(port),
            is_up=core.is_enabled(port) and not core.faults.is_down(port),
        )
        for port in core.ports
    }
