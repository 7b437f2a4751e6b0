"""Several questions to a host, or several actions, in one round trip. Knows no tool and no setting.

A round trip costs 50 to 200 ms, and a NIC is asked twenty things. One Python on the host asks them all, and
one, which is the agent of the boot, performs what is to be done; where there is none, it goes one by one.
"""

import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host.actions import Action, Run, actions_to_json, command
from fabric.host.executor import Executor, perform
from fabric.remote.ssh import ExecResult
from fabric.serial import SerialError, from_json, parse_json

__all__ = ("Question", "agent_source", "ask", "foreseeing", "perform_together", "read_many")

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


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the agent prints: how many actions it performed, and why it stopped."""

    done: int
    reason: str


def ask(executor: Executor, questions: Sequence[Question]) -> tuple[ExecResult, ...]:
    """Returns an answer to each question, in order; status 0 and the text for a file that was read.

    Raises:
        HostError: the host cannot be reached, or what it answers is no answer.
    """
    if isinstance(executor, _Foreseeing):
        told = executor.told(questions)
        rest = iter(
            ask(executor.executor, [one for one, answer in zip(questions, told, strict=True) if answer is None])
        )
        return tuple(next(rest) if answer is None else answer for answer in told)
    if len(questions) < 2:
        return tuple(_alone(executor, one) for one in questions)
    words = json.dumps([one if isinstance(one, str) else list(one) for one in questions])
    done = executor.run(["python3", "-c", _PROGRAM], stdin=words.encode())
    if done.status == _NOT_FOUND:
        return tuple(_alone(executor, one) for one in questions)
    try:
        answers = from_json(list[tuple[int, str, str]], parse_json(done.stdout)) if done.ok else []
    except SerialError:
        answers = []
    if len(answers) != len(questions):
        raise HostError("the host's Python did not answer", found=f"exit {done.status}: {done.stderr.strip()[:200]}")
    return tuple(ExecResult(*answer) for answer in answers)


def foreseeing(executor: Executor, questions: Iterable[Question]) -> Executor:
    """Returns the host with the answers to questions that will be asked of it, got in one round trip.

    Each answer is given once: who asks again wants to know what is so by then.

    Raises:
        HostError: the host cannot be reached, or what it answers is no answer.
    """
    distinct = tuple(dict.fromkeys(questions))
    return _Foreseeing(executor, dict(zip(distinct, ask(executor, distinct), strict=True)))


@dataclass(frozen=True, slots=True)
class _Foreseeing:
    """An executor that knows some answers."""

    executor: Executor
    answers: dict[Question, ExecResult]

    def told(self, questions: Sequence[Question]) -> list[ExecResult | None]:
        """Returns the answers that are known, None for each other."""
        return [self.answers.pop(one, None) for one in questions]

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left."""
        known = None if stdin else self.answers.pop(tuple(argv), None)
        return self.executor.run(argv, stdin=stdin) if known is None else known

    def read(self, path: str) -> str | None:
        """Returns the text of a file, None when it cannot be read."""
        known = self.answers.pop(path, None)
        if known is None:
            return self.executor.read(path)
        return known.stdout if known.ok else None

    def write(self, path: str, text: str) -> ExecResult:
        """Returns how the write ended."""
        return self.executor.write(path, text)


def read_many(executor: Executor, paths: Sequence[str]) -> dict[str, str | None]:
    """Returns path → text, None for a file that cannot be read."""
    distinct = tuple(dict.fromkeys(paths))
    answers = ask(executor, distinct)
    return {path: one.stdout if one.ok else None for path, one in zip(distinct, answers, strict=True)}


@functools.cache
def agent_source() -> str:
    """Returns the agent's text: what stands on hosts, and what performs several actions at once."""
    return Path(__file__).with_name("agent.py").read_text(encoding="utf-8")


def perform_together(executor: Executor, actions: Iterable[Action], *, host: str) -> None:
    """Performs the actions in order and stops at the first that fails.

    What may take long, the start of a unit, has a round trip of its own and so its own time limit.

    Raises:
        HostError: one failed; the message has the action and the host's own words.
    """
    for group in _groups(actions):
        if len(group) == 1 or not _by_agent(executor, group, host):
            for action in group:
                perform(executor, action, host=host)


def _groups(actions: Iterable[Action]) -> Iterable[list[Action]]:
    group: list[Action] = []
    for action in actions:
        if isinstance(action, Run) and action.argv[:2] in {("systemctl", "start"), ("systemctl", "restart")}:
            yield from ([group] if group else [])
            yield [action]
            group = []
        else:
            group.append(action)
    yield from ([group] if group else [])


def _by_agent(executor: Executor, actions: Sequence[Action], host: str) -> bool:
    """Returns False when the host has no Python, and nothing was done."""
    words = json.dumps(actions_to_json(actions)).encode()
    done = executor.run(["python3", "-c", agent_source(), "-"], stdin=words)
    if done.status == _NOT_FOUND:
        return False
    try:
        answer = from_json(_Answer, parse_json(done.stdout)) if done.ok else None
    except SerialError:
        answer = None
    if answer is None or not 0 <= answer.done <= len(actions):
        raise HostError("the agent did not answer", where=host, found=f"exit {done.status}: {done.stderr[:200]}")
    if answer.done < len(actions):
        raise HostError(f"could not {command(actions[answer.done])}", where=host, found=answer.reason)
    return True


def _alone(executor: Executor, question: Question) -> ExecResult:
    if not isinstance(question, str):
        return executor.run(question)
    text = executor.read(question)
    return ExecResult(1, "", "cannot be read") if text is None else ExecResult(0, text, "")
