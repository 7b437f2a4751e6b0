"""Every EOS change and its way back, typed into the lab's EOS front, which shares no code with renderer or parser."""

import random
from dataclasses import replace

import pytest

from fabric.clock import FakeClock
from fabric.diff import future
from fabric.intent import Switch
from fabric.lab import DeviceSpec
from fabric.lab.eos import EosDevice
from fabric.lab.stock import StockPort, eos_config
from fabric.nos import catalog
from fabric.plan import SwitchPlan, make_plan
from fabric.qos import Aqm, PortQos, QueueQos, Scheduler, SchedulerKind
from fabric.workflow.design import design
from fabric.workflow.subjects import capabilities_of
from tests.strategies.fabrics import generate

FABRICS = 100
OF_BEFORE = """\
   l2 mtu 8000
   uc-tx-queue 3
      no priority
      random-detect ecn minimum-threshold 1 kbytes maximum-threshold 2 kbytes
   uc-tx-queue 4
      priority strict
      random-detect drop minimum-threshold 1 kbytes maximum-threshold 2 kbytes drop-probability 100
"""
SHARE = 20  # fabrics in one test, so that a failure names few


def test_the_lab_shows_the_future_and_then_the_past_again_for_a_few_fabrics() -> None:
    _judge(range(1000, 1003))


@pytest.mark.sweep  # the few fabrics beside are of `make test`
@pytest.mark.parametrize("first", range(0, FABRICS, SHARE))
def test_the_lab_shows_the_future_and_then_the_past_again(first: int) -> None:
    _judge(range(first, first + SHARE))


def test_what_stood_on_a_port_is_taken_away_and_comes_back_as_it_stood() -> None:
    switch, plan = _eos_switches(range(3))[0]
    text = eos_config(switch.name, "", [StockPort(plan.qos.ports[0].name, 100_000)])
    seed = text.replace("   no switchport\n", OF_BEFORE)
    alone = replace(plan, qos=replace(plan.qos, ports=plan.qos.ports[:1]))
    _there_and_back(EosDevice(DeviceSpec(switch.name, "eos", seed), FakeClock()), alone)


def _judge(seeds: range) -> None:
    for switch, plan in _eos_switches(seeds):
        for adopt in (True, False):
            device = EosDevice(DeviceSpec(switch.name, "eos", _stock(switch)), FakeClock())
            planned = replace(plan, adopt=adopt)
            _there_and_back(device, planned)
            _type(device, design(planned, device.running()).payload)
            _there_and_back(device, _otherwise(planned, seed=seeds.start))  # profiles changed in place


def _eos_switches(seeds: range) -> list[tuple[Switch, SwitchPlan]]:
    found: list[tuple[Switch, SwitchPlan]] = []
    for seed in seeds:
        fabric = generate(seed, defaults_only=seed % 2 == 0)
        pairs = zip(fabric.switches, make_plan(fabric, capabilities_of).switches, strict=True)
        found += [(switch, plan) for switch, plan in pairs if switch.nos == "eos"]
    return found


def _there_and_back(device: EosDevice, plan: SwitchPlan) -> None:
    nos, before = catalog.get("eos"), device.running()
    change = design(plan, before)
    _type(device, change.payload)
    after = device.running()
    assert nos.tree(after) == future(nos.tree(before), change.changes.forward)
    assert _lines(after) == _lines(nos.apply(before, change.payload))
    assert design(plan, after).changes.forward == ()
    _type(device, change.rollback)
    assert device.running() == before


def _type(device: EosDevice, payload: str) -> None:
    shell = device.dialogue("admin")
    device.sessions.clear()  # a name can be used once
    for line in ("enable", "configure session s", *payload.splitlines(), "commit"):
        assert "%" not in shell.feed(line).text, line


def _lines(text: str) -> list[tuple[str, ...]]:
    """Returns the lines with what they stand below; their order on the device is not ours."""
    found: list[tuple[str, ...]] = []
    above: list[str] = []
    for line in text.splitlines():
        if line.strip() and not line.strip().startswith("!"):
            above = [*above[: (len(line) - len(line.lstrip())) // 3], line.strip()]
            found.append(tuple(above))
    return sorted(found)


def _stock(switch: Switch) -> str:
    """Returns the switch as it comes, its port channels made, with a port that is not the intent's."""
    ports = [StockPort(port.name, port.speed_mbps) for port in switch.ports]
    text = eos_config(switch.name, switch.hwsku or "", [*ports, StockPort("Ethernet60", 100_000)])
    for port in switch.ports:
        if port.lag:
            number = port.lag.removeprefix("Port-Channel")
            head = f"interface {port.name}\n"
            text = text.replace(head, f"{head}   channel-group {number} mode active\n")
    channels = sorted({port.lag for port in switch.ports if port.lag})
    return "".join(f"interface {name}\n   no switchport\n!\n" for name in channels) + text


def _otherwise(plan: SwitchPlan, *, seed: int) -> SwitchPlan:
    """Returns the same ports with other queues, alike for all ports of a speed."""
    source = random.Random(seed)  # noqa: S311  (test data, no secret)
    queues: dict[object, tuple[QueueQos, ...]] = {}

    def port(one: PortQos) -> PortQos:
        if one.speed_mbps not in queues:
            queues[one.speed_mbps] = tuple(_other_queue(source, queue) for queue in one.queues)
        return replace(one, queues=queues[one.speed_mbps])

    return replace(plan, qos=replace(plan.qos, ports=tuple(map(port, plan.qos.ports))))


def _other_queue(source: random.Random, queue: QueueQos) -> QueueQos:
    scheduler = source.choice(
        (None, Scheduler(SchedulerKind.STRICT), Scheduler(SchedulerKind.DWRR, weight=33, shape_kbps=5000))
    )
    curve = replace(queue.aqm, pmax_percent=77, weight=5) if isinstance(queue.aqm, Aqm) else None
    return replace(queue, scheduler=scheduler, aqm=source.choice((None, curve)))
