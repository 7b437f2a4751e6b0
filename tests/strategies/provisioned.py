"""Running configurations that a plan has been provisioned onto: the lab's stock, with the plan's payload applied."""

from fabric.errors import FabricError
from fabric.intent.model import Fabric
from fabric.lab.stock import StockPort, eos_config, sonic_config
from fabric.nos import catalog
from fabric.plan import make_plan
from fabric.workflow.design import design
from fabric.workflow.importing import Cabled, Config
from fabric.workflow.subjects import capabilities_of

__all__ = ("cables_of", "provisioned", "stock_of")


def stock_of(fabric: Fabric, name: str, *, dynamic: bool = True) -> str:
    """Returns the configuration of that switch before anybody provisioned it."""
    switch = fabric.switch(name)
    assert switch is not None
    ports = [StockPort(port.name, port.speed_mbps) for port in switch.ports]
    if switch.nos == "eos":
        return eos_config(name, switch.hwsku or "DCS-7050CX3-32S", ports)
    return sonic_config(ports, hostname=name, hwsku=switch.hwsku or "ACS-MSN4700", dynamic=dynamic, watchdog=False)


def provisioned(fabric: Fabric, *, dynamic: bool = True) -> dict[str, Config]:
    """Returns what each switch runs after a provision with `--adopt`; without those that cannot be provisioned."""
    plan = make_plan(fabric, capabilities_of).adopted()
    out: dict[str, Config] = {}
    for one in plan.switches:
        base = stock_of(fabric, one.device, dynamic=dynamic)
        try:
            change = design(one, base)
        except FabricError:
            continue
        after = catalog.get(one.nos).apply(base, change.payload) if change.payload else base
        out[one.device] = Config(one.nos, after)
    return out


def cables_of(fabric: Fabric) -> tuple[Cabled, ...]:
    """Returns the cabling plan of a fabric, as somebody would list it."""
    return tuple(Cabled(one.a, one.b, one.cable_m, one.speed_mbps, "plan") for one in fabric.links)
