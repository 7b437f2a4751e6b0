"""How a host is reached: here, over SSH, or from a recording. Knows no tool and no setting.

An executor runs argument lists, reads files and writes files; everything else is made of these three.
"""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, assert_never

from fabric.errors import ConnectError, HostError
from fabric.host.actions import (
    Action,
    ControllerAttribute,
    Link,
    MakeFolder,
    PutFile,
    RemoveFolder,
    RemoveLink,
    Run,
    StageFile,
    Write,
)
from fabric.remote.ssh import ExecResult

__all__ = (
    "Executor",
    "LocalExecutor",
    "RecordedExecutor",
    "SshExecutor",
    "half_paths",
    "list_folder",
    "listing",
    "perform",
    "perform_all",
)

_TIMEOUT_S: Final = 180.0  # a unit that starts waits for its target; emulated hosts are slow
_NVME: Final = "/sys/class/nvme"
_HALF: Final = ".fabricctl"


class Executor(Protocol):
    """One host. Raises `HostError` only when the host cannot be reached; a failing command is a result."""

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left; exit status 127 when there is no such program."""
        ...

    def read(self, path: str) -> str | None:
        """Returns the text of a file, None when it cannot be read."""
        ...

    def write(self, path: str, text: str) -> ExecResult:
        """Returns how writing into an existing file ended; status 0 is success."""
        ...


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """This machine."""

    timeout_s: float = _TIMEOUT_S

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left."""
        try:
            done = subprocess.run(
                list(argv), input=stdin, capture_output=True, check=False, timeout=self.timeout_s, env=_plain_words()
            )
        except FileNotFoundError as error:
            return ExecResult(127, "", str(error))
        except subprocess.TimeoutExpired as error:
            raise HostError("the command did not end in time", found=argv[0]) from error
        except ValueError as error:  # a NUL in a word, or half a character
            raise HostError("the command cannot be run", found=str(error)) from error
        return ExecResult(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def read(self, path: str) -> str | None:
        """Returns the text of a file, None when it cannot be read."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):  # a NUL in the path
            return None

    def write(self, path: str, text: str) -> ExecResult:
        """Returns how the write ended."""
        try:
            handle = os.open(path, os.O_WRONLY)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
        except OSError as error:
            return ExecResult(1, "", str(error))
        return ExecResult(0, "", "")


def _plain_words() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}  # parsers read the untranslated words


class Exec(Protocol):
    """The part of `fabric.remote.ssh.SshClient` that is needed here."""

    def exec(self, argv: Sequence[str], *, timeout_s: float = ..., stdin: bytes = ...) -> ExecResult:
        """Returns what the command left."""
        ...


@dataclass(frozen=True, slots=True)
class SshExecutor:
    """A host over one open SSH connection.

    Args:
        client: open already; closed by who opened it.
        become: words before each command, `("sudo", "-n")`.
    """

    client: Exec
    host: str
    become: tuple[str, ...] = ()
    timeout_s: float = _TIMEOUT_S

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left."""
        words = [*self.become, "env", "LC_ALL=C", *argv]
        try:
            return self.client.exec(words, timeout_s=self.timeout_s, stdin=stdin)
        except ConnectError as error:
            raise HostError("the session was lost", where=self.host, found=str(error)) from error

    def read(self, path: str) -> str | None:
        """Returns the text of a file, None when it cannot be read."""
        done = self.run(["cat", "--", path])
        return done.stdout if done.ok else None

    def write(self, path: str, text: str) -> ExecResult:
        """Returns how the write ended. The text goes by standard input, never in the command."""
        # conv=notrunc,nocreat: a missing attribute must not become a file; oflag is left alone, sysfs takes one write
        argv = ["dd", f"of={path}", "conv=notrunc,nocreat", "bs=64k", "iflag=fullblock", "status=none"]
        return self.run(argv, stdin=text.encode())


@dataclass(slots=True)
class RecordedExecutor:
    """Answers from a recording and keeps what it was told; a question that was not recorded is as on a bare host.

    Attributes:
        outputs: argument list → what the command left.
        files: path → text; writes change it.
        done: every run and write, in order, as one line each.
    """

    outputs: Mapping[tuple[str, ...], ExecResult] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Returns the recorded result, else status 127."""
        del stdin  # may be secret: it is kept nowhere
        self.done.append(" ".join(argv))
        return self.outputs.get(tuple(argv), ExecResult(127, "", f"{argv[0]}: not recorded"))

    def read(self, path: str) -> str | None:
        """Returns the recorded text, else None."""
        return self.files.get(path)

    def write(self, path: str, text: str) -> ExecResult:
        """Returns success if the recording has the file."""
        self.done.append(f"write {path}")
        if path not in self.files:
            return ExecResult(1, "", "No such file or directory")
        self.files[path] = text
        return ExecResult(0, "", "")


def listing(path: str) -> tuple[str, ...]:
    """Returns the command that `list_folder` runs."""
    return ("ls", "-1A", "--", path)


def list_folder(executor: Executor, path: str) -> tuple[str, ...] | None:
    """Returns the names in a folder, sorted, None when it is not there."""
    done = executor.run(listing(path))
    return tuple(sorted(done.stdout.split("\n")[:-1])) if done.ok else None


def perform_all(executor: Executor, actions: Iterable[Action], *, host: str) -> None:
    """Performs the actions in order and stops at the first that fails.

    Raises:
        HostError: one failed; the message has the action and the host's own words.
    """
    for action in actions:
        perform(executor, action, host=host)


def perform(executor: Executor, action: Action, *, host: str) -> None:
    """Performs one action.

    Raises:
        HostError: it failed.
    """
    match action:
        case Run():
            _run(executor, action, host)
        case Write():
            _write(executor, action, host)
        case PutFile():
            _put(executor, action, host)
        case StageFile():
            _write_whole(executor, _staged_path(action.path, back=action.back), action, host)
        case ControllerAttribute():
            _write_controllers(executor, action, host)
        case _:
            if command := _folder_argv(executor, action):
                _require(executor.run(command), " ".join(command), host)


def _run(executor: Executor, action: Run, host: str) -> None:
    if action.unless_exists and _is(executor, "-e", action.unless_exists):
        return
    if action.if_exists and not _is(executor, "-e", action.if_exists):
        return
    done = executor.run(action.argv)
    if not action.accepted_words or action.accepted_words not in done.stdout + done.stderr:
        _require(done, " ".join(action.argv), host, accepted=action.accepted)


def _write(executor: Executor, action: Write, host: str) -> None:
    done = executor.write(action.path, action.text)
    if done.ok:
        return
    if action.optional and not _is(executor, "-e", action.path):
        return
    # a namespace in use refuses even the device that it has
    if (executor.read(action.path) or "").strip() != action.text.strip():
        _require(done, f"write {action.text!r} to {action.path}", host)


def _is(executor: Executor, kind: str, path: str) -> bool:
    return executor.run(["test", kind, path]).ok


def _folder_argv(executor: Executor, action: MakeFolder | RemoveFolder | Link | RemoveLink) -> list[str]:
    """Returns the command, [] when there is nothing to do."""
    match action:
        case MakeFolder(path):
            return [] if _is(executor, "-d", path) else ["mkdir", "--", path]
        case RemoveFolder(path):
            return ["rmdir", "--", path] if _is(executor, "-d", path) else []
        case Link(path, to):
            return [] if _is(executor, "-L", path) else ["ln", "-s", "--", to, path]
        case RemoveLink(path):
            return ["rm", "-f", "--", path]
        case _:
            assert_never(action)


def _put(executor: Executor, action: PutFile, host: str) -> None:
    """Several steps, so that a secret is never readable by others and the name never holds half a file."""
    mode = f"{action.mode:04o}"
    if executor.read(action.path) == action.text:
        _require(executor.run(["chmod", mode, "--", action.path]), f"give {action.path} its mode", host)
        return
    ready = (_staged_path(action.path, back=back) for back in (False, True))
    whole = next((one for one in ready if executor.read(one) == action.text), "")
    if whole:
        _require(executor.run(["chmod", mode, "--", whole]), f"give {whole} its mode", host)
    else:
        whole = f"{action.path}{_HALF}"
        _write_whole(executor, whole, action, host)
    _require(executor.run(["mv", "-f", "--", whole, action.path]), f"put {action.path}", host)
    _require(executor.run(["sync", "--", action.path.rpartition("/")[0]]), f"put {action.path}", host)


def _write_whole(executor: Executor, path: str, action: PutFile | StageFile, host: str) -> None:
    try:
        made = executor.run(["install", "-D", "-m", f"{action.mode:04o}", "/dev/null", path])
        _require(made, f"make {path}", host)
        _require(executor.write(path, action.text), f"write {path}", host)
        _require(executor.run(["sync", "--", path]), f"write {path}", host)  # a full disk may say so only now
    except HostError:
        executor.run(["rm", "-f", "--", path])
        raise


def half_paths(path: str) -> tuple[str, ...]:
    """Returns where a file lies before it gets its name: half written, laid ready, or laid ready for the way back."""
    return (f"{path}{_HALF}", _staged_path(path, back=False), _staged_path(path, back=True))


def _staged_path(path: str, *, back: bool) -> str:
    return f"{path}{_HALF}-{'old' if back else 'new'}"


def _require(done: ExecResult, doing: str, host: str, *, accepted: tuple[int, ...] = (0,)) -> None:
    if done.status not in accepted:
        said = (done.stderr or done.stdout).strip()[:300]
        raise HostError(f"could not {doing}", where=host, found=f"exit {done.status}: {said}")


def _write_controllers(executor: Executor, action: ControllerAttribute, host: str) -> None:
    found = [name for name in list_folder(executor, _NVME) or () if _is_meant(executor, name, action)]
    if not found and not action.optional:
        raise HostError("no NVMe controller connects so", where=host, expected=f"{action.nqn} at {action.traddr}")
    for name in found:
        path = f"{_NVME}/{name}/{action.name}"
        _require(executor.write(path, action.text), f"write {action.text!r} to {path}", host)


def _is_meant(executor: Executor, name: str, action: ControllerAttribute) -> bool:
    nqn = (executor.read(f"{_NVME}/{name}/subsysnqn") or "").strip()
    address = (executor.read(f"{_NVME}/{name}/address") or "").strip()
    words = dict(part.partition("=")[::2] for part in address.split(","))
    host_traddr = words.get("host_traddr", "")
    return (nqn, words.get("traddr"), host_traddr) == (action.nqn, action.traddr, action.host_traddr or host_traddr)
