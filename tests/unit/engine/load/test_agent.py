"""The agent as a process over pipes: answers, waits its turn, stops, and ends with its input and everything closed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fabric.engine.client import TargetSpec, soft_target
from fabric.engine.load import JobResult, Stream
from fabric.lab.alarms import WallClock
from fabric.serial import from_json, to_json
from tests.unit.engine.load.rig import POLICY, Disk

pytestmark = pytest.mark.traces_processes

MIB = 1 << 20


class Talk:
    """An agent that runs."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fabric.engine.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.hear()["event"] == "ready"

    def say(self, **order: Any) -> None:
        self.raw(json.dumps(order).encode() + b"\n")

    def raw(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def until(self, *events: str) -> dict[str, Any]:
        while (told := self.hear())["event"] not in events:
            pass
        return told

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(20)


@pytest.fixture(name="talk")
def _talk() -> Iterator[Talk]:
    talk = Talk()
    yield talk
    talk.process.kill()
    with talk.process:  # closes its pipes
        pass


@pytest.fixture(name="resident", scope="module")
def _resident() -> Iterator[Talk]:
    """Yields one agent for all tests that leave it as it was: a process takes its time to start."""
    talk = Talk()
    yield talk
    assert talk.end() == 0
    with talk.process:
        pass


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "disk")


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Yields the URL of a soft target over NVMe/TCP, served by a thread."""
    done = threading.Event()
    with soft_target(TargetSpec(path=path)) as target:
        thread = threading.Thread(target=target.serve, args=(WallClock(), done.is_set))
        thread.start()
        try:
            yield target.url
        finally:
            done.set()
            thread.join(20)


def prepare(talk: Talk, stream: Stream, blocks: int) -> dict[str, Any]:
    talk.say(
        do="prepare",
        id=1,
        run_id=0xFEED,
        stream=to_json(stream),
        region={"first_lba": 0, "blocks": blocks},
        consent=True,
    )
    return talk.until("prepared", "error")


def test_over_nvme_tcp_it_prepares_verifies_and_finds_one_changed_byte(talk: Talk, disk: Disk) -> None:
    with served(disk.path) as url:
        stream = Stream("s1", url, POLICY, tos=104)
        talk.say(do="describe", id=0, stream=to_json(stream))
        assert talk.hear()["description"]["bytes"] == MIB
        assert prepare(talk, stream, MIB // 512)["bytes"] == MIB
        wanted = {**_json(disk), "streams": [to_json(stream)], "region": {"first_lba": 0, "blocks": MIB // 512}}
        talk.say(do="run", id=2, job={**wanted, "write_share": 0.5, "seconds": 2.0})
        clean = from_json(JobResult, talk.until("result", "error")["result"])
        assert min(clean.streams[0].reads, clean.streams[0].writes) > 0
        assert (clean.streams[0].errors, clean.streams[0].flaw_count) == ((), 0)
        disk.damage(MIB // 2 + 1234, b"\x00\x01")
        talk.say(do="run", id=3, job={**wanted, "size_bytes": MIB, "readers": 1})
        told = talk.until("result", "error")
        found = from_json(JobResult, told["result"]).streams[0]
        assert told["id"] == 3
        assert {(one.lba, one.offset_in_sector, one.kind) for one in found.flaws} <= {
            (MIB // 2 // 512, 1234, "wrong"),
            (MIB // 2 // 512, 1235, "wrong"),
        }
        assert found.flaws
    assert talk.end() == 0


def _json(disk: Disk) -> dict[str, Any]:
    made = to_json(disk.job())
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello\n", "no JSON object"),
        (b"\xff\xfe\n", "no JSON object"),
        (b"[1]\n", "no JSON object"),
        (b'{"do": "dance", "id": 4}\n', "nothing that can be done"),
        (b'{"do": "run", "id": 4, "job": {"name": 3}}\n', "$.job.name: found int, expected str"),
        (b'{"do": "run", "id": 4}\n', "expected Job"),
    ],
)
def test_a_bad_line_is_an_error_and_it_goes_on(resident: Talk, line: bytes, words: str) -> None:
    resident.raw(line)
    told = resident.hear()
    assert told["event"] == "error"
    assert words in told["what"]
    assert told["id"] in {None, 4}
    resident.say(do="ping", id=5)
    assert resident.hear()["id"] == 5


def test_an_endless_line_is_cut_off_and_it_goes_on(resident: Talk) -> None:
    resident.raw(b"x" * (5 << 20) + b"\n")
    assert resident.hear()["event"] == "error"
    resident.say(do="ping", id=5)
    told = resident.hear()
    assert (told["event"], told["id"]) == ("pong", 5)


def test_a_ping_is_answered_while_a_job_runs_and_a_stop_ends_it(talk: Talk, disk: Disk) -> None:
    talk.say(do="run", id=1, job={**_json(disk), "check": False, "seconds": 600.0})
    assert talk.hear()["event"] == "started"
    talk.say(do="ping", id=2)
    assert talk.until("pong")["id"] == 2
    talk.say(do="stop")
    told = talk.until("result")
    assert told["id"] == 1
    assert not told["result"]["is_complete"]
    assert talk.end() == 0


def test_jobs_wait_their_turn_and_a_stop_drops_those_that_wait(resident: Talk, disk: Disk) -> None:
    short = {**_json(disk), "check": False, "seconds": 0.05}
    resident.say(do="run", id=1, job=short)
    resident.say(do="run", id=2, job=short)
    assert [resident.until("result")["id"] for _ in range(2)] == [1, 2]
    resident.say(do="run", id=3, job={**short, "seconds": 600.0})
    assert resident.until("started")["id"] == 3
    resident.say(do="run", id=4, job=short)
    resident.say(do="stop")
    ends = [resident.until("result", "error") for _ in range(2)]
    assert {(one["id"], one["event"]) for one in ends} == {(3, "result"), (4, "error")}


def test_the_end_of_its_input_ends_a_job_soon(talk: Talk, disk: Disk) -> None:
    talk.say(do="run", id=1, job={**_json(disk), "check": False, "seconds": 600.0})
    assert talk.hear()["event"] == "started"
    assert talk.end() == 0


def test_the_end_of_its_input_ends_a_connection_that_does_not_come_about(talk: Talk, disk: Disk) -> None:
    """A stream may take OPEN_S to open, longer than `end` waits."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nvme+tcp://127.0.0.1:{silent.getsockname()[1]}/nqn.2026-01.example:none"
        job = {**_json(disk), "streams": [to_json(Stream("s", url))], "check": False}
        talk.say(do="run", id=1, job=job)
        assert talk.hear()["event"] == "started"
        connection, _ = silent.accept()
        with connection:
            assert talk.end() == 0


@pytest.mark.slow
def test_sigterm_ends_it_with_its_connections_closed(talk: Talk, disk: Disk) -> None:
    with served(disk.path) as url:
        job = {**_json(disk), "streams": [to_json(Stream("s", url))], "check": False, "seconds": 600.0}
        talk.say(do="run", id=1, job={**job, "region": {"first_lba": 0, "blocks": 2048}})
        assert talk.until("progress")["streams"][0]["requests"] > 0
        os.kill(talk.process.pid, signal.SIGTERM)
        assert talk.process.wait(20) == 128 + signal.SIGTERM
    assert talk.process.stderr
    assert talk.process.stderr.read() == b""


def test_nothing_third_party_is_loaded() -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "import fabric.engine.load.agent\n"
        "names = {one.partition('.')[0] for one in set(sys.modules) - before}\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fabric"]
