"""A very small POSIX shell: `;`, `&&`, `||`, pipes, redirections, quotes, `sudo`, `sh -c`. Knows no program.

What it cannot do it refuses with status 2 rather than doing something else: substitutions, loops, background jobs.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fabric.lab.device import Reply
from fabric.lab.sonic.files import Files

__all__ = ("Process", "Shell")

_OPERATORS: Final = (";", "&&", "||")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_SHELLS: Final = ("sh", "bash")


@dataclass(frozen=True, slots=True)
class Process:
    """One program call. `folder` is where it runs; `stdin` is what the pipe brings."""

    argv: tuple[str, ...]
    user: str
    folder: str = "/"
    stdin: str = ""


@dataclass(slots=True)
class _Call:
    argv: list[str] = field(default_factory=list)
    target: str = ""
    appends: bool = False
    source: str = ""
    joins_error: bool = False
    drops_error: bool = False


@dataclass(frozen=True, slots=True)
class _Who:
    user: str
    folder: str


class _SyntaxError(Exception):
    pass


class Shell:
    """The shell of one device.

    Args:
        programs: runs one program; a Reply of status 127 when there is none of that name.
    """

    def __init__(self, files: Files, programs: Callable[[Process], Reply]) -> None:
        self._files = files
        self._programs = programs

    def run(self, line: str, user: str, *, last_status: int = 0) -> Reply:
        """Returns what the line prints, run in the home of `user`, with the status of its last command."""
        home = "/root" if user == "root" else f"/home/{user}"
        return self._run(line.replace("~/", f"{home}/"), _Who(user, home), last_status)

    def _run(self, line: str, who: _Who, last_status: int = 0) -> Reply:
        try:
            steps = _parse(line.replace("$?", str(last_status)))
        except (_SyntaxError, ValueError) as error:
            return Reply(error=f"sh: 1: Syntax error: {error}\n", exit_status=2)
        total = Reply()
        for operator, pipeline in steps:
            is_ok = total.exit_status == 0
            if (operator == "&&" and not is_ok) or (operator == "||" and is_ok):
                continue
            one = self._pipeline(pipeline, who)
            total = Reply(total.text + one.text, total.error + one.error, one.exit_status)
        return total

    def run_argv(self, argv: Sequence[str], user: str) -> Reply:
        """Returns what a program call prints, without a shell around it."""
        return self._call(_Call(list(argv)), _Who(user, "/"), "")

    def _pipeline(self, calls: Sequence[_Call], who: _Who) -> Reply:
        stdin, error = "", ""
        reply = Reply()
        for one in calls:
            reply = self._call(one, who, stdin)
            stdin = reply.text
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
            name = call.target or call.source
            return Reply(error=f"sh: 1: cannot open {name}: {problem.strerror}\n", exit_status=2)

    def _redirected(self, call: _Call, who: _Who, reply: Reply) -> Reply:
        if call.target != "/dev/null":
            path = self._files.absolute(call.target, who.folder)
            before = self._files.read(path, user=who.user) if call.appends and self._files.has_file(path) else b""
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
        if name in {"nohup", "exec", "command", "env"}:
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
        if len(argv) == 1:
            path = self._files.absolute(argv[0], who.folder)
            script = self._files.read(path, user=who.user).decode()
            reply = Reply()
            for line in script.splitlines():
                if line.strip() and not line.startswith("#") and line.strip() not in {"set -e", "set -eu"}:
                    one = self._run(line, who)
                    reply = Reply(reply.text + one.text, reply.error + one.error, one.exit_status)
            return reply
        return Reply(error=f"{name}: needs a command\n", exit_status=2)


def _parse(line: str) -> list[tuple[str, list[_Call]]]:
    """Returns (operator before it, pipeline) for every pipeline of the line."""
    if re.search(r"\$\(|`|<<|\$\{", line):
        raise _SyntaxError("substitutions are not emulated")
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    steps: list[tuple[str, list[_Call]]] = []
    operator, calls = ";", [_Call()]
    rest = list(lexer)
    while rest:
        word = rest.pop(0)
        if word in _OPERATORS:
            steps.append((operator, calls))
            operator, calls = word, [_Call()]
        elif word == "|":
            calls.append(_Call())
        elif word in {">", ">>", "<", ">&"}:
            _redirect(calls[-1], word, rest)
        elif set(word) <= set(";&|<>"):
            raise _SyntaxError(f'"{word}" unexpected')
        else:
            calls[-1].argv.append(word)
    steps.append((operator, calls))
    return [step for step in steps if step[1][0].argv or step[1][0].target or len(step[1]) > 1]


def _redirect(call: _Call, word: str, rest: list[str]) -> None:
    if not rest:
        raise _SyntaxError("end of line unexpected")
    target = rest.pop(0)
    from_error = bool(call.argv) and call.argv[-1] == "2"
    if word == ">&":
        if target != "1" or not from_error:
            raise _SyntaxError("only 2>&1 is emulated")
        call.argv.pop()
        call.joins_error = True
    elif from_error and word == ">" and target == "/dev/null":
        call.argv.pop()
        call.drops_error = True
    elif word == "<":
        call.source = target
    else:
        call.target, call.appends = target, word == ">>"
