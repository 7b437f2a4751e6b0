"""`fabricctl lab` as a shell sees it, where no virtual machine is needed: help, wrong input, no lab, dead labs."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app
from fabric.cli.labfaults import PacketName
from fabric.lab.site import LabFolder, Login
from fabric.lab.site.control import Answer, ControlServer, Question
from fabric.lab.vm import Accelerator, Image
from fabric.lab.vm.programs import find
from fabric.lab.wire import PacketKind
from fabric.serial import Json
from fabric.workflow.lab import run_ssh
from fabric.workflow.lab.access import ssh_words
from tests.unit.lab.site.test_spec import SPEC

RUNNER = CliRunner()
VERBS = ("up", "status", "down", "ssh", "console", "pcap", "counters")
FAULTS = ("drop", "delay", "reorder", "duplicate", "corrupt", "down", "storm", "list", "clear")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabFolder:
    monkeypatch.setenv("FABRICCTL_LAB", str(tmp_path / "lab"))
    monkeypatch.setenv("FABRICCTL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    return LabFolder(tmp_path / "lab")


def lab(*words: str) -> tuple[int, str]:
    result = RUNNER.invoke(app, ["lab", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def document(code: int, *words: str) -> Any:
    result = RUNNER.invoke(app, ["lab", *words, "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def begin(folder: LabFolder) -> str:
    with folder.locked():
        return folder.begin(SPEC, Image("0" * 16, Path("/cache/0")), Accelerator.TCG).token


@contextmanager
def answering(folder: LabFolder, **answers: Answer) -> Iterator[None]:
    """A lab of switches alone whose process answers."""
    token = begin(folder)
    for name in ("host1", "target1"):  # as `open_site` wants them
        (folder.machines / name).mkdir()
        stored = {"spec": {"name": name}, "token": "", "host_key": ""}
        (folder.machines / name / "machine.json").write_text(json.dumps(stored), encoding="utf-8")
    server = ControlServer(folder.path / "control", {name.replace("_", "-"): one for name, one in answers.items()})
    server.start()
    try:
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", f"fabric-{token}"]) as process:
            folder.note_process(process.pid, token)
            yield
            process.kill()
    finally:
        server.stop()


# Help.


@pytest.mark.parametrize("words", [(verb,) for verb in VERBS] + [("fault", kind) for kind in FAULTS])
def test_help_of_each_verb_has_an_example(words: Sequence[str]) -> None:
    code, text = lab(*words, "--help")
    assert code == 0
    assert f"fabricctl lab {' '.join(words)}" in text


def test_packets_that_can_be_named_are_those_that_the_wiring_knows() -> None:
    assert {one.value for one in PacketName} == {one.value for one in PacketKind}


# Wrong input.


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("up", "--topology", "inkast"), 2, "incast"),
        (("up", "--topology", "incast", "-i", "."), 2, "--topology"),
        (("up", "-i", "/nonexistent"), 3, "/nonexistent"),
        (("pcap", "leaf1", "-o", "x.pcap"), 2, "SWITCH:PORT"),
        (("fault", "drop", ":Ethernet0"), 2, "SWITCH:PORT"),
        (("fault", "storm", "leaf1:Ethernet0", "--seconds", "inf"), 2, "inf"),
        (("pcap", "leaf1:Ethernet0", "-o", "x.pcap", "--seconds", "inf"), 2, "inf"),
        (("pcap", "leaf1:Ethernet0", "-o", "x.pcap"), 4, "no lab runs here"),
        (("counters",), 4, "fabricctl lab up"),
        (("fault", "list"), 4, "fabricctl lab up"),
        (("fault", "clear"), 4, "fabricctl lab up"),
        (("ssh", "host1"), 4, "fabricctl lab up"),
        (("console", "host1", "--log"), 4, "no such machine"),
        (("console", "../lab", "--log"), 4, "no such machine"),
    ],
)
def test_wrong_input_has_its_exit_code_and_says_what_helps(words: Sequence[str], code: int, told: str) -> None:
    got, text = lab(*words)
    assert (got, told in text) == (code, True), text
    error = document(code, *words)
    assert told in " ".join(str(part) for part in error.values())


@pytest.mark.parametrize(
    "words",
    [
        ("up", "--rate", "0"),
        ("fault", "drop", "leaf1:Ethernet0", "--packet", "jumbo"),
        ("fault", "drop", "leaf1:Ethernet0", "--nth", "0"),
        ("fault", "storm", "leaf1:Ethernet0", "--seconds", "1", "--priority", "8"),
        ("fault", "delay", "leaf1:Ethernet0"),
    ],
)
def test_option_that_cannot_be_is_a_usage_error(words: Sequence[str]) -> None:
    assert lab(*words)[0] == 2


# No lab.


def test_nothing_is_no_finding_and_nothing_to_remove(folder: LabFolder) -> None:
    assert lab("status") == (0, f"no lab in {folder.path}\n")
    assert document(0, "status")["state"] == "none"
    assert lab("down") == (0, "there was no lab\n")
    assert document(0, "down") == []
    assert not folder.path.exists()


def test_folder_of_somebody_else_is_no_lab(folder: LabFolder) -> None:
    (folder.path / "machines").mkdir(parents=True)
    assert lab("down") == (0, "there was no lab\n")
    assert (folder.path / "machines").is_dir()


# Dead labs.


def test_dead_lab_is_a_finding_until_it_is_taken_down(folder: LabFolder) -> None:
    begin(folder)
    code, text = lab("status")
    assert code == 1
    assert "leaf1      sonic   DEAD" in text
    assert "fabricctl lab down" in text
    assert document(1, "status")["state"] == "dead"
    assert lab("counters")[0] == 4
    assert lab("down") == (0, "removed: leaf1, leaf2\n")
    assert lab("status")[0] == 0


def test_lab_of_another_version_is_told_with_the_way_out(folder: LabFolder) -> None:
    begin(folder)
    (folder.path / "lab.json").write_text('{"schema": 2}', encoding="utf-8")
    code, text = lab("status")
    assert code == 1
    assert "lab.json" in text
    assert "fabricctl lab down" in text
    assert document(1, "status")["state"] == "unreadable"
    assert "fabricctl lab down" in document(4, "counters")["remedy"]
    assert lab("down") == (0, "removed: lab.json\n")
    assert not folder.path.exists()


def test_lab_that_is_coming_up_is_told(folder: LabFolder) -> None:
    begin(folder)
    with folder.locked():
        code, text = lab("status")
        assert (code, "changing" in text, "dead" in text) == (0, True, False)
        assert lab("down")[0] == 4
        assert "fabricctl lab status" in document(4, "counters")["remedy"]


# A lab whose process answers.


def test_fault_goes_to_the_lab_as_it_was_typed(folder: LabFolder) -> None:
    asked: list[Json] = []

    def add(question: Question) -> Json:
        asked.append(dict(question.arguments))
        return 7

    with answering(folder, fault_add=add):
        code, text = lab("fault", "drop", "leaf1:Ethernet8", "--packet", "ack", "--nth", "3", "--every")
        assert (code, "fabricctl lab fault clear 7" in text) == (0, True)
        assert document(0, "fault", "storm", "leaf2:Ethernet1/1", "--seconds", "0.5") == {"number": 7}
    assert asked == [
        {"kind": "drop", "switch": "leaf1", "port": "Ethernet8", "packet": "ack", "nth": 3, "every": True},
        {"kind": "storm", "switch": "leaf2", "port": "Ethernet1/1", "priority": 3, "duration_ms": 500},
    ]


def test_refusal_of_the_lab_is_told_whole(folder: LabFolder) -> None:
    with answering(folder):
        error = document(4, "fault", "list")
    assert error["what"] == "the lab knows no such verb"
    assert error["found"] == "fault-list"


def test_capture_that_cannot_be_written_is_told_before_it_begins(folder: LabFolder, tmp_path: Path) -> None:
    def capture(question: Question) -> Json:
        raise AssertionError(question.arguments)

    with answering(folder, capture=capture):
        for place in (tmp_path, tmp_path / "none" / "x.pcap", tmp_path / ("x" * 300)):
            code, text = lab("pcap", "leaf1:Ethernet0", "-o", str(place))
            assert (code, "cannot be written" in text) == (5, True), text


def test_capture_of_no_port_leaves_no_file(folder: LabFolder, tmp_path: Path) -> None:
    def capture(_: Question) -> Json:
        raise ValueError("there is no such port")

    with answering(folder, capture=capture):
        assert lab("pcap", "leaf1:Ethernet9", "-o", str(tmp_path / "x.pcap"))[0] == 4
    assert not (tmp_path / "x.pcap").exists()


def test_console_of_a_machine_that_has_printed_nothing_is_empty(folder: LabFolder) -> None:
    with answering(folder):
        assert document(0, "console", "host1") == {"name": "host1", "log": ""}
        assert lab("console", "host1")[0] == 4  # no terminal here


def test_logins_at_the_same_time_do_not_share_a_password(
    folder: LabFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ssh asks for its password only after the second has begun."""
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text('#!/bin/sh\nprintf %s "$SSH_ASKPASS"\n', encoding="utf-8")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    begin(folder)
    names = ("leaf1", "leaf2")
    folder.write_logins({name: Login("127.0.0.1", 1, "admin", "/k", password=f"of-{name}") for name in names})
    askers = [run_ssh(name, ("true",), captured=True).stdout for name in names]
    said = [subprocess.run([one], capture_output=True, text=True, check=True).stdout.strip() for one in askers]
    assert said == ["of-leaf1", "of-leaf2"]
    assert lab("down")[0] == 0
    assert not folder.path.exists()


@pytest.mark.skipif(find("ssh") is None, reason="the program ssh is missing: openssh-client")
def test_ssh_reads_paths_with_blanks_and_percents_as_they_are() -> None:
    login = Login("127.0.0.1", 2222, "root", "/lab/a b%d/known", private_key="/lab/a b%d/login")
    words = ssh_words(login, ())
    said = subprocess.run([words[0], "-G", *words[1:]], capture_output=True, text=True, check=True).stdout
    assert "userknownhostsfile /lab/a b%d/known\n" in said
    assert (
        "identityfile /lab/a b%%d/login\n" in said
    )  # ssh prints it as it was given, and makes % of %% when it opens it
