"""What is written is what is read again, and no text becomes a template or another type on the way."""

from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fabric.errors import IntentError
from fabric.intent import Fabric, VaultOptions, load
from fabric.intent.emitting import Template, document, inline
from fabric.intent.model import PortRole, RocePolicy, Switch, SwitchPort, SwitchRole
from fabric.intent.writing import write
from fabric.qos import ALL_ASPECTS, Aspect
from fabric.resources import data_path
from fabric.serial import Json


def written(fabric: Fabric, folder: Path) -> Path:
    for path, text in write(fabric).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def switch(*ports: SwitchPort, **more: object) -> Switch:
    return Switch("leaf1", "sonic", SwitchRole.LEAF, ports, **more)  # type: ignore[arg-type]


def port(name: str, **more: object) -> SwitchPort:
    return SwitchPort(name, PortRole.HOST, 100_000, 9216, **more)  # type: ignore[arg-type]


def test_shipped_inventory_is_read_again_as_it_was(tmp_path: Path) -> None:
    fabric = load([data_path("inventory", "demo")]).fabric

    assert load([written(fabric, tmp_path)]).fabric == fabric


def test_example_site_is_read_again_as_it_was(tmp_path: Path) -> None:
    secret = VaultOptions(secrets=(("default", b"example"),))
    try:
        fabric = load([data_path("inventory", "example-site")], vault=secret).fabric
    except IntentError:
        pytest.skip("the vault of the example has another password here")

    assert load([written(fabric, tmp_path)]).fabric == fabric


def test_what_stays_is_said_once_where_all_ports_keep_it_and_at_the_port_where_not(tmp_path: Path) -> None:
    same = Fabric("f", (switch(port("Ethernet0", keep=ALL_ASPECTS), port("Ethernet4", keep=ALL_ASPECTS)),))
    some = frozenset({Aspect.ECN, Aspect.MTU})
    apart = Fabric("f", (switch(port("Ethernet0", keep=some), port("Ethernet4")),))

    assert "fabric_keep: all\n" in write(same)["host_vars/leaf1.yml"]
    assert "keep: [mtu, ecn]" in write(apart)["host_vars/leaf1.yml"]
    assert load([written(same, tmp_path / "same")]).fabric == same
    assert load([written(apart, tmp_path / "apart")]).fabric == apart


def test_ports_of_one_kind_are_one_range() -> None:
    ports = [port(f"Ethernet{number}") for number in range(0, 32, 4)]
    text = write(Fabric("f", (switch(*ports),)))["host_vars/leaf1.yml"]

    assert 'ports: "Ethernet[0:28:4]"' in text


def test_what_all_switches_say_stands_with_their_group() -> None:
    policy = RocePolicy(data_priority=5, data_dscps=(30,))
    one = switch(port("Ethernet0"), policy=policy)
    files = write(Fabric("f", (one, replace(one, name="leaf2"))))

    assert "fabric_data_priority: 5" in files["group_vars/switches.yml"]
    assert "fabric_data_priority" not in files["host_vars/leaf1.yml"]


@pytest.mark.parametrize(
    "text",
    [
        "on",
        "No",
        "~",
        "null",
        "1e3",
        "012",
        "12:30",
        "",
        " x",
        "a: b",
        "# c",
        "é\u2028",
        "\x1b[2J",
        "a\nb",
        "'\"\\",
        "=x",
    ],
)
def test_text_stays_the_text_that_it_is(text: str) -> None:
    parsed = YAML(typ="safe", pure=True).load(document({"value": text, "list": [{"key": text}]}))

    assert parsed["value"] == text
    assert parsed["list"] == [{"key": text}]


@pytest.mark.parametrize("text", ["{{ lookup('pipe', 'id') }}", "{% raw %}", "{# x #}", "a {{ b"])
def test_what_a_device_says_is_no_template(text: str) -> None:
    assert inline(text).startswith("!unsafe ")
    assert "!unsafe" in document({"value": {"deep": [text]}})


def test_template_of_our_own_is_rendered_by_ansible() -> None:
    assert inline(Template("{{ vault_switch_password }}")) == '"{{ vault_switch_password }}"'


def test_unsafe_text_reaches_the_inventory_unrendered(tmp_path: Path) -> None:
    values: dict[str, Json] = {"fabric_name": "{{ 7 * 6 }}"}
    fabric = Fabric("f", (switch(port("Ethernet0")),))
    folder = written(fabric, tmp_path)
    (folder / "group_vars" / "all" / "fabric.yml").write_text(document(values))

    with pytest.raises(IntentError, match=r"7 \* 6"):  # refused with its place, and not 42
        load([folder])
