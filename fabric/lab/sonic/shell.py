"""A very small POSIX shell: `;`, `&&`, `||`, pipes, redirections, quotes, `sudo`, `sh -c`. Knows no program.

What it cannot do it refuses with status 2 rather than doing something else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fabric.lab.device import Reply
from fabric.lab.sonic.files import Files
from fabric.lab.sonic.words import LAST_STATUS, ShellSyntaxError, Word, cut

__all__ = ("Process", "Shell")

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SHELLS: Final = ("sh", "bash")
_PREFIXES: Final = ("nohup", "exec", "command", "env")


@dataclass(frozen=True, slots=True)
class Process:
    """One program call. `folder` is where it runs; `stdin` is what the pipe brings."""

    argv: tuple[str, ...]
    user: str
    folder: str = "/"
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class _Who:
    user: str
    folder: str

    @property
    def home(self) -> str:
        return "/root" if self.user == "root" else f"/home/{self.user}"


@dataclass(slots=True)
class _Call:
    argv: list[str] = field(default_factory=list)
    target: str = ""
    appends: bool = False
    source: str = ""
    joins_error: bool = False
    drops_error: bool = False

    def is_empty(self) -> bool:
        return not (self.argv or self.target or self.source)


class Shell:
    """The shell of one device.

    Args:
        files: where redirections go.
        programs: runs one program; a Reply of status 127 when there is none of that name.
    """

    def __init__(self, files: Files, programs: Callable[[Process], Reply]) -> None:
        self._files = files
        self._programs = programs

    def run(self, line: str, user: str, *, last_status: int = 0) -> Reply:
        """Returns what the line prints, run in the home of `user`, with the status of its last command."""
        return self._run(line, _Who(user, _Who(user, "").home), last_status)

    def run_argv(self, argv: Sequence[str], user: str) -> Reply:
        """Returns what a program call prints, without a shell around it."""
        return self._call(_Call(list(argv)), _Who(user, "/"), "")

    def _run(self, line: str, who: _Who, last_status: int = 0) -> Reply:
        try:
            steps = tuple(_steps(cut(line, who.home)))
        except ShellSyntaxError as error:
            return Reply(error=f"sh: 1: Syntax error: {error}\n", exit_status=2)
        total = Reply(exit_status=last_status)
        for operator, pipeline in steps:
            is_ok = total.exit_status == 0
            if (operator == "&&" and not is_ok) or (operator == "||" and is_ok):
                continue
            one = self._pipeline(pipeline, who, total.exit_status)
            total = Reply(total.text + one.text, total.error + one.error, one.exit_status)
        return total

    def _pipeline(self, calls: Sequence[_Call], who: _Who, last_status: int) -> Reply:
        reply, error = Reply(), ""
        for one in calls:
            one.argv = [word.replace(LAST_STATUS, str(last_status)) for word in one.argv]
            reply = self._call(one, who, reply.text)
            error += reply.error
        return Reply(reply.text, error, reply.exit_status)

    def _call(self, call: _Call, who: _Who, stdin: str) -> Reply:
        try:
            if call.source:
                stdin = self._files.read(self._files.absolute(call.source, who.folder), user=who.user).decode()
            reply = self._program(call.argv, who, stdin)
            if call.joins_error:
                reply = Reply(reply.text + reply.error, "", reply.exit_status)
            if call.drops_error:
                reply = Reply(reply.text, "", reply.exit_status)
            return self._redirected(call, who, reply) if call.target else reply
        except OSError as problem:
            name = call.target or call.source or call.argv[-1]
            return Reply(error=f"sh: 1: cannot open {name}: {problem.strerror}\n", exit_status=2)

    def _redirected(self, call: _Call, who: _Who, reply: Reply) -> Reply:
        if call.target != "/dev/null":
            path = self._files.absolute(call.target, who.folder)
            keeps = call.appends and self._files.has_file(path)
            before = self._files.read(path, user=who.user) if keeps else b""
            self._files.write(path, before + reply.text.encode(), user=who.user)
        return Reply("", reply.error, reply.exit_status)

    def _program(self, argv: list[str], who: _Who, stdin: str) -> Reply:
        while argv and _ASSIGNMENT.fullmatch(argv[0]):
            argv = argv[1:]
        if not argv:
            return Reply()
        name = argv[0].rsplit("/", 1)[-1]
        if name == "sudo":
            return self._sudo(argv[1:], who, stdin)
        if name in _PREFIXES:
            return self._program(argv[1:], who, stdin)
        if name in _SHELLS:
            return self._nested(name, argv[1:], who)
        return self._programs(Process((name, *argv[1:]), who.user, who.folder, stdin))

    def _sudo(self, argv: list[str], who: _Who, stdin: str) -> Reply:
        user = "root"
        while argv and argv[0].startswith("-"):
            option, argv = argv[0], argv[1:]
            if option == "-u" and argv:
                user, argv = argv[0], argv[1:]
        return self._program(argv, _Who(user, who.folder), stdin)

    def _nested(self, name: str, argv: list[str], who: _Who) -> Reply:
        while argv and argv[0].startswith("-") and argv[0] not in {"-c", "-lc", "-ec"}:
            argv = argv[1:]
        if len(argv) >= 2:
            return self._run(argv[1], who)
        if not argv:
            return Reply(error=f"{name}: needs a command\n", exit_status=2)
        path = self._files.absolute(argv[0], who.folder)
        return self._script(self._files.read(path, user=who.user).decode(), who)

    def _script(self, text: str, who: _Who) -> Reply:
        """Runs the lines one by one; `set -e` is honoured, other options of the shell are not."""
        total = Reply()
        stops = False
        for line in (one.strip() for one in text.splitlines()):
            if not line or line.startswith("#"):
                continue
            if line.startswith("set -"):
                stops = stops or "e" in line
                continue
            one = self._run(line, who, total.exit_status)
            total = Reply(total.text + one.text, total.error + one.error, one.exit_status)
            if stops and total.exit_status:
                break
        return total


def _steps(words: Sequence[Word]) -> Iterator[tuple[str, list[_Call]]]:
    """Yields (operator before it, pipeline) for every pipeline of the line."""
    operator, calls = ";", [_Call()]
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if not word.is_operator:
            calls[-1].argv.append(word.text)
        elif word.text in {";", "&&", "||"}:
            yield operator, _whole(calls, word.text)
            operator, calls = word.text, [_Call()]
        elif word.text == "|":
            _whole(calls, word.text)
            calls.append(_Call())
        else:
            _redirect(calls[-1], word.text, pending)
    if not calls[-1].is_empty():
        yield operator, calls
    elif operator != ";" or len(calls) > 1:
        raise ShellSyntaxError("end of line unexpected")


def _whole(calls: list[_Call], following: str) -> list[_Call]:
    if calls[-1].is_empty():
        raise ShellSyntaxError(f'"{following}" unexpected')
    return calls


def _redirect(call: _Call, operator: str, pending: list[Word]) -> None:
    if not pending or pending[0].is_operator:
        raise ShellSyntaxError("redirection to nowhere")
    target = pending.pop(0).text
    from_error = bool(call.argv) and call.argv[-1] == "2"
    if operator == ">&":
        if target != "1" or not from_error:
            raise ShellSyntaxError("only 2>&1 is emulated")
        call.argv.pop()
        call.joins_error = True
    elif from_error and operator == ">" and target == "/dev/null":
        call.argv.pop()
        call.drops_error = True
    elif operator == "<":
        call.source = target
    else:
        call.target, call.appends = target, operator == ">>"
