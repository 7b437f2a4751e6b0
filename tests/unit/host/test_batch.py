"""Several questions in one round trip, by a real Python here, and one by one where there is none."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.host.batch import ask, foreseeing, read_many
from fabric.host.executor import LocalExecutor, RecordedExecutor
from fabric.remote.ssh import ExecResult
from tests.unit.host.nics import said


def test_commands_and_files_are_answered_in_order(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("text\n")
    found = ask(
        LocalExecutor(),
        [
            f"{tmp_path}/there",
            ("sh", "-c", "echo out; echo err >&2; exit 3"),
            f"{tmp_path}/absent",
            ("no-such-program",),
        ],
    )
    assert found[0] == ExecResult(0, "text\n", "")
    assert found[1] == ExecResult(3, "out\n", "err\n")
    assert [one.status for one in found[2:]] == [1, 127]


def test_words_reach_the_command_as_they_are(tmp_path: Path) -> None:
    word = f"a b'\"$HOME`id`;{tmp_path}\n"
    first, _ = ask(LocalExecutor(), [("printf", "%s", word), ("true",)])
    assert first.stdout == word


def test_host_without_python_is_asked_one_by_one() -> None:
    executor = RecordedExecutor({("true",): said("yes")}, {"/etc/x": "text"})
    assert [one.stdout for one in ask(executor, [("true",), "/etc/x", "/etc/y"])] == ["yes", "text", ""]
    assert read_many(executor, ["/etc/x", "/etc/y", "/etc/x"]) == {"/etc/x": "text", "/etc/y": None}


@pytest.mark.parametrize("answer", [ExecResult(1, "", "Killed"), said("no JSON"), said("[]")])
def test_answer_that_is_none_is_an_error(answer: ExecResult) -> None:
    class Broken(RecordedExecutor):
        def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
            assert (argv[0], stdin[:1]) == ("python3", b"[")
            return answer

    with pytest.raises(HostError, match="Python did not answer"):
        ask(Broken(), [("true",), "/etc/x"])


def test_what_was_foreseen_is_asked_once_and_given_once(tmp_path: Path) -> None:
    counter, there = tmp_path / "counter", tmp_path / "there"
    there.write_text("text\n")
    count = ("sh", "-c", f"echo x >> {counter}; wc -l < {counter}")
    executor = foreseeing(LocalExecutor(), [count, f"{there}", f"{tmp_path}/absent", count])
    there.write_text("new\n")
    assert executor.run(count).stdout.strip() == "1"
    assert executor.run(count).stdout.strip() == "2"
    assert executor.read(f"{tmp_path}/absent") is None
    assert executor.read(f"{there}") == "text\n"
    assert executor.read(f"{there}") == "new\n"


def test_questions_of_which_some_were_foreseen_are_answered_in_order(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("text\n")
    executor = foreseeing(LocalExecutor(), [("echo", "a"), ("echo", "b")])
    found = ask(executor, [("echo", "c"), ("echo", "b"), f"{tmp_path}/there", ("echo", "a")])
    assert [one.stdout for one in found] == ["c\n", "b\n", "text\n", "a\n"]
    assert ask(executor, []) == ()


def test_what_is_written_and_what_has_input_goes_to_the_host(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    executor = foreseeing(LocalExecutor(), [("cat",), ("true",)])
    assert executor.run(["cat"], stdin=b"in").stdout == "in"
    assert executor.write(f"{tmp_path}/there", "out").ok
    assert (tmp_path / "there").read_text() == "out"
