import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabric.errors import FabricError, IntentError
from fabric.intent import NvmeTarget, load
from fabric.lab.site import End, LabSpec
from fabric.lab.vm import Disk, DiskKind
from fabric.nos import catalog
from fabric.remote.ansible import read_inventory
from fabric.workflow import Environment
from fabric.workflow.lab import TOPOLOGIES, design_lab, lab_spec, topology
from fabric.workflow.lab.process import reader_of
from fabric.workflow.lab.variables import disks_of, variables_of


def designed(name: str, **more: Any) -> LabSpec:  # each one runs Ansible: few tests call it
    return design_lab([topology(name)], Environment(), **more)


def test_every_cable_of_a_topology_is_wired_and_every_switch_can_be_read() -> None:
    spec = designed("two-leaves", seed=7)
    assert sorted(map(str, spec.guests())) == ["leaf1:Ethernet0", "leaf1:Ethernet8", "leaf2:Ethernet1/1"]
    assert [str(end) for cable in spec.trunks() for end in (cable.a, cable.b)] == [
        "leaf1:Ethernet240",
        "leaf2:Ethernet32/1",
    ]
    assert spec.seed == 7
    read = reader_of(spec)
    assert {one.name: read(one.name, one.front.config).device for one in spec.switches} == {
        "leaf1": "leaf1",
        "leaf2": "leaf2",
    }
    boards = {one.name: one.platform for one in spec.switches}
    assert boards["leaf2"].lossless_by_pfc
    assert not boards["leaf1"].lossless_by_pfc
    assert boards["leaf2"].headroom_bytes > 0
    assert {board.xon_offset_bytes for board in boards.values()} == {2 * 4200}  # else each frame pauses and resumes


def test_direct_has_no_switch_and_its_target_a_disk() -> None:
    direct = designed("direct", extra_vars={"lab_cpus": 2})
    assert direct.switches == ()
    assert direct.cable_at(End("host1", "data0")) == direct.cable_at(End("target1", "data0"))
    assert {one.name: one.disks for one in direct.machines} == {
        "host1": (),
        "target1": (Disk(DiskKind.RAM, "ram0", 64),),
    }
    assert {one.cpus for one in direct.machines} == {2}


def test_variables_are_of_their_device() -> None:
    found = variables_of({"host1": {"lab_cpus": 2, "lab_folder": "/x"}, "host2": {}})
    assert (found["host1"].cpus, found["host2"].cpus) == (2, 1)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"lab_cpu": 2}, "lab_cpu"),
        ({"lab_cpus": "two"}, "lab_cpus"),
        ({"lab_memory_mib": True}, "lab_memory_mib"),
        ({"lab_disks": "/dev/ram0"}, "lab_disks"),
        ({"lab_disks": [{"device": "/dev/ram0", "size": 1}]}, "lab_disks.size"),
        ({"lab_disks": [{"size_mib": 1}]}, "lab_disks.device"),
        ({"lab_disks": [{"device": "/dev/ram0", "size_mib": "64M"}]}, "lab_disks.size_mib"),
        ({"lab_disks": [{"device": "/dev/ram0", "size_mib": 0}]}, "lab_disks.size_mib"),
        ({"lab_disks": [{"device": "/dev/kv0", "latency_us": -1}]}, "lab_disks.latency_us"),
        ({"lab_disks": [{"device": "/dev/kv0", "latency_us": True}]}, "lab_disks.latency_us"),
        ({"lab_disks": [{"device": "/dev/../x"}]}, "lab_disks.device"),
        ({"lab_disks": [{"device": "/srv/a b"}]}, "lab_disks.device"),
        ({"lab_disks": [{"device": "/srv/kv/disk0", "on": "kv0"}]}, "lab_disks.on"),
        ({"lab_disks": [{"device": "/dev/kv0", "on": "/dev/kv1"}]}, "lab_disks.on"),
        ({"lab_disks": [{"device": "/dev/ram0", "latency_us": 9}]}, "lab_disks.latency_us"),
        ({"lab_disks": [{"device": "/dev/ram0"}, {"device": "/dev/ram0"}]}, "lab_disks.device"),
        ({"lab_memory_mib": 16}, "lab_memory_mib"),
    ],
)
def test_variable_that_cannot_be_is_refused_by_name(row: Mapping[str, Any], field: str) -> None:
    with pytest.raises(IntentError) as caught:
        variables_of({"host1": row})
    assert [(one.device, one.field) for one in caught.value.problems] == [("host1", field)]


