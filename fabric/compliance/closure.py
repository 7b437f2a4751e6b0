"""The way of a packet through one port's maps, three-valued. Knows no rule and no network OS.

A map that is not bound (None) leaves the way to the platform; so does an element that the map does not name. Neither is
an identity map, and neither is a fault by itself: the way is UNKNOWN.
"""

from fabric.compliance.rule import Subject
from fabric.qos import UNKNOWN, DeviceQos, HeadroomOwner, Known, PfcMode, PortQos, TcMap, Trust

__all__ = (
    "carries_lossless",
    "class_of",
    "data_group",
    "data_queue",
    "element",
    "group_is_hidden",
    "is_bound",
    "trusts_dscp",
    "way",
)


def element(mapping: Known[TcMap | None], index: int) -> Known[int]:
    """Returns the target of `index`, UNKNOWN where the text does not say."""
    if mapping is UNKNOWN or mapping is None:
        return UNKNOWN
    target = mapping[index]
    return UNKNOWN if target is None else target


def way(mapping: Known[TcMap | None], index: int, *, name: str) -> str:
    """Returns in words what `mapping` does with `index`: `tc_to_queue 3 → 3`, or why it cannot be told."""
    if mapping is UNKNOWN:
        return f"{name} is not in the text"
    if mapping is None:
        return f"{name}: no map is bound, the platform decides"
    target = mapping[index]
    return (
        f"{name}: {index} is not in the map, the platform decides" if target is None else f"{name} {index} → {target}"
    )


def trusts_dscp(port: PortQos) -> Known[bool]:
    """Returns whether the DSCP chooses the traffic class of an IP packet."""
    if port.trust is UNKNOWN:
        return UNKNOWN
    return port.trust in (Trust.DSCP, Trust.BOTH)


def class_of(port: PortQos, dscp: int) -> Known[int]:
    """Returns the traffic class of `dscp` by the port's map, whatever the port trusts."""
    return element(port.dscp_to_tc, dscp)


def data_queue(subject: Subject, port: PortQos) -> Known[int]:
    """Returns the queue of the data class; the class's own number where no map is bound at all.

    A port without a map of its own sends class n to queue n on every platform that was read (SONiC device
    templates without TC_TO_QUEUE_MAP bind WRED to queues 3 and 4 by that); unconfirmed on a device.
    """
    priority = subject.expected.data_priority
    return priority if port.tc_to_queue is None else element(port.tc_to_queue, priority)


def data_group(subject: Subject, port: PortQos) -> Known[int]:
    """Returns the priority group of the data class; the class's own number where no map is bound at all."""
    priority = subject.expected.data_priority
    return priority if port.tc_to_pg is None else element(port.tc_to_pg, priority)


def group_is_hidden(subject: Subject) -> bool:
    """Returns whether the platform sizes headroom by itself and shows neither groups nor bytes (EOS)."""
    owner = None if subject.capabilities is None else subject.capabilities.headroom_owner.value
    return owner is HeadroomOwner.PLATFORM


def carries_lossless(subject: Subject, port: PortQos) -> bool:
    """Returns whether the port may pause for the data class: False only when it certainly does not."""
    if not subject.expected.lossless or not is_bound(subject.qos, port) or subject.qos.pfc_disabled_globally is True:
        return False
    active = port.pfc.active
    return active is UNKNOWN or subject.expected.data_priority in active


def is_bound(qos: DeviceQos, port: PortQos) -> bool:
    """Returns whether any QoS is bound to the port: PFC, a map of its own, or a queue with a curve.

    A port that a map of the whole device covers has nothing of its own by that.
    """
    own_map = port.dscp_to_tc is UNKNOWN or (
        port.dscp_to_tc is not None and (qos.global_dscp_to_tc is UNKNOWN or port.dscp_to_tc != qos.global_dscp_to_tc)
    )
    if own_map or qos.pfc_disabled_globally is True or any(queue.aqm is not None for queue in port.queues):
        return True
    if port.pfc.mode is PfcMode.AUTO:
        return True
    return port.pfc.active is UNKNOWN or bool(port.pfc.active)
