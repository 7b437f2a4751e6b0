"""From a lab's spec to its switches' cores and their wiring. Starts no process and no thread."""

from collections.abc import Mapping
from pathlib import Path

from fabric.clock import Clock
from fabric.errors import HostError
from fabric.lab.device import Neighbour
from fabric.lab.site.spec import End, LabSpec
from fabric.lab.wire import NicPlan, SwitchCore
from fabric.lab.wire.guest import Endpoint, GuestSide
from fabric.lab.wire.wiring import Wiring
from fabric.qos import DeviceQos

__all__ = ("build_cores", "build_wiring", "neighbours")


def build_cores(spec: LabSpec, qos: Mapping[str, DeviceQos]) -> dict[str, SwitchCore]:
    """Returns the switches by name.

    Args:
        spec: the lab.
        qos: what each switch is configured to do.
    """
    return {
        one.name: SwitchCore(qos[one.name], one.platform, draw=spec.draw(one.name), ports=one.ports)
        for one in spec.switches
    }


def build_wiring(spec: LabSpec, cores: Mapping[str, SwitchCore], folder: Path, clock: Clock) -> Wiring:
    """Returns the cables, with their sockets listening.

    Raises:
        HostError: a socket cannot be made.
        FabricError: the cables form a loop.
    """
    guests = {
        (end.device, end.port): GuestSide(NicPlan(spec.rate_bps, port.dscp_to_priority), pauses=port.pauses)
        for end, port in spec.guests().items()
    }
    trunks = [((one.a.device, one.a.port), (one.b.device, one.b.port)) for one in spec.trunks()]
    try:
        return Wiring(cores, folder, guests, trunks, clock)
    except OSError as error:
        raise HostError(
            "a socket of a data port cannot be made",
            where=str(folder),
            found=str(error),
            remedy="A socket's path has at most 107 bytes: name a short folder, FABRICCTL_LAB=/tmp/lab.",
        ) from error


def neighbours(spec: LabSpec) -> dict[Endpoint, Neighbour]:
    """Returns by switch port who answers at the other end of its cable."""
    found: dict[Endpoint, Neighbour] = {}
    for cable in spec.cables:
        for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if spec.machine(near.device) is None:
                found[near.device, near.port] = _neighbour(spec, far)
    return found


def _neighbour(spec: LabSpec, end: End) -> Neighbour:
    port = spec.port_at(end)
    if port is None:
        return Neighbour(end.device, end.port, is_switch=True)
    return Neighbour(end.device, end.port, mac=port.mac)
