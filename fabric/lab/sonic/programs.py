"""The small programs of an emulated SONiC that only deal with files and text."""

import hashlib
import stat
from collections.abc import Callable, Mapping
from typing import Final

from fabric.lab.device import Reply
from fabric.lab.sonic.files import Files
from fabric.lab.sonic.shell import Process

__all__ = ("PROGRAMS",)

Program = Callable[[Files, Process], Reply]


def _split(process: Process) -> tuple[str, list[str]]:
    """Returns (all option letters, operands)."""
    options = "".join(one[1:] for one in process.argv[1:] if one.startswith("-") and one != "-")
    return options, [one for one in process.argv[1:] if not one.startswith("-") or one == "-"]


def _failed(process: Process, what: str, problem: OSError) -> Reply:
    return Reply(error=f"{process.argv[0]}: {what}: {problem.strerror}\n", exit_status=1)


def _cat(files: Files, process: Process) -> Reply:
    _, names = _split(process)
    text, error = "", ""
    for name in names or ["-"]:
        try:
            path = files.absolute(name, process.folder)
            text += process.stdin if name == "-" else files.read(path, user=process.user).decode(errors="replace")
        except OSError as problem:
            error += f"cat: {name}: {problem.strerror}\n"
    return Reply(text, error, int(bool(error)))


def _rm(files: Files, process: Process) -> Reply:
    options, names = _split(process)
    for name in names:
        path = files.absolute(name, process.folder)
        try:
            files.remove(path, user=process.user)
        except FileNotFoundError as problem:
            if "f" not in options:
                return _failed(process, f"cannot remove '{name}'", problem)
        except OSError as problem:
            return _failed(process, f"cannot remove '{name}'", problem)
    return Reply()


def _mkdir(files: Files, process: Process) -> Reply:
    options, names = _split(process)
    for name in [one for one in names if not one.isdigit()]:
        try:
            files.make_folder(files.absolute(name, process.folder), user=process.user, parents="p" in options)
        except OSError as problem:
            return _failed(process, f"cannot create directory '{name}'", problem)
    return Reply()


def _chmod(files: Files, process: Process) -> Reply:
    _, names = _split(process)
    if len(names) < 2 or not names[0].isdigit():
        return Reply(error="chmod: only octal modes are emulated\n", exit_status=1)
    for name in names[1:]:
        try:
            files.set_mode(files.absolute(name, process.folder), int(names[0], 8), user=process.user)
        except OSError as problem:
            return _failed(process, f"cannot access '{name}'", problem)
    return Reply()


def _copy(files: Files, process: Process) -> Reply:
    options, names = _split(process)
    if len(names) != 2:
        return Reply(error=f"{process.argv[0]}: needs a source and a target\n", exit_status=1)
    old, new = (files.absolute(name, process.folder) for name in names)
    if files.has_folder(new):
        new = f"{new}/{old.rsplit('/', 1)[-1]}"
    try:
        if process.argv[0] == "mv":
            files.rename(old, new, user=process.user)
        else:
            mode = stat.S_IMODE(files.stat(old)[0]) if set("pa") & set(options) else None
            files.write(new, files.read(old, user=process.user), user=process.user, mode=mode)
    except OSError as problem:
        return _failed(process, f"cannot {process.argv[0]} '{names[0]}'", problem)
    return Reply()


def _test(files: Files, process: Process) -> Reply:
    words = [one for one in process.argv[1:] if one != "]"]
    is_negated = bool(words) and words[0] == "!"
    words = words[1:] if is_negated else words
    if len(words) == 3 and words[1] in {"=", "!="}:
        truth = (words[0] == words[2]) == (words[1] == "=")
    elif len(words) == 2 and words[0] in {"-n", "-z"}:
        truth = bool(words[1]) == (words[0] == "-n")
    elif len(words) == 2:
        path = files.absolute(words[1], process.folder)
        checks = {
            "-f": files.has_file(path),
            "-d": files.has_folder(path),
            "-e": files.has_file(path) or files.has_folder(path),
            "-r": files.has_file(path),
            "-s": files.has_file(path) and files.stat(path)[1] > 0,
        }
        truth = checks.get(words[0], False)
    else:
        return Reply(error="test: expression is not emulated\n", exit_status=2)
    return Reply(exit_status=int(truth == is_negated))


def _sha256sum(files: Files, process: Process) -> Reply:
    _, names = _split(process)
    text = ""
    for name in names or ["-"]:
        try:
            path = files.absolute(name, process.folder)
            content = process.stdin.encode() if name == "-" else files.read(path, user=process.user)
        except OSError as problem:
            return _failed(process, name, problem)
        text += f"{hashlib.sha256(content).hexdigest()}  {name}\n"
    return Reply(text)


def _ls(files: Files, process: Process) -> Reply:
    _, names = _split(process)
    name = names[0] if names else "."
    path = files.absolute(name, process.folder)
    if files.has_file(path):
        return Reply(f"{name}\n")
    try:
        return Reply("".join(f"{one}\n" for one in files.listing(path)))
    except OSError as problem:
        return _failed(process, f"cannot access '{name}'", problem)


def _tee(files: Files, process: Process) -> Reply:
    options, names = _split(process)
    for name in names:
        path = files.absolute(name, process.folder)
        try:
            before = files.read(path, user=process.user) if "a" in options and files.has_file(path) else b""
            files.write(path, before + process.stdin.encode(), user=process.user)
        except OSError as problem:
            return _failed(process, name, problem)
    return Reply(process.stdin)


def _stat(files: Files, process: Process) -> Reply:
    form = next((process.argv[at + 1] for at, one in enumerate(process.argv[:-1]) if one == "-c"), "%n")
    names = [one for one in process.argv[1:] if not one.startswith("-") and one != form]
    text = ""
    for name in names:
        try:
            mode, size_bytes, _ = files.stat(files.absolute(name, process.folder))
        except OSError as problem:
            return _failed(process, f"cannot statx '{name}'", problem)
        values = {"%a": f"{stat.S_IMODE(mode):o}", "%s": str(size_bytes), "%n": name, "%U": "root"}
        line = form
        for key, value in values.items():
            line = line.replace(key, value)
        text += f"{line}\n"
    return Reply(text)


def _grep(files: Files, process: Process) -> Reply:
    options, names = _split(process)
    if not names:
        return Reply(error="grep: needs a pattern\n", exit_status=2)
    path = files.absolute(names[1], process.folder) if len(names) > 1 else ""
    text = files.read(path, user=process.user).decode() if path and files.has_file(path) else process.stdin
    lines = [line for line in text.splitlines() if (names[0] in line) != ("v" in options)]
    shown = "" if "q" in options else "".join(f"{line}\n" for line in lines)
    return Reply(shown, exit_status=int(not lines))


PROGRAMS: Final[Mapping[str, Program]] = {
    "cat": _cat,
    "chmod": _chmod,
    "cp": _copy,
    "grep": _grep,
    "ls": _ls,
    "mkdir": _mkdir,
    "mv": _copy,
    "rm": _rm,
    "sha256sum": _sha256sum,
    "stat": _stat,
    "tee": _tee,
    "test": _test,
    "[": _test,
    "true": lambda _files, _process: Reply(),
    "sync": lambda _files, _process: Reply(),
    "false": lambda _files, _process: Reply(exit_status=1),
    "echo": lambda _files, process: Reply(" ".join(process.argv[1:]) + "\n"),
    "whoami": lambda _files, process: Reply(f"{process.user}\n"),
    "id": lambda _files, process: Reply("0\n" if process.user == "root" else "1000\n"),
}
