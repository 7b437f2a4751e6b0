"""The host and NVMe cases from public bug reports, judged by the rules about hosts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fabric.host.nvme.connect import read_connect
from fabric.host.parse import nvme, rdma
from fabric.host.rules import (
    MtuEnd,
    ctrl_loss_tmo_default,
    gid_not_routable,
    linklocal_needs_host_traddr,
    rdma_mtu_mismatch,
)
from fabric.qos import UNKNOWN
from fabric.state import Finding, Severity, Status
from fabric.state.host import NvmePath, RdmaPort


def case(reference: Path, number: str) -> dict[str, Any]:
    (path,) = (reference / "cases").glob(f"{number}-*.yml")
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def failed(findings: tuple[Finding, ...]) -> Finding:
    (found,) = [one for one in findings if one.status is not Status.PASS]
    return found


def matches(found: Finding, expect: dict[str, Any]) -> None:
    """Asserts that the finding says what the case expects: verdict, rule, and every word of its place."""
    where = dict(expect["where"])
    verdict = {Severity.ERROR: "fail", Severity.WARNING: "warn"}[found.severity]
    assert (found.status, verdict, found.rule) == (Status.FAIL, expect["verdict"], expect["rule"])
    assert (found.where.device, found.where.ports) == (where.pop("device"), (where.pop("port"),))
    assert dict(found.where.details) == where


def test_05_gid_that_never_leaves_the_subnet(reference: Path) -> None:
    given = case(reference, "05")
    gids = rdma.read_gids(given["given"]["files"]["gpu01_gids.txt"])
    environment = given["given"]["facts"]["environment"]
    found = failed(gid_not_routable("gpu01", gids, environment))
    matches(found, given["expect"])
    assert "index 3" in found.remedy


@pytest.mark.parametrize(
    ("index", "status"), [("0", "fail"), ("2", "fail"), ("3", "pass"), ("7", "fail"), ("x", "unknown")]
)
def test_05_other_indices_of_the_same_table(reference: Path, index: str, status: str) -> None:
    gids = rdma.read_gids(case(reference, "05")["given"]["files"]["gpu01_gids.txt"])
    (found,) = gid_not_routable("gpu01", gids, {"NCCL_IB_GID_INDEX": index})
    assert found.status.value == status


def test_05_unset_index_is_not_judged_and_an_unread_table_is_unknown(reference: Path) -> None:
    gids = rdma.read_gids(case(reference, "05")["given"]["files"]["gpu01_gids.txt"])
    assert gid_not_routable("gpu01", gids, {"NCCL_IB_HCA": "mlx5_0"}) == ()
    assert gid_not_routable("gpu01", gids, {"NCCL_IB_GID_INDEX": "-1"}) == ()
    (found,) = gid_not_routable("gpu01", UNKNOWN, {"NCCL_IB_GID_INDEX": "3"})
    assert found.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("hca", "judged"),
    [
        ("", 1),
        ("mlx5", 1),
        ("mlx5_0:1", 1),
        ("mlx5_0:2", 0),
        ("=mlx5", 0),
        ("=mlx5_0", 1),
        ("^mlx5_0", 0),
        ("^=mlx5", 1),
    ],
)
def test_05_only_the_chosen_adapters_are_judged(reference: Path, hca: str, judged: int) -> None:
    gids = rdma.read_gids(case(reference, "05")["given"]["files"]["gpu01_gids.txt"])
    assert len(gid_not_routable("gpu01", gids, {"NCCL_IB_GID_INDEX": "1", "NCCL_IB_HCA": hca})) == judged


def test_05_link_local_will_do_inside_one_subnet(reference: Path) -> None:
    gids = rdma.read_gids(case(reference, "05")["given"]["files"]["gpu01_gids.txt"])
    (found,) = gid_not_routable("gpu01", gids, {"NCCL_IB_GID_INDEX": "1"}, routed=False)
    assert found.status is Status.PASS


def mtu_ends(given: dict[str, Any]) -> list[MtuEnd]:
    facts, files = given["given"]["facts"], given["given"]["files"]
    ends = []
    for host, netdevs in facts["netdev_mtu"].items():
        (port,) = rdma.read_devinfo(files[f"{host}_ibv_devinfo.txt"])
        ((netdev, mtu),) = netdevs.items()
        ends.append(MtuEnd(host, port, netdev, mtu))
    return ends


def test_06_smaller_end_of_a_path(reference: Path) -> None:
    given = case(reference, "06")
    findings = rdma_mtu_mismatch(*mtu_ends(given))
    found = failed(findings)
    matches(found, given["expect"])
    assert "9000" in found.remedy
    assert [one.where.device for one in findings if one.status is Status.PASS] == ["gpu01"]


def test_06_unread_mtu_is_unknown() -> None:
    one, two = (
        MtuEnd("a", RdmaPort("mlx5_0", 1), "eth0"),
        MtuEnd("b", RdmaPort("mlx5_0", 1, active_mtu_bytes=4096), "eth0"),
    )
    (found,) = rdma_mtu_mismatch(one, two)
    assert (found.status, found.where.device) == (Status.UNKNOWN, "a")


def test_07_link_local_target_without_source(reference: Path) -> None:
    given = case(reference, "07")
    options = read_connect(given["given"]["files"]["command.txt"])
    addresses = given["given"]["facts"]["host_addresses"]
    found = failed(linklocal_needs_host_traddr("gpu03", options, addresses))
    matches(found, given["expect"])
    assert "-w fe80::200:5eff:fe00:31%ens1f0np0" in found.remedy
    assert "does not take host_iface" in found.remedy


@pytest.mark.parametrize(
    ("more", "statuses"),
    [
        ({"host-traddr": "fe80::200:5eff:fe00:31%ens1f0np0"}, ["pass"]),
        ({"host-traddr": "fe80::200:5eff:fe00:32%ens1f1np1"}, ["fail"]),
        ({"host-traddr": "fe80::200:5eff:fe00:31"}, ["fail"]),
        ({"host-iface": "ens1f0np0"}, ["fail"]),
        ({"traddr": "2001:db8::99"}, []),
        ({"transport": "tcp"}, []),
    ],
)
def test_07_neighbours_of_the_case(reference: Path, more: dict[str, str], statuses: list[str]) -> None:
    given = case(reference, "07")
    options = read_connect(given["given"]["files"]["command.txt"]) | more
    findings = linklocal_needs_host_traddr("gpu03", options, given["given"]["facts"]["host_addresses"])
    assert [one.status.value for one in findings] == statuses


def test_08_controller_that_is_given_up(reference: Path) -> None:
    given = case(reference, "08")
    facts = given["given"]["facts"]
    controllers = [nvme.controller(name, attributes) for name, attributes in facts["sysfs"].items()]
    survive = facts["policy"]["survive_target_outage_s"]
    findings = ctrl_loss_tmo_default("gpu04", controllers, survive_outage_s=survive)
    found = failed(findings)
    matches(found, given["expect"])
    assert "--ctrl-loss-tmo=-1" in found.remedy
    assert "fast_io_fail_tmo" in found.remedy
    assert [one.where.ports for one in findings if one.status is Status.PASS] == [("nvme2",)]


def test_08_neighbours_of_the_case() -> None:
    controllers = (
        NvmePath("nvme0", transport="pcie", ctrl_loss_tmo_s=600),
        NvmePath("nvme1", transport="rdma", ctrl_loss_tmo_s=1800),
        NvmePath("nvme2", transport="rdma", ctrl_loss_tmo_s=1799, fast_io_fail_tmo_s=15),
        NvmePath("nvme3", transport="rdma"),
    )
    findings = ctrl_loss_tmo_default("gpu04", controllers, survive_outage_s=1800)
    assert [one.status.value for one in findings] == ["pass", "fail", "unknown"]
    assert "fast_io_fail" not in findings[1].remedy
