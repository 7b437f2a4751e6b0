"""Files of the boot: units that systemd accepts, in the right order, with no way to smuggle a line in."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.host import names
from fabric.host.actions import PutFile, Step
from fabric.host.families.catalog import driver
from fabric.host.nvme.connect import Connection, NvmeCli
from fabric.host.nvme.identity import HostIdentity
from fabric.host.nvme.target import planned_target, removal_actions, target_actions
from fabric.host.units import (
    LINK_UNIT,
    QOS_UNIT,
    TARGET_UNIT,
    boot_modules,
    connection_files,
    connection_unit,
    nic_files,
    target_files,
)
from fabric.intent.model import Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.plan.model import HostPlan
from tests.unit.host.nics import FACTS, nic

UUID = "00000000-0000-4000-8000-000000000001"
WHO = HostIdentity(f"nqn.2014-08.org.nvmexpress:uuid:{UUID}", UUID)
KV1 = "nqn.2026-01.net.example:kv1"
ONE = Connection(KV1, "192.0.2.11", 4420, "192.0.2.21", "ens1f0np0", 104)
TWO = replace(ONE, traddr="fe80::99%ens1f0np0", host_traddr="fe80::21%ens1f0np0")
V2, V3 = NvmeCli(2, 3), NvmeCli(3, 0)


def steps() -> tuple[Step, ...]:
    return driver("mlx5").steps(nic(), FACTS)


def by_name(files: tuple[PutFile, ...]) -> dict[str, PutFile]:
    return {Path(file.path).name: file for file in files}


def directives(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def target() -> tuple[PutFile, ...]:
    wanted = planned_target(
        NvmeTarget("kv1", (), (Subsystem(KV1, (Namespace(1, "/dev/ram0"),)),), (NvmePort("192.0.2.11"),))
    )
    return target_files(target_actions(wanted), removal_actions(wanted))


def test_systemd_accepts_every_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze missing: apt-get install systemd")
    files = by_name((*nic_files(steps(), (nic(),)), *connection_files((ONE, TWO), WHO, V2), *target()))
    units = [name for name in files if name.endswith(".service")]
    assert len(units) == 5
    for name in units:
        # programs that this machine lacks would be complaints about the machine
        text = files[name].text.replace("/usr/sbin/nvme", "/bin/true").replace("/usr/bin/python3", "/bin/true")
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        check=False,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
    )
    ours = [line for line in done.stderr.splitlines() if "fabricctl" in line]
    assert ours == []


def test_connections_wait_for_qos_and_links() -> None:
    nics = by_name(nic_files(steps(), (nic(),)))
    assert directives(nics[QOS_UNIT].text, "Before") == [f"{LINK_UNIT} network.target"]
    assert QOS_UNIT in directives(nics[LINK_UNIT].text, "After")[0]
    unit = by_name(connection_files((ONE,), WHO, V2))[connection_unit(ONE)].text
    assert {QOS_UNIT, LINK_UNIT} <= set(directives(unit, "After")[0].split())
    assert directives(unit, "Before") == ["remote-fs-pre.target"]
    published = by_name(target())[TARGET_UNIT].text
    for text in (unit, published):
        assert directives(text, "ExecStartPre") == [f"/usr/bin/systemctl is-active --quiet {LINK_UNIT}"]
        assert directives(text, "Requires") == []  # it would end them for good when the links fail once
    for text in (nics[QOS_UNIT].text, nics[LINK_UNIT].text, unit, published):
        assert (directives(text, "Restart"), directives(text, "StartLimitIntervalSec")) == (["on-failure"], ["0"])


def test_connection_unit_holds_the_whole_command() -> None:
    files = by_name(connection_files((ONE,), WHO, V2))
    connect, after = directives(files[connection_unit(ONE)].text, "ExecStart")
    assert connect.startswith("-/usr/sbin/nvme connect --transport=rdma --traddr=192.0.2.11 --trsvcid=4420")
    assert "--tos=104" in connect.split()
    assert after.split()[:2] == ["/usr/bin/python3", "/usr/local/lib/fabricctl/agent.py"]
    actions = json.loads(files[Path(after.split()[2]).name].text)["actions"]
    assert [(one["do"], one["name"], one["text"]) for one in actions] == [
        ("controller-attribute", "fast_io_fail_tmo", "15")
    ]
    newer = by_name(connection_files((ONE,), WHO, V3))[connection_unit(ONE)].text
    assert len(directives(newer, "ExecStart")) == 2


def test_scope_of_an_address_is_no_specifier_of_systemd() -> None:
    text = by_name(connection_files((TWO,), WHO, V2))[connection_unit(TWO)].text
    assert "--traddr=fe80::99%%ens1f0np0" in text
    assert "%e" not in text.replace("%%", "")


def test_each_connection_has_its_own_unit_and_keeps_it() -> None:
    assert connection_unit(ONE) != connection_unit(TWO)
    assert connection_unit(ONE) == connection_unit(replace(ONE, tos=106))


def test_boot_files_leave_firmware_alone_and_split_stages() -> None:
    files = by_name(nic_files(steps(), (nic(),)))
    qos, link = files["qos.json"].text, files["link.json"].text
    assert "mstconfig" not in qos + link
    assert "prio-pfc" in qos
    assert "default_roce_tos" in link
    assert "default_roce_tos" not in qos
    assert files["agent.py"].mode == 0o755


def test_several_nics_get_sysctls_and_modules_are_listed() -> None:
    assert "90-fabricctl.conf" not in by_name(nic_files(steps(), (nic(),)))
    two = (nic(), nic(netdev="eth0.100"))
    files = by_name(nic_files(steps(), two, modules=("nvme-rdma", "rdma_rxe")))
    assert "net.ipv4.conf.eth0/100.arp_announce = 2" in files["90-fabricctl.conf"].text
    modules = [file.text for file in nic_files((), two, modules=("nvme-rdma",)) if "modules-load" in file.path]
    assert modules[0].splitlines()[1:] == ["nvme-rdma"]


def test_multipath_rule_names_our_subsystems_alone() -> None:
    text = by_name(connection_files((ONE, TWO), WHO, V2))["71-fabricctl-iopolicy.rules"].text
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        f'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{{subsysnqn}}=="{KV1}", ATTR{{iopolicy}}="round-robin"'
    ]


@pytest.mark.parametrize("text", ["a\nExecStart=/bin/sh", "a\x00", "a\r"])
def test_line_break_never_reaches_a_unit(text: str) -> None:
    with pytest.raises(HostError):
        names.unit_word(text)
    with pytest.raises(HostError):
        connection_files((replace(ONE, nqn=KV1 + text[1:]),), WHO, V2)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain-1.2/x", "plain-1.2/x"),
        ("a b", '"a b"'),
        ("50%", '"50%%"'),
        ("$HOME", '"$$HOME"'),
        ('a"\\', '"a\\"\\\\"'),
    ],
)
def test_words_are_quoted_as_systemd_reads_them(text: str, written: str) -> None:
    assert names.unit_word(text) == written


@pytest.mark.parametrize("text", ["nvme rdma", "../x", "x;y", ""])
def test_module_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="kernel module"):
        nic_files((), (nic(),), modules=(text,))


def test_modules_of_hosts_and_targets() -> None:
    assert boot_modules(HostPlan("gpu1", "host", (nic(),))) == ("rdma_ucm", "nvme-rdma")
    soft = HostPlan("kv1", "target", (nic(family="rxe"),))
    assert boot_modules(soft) == ("rdma_ucm", "rdma_rxe", "nvmet", "nvmet-rdma")


def test_a_connection_with_half_a_character_in_its_name_is_refused_in_words() -> None:
    with pytest.raises(HostError, match="this is no NQN"):
        connection_files((replace(ONE, nqn="\ud800nqn.2026-01.net.example:kv"),), WHO, NvmeCli(2, 9))
