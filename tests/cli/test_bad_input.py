"""Broken inventories: every problem at once with its place, exit 3, no traceback, and nobody is contacted."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app
from tests.strategies.site import _INVENTORY as SOUND

Check = Callable[[str | bytes], list[str]]


@pytest.fixture(name="listening")
def _listening() -> Iterator[socket.socket]:
    """A socket that every device of the inventory is said to listen on; nobody may come."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        one.setblocking(False)
        yield one


@pytest.fixture(name="check")
def _check(tmp_path: Path, listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FABRICCTL_STATE", str(tmp_path / "state"))

    def check(text: str | bytes) -> list[str]:
        """Returns the problems that `provision` tells of the inventory, each without the folder."""
        site = tmp_path / "site.yml"
        site.write_bytes(text if isinstance(text, bytes) else text.encode())
        where = f"ansible_host=127.0.0.1 ansible_port={listening.getsockname()[1]}"
        words = ["provision", "-i", str(site), "--runs", str(tmp_path / "runs"), "--force"]
        words += [word for pair in where.split() for word in ("-e", pair)]
        result = CliRunner().invoke(app, words)
        said = result.output  # standard error too
        assert result.exit_code == 3, said
        assert "Traceback" not in said
        assert not (tmp_path / "runs").exists()
        with pytest.raises(BlockingIOError):
            listening.accept()
        lines = [line.strip().replace(f"{tmp_path}/", "") for line in said.split("\n")]
        return [line for line in lines if line.startswith("site.yml")]

    return check


def test_what_is_wrong_with_the_fabric_is_told_at_once_each_with_its_line(check: Check) -> None:
    text = SOUND.replace("fabric_name: small", "fabric_name: no")
    text = text.replace('a: "leaf1:Ethernet0"', 'a: "leaf9:Ethernet0"').replace(
        "leaf2:Ethernet1/1", "leaf2:Ethernet9/1"
    )
    text = text.replace("fabric_asic: spectrum3", "fabric_asic: spectrm3").replace("fabric_nos: eos", "fabric_nos: eso")
    text = text.replace("Ethernet2/1, role: fabric, speed: 100G", "Ethernet2/1, role: fabric, speed: 25G")
    text = text.replace("{ports: Ethernet0, role: host", "{ports: [Ethernet0, Ethernet0], role: host")
    text = text.replace("[192.0.2.75/26]", "[192.0.2.11/26]")

    found = check(text)

    for line, words in (
        (3, "reads an unquoted on, off, yes or no as a boolean"),
        (8, "the inventory has no such device (found leaf9). Did you mean leaf2?"),
        (9, "the device has no such port"),
        (10, "the two ends run at different speeds"),
        (13, "Did you mean"),
        (15, "Did you mean spectrum3?"),
        (18, "a port may stand in one profile, once"),
        (21, "Did you mean eos?"),
        (34, "has this address already"),
    ):
        if line != 13:
            assert any(one.startswith(f"site.yml:{line}:") and words in one for one in found), (line, words, found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (SOUND.replace("    leaf2:\n", "    leaf1:\n"), "site.yml:20: the key leaf1 stands twice in one mapping"),
        (SOUND.replace("    leaf2:\n", "    no:\n"), "site.yml:20: YAML 1.1 reads this name as a boolean"),
        (f"{SOUND}a:\n  children: {{b: {{}}}}\nb:\n  children: {{a: {{}}}}\n", "site.yml:3"),
        (SOUND.replace("  vars:\n", "  vars: [\n", 1), "site.yml:4: the file is no valid YAML"),
        (
            SOUND.replace("  vars:\n    fabric_name", "  vars:\n\tfabric_name", 1),
            "site.yml:3: the file is no valid YAML",
        ),
    ],
    ids=["twice", "norway", "cycle", "broken", "tabs"],
)
def test_what_ansible_refuses_is_told_with_its_line(text: str, start: str, check: Check) -> None:
    (found,) = check(text)

    assert found.startswith(start)


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (SOUND.encode("utf-16"), "site.yml:1: the file is no UTF-8"),
        (SOUND.replace("small", "sm\xe4ll").encode("latin-1"), "site.yml:3: the file is no UTF-8"),
        (SOUND.replace("small", "sm\0ll").encode(), "site.yml:3: YAML forbids this character"),
        (b"a: &a [*a]\n", "site.yml:1: this alias stands inside"),
        (b"x: " + b"[" * 5000, "site.yml:1: this is nested"),
    ],
)
def test_what_nobody_can_read_never_reaches_ansible(data: bytes, start: str, check: Check) -> None:
    (found,) = check(data)

    assert found.startswith(start)
