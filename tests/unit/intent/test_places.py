"""Lines of variables, in Ansible's order of precedence, without Ansible."""

from pathlib import Path

import pytest

from fabric.intent.places import Places, all_files, syntax_problems
from fabric.intent.traps import number_traps
from fabric.remote.ansible import RawHost

HOSTS = {"leaf1": RawHost(("all", "switches", "leafs"), {}), "leaf2": RawHost(("all", "switches"), {})}


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


INLINE = """\
all:
  vars:
    fabric_mtu: 1
  children:
    leafs:
      vars:
        fabric_mtu: 2
      hosts:
        leaf[a:c]:
        leaf[1:3]:
          fabric_mtu: 3
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"host_vars/leaf1.yml": "\nfabric_mtu: 9\n"}, "host_vars/leaf1.yml:2"),
        ({"host_vars/leaf1/b.yml": "fabric_mtu: 9\n"}, "host_vars/leaf1/b.yml:1"),
        ({"group_vars/leafs.yaml": "fabric_mtu: 9\n"}, "hosts.yml:11"),
        ({"group_vars/leafs.yml": "{fabric_mtu: 9}", "hosts.yml": "all:\n"}, "group_vars/leafs.yml:1"),
        (
            {"group_vars/all.yml": "fabric_mtu: 9", "group_vars/switches": "fabric_mtu: 8", "hosts.yml": ""},
            "group_vars/switches:1",
        ),
        ({"hosts.yml": "all:\n  vars: {fabric_mtu: 9}\n"}, "hosts.yml:2"),
        ({"hosts.yml": "leafs:\n  vars:\n    fabric_mtu: 9\nall:\n  vars: {fabric_mtu: 9}\n"}, "hosts.yml:3"),
    ],
)
def test_the_strongest_file_is_named(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    _write(tmp_path, {"hosts.yml": INLINE, **files})

    place = Places([tmp_path], HOSTS).find("leaf1", "fabric_mtu")

    assert str(place) == f"{tmp_path}/{expected}"


def test_the_last_source_wins(tmp_path: Path) -> None:
    first = _write(tmp_path / "a", {"hosts.yml": INLINE})
    second = _write(tmp_path / "b", {"lab.yml": "all:\n  hosts:\n    leaf1: {fabric_mtu: 5}\n"}) / "lab.yml"

    assert str(Places([first, second], HOSTS).find("leaf1", "fabric_mtu")) == f"{second}:3"


def test_the_deepest_part_that_is_there_is_named_with_its_text(tmp_path: Path) -> None:
    text = "fabric_ports:\n  - ports: Ethernet1\n    fec: off\n  - {ports: 'Ethernet2'}\n"
    places = Places([_write(tmp_path, {"group_vars/all.yml": text})], HOSTS)

    fec = places.find("leaf1", "fabric_ports", (0, "fec"))
    quoted = places.find("leaf1", "fabric_ports", (1, "ports"))
    absent = places.find("leaf1", "fabric_ports", (0, "speed"))
    beyond = places.find("leaf1", "fabric_ports", (7, "speed"))

    assert fec is not None
    assert (fec.line, fec.text) == (3, "off")
    assert quoted is not None
    assert (quoted.line, quoted.text) == (4, None)
    assert absent is not None
    assert absent.line == 2
    assert beyond is not None
    assert beyond.line == 1


def test_a_variable_that_no_static_file_has_has_no_place(tmp_path: Path) -> None:
    script = _write(tmp_path, {"hosts.yml": INLINE, "dynamic.json": "#!/bin/sh"}) / "dynamic.json"
    script.chmod(0o755)

    assert Places([tmp_path], HOSTS).find("leaf1", "fabric_dcbx") is None
    assert script not in list(all_files([tmp_path]))


def test_a_vaulted_file_that_may_have_won_makes_the_place_uncertain(tmp_path: Path) -> None:
    files = {"hosts.yml": INLINE, "host_vars/leaf1.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162\n"}
    places = Places([_write(tmp_path, files)], HOSTS)

    mine, other = places.find("leaf1", "fabric_mtu"), places.find("leaf2", "fabric_mtu")

    assert mine is not None
    assert mine.is_shadowed_by_vault
    assert other is not None
    assert not other.is_shadowed_by_vault


def test_a_broken_or_binary_file_is_passed_over(tmp_path: Path) -> None:
    places = Places([_write(tmp_path, {"host_vars/leaf1.yml": "a: [", "hosts.yml": INLINE})], HOSTS)
    (tmp_path / "host_vars" / "leaf2.yml").write_bytes(b"\xff\xfe\x00")

    assert str(places.find("leaf1", "fabric_mtu")) == f"{tmp_path}/hosts.yml:11"
    assert str(places.find("leaf2", "fabric_mtu")) == f"{tmp_path}/hosts.yml:11"


def test_every_broken_file_and_double_key_is_named(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "hosts.yml": "all:\n  hosts: {a: {x: 1, x: 2}}\n",
            "group_vars/all.yml": "a: 1\nb: [1\n",
            "group_vars/list.yml": "- a: 1\n  a: 2\n",
            "host_vars/vaulted.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
            "host_vars/tab.yml": "a:\n\tb: 1\n",
        },
    )

    places = [problem.place.removeprefix(f"{tmp_path}/") for problem in syntax_problems([tmp_path])]

    assert places == ["hosts.yml:2", "group_vars/all.yml:3", "group_vars/list.yml:2", "host_vars/tab.yml:2"]


def test_numbers_in_base_8_and_60_are_found_in_our_variables_only(tmp_path: Path) -> None:
    text = "mode: 0644\nfabric_a: {b: [010, '010', 12:30, 0, 8, 1:2:3]}\nfabric_c: 0o17\nfabric_d: 0x1f\n"
    _write(tmp_path, {"group_vars/all.yml": text, "group_vars/plain.yml": "fabric_mtu: 9216\n"})

    found = [(flaw.spot.variable, flaw.found) for flaw in number_traps([tmp_path], Places([tmp_path], HOSTS))]

    assert found == [("fabric_a", "010"), ("fabric_a", "12:30"), ("fabric_a", "1:2:3")]


def test_a_key_with_a_newline_forges_no_second_problem(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text('"a\\nerror: x": 1\n"a\\nerror: x": 2\n', encoding="utf-8")

    (problem,) = syntax_problems([file])

    assert "the key a\\nerror: x stands twice" in str(problem)
