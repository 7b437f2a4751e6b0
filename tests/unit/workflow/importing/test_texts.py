"""Import of texts: what is pinned, what stays and is told, one change that shows as one, and texts that mean harm."""

import json
from pathlib import Path

import pytest

from fabric.diff import ChangeSet
from fabric.intent import load
from fabric.intent.model import Endpoint, SwitchRole
from fabric.lab.stock import StockPort, eos_config, sonic_config, sonic_tables
from fabric.plan import make_plan
from fabric.workflow.design import design
from fabric.workflow.importing import (
    Cabled,
    Config,
    Imported,
    ImportOptions,
    ImportRefusedError,
    import_texts,
    write_files,
)
from fabric.workflow.subjects import capabilities_of

PORTS = [StockPort("Ethernet0"), StockPort("Ethernet4", cable_m=40)]
SONIC = Config("sonic", sonic_config(PORTS, hostname="leaf1"))
EOS = Config("eos", eos_config("spine1", "DCS-7050CX3-32S", [StockPort("Ethernet1"), StockPort("Ethernet2")]))


def change_set(folder: Path, name: str, text: str) -> ChangeSet:
    one = make_plan(load([folder]).fabric, capabilities_of).switch(name)
    assert one is not None
    return design(one, text).changes


def written(imported: Imported, folder: Path) -> Path:
    write_files(imported.files, folder)
    return folder


def test_stock_sonic_keeps_its_other_classes_and_pins_the_rest(tmp_path: Path) -> None:
    imported = import_texts({"leaf1": SONIC})

    assert load([written(imported, tmp_path / "site")]).fabric == imported.fabric
    assert change_set(tmp_path / "site", "leaf1", SONIC.text).empty
    switch = imported.fabric.switch("leaf1")
    assert switch is not None
    assert (switch.policy.data_priority, switch.policy.data_dscps) == (3, (3,))  # AZURE: DSCP 26 is lossy
    assert switch.hwsku == "ACS-MSN4700"
    assert [port.cable_m for port in switch.ports] == [5, 40]
    kept = {part for one in imported.unexpressed for part in one.keep}
    assert "others" in kept
    assert "all" not in kept
    others = next(one for one in imported.unexpressed if one.keep == ("others",))
    assert others.ports == ("Ethernet0", "Ethernet4")
    assert others.path
    assert others.change


def test_one_change_shows_as_that_change(tmp_path: Path) -> None:
    folder = written(import_texts({"leaf1": SONIC}), tmp_path / "site")
    file = folder / "host_vars" / "leaf1.yml"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("fabric_mtu")]
    file.write_text("\n".join([*kept, "fabric_mtu: 4000", ""]))

    changed = change_set(folder, "leaf1", SONIC.text)

    assert {one.path for one in changed.forward} == {("PORT", "Ethernet0", "mtu"), ("PORT", "Ethernet4", "mtu")}


def test_what_is_no_longer_kept_is_what_was_told(tmp_path: Path) -> None:
    imported = import_texts({"leaf1": SONIC})
    folder = written(imported, tmp_path / "site")
    file = folder / "host_vars" / "leaf1.yml"
    file.write_text(file.read_text().replace("others", "mtu"))

    changed = change_set(folder, "leaf1", SONIC.text)

    told = next(one for one in imported.unexpressed if one.keep == ("others",))
    assert " | ".join(changed.forward[0].path) == told.path


def test_switch_without_anything_lossless_says_that_its_intent_is_undefined(tmp_path: Path) -> None:
    imported = import_texts({"spine1": EOS})

    assert change_set(written(imported, tmp_path / "site"), "spine1", EOS.text).empty
    (told,) = imported.unexpressed
    assert told.keep == ("all",)
    assert "intent is undefined" in told.why
    assert any("no speed" in one for one in imported.assumed)
    switch = imported.fabric.switch("spine1")
    assert switch is not None
    assert (switch.role, switch.version, switch.hwsku) == (SwitchRole.SPINE, "4.32.2F", "DCS-7050CX3-32S")