def test_unknown_topology_names_the_nearest() -> None:
    with pytest.raises(FabricError) as caught:
        topology("inkast")
    assert "incast" in caught.value.remedy
    assert all(topology(name).is_dir() for name in TOPOLOGIES)


@pytest.mark.parametrize(
    ("devices", "rows", "made"),
    [
        (["/dev/ram0"], [], ["ram ram0 65536"]),
        (["/dev/kv0"], [{"device": "/dev/kv0", "latency_us": 2000, "size_mib": 8}], ["null kv0 8 2000000"]),
        (
            ["/srv/kv/disk"],
            [{"device": "/srv/kv/disk", "size_mib": 4, "on": "/dev/kv0"}],
            ["null kv0 64 0", "file /srv/kv/disk 4 /dev/kv0"],
        ),
    ],
)
def test_disks_are_made_by_name_and_what_carries_comes_first(
    devices: Sequence[str], rows: Sequence[Mapping[str, Any]], made: Sequence[str]
) -> None:
    assert [disk.line() for disk in disks_of(devices, rows)] == made


def disks_on(target: NvmeTarget, device: str) -> NvmeTarget:
    subsystem = target.subsystems[0]
    spaces = (replace(subsystem.namespaces[0], device=device),)
    return replace(target, subsystems=(replace(subsystem, namespaces=spaces),))


def test_name_that_no_machine_can_have_is_refused_before_anything_starts() -> None:
    fabric = load([topology("direct")], known_nos=catalog.names()).fabric
    host = replace(fabric.hosts[0], name="GPU_1")
    links = tuple(replace(one, a=replace(one.a, device="GPU_1")) for one in fabric.links)
    target = fabric.targets[0]
    disk = disks_on(target, "/dev/disk/by-id/nvme-1")
    with pytest.raises(IntentError) as caught:
        lab_spec(replace(fabric, hosts=(host,), targets=(disk,), links=links), {})
    assert [(one.device, one.what) for one in caught.value.problems] == [
        ("GPU_1", "this is no name for a machine"),
        ("target1", "this is no name for a disk of kind null"),
    ]


def test_shipped_inventories_say_alike_how_to_log_in() -> None:
    """Ansible has no way to say it once: each must suffice as `-i` alone."""
    texts = {(topology(name) / "group_vars" / "all.yml").read_text(encoding="utf-8") for name in TOPOLOGIES}
    assert len(texts) == len(TOPOLOGIES)
    assert len({text.partition("\n\n")[0] for text in texts}) == 1


def test_folder_of_the_lab_may_have_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a lab 5%d"
    folder.mkdir()
    row = {"host": "127.0.0.1", "port": 4711, "user": "root", "known_hosts": f"{folder}/known_hosts"}
    (folder / "running.json").write_text(json.dumps({"host1": row}), encoding="utf-8")
    monkeypatch.setenv("FABRICCTL_LAB", str(folder))
    found = read_inventory([topology("direct")], prefixes=("ansible_",))
    variables = found.hosts["host1"].variables
    words = shlex.split(str(found.values[variables["ansible_ssh_common_args"]]))
    assert words[:2] == ["-o", f'UserKnownHostsFile="{tmp_path}/a lab 5%%d/known_hosts"']  # ssh_config(5): % is a token
    assert found.values[variables["ansible_port"]] == 4711
