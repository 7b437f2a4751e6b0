"""What each host and managed target shall be, from the fabric and its plan. Reads no host."""

from fabric.errors import PlanError
from fabric.host.change import HostIntent
from fabric.host.nvme.connect import connections
from fabric.host.nvme.target import planned_target
from fabric.intent.model import Fabric
from fabric.plan.model import HostPlan
from fabric.policy import profile_to_text

__all__ = ("host_intent",)


def host_intent(fabric: Fabric, plan: HostPlan) -> HostIntent:
    """Returns the intent of the host or managed target that the plan is of.

    Raises:
        PlanError: the fabric does not know it, a subsystem has no target, or a namespace no block device.
        HostError: a name or address is none.
    """
    for host in fabric.hosts:
        if host.name == plan.host:
            profile = "" if host.shard_profile is None else profile_to_text(host.shard_profile)
            ways = connections(host, plan, fabric.targets)
            return HostIntent(host.name, plan.role, plan, ways, shard_profile=profile)
    for target in fabric.targets:
        if target.name == plan.host:
            return HostIntent(target.name, plan.role, plan, target=planned_target(target))
    raise PlanError("the fabric has no such host", where=plan.host)
