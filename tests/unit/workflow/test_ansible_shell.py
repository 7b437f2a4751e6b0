"""Commands as shell lines, executed by a real shell; and what Ansible may say instead."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.workflow import host_entry
from fabric.workflow.ansible_shell import AnsibleClient


def shell(line: str, data: bytes) -> Mapping[str, object]:
    done = subprocess.run(["sh", "-c", line], input=data, capture_output=True, check=False)
    return {
        "rc": done.returncode,
        "stdout": done.stdout.decode(errors="replace"),
        "stderr": done.stderr.decode(errors="replace"),
    }


@pytest.fixture
def client() -> AnsibleClient:
    return AnsibleClient(shell, "gpu1")


def test_words_and_outputs_come_through_unchanged(client: AnsibleClient) -> None:
    words = ["it's", 'a "word"', "two\nlines", "$HOME `id` \\ {braces} %s", ""]
    assert client.exec(["printf", "%s|", *words]).stdout == "".join(f"{word}|" for word in words)
    assert client.exec(["cat"], stdin=b"no newline").stdout == "no newline"
    assert client.exec(["cat"]).stdout == ""


@pytest.mark.parametrize("status", [0, 1, 127, 254, 255])
def test_every_exit_status_is_the_commands(client: AnsibleClient, status: int) -> None:
    done = client.exec(["sh", "-c", f"echo err >&2; exit {status}"])
    assert (done.status, done.stdout, done.stderr) == (status, "", "err\n")


def test_a_command_that_does_not_end_is_ended(client: AnsibleClient) -> None:
    with pytest.raises(HostError, match=r"did not end within 0.1 s"):
        client.exec(["sleep", "10"], timeout_s=0.1)
    assert client.lost == ""


def test_a_line_that_did_not_run_is_no_result() -> None:
    answer = {"rc": 1, "stdout": "", "stderr": "sudo: a password is required"}
    client = AnsibleClient(lambda *_: answer, "gpu1")
    with pytest.raises(HostError, match="did not run") as caught:
        client.exec(["true"])
    assert "exit 1: sudo: a password is required" in str(caught.value)
    assert "ansible -i" in caught.value.remedy
    assert client.lost == ""


def test_a_lost_host_stays_lost_and_a_refusal_is_none() -> None:
    refused = AnsibleClient(lambda *_: {"refused": "Missing sudo password"}, "gpu1")
    with pytest.raises(HostError, match="did not run"):
        refused.exec(["true"])
    assert refused.lost == ""
    lost = AnsibleClient(lambda *_: {"lost": "No route to host"}, "gpu1")
    with pytest.raises(HostError, match="no connection"):
        lost.exec(["true"])
    assert lost.lost == "No route to host"


@pytest.mark.parametrize("given", [{}, {"run": ""}, {"run": "nowhere"}])
def test_without_a_run_folder_nothing_is_contacted(given: dict[str, object], tmp_path: Path) -> None:
    def never(line: str, data: bytes) -> Mapping[str, object]:
        raise AssertionError(line)

    answer = host_entry("gpu1", {"part": "nic", **given}, never, check_mode=False)
    assert answer["failed"] is True
    assert "-e run=RUN" in str(answer["msg"])
