"""What the fronts show of their data plane is what the product's own parsers read back."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.lab.backplane import Backplane
from fabric.lab.device import Device, Neighbour
from fabric.lab.eos import EosDevice
from fabric.lab.wire import CableFault, CableFaultKind, SwitchCore, Wiring
from fabric.nos.catalog import catalog
from fabric.nos.eos.show import lldp_neighbours
from fabric.nos.sonic.show.table import tables
from fabric.qos import UNKNOWN
from fabric.state import PortCounters
from tests.unit.lab.planes import (
    EOS_PORTS,
    PLATFORM,
    SONIC_PORTS,
    core_of,
    eos_device,
    overload,
    plane,
    read_eos,
    read_sonic,
    sonic_device,
    sonic_text,
)
from tests.unit.lab.wire.peers import SystemClock

FRAMES = ("rx_packets", "tx_packets", "rx_errors", "tx_errors", "rx_discards", "tx_discards")


def shown(nos: str, device: Device) -> dict[str, PortCounters]:
    """Returns by port what the product reads out of the device's shows."""
    plug_in = catalog.get(nos)
    outputs = {}
    for name, command in plug_in.session.fetch_counters.items():
        reply = device.execute(command, "admin")
        assert reply.exit_status == 0, reply.error
        outputs[name] = reply.text
    return {one.port: one for one in plug_in.counters(outputs)}


def labelled(counters: PortCounters, prefix: str) -> PortCounters:
    return replace(counters, queues=tuple(replace(one, queue=f"{prefix}{one.queue}") for one in counters.queues))


def sonic_core() -> SwitchCore:
    core = core_of(read_sonic("leaf1", sonic_text()), SONIC_PORTS)
    overload(core, *SONIC_PORTS)
    return core


def eos_core() -> SwitchCore:
    device = eos_device()
    platform = replace(PLATFORM, lossless_by_pfc=True)
    core = core_of(read_eos("leaf1", device.running()), EOS_PORTS, platform)
    overload(core, *EOS_PORTS)
    return core


def test_sonic_shows_what_its_data_plane_counted(tmp_path: Path) -> None:
    device, core = sonic_device(), sonic_core()
    counted = {port: core.counters(port) for port in SONIC_PORTS}
    with plane(device, core, tmp_path):
        found = shown("sonic", device)
    assert {port: found[port] for port in SONIC_PORTS} == {port: labelled(counted[port], "UC") for port in SONIC_PORTS}
    # each kind of counter was there to be shown
    near, far = counted["Ethernet0"], counted["Ethernet4"]
    assert near.pfc_tx_total != 0
    assert far.pfc_rx_total != 0
    assert near.pg_dropped_packets != (0,) * 8
    assert near.rx_packets > 0 < near.rx_discards  # type: ignore[operator]  # a switch counts what it drops as come
    assert far.tx_packets > 0 < far.tx_discards  # type: ignore[operator]
    for value in ("packets", "bytes", "dropped_packets", "dropped_bytes", "marked_packets"):
        assert any(getattr(one, value) for one in far.queues), value
    assert far.watchdog[0].storms_detected == far.watchdog[0].storms_restored == 1
    assert far.watchdog[0].tx_dropped != 0


def test_ports_of_a_sonic_board_without_a_cable_show_zeros(tmp_path: Path) -> None:
    device, bare = sonic_device(), sonic_device()
    with plane(device, sonic_core(), tmp_path):
        found = shown("sonic", device)
    zeros = shown("sonic", bare)
    assert set(found) == set(zeros) == {f"Ethernet{4 * number}" for number in range(4)}
    for port in ("Ethernet8", "Ethernet12"):
        assert found[port] == zeros[port]
        assert found[port].pfc_rx_frames == found[port].pg_dropped_packets == (0,) * 8
        assert [(one.queue, one.packets, one.marked_packets) for one in found[port].queues] == [
            (f"UC{queue}", 0, 0) for queue in range(8)
        ]


def test_sonic_counts_no_marks_while_the_counter_poll_is_off(tmp_path: Path) -> None:
    device = sonic_device(sonic_text(wred_counted=False))
    with plane(device, sonic_core(), tmp_path):
        found = shown("sonic", device)
    assert {one.marked_packets for one in found["Ethernet4"].queues} == {UNKNOWN}


def test_sonic_shows_the_packets_of_the_last_storm_apart(tmp_path: Path) -> None:
    device, core = sonic_device(), sonic_core()
    core.peer_pauses("Ethernet4", 3, paused=True, now_ns=5_000_000_000)
    with plane(device, core, tmp_path):
        (row,) = [
            row
            for table in tables(device.execute("show pfcwd stats", "admin").text)
            for row in table.rows
            if row[0] == "Ethernet4:3"
        ]
    total = core.counters("Ethernet4").watchdog[0]
    assert row[1:] == (
        "operational",
        "1/1",
        f"0/{total.tx_dropped}",
        f"0/{total.rx_dropped}",
        f"0/{total.tx_dropped}",
        f"0/{total.rx_dropped}",
    )


