"""What the rules about hosts say of a case: from its facts and files to findings. Used by run_cases.py."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from fabric.host.nvme.connect import read_connect
from fabric.host.parse import nvme, rdma
from fabric.host.rules import (
    MtuEnd,
    ctrl_loss_tmo_default,
    gid_not_routable,
    linklocal_needs_host_traddr,
    rdma_mtu_mismatch,
)
from fabric.state import Finding

__all__ = ("HOST_RULES", "HostRule")

Facts: TypeAlias = Mapping[str, Any]
Files: TypeAlias = Mapping[str, str]
HostRule: TypeAlias = Callable[[Facts, Files], tuple[Finding, ...]]


def _by_host(files: Files, suffix: str) -> dict[str, str]:
    return {name.removesuffix(suffix): text for name, text in files.items() if name.endswith(suffix)}


def _gids(facts: Facts, files: Files) -> tuple[Finding, ...]:
    tables = _by_host(files, "_gids.txt")
    return tuple(
        finding
        for host, text in tables.items()
        for finding in gid_not_routable(
            host, rdma.read_gids(text), facts.get("environment", {}), routed=bool(facts.get("routed"))
        )
    )


def _mtus(facts: Facts, files: Files) -> tuple[Finding, ...]:
    ends = []
    for host, text in _by_host(files, "_ibv_devinfo.txt").items():
        (port,) = rdma.read_devinfo(text)
        ((netdev, mtu_bytes),) = facts["netdev_mtu"][host].items()
        ends.append(MtuEnd(host, port, netdev, mtu_bytes))
    one, other = ends
    return rdma_mtu_mismatch(one, other)


def _link_local(facts: Facts, files: Files) -> tuple[Finding, ...]:
    return linklocal_needs_host_traddr(facts["device"], read_connect(files["command.txt"]), facts["host_addresses"])


def _loss(facts: Facts, _: Files) -> tuple[Finding, ...]:
    controllers = [nvme.controller(name, attributes) for name, attributes in facts["sysfs"].items()]
    survive_s = facts["policy"]["survive_target_outage_s"]
    return ctrl_loss_tmo_default(facts["device"], controllers, survive_outage_s=survive_s)


HOST_RULES: Final[Mapping[str, HostRule]] = {
    "gid-not-routable-rocev2": _gids,
    "rdma-mtu-mismatch": _mtus,
    "nvme-linklocal-needs-host-traddr": _link_local,
    "nvme-ctrl-loss-tmo-default": _loss,
}
"""Rule → what it says of the facts and files of a case."""
