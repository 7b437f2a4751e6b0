"""Buffers of a port: which profile each priority group and lossless queue is bound to. Knows no parser.

No pool is ever rendered: sizes are per HwSKU, and the generic config updater refuses any BUFFER_POOL change. Dynamic
model: `NULL`, the buffer manager computes. Traditional model: the lossless group is bound as buffermgrd would bind it,
to `pg_lossless_<speed>_<cable>_profile`, when the device has that profile; when it has not and the plan carries bytes,
to a profile of ours; else the groups of the port are left to buffermgrd altogether (switches.md 1.1).

What is bound already and does no harm stays, since a swap may lose packets: headroom on a group that PFC does not use,
a lossy queue on the egress lossless profile (admission at ingress still bounds it).
"""

from typing import Final

from fabric.nos.sonic import standing
from fabric.nos.sonic.config import Tables
from fabric.nos.sonic.names import (
    BUFFER_PG,
    BUFFER_POOL,
    BUFFER_PROFILE,
    BUFFER_QUEUE,
    DEVICE_METADATA,
    OWN_PREFIX,
    PORT,
)
from fabric.nos.sonic.placing import settle
from fabric.nos.sonic.rows import Fields, by_port, slots
from fabric.qos import UNKNOWN, Aspect, BufferModel, DeviceQos, PortQos, PriorityGroupQos, QueueQos
from fabric.tree import Path, Value

__all__ = ("egress", "groups", "is_dynamic")

# buffers_config.j2 and the devices' buffers_defaults_*.j2
_INGRESS_POOL: Final = "ingress_lossless_pool"
_INGRESS_LOSSY: Final = "ingress_lossy_profile"
_EGRESS_LOSSLESS: Final = "egress_lossless_profile"
_COMPUTED: Final = "NULL"


def is_dynamic(qos: DeviceQos, running: Tables) -> bool:
    """Returns whether the device sizes headroom by itself from speed, cable and MTU."""
    about = running.get(DEVICE_METADATA, {}).get("localhost")
    if about is not None:
        return about.get("buffer_model") == "dynamic"
    return qos.buffer_model is BufferModel.DYNAMIC


def groups(qos: DeviceQos, running: Tables, aspects: standing.Aspects) -> tuple[dict[Path, Value], tuple[str, ...]]:
    """Returns the BUFFER_PG rows, and the ports whose groups they own: the others are left to buffermgrd."""
    out: dict[Path, Value] = {}
    owned = []
    now = slots(running, BUFFER_PG)
    rows = by_port(running, PORT)
    dynamic = is_dynamic(qos, running)
    for port in qos.ports:
        if Aspect.BUFFERS in aspects.get(port.name, frozenset()):
            continue
        desired = {
            index: dict(fields)
            for index, fields in now.get(port.name, {}).items()
            if not fields.get("profile", "").startswith(OWN_PREFIX)  # ours, from an earlier plan: bound anew or gone
        }
        profiles = [
            (group, *_profile(port, group, running, rows.get(port.name, {}), dynamic=dynamic))
            for group in port.priority_groups
        ]
        if any(group.lossless is True and not name for group, name, _ in profiles):
            continue
        for group, name, row in profiles:
            out.update({(BUFFER_PROFILE, name, field): value for field, value in row.items()})
            if name:
                desired[group.index] = {"profile": name}
        owned.append(port.name)
        for key, fields in settle(running, BUFFER_PG, port.name, desired).items():
            out.update({(BUFFER_PG, key, field): value for field, value in fields.items()})
    return out, tuple(owned)


def egress(qos: DeviceQos, running: Tables, aspects: standing.Aspects) -> dict[Path, Value]:
    """Returns the BUFFER_QUEUE rows: lossless queues on the egress lossless profile, where the device has one."""
    out: dict[Path, Value] = {}
    profiles = running.get(BUFFER_PROFILE, {})
    now = slots(running, BUFFER_QUEUE)
    for port in qos.ports:
        desired = {index: dict(fields) for index, fields in now.get(port.name, {}).items()}
        for queue in port.queues:
            kept = Aspect.BUFFERS in aspects.get(port.name, frozenset())
            if not kept and _EGRESS_LOSSLESS in profiles and _is_lossless(port, queue):
                desired[queue.index] = {"profile": _EGRESS_LOSSLESS}
        for key, fields in settle(running, BUFFER_QUEUE, port.name, desired).items():
            out.update({(BUFFER_QUEUE, key, field): value for field, value in fields.items()})
    return out


def _is_lossless(port: PortQos, queue: QueueQos) -> bool:
    if queue.lossless_buffer is not UNKNOWN:
        return queue.lossless_buffer
    paused = port.pfc.active
    if paused is UNKNOWN or not isinstance(port.pfc_to_queue, tuple):
        return False
    return queue.index in {port.pfc_to_queue[priority] for priority in paused}


def _profile(
    port: PortQos, group: PriorityGroupQos, running: Tables, row: Fields, *, dynamic: bool
) -> tuple[str, Fields]:
    """Returns the name of the group's profile, "" for none of ours to say, and its fields when it is our own."""
    profiles = running.get(BUFFER_PROFILE, {})
    if group.lossless is not True:
        return (_INGRESS_LOSSY, {}) if group.lossless is False and _INGRESS_LOSSY in profiles else ("", {})
    if dynamic:
        return _COMPUTED, {}
    speed = row.get("speed") or ("" if port.speed_mbps is UNKNOWN else str(port.speed_mbps))
    name = f"pg_lossless_{speed}_{port.cable_m}m_profile"  # buffermgr.cpp doSpeedUpdateTask
    if name in profiles:
        return name, {}
    return _own_profile(group) if not running or _INGRESS_POOL in running.get(BUFFER_POOL, {}) else ("", {})


def _own_profile(group: PriorityGroupQos) -> tuple[str, Fields]:
    if group.derived_by_nos or group.xoff_bytes is UNKNOWN or group.xon_bytes is UNKNOWN or group.size_bytes is UNKNOWN:
        return "", {}
    fields: Fields = {
        "pool": _INGRESS_POOL,
        "size": str(group.size_bytes),
        "xon": str(group.xon_bytes),
        "xoff": str(group.xoff_bytes),
    }
    static, alpha = group.static_threshold_bytes, group.alpha_log2
    if isinstance(static, int):
        fields["static_th"] = str(static)
    elif isinstance(alpha, int):
        fields["dynamic_th"] = str(alpha)
    if isinstance(group.xon_offset_bytes, int):
        fields["xon_offset"] = str(group.xon_offset_bytes)
    return f"{OWN_PREFIX}_PG_" + "_".join(fields[field] for field in fields if field != "pool"), fields
