"""Several questions to a host in one round trip: a command or a file each. Knows no tool and no setting.

A round trip costs 50 to 200 ms, and a NIC is asked twenty things. One Python on the host asks them all; where there is
none, they are asked one by one.
"""

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host.executor import Executor
from fabric.remote.ssh import ExecResult

__all__ = ("Question", "ask", "read_many")

Question: TypeAlias = tuple[str, ...] | str
"""An argument list to run, or the path of a file to read."""

_NOT_FOUND: Final = 127  # POSIX shell: there is no such program
_PROGRAM: Final = """
import json, subprocess, sys
def one(question):
    try:
        if isinstance(question, str):
            with open(question, "rb") as file:
                return 0, file.read().decode(errors="replace"), ""
        done = subprocess.run(question, stdin=subprocess.DEVNULL, capture_output=True)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    except FileNotFoundError as error:
        return 1 if isinstance(question, str) else 127, "", str(error)
    except OSError as error:
        return 1, "", str(error)
json.dump([one(question) for question in json.load(sys.stdin)], sys.stdout)
"""


def ask(executor: Executor, questions: Sequence[Question]) -> tuple[ExecResult, ...]:
    """Returns an answer to each question, in order; status 0 and the text for a file that was read.

    Raises:
        HostError: the host cannot be reached, or what it answers is no answer.
    """
    if len(questions) < 2:
        return tuple(_alone(executor, one) for one in questions)
    words = json.dumps([one if isinstance(one, str) else list(one) for one in questions])
    done = executor.run(["python3", "-c", _PROGRAM], stdin=words.encode())
    if done.status == _NOT_FOUND:
        return tuple(_alone(executor, one) for one in questions)
    try:
        answers = json.loads(done.stdout) if done.ok else None
    except ValueError:
        answers = None
    if not isinstance(answers, list) or len(answers) != len(questions):
        raise HostError("the host's Python did not answer", found=f"exit {done.status}: {done.stderr.strip()[:200]}")
    return tuple(ExecResult(int(status), str(out), str(said)) for status, out, said in answers)


def read_many(executor: Executor, paths: Sequence[str]) -> dict[str, str | None]:
    """Returns path → text, None for a file that cannot be read."""
    distinct = tuple(dict.fromkeys(paths))
    answers = ask(executor, distinct)
    return {path: one.stdout if one.ok else None for path, one in zip(distinct, answers, strict=True)}


def _alone(executor: Executor, question: Question) -> ExecResult:
    if not isinstance(question, str):
        return executor.run(question)
    text = executor.read(question)
    return ExecResult(1, "", "cannot be read") if text is None else ExecResult(0, text, "")
