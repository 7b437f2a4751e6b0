"""What `parse` will see of a plan on a device: `observed`, and what stays as the device has it. Pure."""

from dataclasses import replace

from fabric.nos.base import RenderContext
from fabric.nos.eos.observed import observed
from fabric.nos.eos.parse import parse_tree
from fabric.nos.eos.sections import sections
from fabric.nos.eos.standing import Part, Standing, described, standing
from fabric.qos import DcbxMode, DeviceQos, PortQos

__all__ = ("observable",)


def observable(qos: DeviceQos, context: RenderContext) -> DeviceQos:
    """Returns `qos` as `parse` sees it on a device that held `context.running` before."""
    seen = parse_tree(context.running, device=qos.device)
    left = described(qos, context, seen)
    stays = standing(qos, left, context, sections(context.running), seen)
    found = observed(left, context, seen)
    now, then = ({port.name: port for port in one.ports} for one in (seen, found))
    ports = tuple(
        _port(then[port.name], now.get(port.name), stays) if port.name in then else now.get(port.name, port)
        for port in qos.ports
    )
    return replace(
        found,
        ports=ports,
        global_dscp_to_tc=seen.global_dscp_to_tc if stays.has_maps else found.global_dscp_to_tc,
        pfc_disabled_globally=stays.has_pfc_off and seen.pfc_disabled_globally,
    )


def _port(port: PortQos, seen: PortQos | None, stays: Standing) -> PortQos:
    if seen is None:
        return port
    if stays.stays(Part.MTU, port.name):
        port = replace(port, mtu_bytes=seen.mtu_bytes)
    if stays.stays(Part.DCBX, port.name):
        port = replace(port, dcbx=seen.dcbx)
    if stays.stays(Part.PAUSE, port.name):
        port = replace(port, link_pause=seen.link_pause)
    if stays.has_maps:
        port = replace(
            port,
            dscp_to_tc=seen.dscp_to_tc,
            pcp_to_tc=seen.pcp_to_tc,
            tc_to_queue=seen.tc_to_queue,
            rewrite=seen.rewrite,
        )
    if stays.stays(Part.QOS, port.name):
        port = replace(
            port,
            trust=seen.trust,
            pfc=replace(seen.pfc, send_tlv=port.dcbx is not DcbxMode.OFF),
            priority_groups=seen.priority_groups,
            queues=seen.queues,
            watchdog=seen.watchdog,
        )
    return port
