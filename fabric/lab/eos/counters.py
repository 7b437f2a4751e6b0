"""The counters and neighbours that the emulated EOS shows: those of its data plane, zeros for ports without a cable.

Layouts are those of the samples named. Where the data plane did not answer, `-` or null stands.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fabric.lab.device import Neighbour, PortReading
from fabric.qos import UNKNOWN, Known
from fabric.state import PortCounters, QueueCounters
from fabric.units import natural_key

if TYPE_CHECKING:
    from fabric.lab.eos.device import EosDevice

__all__ = ("drops", "ecn", "errors", "interfaces", "lldp", "lldp_text", "pfc", "pfc_text")

_QUEUES: Final = range(8)
_NONE: Final = "-"
_TTL_S: Final = 120  # IEEE 802.1AB-2016 table 9-1: 4 x 30 s


def pfc(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show priority-flow-control counters`. Source: samples/eos/show/priority_flow_control_counters.json."""
    return {
        "interfaceCounters": {
            name: {"rxFrames": _number(one.pfc_rx_total), "txFrames": _number(one.pfc_tx_total)}
            for name, one in _counters(device).items()
        }
    }


def pfc_text(device: "EosDevice") -> str:
    """Returns the same as text. Layout unconfirmed."""
    rows = [
        f"{name:<15} {_text(one.pfc_rx_total):>15} {_text(one.pfc_tx_total):>15}"
        for name, one in _counters(device).items()
    ]
    return "\n".join([f"{'Port':<15} {'RxPfc':>15} {'TxPfc':>15}", *rows, ""])


