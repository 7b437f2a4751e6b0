"""Queue counters of EOS, and all counters of a device put together by port.

Sources: samples/eos/show/qos_ecn_counters_queue.json, voq_and_egress_queue_drops.json. On a VOQ platform a packet is
lost at the ingress VOQ or at the egress queue: both are rows, `VOQ3` and `3`, and both count.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fabric.nos.eos.show.fields import count, read_object, within
from fabric.nos.eos.show.interfaces import port_errors, port_totals
from fabric.nos.eos.show.pfc import pfc_totals
from fabric.qos import UNKNOWN, Known
from fabric.state import PortCounters, QueueCounters
from fabric.units import natural_key

__all__ = ("counters", "ecn_marks", "queue_drops")

_ECN: Final = "show qos interfaces ecn counters queue"
_DROPS: Final = "show interfaces counters queue drops"
_VOQ: Final = "VOQ"

ByQueue = dict[str, dict[str, Known[int]]]


def ecn_marks(output: str) -> ByQueue:
    """Returns port → queue → packets marked; UNKNOWN for `-`, which means not counted."""
    data = within(read_object(output, command=_ECN), "intfQueueCounters")
    rows = {port: within(data, port, "queueCounters") for port in data}
    return {port: {queue: count(value) for queue, value in row.items()} for port, row in rows.items()}


def queue_drops(output: str) -> ByQueue:
    """Returns port → queue → packets dropped, `VOQ3` at the ingress VOQ of class 3 and `3` at the egress queue."""
    data = within(read_object(output, command=_DROPS), "interfaces")
    found: ByQueue = {}
    for port in data:
        classes = within(data, port, "trafficClasses")
        for name in classes:
            index = name.removeprefix("TC")
            found.setdefault(port, {})[_VOQ + index] = _dropped(classes, name, "ingressVoqCounters")
            found[port][index] = _dropped(classes, name, "egressQueueCounters")
    return found


def counters(outputs: Mapping[str, str]) -> tuple[PortCounters, ...]:
    """Returns all counters by port, in natural order; a command that is missing leaves UNKNOWN.

    Args:
        outputs: name of the command (`interfaces`, `errors`, `pfc`, `ecn`, `drops`) → what it printed.

    Raises:
        FabricError: an output is not the JSON that the command prints.
    """
    totals = pfc_totals(outputs["pfc"]) if "pfc" in outputs else {}
    marks = ecn_marks(outputs["ecn"]) if "ecn" in outputs else {}
    drops = queue_drops(outputs["drops"]) if "drops" in outputs else {}
    frames = port_totals(outputs["interfaces"]) if "interfaces" in outputs else {}
    errors = port_errors(outputs["errors"]) if "errors" in outputs else {}
    ports = sorted({*totals, *marks, *drops, *frames, *errors}, key=natural_key)
    return tuple(
        replace(
            frames.get(port, PortCounters(port)),
            pfc_rx_total=totals.get(port, (UNKNOWN, UNKNOWN))[0],
            pfc_tx_total=totals.get(port, (UNKNOWN, UNKNOWN))[1],
            queues=_queues(marks.get(port, {}), drops.get(port, {})),
            rx_errors=errors.get(port, (UNKNOWN, UNKNOWN))[0],
            tx_errors=errors.get(port, (UNKNOWN, UNKNOWN))[1],
        )
        for port in ports
    )


def _dropped(classes: Mapping[str, object], name: str, stage: str) -> Known[int]:
    return count(within(classes, name, stage, "countersSum").get("droppedPackets"))


def _queues(marks: Mapping[str, Known[int]], drops: Mapping[str, Known[int]]) -> tuple[QueueCounters, ...]:
    found = {queue: QueueCounters(queue=queue, dropped_packets=value) for queue, value in drops.items()}
    for queue, value in marks.items():
        found[queue] = replace(found.get(queue, QueueCounters(queue=queue)), marked_packets=value)
    return tuple(found[queue] for queue in sorted(found, key=natural_key))
