import json
from dataclasses import replace

import pytest

from fabric import serial
from fabric.errors import FabricError
from fabric.lab.site import Cable, End, LabMachine, LabPort, LabSpec, LabSwitch, mac_of
from fabric.lab.spec import DeviceSpec
from fabric.lab.wire import Platform

PRIORITIES = tuple(dscp >> 3 for dscp in range(64))


def machine(name: str) -> LabMachine:
    port = LabPort("data0", mac_of(1, End(name, "data0")), 4200, PRIORITIES, frozenset({3}))
    return LabMachine(name, "host", 512, 1, (port,))


SPEC = LabSpec(
    "lab",
    1,
    100_000_000,
    (machine("host1"), machine("target1")),
    (
        LabSwitch(DeviceSpec("leaf1", "sonic", "{}"), ("Ethernet0", "Ethernet8"), Platform()),
        LabSwitch(DeviceSpec("leaf2", "eos", ""), ("Ethernet1", "Ethernet2"), Platform()),
    ),
    (
        Cable(End("leaf1", "Ethernet0"), End("host1", "data0")),
        Cable(End("target1", "data0"), End("leaf2", "Ethernet1")),
        Cable(End("leaf1", "Ethernet8"), End("leaf2", "Ethernet2")),
    ),
)


def test_spec_is_the_same_after_json() -> None:
    assert serial.from_json(LabSpec, json.loads(json.dumps(serial.to_json(SPEC)))) == SPEC


def test_guests_are_found_whichever_end_of_the_cable_they_are() -> None:
    assert {str(end): port.mac for end, port in SPEC.guests().items()} == {
        "leaf1:Ethernet0": mac_of(1, End("host1", "data0")),
        "leaf2:Ethernet1": mac_of(1, End("target1", "data0")),
    }
    assert list(SPEC.trunks()) == [SPEC.cables[2]]


def test_machines_joined_directly_are_neither_guest_nor_trunk() -> None:
    direct = replace(SPEC, switches=(), cables=(Cable(End("host1", "data0"), End("target1", "data0")),))
    assert direct.guests() == {}
    assert list(direct.trunks()) == []


@pytest.mark.parametrize(
    ("cable", "message"),
    [
        (Cable(End("leaf1", "Ethernet16"), End("leaf2", "Ethernet2")), "does not have"),
        (Cable(End("leaf1", "Ethernet0"), End("leaf2", "Ethernet2")), "end at one port"),
    ],
)
def test_cable_that_cannot_be_is_refused(cable: Cable, message: str) -> None:
    with pytest.raises(FabricError, match=message):
        replace(SPEC, cables=(*SPEC.cables[:2], cable))


def test_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(FabricError, match="one name"):
        replace(SPEC, machines=(*SPEC.machines, machine("leaf1")))


def test_addresses_and_draws_come_from_the_seed() -> None:
    end = End("host1", "data0")
    assert mac_of(1, end) == mac_of(1, end) != mac_of(2, end)
    assert int(mac_of(1, end)[:2], 16) & 3 == 2, "locally administered, one station"
    assert SPEC.draw("leaf1").random() == SPEC.draw("leaf1").random() != SPEC.draw("leaf2").random()
