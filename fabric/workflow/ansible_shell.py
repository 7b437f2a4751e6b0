"""How a command travels over Ansible's connection: one shell line there, its two outputs and its exit status back.

Ansible is not imported: the action plug-in hands in a function that has one line executed, and plain dictionaries.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.remote.ssh import ExecResult, shell_line

__all__ = ("AnsibleClient", "Execute")

Execute: TypeAlias = Callable[[str, bytes], Mapping[str, object]]
"""Has a shell line executed with some standard input. Returns `rc`, `stdout` and `stderr`; or `lost`, why there is no
connection; or `refused`, why Ansible did not have it executed."""

# The exit status comes back in the output: ssh's own 255 would hide one of the command's, and where become refuses,
# no command ran. -k: what does not hear SIGTERM.
_LINE: Final = "{{ timeout -k 5 {limit:g} {command}{redirect}; printf '\\n{mark}%d\\n' \"$?\"; }}"
_MARK: Final = "fabricctl-exit-status:"
_TIMED_OUT: Final = (124, 137)  # of coreutils' timeout: ended by SIGTERM, by SIGKILL
_REMEDY: Final = "Check how Ansible logs in and becomes root there: ansible -i INVENTORY HOST -b -m raw -a true"


@dataclass(slots=True)
class AnsibleClient:
    """What `fabric.host.SshExecutor` needs of a connection.

    Attributes:
        lost: why the last command did not reach the host, "" when it did.
    """

    execute: Execute
    host: str
    lost: str = ""

    def exec(self, argv: Sequence[str], *, timeout_s: float = 180.0, stdin: bytes = b"") -> ExecResult:
        """Returns what the command left.

        Args:
            argv: the command; each word is quoted. Never a secret.
            timeout_s: after this the host ends it.
            stdin: what it reads.

        Raises:
            HostError: the host cannot be reached, become refused, or the command did not end in time.
        """
        # Something is always sent: without, Ansible's SSH asks for a terminal, which mixes the two outputs.
        redirect, data = ("", stdin) if stdin else (" </dev/null", b"\n")
        try:
            command = shell_line(argv)
        except ValueError as error:
            raise HostError("a command cannot be sent", where=self.host, found=str(error)) from error
        line = _LINE.format(limit=timeout_s, command=command, redirect=redirect, mark=_MARK)
        done = self._done(line, data)
        printed, mark, status = str(done["stdout"]).rpartition(f"\n{_MARK}")
        if not mark or not status.strip().isdecimal():
            said = " ".join(f"{done['stderr']} {done['stdout']}".split())[:300]
            raise self._error("the host did not run a command", f"exit {done['rc']}: {said}")
        self.lost = ""
        if int(status) in _TIMED_OUT:
            found = shlex.join(argv).partition("\n")[0][:200]  # a program in it is of no use to a reader
            raise HostError(f"a command did not end within {timeout_s:g} s", where=self.host, found=found)
        return ExecResult(int(status), printed, str(done["stderr"]))

    def _done(self, line: str, data: bytes) -> Mapping[str, object]:
        done = self.execute(line, data)
        if "lost" in done:
            self.lost = str(done["lost"])
            raise self._error("there is no connection to the host", self.lost)
        if "refused" in done:
            raise self._error("the host did not run a command", str(done["refused"]))
        return done

    def _error(self, what: str, found: str) -> HostError:
        return HostError(what, where=self.host, found=found, remedy=_REMEDY)
