"""A command that runs on, over real SSH: lines both ways, its end, and what happens when either side is gone."""

import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.errors import ConnectError
from fabric.lab.alarms import WallClock
from fabric.remote.process import Process
from fabric.remote.ssh import SshClient
from tests.dialogue.shell_server import ShellServer, shell_server


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[ShellServer]:
    with shell_server(tmp_path) as server:
        yield server


@pytest.fixture(name="client")
def _client(server: ShellServer) -> Iterator[SshClient]:
    client = SshClient(server.target("gpu1"), clock=WallClock())
    client.open()
    yield client
    client.close()


def wait_for(process: Process, count: int) -> list[str]:
    """Returns at least so many lines, fewer at the end."""
    found: list[str] = []
    end = time.monotonic() + 10
    while len(found) < count and not process.is_ended and time.monotonic() < end:
        select.select([process], [], [], 1)
        found += process.lines()
    return found


def test_lines_go_in_and_out_while_it_runs(client: SshClient) -> None:
    process = client.open_process(["sh", "-c", 'while read -r line; do echo "got $line"; done; exit 7'])
    for word in ("one", "two words", "ü"):
        process.write_line(word)
        assert wait_for(process, 1) == [f"got {word}"]
    assert process.status is None
    assert not process.is_ended
    assert process.lines() == []
    assert process.close() == 7


def test_what_it_prints_before_its_end_is_not_lost(client: SshClient) -> None:
    process = client.open_process(["sh", "-c", "seq 1 20000; printf last; echo why >&2; exit 3"])
    found = wait_for(process, 20001)
    assert found == [*(str(one) for one in range(1, 20001)), "last"]
    assert process.close() == 3
    assert (process.status, process.errors) == (3, "why\n")


def test_the_end_of_its_input_ends_it(client: SshClient, server: ShellServer) -> None:
    process = client.open_process(["cat"])
    assert process.close() == 0
    assert server.statuses == [0]


def test_a_command_that_does_not_end_is_let_go_in_time(client: SshClient) -> None:
    process = client.open_process(["sleep", "1"])
    begin = time.monotonic()
    assert process.close(timeout_s=0.1) is None
    assert time.monotonic() - begin < 0.9


def test_a_lost_session_is_an_end_without_a_status(client: SshClient, server: ShellServer) -> None:
    process = client.open_process(["cat"])
    server.cut()
    wait_for(process, 1)
    assert process.is_ended
    assert process.status is None
    with pytest.raises(ConnectError, match="writing to cat failed"):
        process.write_line("x")
    with pytest.raises(ConnectError, match="starting cat failed"):
        client.open_process(["cat"])


def test_several_run_on_one_session(client: SshClient) -> None:
    two = [client.open_process(["cat"]) for _ in range(2)]
    for number, one in enumerate(two):
        one.write_line(str(number))
    assert [wait_for(one, 1) for one in two] == [["0"], ["1"]]
    assert [one.close() for one in two] == [0, 0]


def test_only_the_tail_of_its_errors_is_kept(client: SshClient) -> None:
    process = client.open_process(["sh", "-c", "seq 1 20000 >&2"])
    wait_for(process, 1)
    assert len(process.errors) <= 8192
    assert process.errors.endswith("\n20000\n")
    process.close()
