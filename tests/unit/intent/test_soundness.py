"""Files that Ansible would choke on are refused before it, with their place; nothing sound is refused."""

import os
import time
from pathlib import Path

import pytest

from fabric.intent.places import all_files
from fabric.intent.soundness import unreadable


def told(folder: Path, *sources: Path) -> list[str]:
    return [str(one).replace(f"{folder}/", "") for one in unreadable(sources or (folder,), all_files)]


def bomb(levels: int) -> str:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nname: sm\xe4ll\n", "site.yml:2: the file is no UTF-8 (found the byte 0xe4). Convert it: iconv -f ISO-8859-1"),
        ("a: 1\n".encode("utf-16"), "site.yml:1: the file is no UTF-8 (found the byte 0xff). Convert it: iconv -f UTF-16"),
        (b"a: 1\nb: x\x00y\n", "site.yml:2: YAML forbids this character (found U+0000)"),
        (b"a: \x1b[2J\n", "site.yml:1: YAML forbids this character (found U+001B)"),
        (bomb(9).encode(), "site.yml:7: with its aliases written out, this has more than 1,000,000 values"),
        (b"a: &x [1, *x]\n", "site.yml:1: this alias stands inside of what it names"),
        (b"a: " + b"[" * 3000 + b"]" * 3000 + b"\n", "site.yml:1: this is nested more than 60 deep"),
        ("\n".join(" " * n + "a:" for n in range(300)).encode(), "site.yml:61: this is nested more than 60 deep"),
        (b"- " * 200 + b"x\n", "site.yml:1: this is nested more than 60 deep"),
    ],
)  # fmt: skip
def test_what_would_choke_ansible_is_refused_with_its_line(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_bytes(data)

    (found,) = told(tmp_path)

    assert found.startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffall: {hosts: {leaf1: {}}}\n",
        "",
        "base: &base {speed: 100G}\nall: {vars: {one: *base, two: {<<: *base}}}\n",
        "name: 'a * b'\nother: \"*star\"\nmore: 5 *x\n",
        bomb(5),
        "a: [\n",  # broken: told with its line when Ansible has refused it
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "name: größe 漢字 ☃\n",
    ],
)
def test_what_can_be_read_is_not_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(text, encoding="utf-8")

    assert told(tmp_path) == []


def test_every_file_is_looked_at_and_every_problem_told(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_bytes(b"\xff")
    (tmp_path / "group_vars" / "all").mkdir(parents=True)
    (tmp_path / "group_vars" / "all" / "one.yml").write_bytes(b"a: \x00")
    (tmp_path / "group_vars" / "switches.yml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "group_vars" / "hosts.yml")

    found = told(tmp_path)

    assert [one.partition(": ")[0] for one in found] == [
        "site.yml:1",
        "group_vars/all/one.yml:1",
        "group_vars/hosts.yml",
        "group_vars/switches.yml",
    ]
    assert "this is no file (found a pipe)" in found[2]
    assert "this file cannot be read: No such file or directory" in found[3]


def test_a_folder_that_contains_itself_is_told_and_not_walked(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text("all: {}\n")
    (tmp_path / "loop").symlink_to(".")

    assert told(tmp_path) == ["loop: the folder contains itself by a symbolic link. Remove the link."]


def test_a_pipe_as_source_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "site.yml")

    assert told(tmp_path, tmp_path / "site.yml") == ["site.yml: this is no file (found a pipe)"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_leave_to_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "site.yml").touch(mode=0o000)

    assert told(tmp_path) == ["site.yml: this file cannot be read: Permission denied"]


def test_a_hundred_thousand_lines_cost_little(tmp_path: Path) -> None:
    row = '      - {a: "leaf[1:4]:Ethernet0", b: "gpu1:ens1"}\n'
    (tmp_path / "site.yml").write_text("all:\n  vars:\n    fabric_links:\n" + row * 100_000)

    began = time.process_time()
    found = told(tmp_path)

    assert found == []
    assert time.process_time() - began < 2
