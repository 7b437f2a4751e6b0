"""Which traffic class a frame belongs to at a port, and whether the port's MTU carries it."""

from fabric.lab.wire.frame import Headers
from fabric.lab.wire.platform import PortPlan
from fabric.qos import Trust

__all__ = ("classify", "fits")


def classify(plan: PortPlan, headers: Headers) -> int:
    """Returns the traffic class: by DSCP for IP, by PCP for tagged frames, as the port trusts; else 0."""
    if headers.ip_version and plan.trust in {Trust.DSCP, Trust.BOTH}:
        return plan.dscp_to_tc[headers.traffic_class >> 2]
    if headers.pcp is not None and plan.trust in {Trust.PCP, Trust.BOTH}:
        return plan.pcp_to_tc[headers.pcp]
    return 0


def fits(plan: PortPlan, headers: Headers, size_bytes: int) -> bool:
    """Returns whether the port's MTU lets the frame pass."""
    limit = plan.l3_max_bytes if headers.pcp is None else plan.l3_max_tagged_bytes
    return limit is None or size_bytes - headers.l3_at <= limit