def ecn(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show qos interfaces ecn counters queue`; `-` for a queue that is not counted.

    Source: samples/eos/show/qos_ecn_counters_queue.json.
    """
    table = {}
    for name, one in _counters(device).items():
        counted = _counted(device, name)
        marked = {queue: _text(_queue(one, queue).marked_packets) for queue in _QUEUES}
        table[name] = {"queueCounters": {str(queue): marked[queue] if queue in counted else _NONE for queue in _QUEUES}}
    return {"intfQueueCounters": table}


def drops(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show interfaces counters queue drops`: tail drops at the egress queue (early ones too: unconfirmed).

    Source: samples/eos/show/voq_and_egress_queue_drops.json. The data plane has no virtual output queues.
    """
    table = {}
    for name, one in _counters(device).items():
        classes = {}
        for queue in _QUEUES:
            found = _queue(one, queue)
            lost = UNKNOWN if found.dropped_packets is UNKNOWN else found.dropped_packets
            if lost is not UNKNOWN and found.wred_dropped_packets is not UNKNOWN:
                lost += found.wred_dropped_packets
            voq, egress = {"droppedPackets": _number(_no_voq(lost))}, {"droppedPackets": _number(lost)}
            classes[f"TC{queue}"] = {
                "ingressVoqCounters": {"countersSum": voq},
                "egressQueueCounters": {"countersSum": egress},
            }
        table[name] = {"trafficClasses": classes}
    return {"interfaces": table}


def interfaces(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show interfaces counters`: frames as the data plane counted them, all of them as unicast.

    Keys: tcollector's eos collector (read).
    """
    table = {}
    for name, one in _counters(device).items():
        row = {"inDiscards": _number(one.rx_discards), "outDiscards": _number(one.tx_discards)}
        for way, packets in (("in", one.rx_packets), ("out", one.tx_packets)):
            row |= {f"{way}UcastPkts": _number(packets), f"{way}MulticastPkts": 0, f"{way}BroadcastPkts": 0}
        table[name] = row
    return {"interfaces": table}


def errors(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show interfaces counters errors`. Keys: the tests of ANTA (read); the data plane damages no frame."""
    return {
        "interfaceErrorCounters": {
            name: {
                "inErrors": _number(one.rx_errors),
                "outErrors": _number(one.tx_errors),
                "fcsErrors": _number(one.rx_errors),
            }
            for name, one in _counters(device).items()
        }
    }


def lldp(device: "EosDevice") -> Mapping[str, object]:
    """Returns `show lldp neighbors detail | json`. Keys as in NAPALM's EOS driver (unconfirmed)."""
    return {
        "lldpNeighbors": {
            name: {"lldpNeighborInfo": [_neighbour_object(one)]} for name, one in _neighbours(device).items()
        }
    }


def lldp_text(device: "EosDevice") -> str:
    """Returns `show lldp neighbors detail`. Source: samples/eos/show/lldp_neighbors_detail.txt."""
    found = _neighbours(device)
    ours = device.config.interfaces()
    names = (*ours, *(name for name in found if name not in ours))
    return "".join(_interface_text(name, found.get(name)) for name in names)


def _interface_text(name: str, one: Neighbour | None) -> str:
    head = f"Interface {name} detected {int(one is not None)} LLDP neighbors:\n\n"
    if one is None:
        return head
    kind, chassis = ("MAC address (4)", _dotted(one.mac)) if one.mac else ("Locally assigned (7)", one.system)
    able = "Bridge, Router" if one.is_switch else "Station Only"
    described = f'  - Port Description: "{one.description}"\n' if one.description else ""
    return (
        f'{head}  Neighbor {chassis}/"{one.port}", age 12 seconds\n'
        "  Discovered 0:01:11 ago; Last changed 0:01:11 ago\n"
        f"  - Chassis ID type: {kind}\n    Chassis ID     : {chassis}\n"
        f'  - Port ID type: Interface name (5)\n    Port ID     : "{one.port}"\n'
        f'  - Time To Live: {_TTL_S} seconds\n{described}  - System Name: "{one.system}"\n'
        f"  - System Capabilities : {able}\n    Enabled Capabilities: {able}\n\n"
    )


def _neighbour_object(one: Neighbour) -> Mapping[str, object]:
    able = {"bridge": True, "router": True} if one.is_switch else {"stationOnly": True}
    return {
        "chassisIdType": "macAddress" if one.mac else "local",
        "chassisId": _dotted(one.mac) if one.mac else one.system,
        "systemName": one.system,
        "systemCapabilities": able,
        "neighborInterfaceInfo": {
            "interfaceIdType": "interfaceName",
            "interfaceId": f'"{one.port}"',
            "interfaceDescription": one.description,
        },
        "ttl": _TTL_S,
    }


def _dotted(mac: str) -> str:
    digits = mac.replace(":", "")
    return ".".join(digits[at : at + 4] for at in range(0, 12, 4))


def _neighbours(device: "EosDevice") -> Mapping[str, Neighbour]:
    return {} if device.plane is None else device.plane.neighbours()


def _counters(device: "EosDevice") -> dict[str, PortCounters]:
    found: Mapping[str, PortReading] = {} if device.plane is None else device.plane.readings()
    ours = {name for name in device.config.interfaces() if name.startswith("Ethernet")}
    names = sorted(ours | found.keys(), key=natural_key)
    return {name: found[name].counters if name in found else _unplugged(name) for name in names}


def _unplugged(name: str) -> PortCounters:
    zeros = tuple(QueueCounters(str(queue), 0, 0, 0, 0, 0, 0) for queue in _QUEUES)
    return PortCounters(name, UNKNOWN, UNKNOWN, 0, 0, UNKNOWN, zeros, (), 0, 0, 0, 0, 0, 0)


def _queue(counters: PortCounters, queue: int) -> QueueCounters:
    return next((one for one in counters.queues if one.queue == str(queue)), QueueCounters(str(queue)))


def _counted(device: "EosDevice", name: str) -> frozenset[int]:
    """Returns the queues of the interface that count what they mark."""
    queues = (node for node in device.config.acting_on(name) if node.context == "tx-queue")
    return frozenset(
        int(node.line.split()[1])
        for node in queues
        if "random-detect ecn count" in {child.line for child in node.children.values()}
    )


def _no_voq(lost: Known[int]) -> Known[int]:
    return UNKNOWN if lost is UNKNOWN else 0


def _number(value: Known[int]) -> int | None:
    return None if value is UNKNOWN else value


def _text(value: Known[int]) -> str:
    return _NONE if value is UNKNOWN else str(value)
