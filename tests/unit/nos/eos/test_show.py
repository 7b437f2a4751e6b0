"""Show output of EOS: not counted is not zero, and a total is of no priority."""

import json
from pathlib import Path

import pytest

from fabric.errors import FabricError
from fabric.nos.eos import EOS
from fabric.nos.eos.show import PfcStatus, ecn_marks, lldp_neighbours, pfc_status, pfc_totals, queue_drops
from fabric.qos import UNKNOWN
from fabric.state import QueueCounters


def shown(reference: Path, name: str) -> str:
    return (reference / "samples" / "eos" / "show" / name).read_text()


def test_pfc_counters_are_totals_of_no_priority(reference: Path) -> None:
    output = shown(reference, "priority_flow_control_counters.json")

    ports = {port.port: port for port in EOS.counters({"pfc": output})}

    assert {name: (port.pfc_rx_total, port.pfc_tx_total) for name, port in ports.items()} == {
        "Ethernet3/1/1": (1, 0),
        "Ethernet3/2/1": (0, 2),
        "Ethernet3/3/1": (2, 0),
        "Ethernet3/4/1": (0, 1),
    }
    assert all(port.pfc_rx_frames is UNKNOWN and port.pfc_tx_frames is UNKNOWN for port in ports.values())


def test_ecn_counters_are_strings_and_a_dash_is_unknown(reference: Path) -> None:
    assert ecn_marks(shown(reference, "qos_ecn_counters_queue.json")) == {
        "Ethernet10/28/1": {"0": UNKNOWN, "1": 0, "2": 0},
        "Ethernet10/20/1": {"0": 0, "1": 2, "2": 0},
        "Ethernet10/16/1": {"0": 0, "1": 0, "2": UNKNOWN},
        "Ethernet10/3/1": {"0": 0, "1": 0, "2": 2},
    }


def test_voq_and_egress_drops_both_count(reference: Path) -> None:
    assert queue_drops(shown(reference, "voq_and_egress_queue_drops.json")) == {
        "Ethernet48": {"VOQ0": 3, "0": 0, "VOQ1": 4, "1": 5},
        "Ethernet49": {"VOQ0": 5, "0": 6, "VOQ1": 7, "1": 7},
    }


def test_counters_of_all_commands_meet_by_port() -> None:
    outputs = {
        "pfc": json.dumps({"interfaceCounters": {"Ethernet10": {"rxFrames": 7, "txFrames": "1,234"}}}),
        "ecn": json.dumps({"intfQueueCounters": {"Ethernet2": {"queueCounters": {"3": "9", "4": "-"}}}}),
        "drops": json.dumps(
            {
                "interfaces": {
                    "Ethernet2": {
                        "trafficClasses": {"TC3": {"egressQueueCounters": {"countersSum": {"droppedPackets": 2}}}}
                    }
                }
            }
        ),
    }

    two, ten = EOS.counters(outputs)

    assert (two.port, ten.port) == ("Ethernet2", "Ethernet10")
    assert two.queues == (
        QueueCounters("3", dropped_packets=2, marked_packets=9),
        QueueCounters("4"),
        QueueCounters("VOQ3"),
    )
    assert two.pfc_rx_total is UNKNOWN
    assert (ten.pfc_rx_total, ten.pfc_tx_total, ten.queues) == (7, 1234, ())


FRAMES = {"inUcastPkts": 5, "inMulticastPkts": "1,002", "inBroadcastPkts": 1, "outUcastPkts": 9, "inDiscards": 3}
SHOWN = {"Ethernet1": FRAMES, "Management1": FRAMES, "Port-Channel1": FRAMES}


def test_frames_of_a_port_are_known_when_every_kind_is_shown() -> None:
    errors = {"Ethernet1": {"inErrors": 7, "outErrors": 0, "fcsErrors": 7}, "Management1": {"inErrors": 1}}
    outputs = {
        "interfaces": json.dumps({"interfaces": SHOWN}),
        "errors": json.dumps({"interfaceErrorCounters": errors}),
    }
    (one,) = EOS.counters(outputs)
    assert (one.port, one.rx_packets, one.tx_packets) == ("Ethernet1", 1008, UNKNOWN)
    assert (one.rx_errors, one.tx_errors, one.rx_discards, one.tx_discards) == (7, 0, 3, UNKNOWN)


def test_a_counter_of_another_type_is_unknown() -> None:
    assert pfc_totals('{"interfaceCounters": {"Ethernet1": {"rxFrames": true}}}') == {"Ethernet1": (UNKNOWN, UNKNOWN)}


def test_commands_that_were_not_run_leave_nothing() -> None:
    assert EOS.counters({}) == ()


@pytest.mark.parametrize("output", ["% Invalid input", "[]"])
def test_output_that_is_no_object_is_refused(output: str) -> None:
    with pytest.raises(FabricError, match="show qos interfaces ecn counters queue"):
        ecn_marks(output)


def test_pfc_counters_as_text_are_read_with_short_names() -> None:
    output = "Port  RxPfc  TxPfc\nEt3/1  12  0\nPo4  -  1\nEthernet5  x y z\n"

    assert pfc_totals(output) == {"Ethernet3/1": (12, 0), "Port-Channel4": (UNKNOWN, 1)}


def test_pfc_status_has_priorities_and_the_note_of_the_device() -> None:
    output = (
        "Port       Enabled  Priorities  Active  Note\n"
        "Ethernet1  Yes      3           Yes     DCBX disabled\n"
        "Et2        No                   No\n"
        "Et3/1      Yes      3,4         No      DCBX not negotiated\n"
        "Et4        No       -           No\n"
    )

    assert pfc_status(output) == (
        PfcStatus("Ethernet1", enabled=True, priorities=frozenset({3}), active=True, note="DCBX disabled"),
        PfcStatus("Ethernet2", enabled=False, priorities=frozenset(), active=False),
        PfcStatus("Ethernet3/1", enabled=True, priorities=frozenset({3, 4}), active=False, note="DCBX not negotiated"),
        PfcStatus("Ethernet4", enabled=False, priorities=frozenset(), active=False),
    )


def test_neighbours_are_read_with_their_frame_size(reference: Path) -> None:
    found = lldp_neighbours(shown(reference, "lldp_neighbors_detail.txt"))

    by_port: dict[str, list[tuple[str, str, object]]] = {}
    for one in found:
        by_port.setdefault(one.port, []).append((one.system, one.peer_port, one.max_frame_bytes))
    assert by_port["Ethernet1"] == [("spine2.company.com", "Ethernet1", 9236)]
    assert by_port["Ethernet2"] == [("spine2.company.com", "Ethernet2", 9236)]
    assert by_port["Management1"] == [
        ("vmx1", "fxp0", 1514),
        ("spine2.company.com", "Management1", 1518),
    ]
    assert not any(one.dcbx for one in found)


def test_a_neighbour_that_says_nothing_is_unknown() -> None:
    output = 'Interface Ethernet9 detected 1 LLDP neighbors:\n\n  Neighbor 0200.5e00.0041/"x", age 1 seconds\n'

    assert [(n.system, n.peer_port, n.max_frame_bytes) for n in lldp_neighbours(output)] == [("", "", UNKNOWN)]
