"""The journal: what a killed run leaves, and what does not get in."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.errors import FabricError
from fabric.push.journal import Journal, file_name, private_folder, read, unfinished, write_private


def journal(state_dir: Path, device: str = "leaf1") -> Journal:
    return Journal(state_dir, run="r1", device=device, nos="eos", transaction="t1")


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    one = journal(tmp_path / "state")
    one.write(state="staging", step="stage", phase="begin", unix_s=1.5)
    one.write(state="staging", step="stage", phase="failed", unix_s=2.5, message="no\nway")

    first, second = read(one.path)

    assert (first.device, first.nos, first.transaction, first.run) == ("leaf1", "eos", "t1", "r1")
    assert (first.state, first.step, first.phase, first.unix_s) == ("staging", "stage", "begin", 1.5)
    assert second.message == "no\nway"


def test_files_are_for_the_owner_only(tmp_path: Path) -> None:
    one = journal(tmp_path / "state")
    one.write(state="opening", step="open", phase="begin", unix_s=0.0)
    one.keep_before("secret sha512 x")

    for path in (one.path, one.before_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (one.path.parent, one.path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "device", ["../../etc/passwd", "..", ".", "/etc/passwd", "a/b", "x" * 300, "a\nb", "~", ".hidden"]
)
def test_a_device_name_cannot_leave_the_folder(tmp_path: Path, device: str) -> None:
    one = journal(tmp_path / "state", device)
    one.write(state="opening", step="open", phase="begin", unix_s=0.0)

    assert one.path.parent == tmp_path / "state" / "r1"
    assert read(one.path)[0].device == device
    assert not file_name(device).startswith(".")


def test_two_devices_have_two_files(tmp_path: Path) -> None:
    assert file_name("a/b") != file_name("a_b") != file_name("a%2Fb")
    assert file_name("x" * 200 + "1") != file_name("x" * 200 + "2")


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    one = journal(tmp_path / "state")
    one.write(state="opening", step="open", phase="begin", unix_s=0.0)
    with one.path.open("a") as file:
        file.write('{"schema": 1, "run": "r1", "dev')

    assert [entry.step for entry in read(one.path)] == ["open"]


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"schema": 2}', '{"schema": 1, "unknown": 1}', '{"schema": 1}'])
def test_a_broken_line_before_the_last_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"{line}\n")

    with pytest.raises(FabricError, match=r"x\.jsonl:1: no journal line"):
        read(path)


def test_a_missing_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match="cannot be read"):
        read(tmp_path / "none.jsonl")


def test_a_link_in_place_of_the_journal_is_not_followed(tmp_path: Path) -> None:
    one = journal(tmp_path / "state")
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    one.path.symlink_to(victim)
    one.before_path.symlink_to(victim)

    with pytest.raises(FabricError, match="cannot be written"):
        one.write(state="opening", step="open", phase="begin", unix_s=0.0)
    one.keep_before("ours")

    assert victim.read_text() == "theirs"
    assert one.before_path.read_text() == "ours"


def test_a_full_disk_is_an_error_that_says_so(tmp_path: Path) -> None:
    target = tmp_path / "before"
    (tmp_path / "before.new").mkdir()  # what stands in the way cannot be unlinked

    with pytest.raises(FabricError, match="cannot be written"):
        write_private(target, "text")


def test_a_state_directory_under_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FabricError, match="cannot be written"):
        private_folder(tmp_path / "file" / "state")


def test_runs_that_ended_are_not_unfinished(tmp_path: Path) -> None:
    ended, killed = journal(tmp_path / "state", "leaf1"), journal(tmp_path / "state", "leaf2")
    for one in (ended, killed):
        one.write(state="committing", step="commit", phase="begin", unix_s=0.0)
    ended.write(state="committed", step="end", phase="committed", unix_s=1.0)

    ((path, entry),) = unfinished(tmp_path / "state")

    assert path == killed.path
    assert (entry.device, entry.step, entry.phase) == ("leaf2", "commit", "begin")


# A run in a process of its own, killed as soon as it has printed that it is inside the verb.
KILLED = """
import sys
from pathlib import Path
from dataclasses import replace
from tests.unit.push.bench import bench
from fabric.push.sessions.memory import MemorySession

class Hanging(MemorySession):
    def _do(self, verb, work):
        if verb == sys.argv[2]:
            print(verb, flush=True)
            sys.stdin.read()
        return super()._do(verb, work)

it = bench(Path(sys.argv[1]))
it.push(replace(it.job(), make_session=lambda: Hanging(it.device)))
"""


@pytest.mark.parametrize(("verb", "step"), [("stage", "stage"), ("commit", "commit"), ("save", "save")])
def test_a_killed_run_can_be_read_back(tmp_path: Path, verb: str, step: str) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{verb}\n"
        os.kill(process.pid, signal.SIGKILL)

    ((path, entry),) = unfinished(tmp_path / "state")

    assert (entry.device, entry.step, entry.phase, entry.transaction) == ("leaf1", step, "begin", "t1")
    assert path.with_suffix(".before").read_text() == "a 1\nb 1\nc 1\nd 1"
    lock = json.loads((tmp_path / "state" / "locks" / "leaf1.lock").read_text())
    assert lock["pid"] == process.pid
    assert (lock["settles_unix_s"] > 0) == (verb != "stage")
