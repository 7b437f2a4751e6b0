"""`load` with real Ansible: the shipped inventories, and one in which everything is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import IntentError
from fabric.intent import Endpoint, Loaded, PortRole, SwitchRole, example, load
from fabric.observe import Recorder
from fabric.resources import data_path
from tests.unit.intent.golden import FOLDER, check_golden

pytestmark = pytest.mark.traces_processes


@pytest.fixture(scope="module")
def demo() -> Loaded:
    return load([data_path("inventory", "demo")], known_nos=("eos", "sonic"))


def test_every_problem_is_told_at_once_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)

    with pytest.raises(IntentError) as caught:
        load([Path("wrong")], known_nos=("eos", "sonic"))

    check_golden("wrong.txt", f"{caught.value}\n")


def test_the_demo_has_two_spines_and_four_leaves_of_both_network_oses(demo: Loaded) -> None:
    switches = {switch.name: (switch.role, switch.nos) for switch in demo.fabric.switches}

    assert switches == {
        "leaf1": (SwitchRole.LEAF, "sonic"),
        "leaf2": (SwitchRole.LEAF, "sonic"),
        "leaf3": (SwitchRole.LEAF, "eos"),
        "leaf4": (SwitchRole.LEAF, "eos"),
        "spine1": (SwitchRole.SPINE, "eos"),
        "spine2": (SwitchRole.SPINE, "sonic"),
    }
    assert [host.name for host in demo.fabric.hosts] == ["gpu1", "gpu2", "gpu3", "gpu4"]
    assert [target.name for target in demo.fabric.targets] == ["kv1", "kv2"]


def test_every_nic_of_the_demo_has_a_cable_and_two_address_families(demo: Loaded) -> None:
    nics = [nic for host in demo.fabric.hosts for nic in host.nics]
    nics += [nic for target in demo.fabric.targets for nic in target.nics]

    assert all(nic.peer is not None for nic in nics)
    assert all([":" in address for address in nic.addresses] == [False, True] for nic in nics)


def test_a_broken_out_port_of_the_demo_knows_its_parent_its_cable_and_its_peer(demo: Loaded) -> None:
    leaf = demo.fabric.switch("leaf1")
    assert leaf is not None
    port = next(port for port in leaf.ports if port.name == "Ethernet2")

    assert (port.breakout_of, port.role, port.cable_m, port.lanes) == ("Ethernet0", PortRole.HOST, 3, 2)
    assert port.peer == Endpoint("gpu2", "ens1f0np0")


def test_the_demo_mixes_100g_and_400g_and_tags_the_ports_of_one_target(demo: Loaded) -> None:
    ports = [port for switch in demo.fabric.switches for port in switch.ports]

    assert {port.speed_mbps for port in ports} == {100_000, 400_000}
    assert {port.peer.device for port in ports if port.vlan == 120 and port.peer is not None} == {"kv2"}


def test_the_access_of_the_demo_is_loopback(demo: Loaded) -> None:
    assert {access.host for access in demo.access.values()} == {"127.0.0.1"}
    assert demo.selected == tuple(demo.access)


def test_the_starter_inventory_loads_as_it_is_and_its_secrets_stay_out_of_reprs(tmp_path: Path) -> None:
    written = example(tmp_path / "site")

    loaded = load([tmp_path / "site"])

    assert tmp_path / "site" / "hosts.yml" in written
    assert len(loaded.fabric.switches) == 8
    assert loaded.access["leaf1"].password == "change-me"
    assert loaded.access["leaf1"].enable_secret == "change-me"
    assert "change-me" not in repr(loaded)


def test_the_starter_inventory_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()

    with pytest.raises(IntentError, match="nothing is overwritten"):
        example(tmp_path)


def test_a_missing_source_is_told_before_ansible_starts(tmp_path: Path) -> None:
    events = Recorder()

    with pytest.raises(IntentError) as caught:
        load([tmp_path / "none", tmp_path / "nil"], observer=events)

    assert [problem.place for problem in caught.value.problems] == [str(tmp_path / "none"), str(tmp_path / "nil")]
    assert [event.name for event in events.events] == ["intent.load.started"]


def test_no_source_at_all_says_what_to_type() -> None:
    with pytest.raises(IntentError, match="Name one: -i inventory/demo"):
        load([])


def test_importing_the_package_imports_neither_pydantic_nor_ansible() -> None:
    program = "import sys, fabric.intent; print(sorted({'pydantic', 'ansible', 'ruamel.yaml'} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
