"""A takeover without SSH: plan, design and way back on a text, the payload typed into the lab's device. Seconds a sample.

Every sample is taken over in part and whole, with and without adoption, and what the product thinks of the device
afterwards must be what the lab's own grammar or updater shows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fabric.clock import FakeClock
from fabric.intent.model import Endpoint, Fabric, Host, HostNic, PortRole, RocePolicy, Switch, SwitchPort, SwitchRole
from fabric.lab.eos import EosDevice
from fabric.lab.sonic import SonicDevice
from fabric.lab.sonic.updater import UpdateRefusedError
from fabric.nos import catalog
from fabric.plan import FabricPlan, make_plan
from fabric.state import Severity, Status
from fabric.workflow.design import DeviceChange, design
from fabric.workflow.reversing import reverse
from fabric.workflow.subjects import capabilities_of, findings_on, parsed, running_subjects
from tests.brownfield.inventory import Wanted
from tests.brownfield.judge import DEVICE, Subject, is_same, unasked

__all__ = ("fabric_of", "plan_for", "problems_of", "variants")

_MTU: Final = 9216
_HOST_MTU: Final = 9000
_CABLE_M: Final = 5


def variants(subject: Subject) -> Iterator[tuple[str, Subject, bool]]:
    """Yields what is called how: the ports in part and all of them, each without and with adoption."""
    every = {**subject.wanted.ports, **dict.fromkeys(subject.wanted.foreign, next(iter(subject.wanted.ports.values())))}
    for what, wanted in (("part", subject.wanted), ("all", Wanted(every, ()))):
        for adopt in (False, True):
            yield f"{what}, {'adopted' if adopt else 'not adopted'}", replace(subject, wanted=wanted), adopt


def fabric_of(subject: Subject) -> Fabric:
    """Returns the intent of `subject.inventory`, made without Ansible."""
    hosts = {port: f"gpu{number}" for number, port in enumerate(subject.wanted.hosted, start=1)}
    ports = tuple(
        SwitchPort(
            port,
            PortRole.HOST,
            mbps,
            _MTU,
            cable_m=_CABLE_M,
            peer=Endpoint(hosts[port], "ens1") if port in hosts else None,
        )
        for port, mbps in subject.wanted.ports.items()
    )
    board = subject.board
    switch = Switch(
        DEVICE, subject.sample.nos, SwitchRole.LEAF, ports, RocePolicy(), asic=board.asic, hwsku=board.hwsku
    )
    nics = {
        name: HostNic("ens1", "mlx5", subject.wanted.ports[port], _HOST_MTU, peer=Endpoint(DEVICE, port))
        for port, name in hosts.items()
    }
    return Fabric("brownfield", (switch,), tuple(Host(name, (nic,), managed=False) for name, nic in nics.items()))


def plan_for(subject: Subject, *, adopt: bool) -> tuple[Fabric, FabricPlan]:
    """Returns the intent and its plan."""
    fabric = fabric_of(subject)
    plan = make_plan(fabric, capabilities_of)
    return fabric, plan.adopted() if adopt else plan


def problems_of(subject: Subject, *, adopt: bool) -> tuple[str, ...]:
    """Returns what is wrong with a takeover of `subject` and its way back; () for nothing.

    Raises:
        FabricError: it is refused.
    """
    return tuple(_problems(subject, adopt=adopt))


def _problems(subject: Subject, *, adopt: bool) -> Iterator[str]:
    fabric, plan = plan_for(subject, adopt=adopt)
    switch, nos = plan.switches[0], catalog.get(subject.sample.nos)
    device = _Device(subject)
    before = device.running()
    change = design(switch, before)
    after = nos.apply(before, change.payload) if change.payload else before
    device.take(change, after)
    if not is_same(subject, device.running(), after):
        yield "the lab shows another configuration than was foreseen"
    if design(switch, after).changes.forward:
        yield "a second run would change something"
    yield from (f"unasked: {one}" for one in unasked(subject, before, after, adopted=adopt))
    if not change.changes.held_back:
        yield from _findings(fabric, plan, after)
    back = reverse(change, after)
    device.take(back, nos.apply(after, back.payload) if back.payload else after)
    if not is_same(subject, before, device.running()):
        yield "the rollback does not restore what was"


def _findings(fabric: Fabric, plan: FabricPlan, text: str) -> Iterator[str]:
    observed, broken = parsed(plan, {DEVICE: text})
    yield from (f"not readable: {error}" for error in broken.values())
    for one in findings_on(fabric, running_subjects(fabric, plan, observed)):
        if one.status is Status.FAIL and one.severity is Severity.ERROR:
            yield f"{one.rule} on {', '.join(one.where.ports)}: {one.evidence}"


@dataclass(slots=True)
class _Device:
    """The lab's device of a subject, without its SSH."""

    subject: Subject
    _eos: EosDevice | None = None
    _sonic: SonicDevice | None = None

    def __post_init__(self) -> None:
        if self.subject.sample.nos == "eos":
            self._eos = EosDevice(self.subject.spec, FakeClock())
        else:
            self._sonic = SonicDevice(self.subject.spec, FakeClock())

    def running(self) -> str:
        """Returns what it shows."""
        device = self._eos or self._sonic
        assert device is not None
        return device.running()

    def take(self, change: DeviceChange, whole: str) -> None:
        """Types or patches the change; a SONiC that refuses the patch is loaded with the whole configuration."""
        if not change.payload:
            return
        if self._eos is not None:
            shell = self._eos.dialogue("admin")
            self._eos.sessions.clear()  # a name can be used once
            for line in ("enable", "configure session s", *change.payload.splitlines(), "commit"):
                said = shell.feed(line).text
                assert "%" not in said, f"{line}: {said}"
            return
        assert self._sonic is not None
        try:
            self._sonic.updater.patch(change.payload)
        except UpdateRefusedError:
            self._sonic.set_database(json.loads(whole))
