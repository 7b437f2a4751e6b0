"""The documents say what is there: variables, verbs and options, exit codes, links."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from fabric.cli.app import app
from fabric.cli.exits import Exit
from fabric.intent import doors
from tests import doc_links

ROOT = Path(__file__).resolve().parent.parent.parent
FENCED = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOORS = (doors.PolicyDoor, doors.SwitchDoor, doors.HostDoor, doors.TargetDoor, doors.FabricDoor)


def test_every_link_leads_somewhere() -> None:
    assert [line for page in doc_links.pages() for line in doc_links.broken(page)] == []


def test_index_lists_every_document() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    written = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    listed = set(re.findall(r"\]\(([^)#]+)\)", index))
    assert {page for page in written - listed if not page.startswith("evidence/")} == {"index.md"}


def test_broken_link_and_anchor_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doc_links, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("# One heading\n[x](b.md) [y](#no-such) [z](#one-heading)\n", encoding="utf-8")
    assert doc_links.broken(tmp_path / "a.md") == ["a.md: no file b.md", "a.md: no heading #no-such"]


def test_inventory_reference_names_every_variable_and_no_other() -> None:
    text = (ROOT / "docs" / "reference" / "inventory.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `fabric_")]
    documented = {name for row in rows for name in re.findall(r"`(fabric_\w+)`", row)}
    known = {f"fabric_{field}" for door in DOORS for field in door.model_fields} | {"fabric_known_hosts"}
    assert documented | {"fabric_nics", "fabric_host_mtu"} == known


@pytest.mark.parametrize("page", ["README.md", "docs/reference/exit-codes.md"])
def test_every_exit_code_is_told(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(row) for row in rows] == sorted(Exit)


def written_commands() -> Iterator[tuple[str, list[str]]]:
    for page in doc_links.pages():
        for block in FENCED.findall(page.read_text(encoding="utf-8")):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                if "fabricctl" in words:
                    yield page.relative_to(ROOT).as_posix(), words[words.index("fabricctl") + 1 :]


def root_command() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def test_written_commands_exist_with_their_options() -> None:
    root = root_command()
    wrong = []
    seen = set()
    for page, words in written_commands():
        command: Any = root  # a group, or a verb in it
        verb = ""
        for word in words:
            if not isinstance(command, TyperGroup) or word.startswith("-"):
                break
            verb = f"{verb} {word}".lstrip()
            if word not in command.commands:
                wrong.append(f"{page}: there is no verb {verb}")
                break
            command = command.commands[word]
        seen.add(verb.partition(" ")[0])
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        wrong += [
            f"{page}: fabricctl {verb} has no option {word}"
            for word in takewhile(lambda one: one != "--", words)  # what follows is another program's
            if word.startswith("-") and word not in known
        ]
    assert wrong == []
    assert seen >= {"init", "show", "render", "check", "plan", "provision", "rollback", "doctor"}


def test_readme_and_changelog_name_every_verb() -> None:
    for page in ("README.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [verb for verb in root_command().commands if not re.search(rf"\b{verb}\b", text)] == []
