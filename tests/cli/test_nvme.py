"""`fabricctl target serve` and `fabricctl nvme` as a shell sees them: processes of their own, real TCP on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fabric.cli.amounts import byte_count, fault_of
from fabric.cli.app import app
from fabric.engine.transport.faults import FaultKind
from fabric.policy import ShardPolicy, ShardProfile, profile_to_text

RUNNER = CliRunner()
PROGRAM = (sys.executable, "-c", "from fabric.cli import main; main()")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}


@contextmanager
def serving(*options: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """A target in a process of its own, and what it said of itself."""
    command = [*PROGRAM, "target", "serve", "--json", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    )
    try:
        assert process.stdout is not None
        lines = ""
        while not lines.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.communicate()
            lines += line
        yield json.loads(lines), process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def wait_for_connections(url: str) -> None:
    """Waits until someone else has opened I/O queues of the target, and a little longer."""
    port = int(url.partition("127.0.0.1:")[2].partition("/")[0])
    wanted = f"0100007F:{port:04X}"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        table = Path("/proc/net/tcp").read_text(encoding="ascii")
        if sum(line.split()[2] == wanted and line.split()[3] == "01" for line in table.splitlines()[1:]) >= 5:
            time.sleep(0.5)
            return
        time.sleep(0.05)
    raise AssertionError("nobody connected")


def nvme(*argv: str) -> tuple[int, str]:
    result = RUNNER.invoke(app, ["nvme", *argv])
    return result.exit_code, result.output


def document(*argv: str) -> Any:
    code, text = nvme(*argv, "--json")
    assert code == 0, text
    return json.loads(text)


def test_a_file_goes_to_a_target_and_comes_back(tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "in").write_bytes(data)
    with serving("--size", "8MiB") as (told, _process):
        url = told["url"]
        assert told == {"url": url, "bytes": 8 << 20, "shaped": False}
        wrote = document("write", url, str(tmp_path / "in"), "--lba", "512", "--overwrite")
        assert wrote["bytes"] == len(data)
        seen = document("read", url, "--lba", "512", "--bytes", "3MiB", "-o", str(tmp_path / "out"))
        assert seen["sha256"] == sha256(data).hexdigest()
        assert (tmp_path / "out").read_bytes() == data

        piped = subprocess.run(
            [*PROGRAM, "nvme", "read", url, "--lba", "512", "--bytes", "4096", "-o", "-"],
            capture_output=True,
            env=ENVIRONMENT,
            check=True,
        )
        assert piped.stdout == data[:4096]
        assert nvme("read", url)[1].startswith("read 4096 bytes from block 0: sha256 ")


def test_discover_and_id_say_what_is_there() -> None:
    with serving("--size", "1MiB", "--nqn", "nqn.2026-11.io.example:kv") as (told, _process):
        place = told["url"].rpartition("/")[0]
        port = place.rpartition(":")[2]
        entry = {"transport": "tcp", "address": "127.0.0.1", "service": port, "subnqn": "nqn.2026-11.io.example:kv"}
        assert document("discover", place) == [entry]
        assert nvme("discover", place) == (0, f"tcp 127.0.0.1 {port} nqn.2026-11.io.example:kv\n")

        found = document("id", told["url"], "--queues", "2")
        assert (found["queues"], found["bytes"], found["block_bytes"], found["namespaces"]) == (2, 1 << 20, 512, [1])
        assert found["model"] == "fabricctl target"
        assert "mdts_bytes" in nvme("id", told["url"])[1]


def test_bench_measures_each_size_on_its_queues_and_checks_every_byte() -> None:
    with serving("--size", "8MiB") as (told, _process):
        found = document(
            "bench", told["url"], "--size", "4k,64k", "--readers", "4", "--queues", "2", "--seconds", "0.3", "--verify"
        )
        assert (found["model"], found["queues"]) == (False, 2)
        assert [row["bytes"] for row in found["rows"]] == [4096, 65536]
        for row in found["rows"]:
            assert (row["op"], row["wrong"], row["failures"], row["complete"]) == ("read", 0, {}, True)
            assert row["requests"] > 0
            assert row["mib_per_s"] == pytest.approx(row["requests"] * row["bytes"] / row["seconds"] / (1 << 20))
            assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["highest_ns"]
            assert row["cpu_s_per_gib"] > 0
            assert sum(one["transfers"] for one in row["by_queue"]) >= row["requests"]
            assert [one["queue"] for one in row["by_queue"]] == [1, 2]

        options = (
            "--size",
            "4k",
            "--seconds",
            "0.2",
            "--write",
            "--force",
            "--verify",
            "--span",
            "8k",
            "--readers",
            "2",
        )
        code, text = nvme("bench", told["url"], *options)
        assert code == 0, text
        assert "MiB/s" in text
        assert "by queue" in text
        assert not document("read", told["url"])["sha256"].startswith("ad7facb2586fc6e9")  # of 4096 zeroes


def test_bench_writes_nothing_without_force_and_stays_within_its_span() -> None:
    with serving("--size", "1MiB") as (told, _process):
        zeroes = document("read", told["url"], "--bytes", "1MiB")["sha256"]
        code, text = nvme("bench", told["url"], "--write", "--seconds", "0.1")
        assert (code, "--force" in text) == (2, True)
        assert document("read", told["url"], "--bytes", "1MiB")["sha256"] == zeroes

        options = ("--size", "4k", "--seconds", "0.1", "--lba", "512", "--span", "64k", "--readers", "2")
        assert nvme("bench", told["url"], "--write", "--force", *options)[0] == 0
        assert document("read", told["url"], "--bytes", "256KiB")["sha256"] == sha256(bytes(256 << 10)).hexdigest()
        rest = document("read", told["url"], "--lba", "640", "--bytes", "704KiB")["sha256"]
        assert rest == sha256(bytes(704 << 10)).hexdigest()


def test_bench_shows_what_it_measured_when_ctrl_c_comes() -> None:
    with serving("--size", "1MiB", "--latency-us", "500") as (told, _process):
        command = [*PROGRAM, "nvme", "bench", told["url"], "--size", "4k,8k", "--seconds", "60", "--json"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
        )
        wait_for_connections(told["url"])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        (row,) = json.loads(out)["rows"]
        assert row["complete"] is False
        assert row["bytes"] == 4096


def test_a_bench_of_a_target_that_fails_says_so() -> None:
    with serving("--size", "1MiB", "--fault", "status=0.2") as (told, _process):
        code, text = nvme("bench", told["url"], "--size", "4k", "--seconds", "0.3", "--write", "--force", "--json")
        (row,) = json.loads(text)["rows"]
        assert (code, set(row["failures"]) != set()) == (1, True)
    with serving("--size", "1MiB", "--fault", "drop") as (told, _process):
        code, text = nvme("bench", told["url"], "--size", "4k", "--seconds", "20", "--timeout", "0.5")
        assert (code, "deadline" in text) == (4, True)


def test_digests_in_plain_python_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("--size", "1MiB") as (told, _process):
        assert "warning" not in nvme("read", told["url"] + "&digest=header,data")[1]
        monkeypatch.setitem(sys.modules, "crc32c", None)
        assert "warning" not in nvme("read", told["url"])[1]
        for verb in (("read",), ("bench", "--size", "4k", "--seconds", "0.1")):
            code, text = nvme(verb[0], told["url"] + "&digest=data", *verb[1:])
            assert (code, text.count("warning: digests are computed in plain Python")) == (0, 1)


def test_bench_takes_a_policy_from_a_file(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(profile_to_text(ShardProfile(ShardPolicy(queues=3, depth=7))), encoding="utf-8")
    options = ("--size", "4k", "--seconds", "0.1", "--policy", str(profile))
    found = document("bench", "memory://?bytes=1048576", *options)
    assert (found["queues"], found["depth"], found["model"]) == (3, 7, True)
    assert document("bench", "memory://?bytes=1048576", *options, "--queues", "2")["queues"] == 2
    assert "a model's result" in nvme("bench", "memory://?bytes=1048576", *options)[1]
    profile.write_text("{}", encoding="utf-8")
    assert nvme("bench", "memory://", *options)[0] == 3


def test_ctrl_c_ends_the_target_well_and_the_file_keeps_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k" * 8192)
    disk = tmp_path / "disk"
    with serving("--file", str(disk), "--size", "1MiB") as (told, process):
        assert nvme("write", told["url"], str(tmp_path / "in"), "--overwrite")[0] == 0
    assert process.returncode == 0
    assert disk.read_bytes() == b"k" * 8192 + bytes((1 << 20) - 8192)

    with serving("--file", str(disk), "--read-only") as (told, _process):
        assert told["bytes"] == 1 << 20
        code, text = nvme("write", told["url"], str(tmp_path / "in"), "--overwrite")
        assert (code, "write protected" in text) == (4, True)


def test_a_shaped_target_says_that_it_is_a_model() -> None:
    shapes = (
        ("--latency-us", "50", "--fault", "drop=0"),
        ("--latency-us", "50", "--latency-kind", "lognormal", "--latency-spread", "0.2", "--service-us", "20"),
        ("--queue-mbit", "800", "--link-mbit", "900"),
    )
    for shape in shapes:
        with serving("--size", "1MiB", *shape) as (told, _process):
            assert told["shaped"] is True
            assert nvme("read", told["url"])[0] == 0


def test_a_target_that_answers_nothing_is_a_failure_in_time() -> None:
    with serving("--size", "1MiB", "--fault", "drop") as (told, _process):
        code, text = nvme("read", told["url"], "--timeout", "2")
        assert (code, "deadline" in text) == (4, True)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["read", "http://x"], 2, "nvme+tcp://HOST:PORT/NQN"),
        (["read", "memory://", "--bytes", "100"], 2, "whole number of blocks"),
        (["read", "memory://", "--bytes", "much"], 2, "no number of bytes"),
        (["read", "memory://", "--lba", "200000"], 2, "blocks outside"),
        (["read", "memory://", "-o", "-", "--json"], 2, "both want standard output"),
        (["read", "memory://", "-o", "/no/such/folder/file"], 5, "cannot be opened"),
        (["write", "memory://", "/no/such/file", "--overwrite"], 5, "cannot be opened"),
        (["write", "memory://", "/dev/null"], 2, "--overwrite"),
        (["write", "memory://", "/dev/null", "--overwrite"], 2, "whole number of blocks"),
        (["bench", "memory://", "--size", "100"], 2, "whole number of blocks"),
        (["bench", "memory://", "--size", "4k", "--lba", "131072"], 2, "no room"),
        (["bench", "memory://", "--size", "some"], 2, "no number of bytes"),
        (["bench", "memory://", "--policy", "/no/such/file"], 5, "profile cannot be read"),
        (["discover", "memory://"], 2, "discovery service"),
        (["discover", "nvme+tcp://127.0.0.1:1", "--timeout", "5"], 4, "ECONNREFUSED"),
        (["id", "nvme+tcp://127.0.0.1:1/nqn.x"], 4, "nothing listens there"),
        (["id", "nvme+tcp://127.0.0.1:1"], 2, "names no subsystem"),
        (["id", "file:///no/such/file"], 5, "cannot be opened"),
    ],
)
def test_what_cannot_be_done_says_why_and_who_must_act(argv: list[str], code: int, words: str) -> None:
    found, text = nvme(*argv)
    assert (found, words in " ".join(text.split())) == (code, True), text


def test_id_of_a_file_names_no_controller(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    code, text = nvme("id", (tmp_path / "disk").as_uri())
    if code == 5:  # a file system without O_DIRECT says so
        assert "O_DIRECT" in text
        return
    assert "controller" not in text
    assert "4096" in text


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 2, "cannot be a namespace"),
        (["--size", "100"], 2, "cannot be a namespace"),
        (["--size", "1MiB", "--fault", "flood"], 2, "is no fault"),
        (["--size", "1MiB", "--fault", "drop=2"], 2, "0 to 1"),
        (["--size", "1MiB", "--listen", "localhost"], 2, "no IP address"),
        (["--size", "1MiB", "--listen", "192.0.2.1"], 4, "no such address"),
        (["--file", "/no/such/file"], 5, "cannot be served"),
        (["--file", "/no/such/folder/file", "--size", "1MiB"], 5, "cannot be served"),
    ],
)
def test_a_target_that_cannot_be_served_says_why(options: list[str], code: int, words: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    result = RUNNER.invoke(app, ["target", "serve", *options])
    assert signal.getsignal(signal.SIGINT) is before
    assert (result.exit_code, words in " ".join(result.output.split())) == (code, True), result.output
    assert ("warning: whoever reaches" in result.output) is ("--listen" in options)


def test_a_file_of_another_length_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1024))
    result = RUNNER.invoke(app, ["target", "serve", "--file", str(tmp_path / "disk"), "--size", "2048"])
    assert (result.exit_code, "another length" in result.output) == (2, True)


def test_amounts() -> None:
    assert [byte_count(one) for one in ("4096", "64KiB", "64k", "1 MiB", "2G", "3b")] == [
        4096,
        65536,
        65536,
        1 << 20,
        2 << 30,
        3,
    ]
    with pytest.raises(typer.BadParameter):
        byte_count("-1")
    fault = fault_of("delay=0.5", 20)
    assert (fault.kind, fault.probability, fault.delay_ns) == (FaultKind.DELAY, 0.5, 20_000_000)
