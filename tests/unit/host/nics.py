"""NIC plans and recordings for the tests of hosts."""

from typing import Any

from fabric.host.settings import NicFacts
from fabric.plan.model import HostNicPlan
from fabric.remote.ssh import ExecResult

FACTS = NicFacts("ens1f0np0", "mlx5_0", 1, "0000:3b:00.0")


def nic(**more: Any) -> HostNicPlan:
    """Returns the common profile: DSCP 26 on priority 3, CNPs on DSCP 48 and priority 6."""
    defaults: dict[str, Any] = {
        "netdev": "ens1f0np0",
        "family": "mlx5",
        "mtu_bytes": 9000,
        "rdma_mtu_bytes": 4096,
        "dscp_to_priority": ((26, 3), (48, 6)),
        "pfc_priorities": (3,),
        "prio_tc": (0, 0, 0, 3, 0, 0, 6, 0),
        "ets_percent": (50, 0, 0, 50, 0, 0, 0, 0),
        "tos": 104,
        "cnp_dscp": 48,
        "cnp_priority": 6,
        "rp_enabled": True,
        "np_enabled": True,
        "addresses": ("192.0.2.21/26",),
    }
    return HostNicPlan(**{**defaults, **more})


def said(text: str) -> ExecResult:
    return ExecResult(0, text, "")