def test_listed_cable_gives_link_length_and_speed(tmp_path: Path) -> None:
    ends = Endpoint("leaf1", "Ethernet4"), Endpoint("spine1", "Ethernet2")
    stub = Cabled(Endpoint("gpu1", "ens1"), Endpoint("spine1", "Ethernet1"), 3, 25_000)
    options = ImportOptions(name="site", roles={"spine1": SwitchRole.SUPERSPINE})

    imported = import_texts({"leaf1": SONIC, "spine1": EOS}, cabling=(Cabled(*ends, 40), stub), options=options)

    assert load([written(imported, tmp_path / "site")]).fabric == imported.fabric
    (link,) = imported.fabric.links
    assert ({link.a, link.b}, link.cable_m, link.speed_mbps) == (set(ends), 40, 100_000)
    switch = imported.fabric.switch("spine1")
    assert switch is not None
    assert [(port.cable_m, port.speed_mbps) for port in switch.ports] == [(3, 25_000), (40, 100_000)]
    assert switch.role is SwitchRole.SUPERSPINE
    for name, config in (("leaf1", SONIC), ("spine1", EOS)):
        assert change_set(tmp_path / "site", name, config.text).empty


HARM = "{{ lookup('pipe', 'touch /tmp/x') }}\n- hosts: all\n#\x1b[2J: 'é"


def test_what_a_device_says_of_itself_reaches_no_file(tmp_path: Path) -> None:
    tables = sonic_tables(PORTS, hostname=HARM)
    for row in tables["PORT"].values():
        row |= {"description": HARM, "alias": HARM}
    tables["DEVICE_METADATA"]["localhost"]["hwsku"] = HARM
    eos = EOS.text.replace("port of spine1", "{{ x }} ; reload").replace("DCS-7050CX3-32S", "{{ y }}")
    lldp = {"leaf1": json.dumps({"lldp": {"interface": [{"Ethernet0": {"chassis": {HARM: {}}, "port": {}}}]}})}

    imported = import_texts({"leaf1": Config("sonic", json.dumps(tables)), "spine1": Config("eos", eos)}, lldp=lldp)

    assert not imported.failed
    whole = "".join(imported.files.values())
    assert not [word for word in ("lookup", "{{", "\x1b", "reload", "é") if word in whole]
    assert load([written(imported, tmp_path / "site")]).fabric == imported.fabric


@pytest.mark.parametrize("name", ["{{ x }}", "a b", "a\nb", "switches", "-x", "", "all"])
def test_name_that_no_inventory_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ImportRefusedError, match="cannot stand in an inventory"):
        import_texts({name: SONIC})


def test_text_that_cannot_be_read_is_told_and_the_others_are_imported() -> None:
    imported = import_texts({"leaf1": SONIC, "leaf2": Config("sonic", "{"), "leaf3": Config("sonic", '{"PORT": {}}')})

    assert [switch.name for switch in imported.fabric.switches] == ["leaf1"]
    assert list(imported.failed) == ["leaf2", "leaf3"]


def test_nothing_readable_is_refused() -> None:
    with pytest.raises(ImportRefusedError, match="no device could be imported"):
        import_texts({"leaf2": Config("eos", "{}")})


def test_folder_in_use_is_left_alone_without_force_and_keeps_strangers_with_it(tmp_path: Path) -> None:
    imported = import_texts({"leaf1": SONIC})
    (tmp_path / "vault.yml").write_text("secret")

    with pytest.raises(Exception, match="not empty"):
        write_files(imported.files, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vault.yml"]

    write_files(imported.files, tmp_path, force=True)
    assert (tmp_path / "vault.yml").read_text() == "secret"
    assert load([tmp_path]).fabric == imported.fabric


def test_what_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "group_vars").write_text("a file where a folder belongs")

    with pytest.raises(Exception, match="cannot be written"):
        write_files(import_texts({"leaf1": SONIC}).files, tmp_path, force=True)

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["group_vars"]
