"""Intent to numbers per device: maps, headroom, curves, host plans. Pure."""

from fabric.plan.model import FabricPlan, HostNicPlan, HostPlan, Note, PortHeadroom, SwitchPlan
from fabric.plan.planner import make_plan

__all__ = (
    "FabricPlan",
    "HostNicPlan",
    "HostPlan",
    "Note",
    "PortHeadroom",
    "SwitchPlan",
    "make_plan",
)
