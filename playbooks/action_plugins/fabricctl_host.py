"""The Ansible action `fabricctl_host`: gives `fabric.host` an executor over Ansible's own connection to one host.

It must hold no logic: what is read, changed and written is `fabric.workflow.ansible_host`'s. What is here is how a
command travels: Ansible's SSH, become, proxies and control sockets, with one shell and no Python on the host.
"""

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

# The exit status comes back in the output: ssh's own 255 would hide one of the command's, and where become refuses,
# no command ran. -k: what does not hear SIGTERM.
_SHELL = "{{ timeout -k 5 {limit:g} {command}{redirect}; printf '\\n{mark}%d\\n' \"$?\"; }}"
_MARK = "fabricctl-exit-status:"
_REACH = "Check how Ansible logs in and becomes root there: ansible -i INVENTORY HOST -b -m raw -a true"
_TIMED_OUT = (124, 137)  # of coreutils' timeout: ended by SIGTERM, by SIGKILL


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """One part of one host."""

    _VALID_ARGS = frozenset({"disruptive", "of", "part", "run"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns Ansible's result: changed, failed or unreachable, msg, diff."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        workflow, executor, host_error, exec_result = _package()
        task = self._asked(workflow, str((task_vars or {}).get("inventory_hostname", "")))
        client = _Client(self, task.host, host_error, exec_result)
        with _undisturbed():
            answer = workflow.host_entry(task, executor(client, task.host), lambda: client.lost)
        result |= answer
        diff = answer.get("diff")
        result["diff"] = {"prepared": f"{diff}\n"} if diff else []
        return result

    def _asked(self, workflow: Any, host: str) -> Any:
        args = self._task.args
        run = str(args.get("run") or "")
        if not run or not Path(run).is_dir():
            raise AnsibleActionFail(
                f"fabricctl_host needs the run folder: found {run!r}. "
                "Put the role fabricctl_run before it, or name a run: -e run=RUN"
            )
        return workflow.HostTask(
            part=str(args.get("part") or ""),
            host=host,
            run=Path(run),
            of=str(args.get("of") or ""),
            disruptive=_is_true(args.get("disruptive", False)),
            check_mode=bool(self._task.check_mode),
        )


class _Client:
    """What `fabric.host.SshExecutor` needs of a connection."""

    def __init__(self, action: ActionBase, host: str, host_error: Any, exec_result: Any) -> None:
        self._action = action
        self._host = host
        self._host_error = host_error
        self._exec_result = exec_result
        self.lost = ""

    def exec(self, argv: Sequence[str], *, timeout_s: float = 60.0, stdin: bytes = b"") -> Any:
        """Returns what the command left.

        Args:
            argv: the command; each word is quoted. Never a secret.
            timeout_s: after this the host ends it.
            stdin: what it reads.

        Raises:
            HostError: the host cannot be reached, become refused, or the command did not end in time.
        """
        # Something is always sent: without, ansible's SSH asks for a terminal, which mixes the two outputs.
        redirect, data = ("", stdin) if stdin else (" </dev/null", b"\n")
        command = _SHELL.format(limit=timeout_s, command=shlex.join(argv), redirect=redirect, mark=_MARK)
        done = self._done(command, data)
        printed, mark, status = str(done["stdout"]).rpartition(f"\n{_MARK}")
        if not mark or not status.strip().isdecimal():
            said = " ".join(f"{done['stderr']} {done['stdout']}".split())[:300]
            raise self._error("the host did not run a command", f"exit {done['rc']}: {said}", _REACH)
        if int(status) in _TIMED_OUT:
            raise self._error(f"a command did not end within {timeout_s:g} s", shlex.join(argv)[:200])
        return self._exec_result(int(status), printed, str(done["stderr"]))

    def _done(self, command: str, data: bytes) -> dict[str, Any]:
        try:
            return self._execute(command, data, quiet=True)
        except AnsibleConnectionFailure:
            self.lost = self._why()
            raise self._error("there is no connection to the host", self.lost, _REACH) from None
        except AnsibleError as error:
            raise self._error("the host did not run a command", _one_line(error), _REACH) from None

    def _execute(self, command: str, data: bytes, *, quiet: bool) -> dict[str, Any]:
        # quiet: -vvv would print what commands print, and files with secrets are compared. Ansible hides it, and why a
        # connection failed with it. The connection has a context of its own, renewed for each task.
        self._action._connection._play_context.no_log = quiet  # noqa: SLF001
        done: dict[str, Any] = self._action._low_level_execute_command(  # noqa: SLF001
            command, in_data=data, encoding_errors="replace"
        )
        return done

    def _why(self) -> str:
        try:
            self._execute("true", b"\n", quiet=False)
        except AnsibleError as error:
            return _one_line(error)
        return "it broke, and could be made again"

    def _error(self, what: str, found: str, remedy: str = "") -> Exception:
        error: Exception = self._host_error(what, where=self._host, found=found, remedy=remedy)
        return error


def _one_line(error: AnsibleError) -> str:
    return " ".join(str(error).split())[:300]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Lets Ctrl-C wait until the host is as intended, or as before: Ansible would end the worker in between."""
    caught: list[int] = []
    before = {one: signal.signal(one, lambda number, _: caught.append(number)) for one in _STOPS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if caught:
            os.kill(os.getpid(), caught[0])


_STOPS = (signal.SIGINT, signal.SIGTERM)


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() in {"true", "yes", "on", "1"}


def _package() -> tuple[Any, Any, Any, Any]:
    # Here, not at the top: where the package is missing, this says so in one line instead of a traceback.
    try:
        from fabric.errors import HostError
        from fabric.host import SshExecutor
        from fabric.remote.ssh import ExecResult
        from fabric.workflow import ansible_host
    except ImportError as error:
        raise AnsibleActionFail(
            f"fabricctl is not installed in the Python that runs ansible-playbook ({sys.executable}): {error}. "
            f"Run: {sys.executable} -m pip install fabricctl, or call the ansible-playbook beside fabricctl"
        ) from None  # Ansible would print the cause a second time
    return ansible_host, SshExecutor, HostError, ExecResult