def test_eos_shows_what_its_data_plane_counted(tmp_path: Path) -> None:
    device, core = eos_device(), eos_core()
    counted = {port: core.counters(port) for port in EOS_PORTS}
    with plane(device, core, tmp_path):
        found = shown("eos", device)
        text = device.execute("show priority-flow-control counters", "admin").text
    for port in EOS_PORTS:
        assert (found[port].pfc_rx_total, found[port].pfc_tx_total) == (
            counted[port].pfc_rx_total,
            counted[port].pfc_tx_total,
        )
        for name in FRAMES:
            assert getattr(found[port], name) == getattr(counted[port], name) != UNKNOWN
        queues = {one.queue: one for one in found[port].queues}
        for one in counted[port].queues:
            assert queues[one.queue].dropped_packets == one.dropped_packets
            assert queues[f"VOQ{one.queue}"].dropped_packets == 0
            assert queues[one.queue].marked_packets == (one.marked_packets if one.queue == "3" else UNKNOWN)
        assert text.splitlines().count(f"{port:<15} {counted[port].pfc_rx_total:>15} {counted[port].pfc_tx_total:>15}")
    near, far = counted["Ethernet1"], counted["Ethernet2"]
    assert near.pfc_tx_total != 0
    assert far.pfc_rx_total == 2
    assert far.queues[3].marked_packets != 0
    assert far.queues[1].dropped_packets != 0  # EOS has DSCP 0 in traffic class 1
    assert found["Ethernet3"].pfc_rx_total == 0


# A data plane that does not answer.


@pytest.mark.parametrize("nos", ["sonic", "eos"])
def test_counters_that_cannot_be_fetched_are_shown_as_unknown_and_never_as_zero(nos: str, tmp_path: Path) -> None:
    device: Device = sonic_device() if nos == "sonic" else eos_device()
    core = sonic_core() if nos == "sonic" else eos_core()
    read = read_sonic if nos == "sonic" else read_eos
    silent_wiring = Wiring({"leaf1": core}, tmp_path, {}, (), SystemClock())  # never runs
    device.plane = Backplane("leaf1", silent_wiring, read, neighbours={}, timeout_s=0.01)
    found = shown(nos, device)[core.ports[0]]
    assert found.pfc_rx_total == UNKNOWN
    assert {getattr(found, name) for name in FRAMES} == {UNKNOWN}
    assert {one.dropped_packets for one in found.queues} == {UNKNOWN}
    silent_wiring.stop()
    silent_wiring.run()


# Neighbours.

NEIGHBOURS = {
    "leaf2": Neighbour("leaf2", "Ethernet7", mac="02:00:5e:00:00:41", is_switch=True),
    "host1": Neighbour("host1", "data0", description="data"),
}


def test_sonic_lists_who_is_at_its_cables(tmp_path: Path) -> None:
    device = sonic_device()
    ends = {
        ("leaf1", "Ethernet0"): NEIGHBOURS["leaf2"],
        ("leaf1", "Ethernet4"): NEIGHBOURS["host1"],
        ("leaf9", "Ethernet4"): NEIGHBOURS["host1"],
    }
    with plane(device, sonic_core(), tmp_path, neighbours=ends) as wiring:
        text = device.execute("show lldp table", "admin").text
        assert text.splitlines()[3:] == [
            "Ethernet0    leaf2           Ethernet7       BR",
            "Ethernet4    host1           data0           O             data",
            "-" * 50,
            "Total entries displayed:  2",
        ]
        wiring.add_fault(CableFault(CableFaultKind.DOWN, "leaf1", "Ethernet0"))
        assert "leaf2" not in device.execute("show lldp table", "admin").text


def test_the_sonic_table_is_laid_out_as_the_sample(reference: Path, tmp_path: Path) -> None:
    sample = (reference / "samples/sonic/show/lldp_table_two_neighbours.txt").read_text()
    device = sonic_device()
    ends = {
        ("leaf1", "Ethernet0"): Neighbour("dummy", "00:00:00:00:00:01", description="First MAC", is_switch=True),
    }
    with plane(device, sonic_core(), tmp_path, neighbours=ends):
        text = device.execute("show lldp table", "admin").text
    assert text.splitlines()[:4] == sample.splitlines()[:4]


def test_eos_lists_who_is_at_its_cables(tmp_path: Path) -> None:
    device: EosDevice = eos_device()
    ends = {("leaf1", "Ethernet1"): NEIGHBOURS["leaf2"], ("leaf1", "Ethernet2"): NEIGHBOURS["host1"]}
    with plane(device, eos_core(), tmp_path, neighbours=ends):
        text = device.execute("show lldp neighbors detail", "admin").text
        data = device.execute("show lldp neighbors detail | json", "admin").text
    found = {one.port: (one.system, one.peer_port) for one in lldp_neighbours(text)}
    assert found == {"Ethernet1": ("leaf2", "Ethernet7"), "Ethernet2": ("host1", "data0")}
    assert "Interface Ethernet3 detected 0 LLDP neighbors:" in text
    assert "Chassis ID     : 0200.5e00.0041" in text
    assert '"systemName": "leaf2"' in data


def test_the_eos_text_is_laid_out_as_the_sample(reference: Path, tmp_path: Path) -> None:
    sample = (reference / "samples/eos/show/lldp_neighbors_detail.txt").read_text().splitlines()
    device = eos_device()
    ends = {
        ("leaf1", "Ethernet1"): Neighbour("spine2.company.com", "Ethernet1", mac="02:00:5e:00:00:41", is_switch=True),
    }
    with plane(device, eos_core(), tmp_path, neighbours=ends):
        lines = device.execute("show lldp neighbors detail", "admin").text.splitlines()
    block = lines[: lines.index("Interface Ethernet2 detected 0 LLDP neighbors:")]
    assert len(block) > 10
    assert [line for line in block if line not in sample] == []
