"""The Ansible action `fabricctl_host`: lends `fabric.workflow` Ansible's own connection to one host.

It must hold no logic: what is read, changed and written is decided there. What is here is how Ansible executes one
shell line, with its SSH, become, proxies and control sockets, and no Python on the host.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

# At the top: Ansible loads this once, and each of its workers, one a task and host, would take a second to import it
# anew. Where the package is missing, the task says so in one line.
_ENTRY: Any = None
_MISSING = ""
try:
    from fabric.workflow import host_entry

    _ENTRY = host_entry
except ImportError as error:
    _MISSING = str(error)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """One part of one host."""

    _VALID_ARGS = frozenset({"disruptive", "hold", "of", "part", "run"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns Ansible's result: changed, failed or unreachable, msg, diff."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        host = str((task_vars or {}).get("inventory_hostname", ""))
        entry = _entry()
        with undisturbed():
            answer = entry(host, dict(self._task.args), executing(self), check_mode=bool(self._task.check_mode))
        result |= answer
        diff = answer.get("diff")
        result["diff"] = {"prepared": f"{diff}\n"} if diff else []
        return result


def executing(action: ActionBase) -> Callable[[str, bytes], dict[str, Any]]:
    """Returns what has one shell line executed on the host of the action: `rc`, `stdout`, `stderr`; or why not."""

    def execute(line: str, data: bytes) -> dict[str, Any]:
        try:
            return _executed(action, line, data, quiet=True)
        except AnsibleConnectionFailure:
            return {"lost": _why(action)}
        except AnsibleError as error:
            return {"refused": _one_line(error)}

    return execute


def _executed(action: Any, line: str, data: bytes, *, quiet: bool) -> dict[str, Any]:
    # quiet: -vvv would print what commands print, and files with secrets are compared. Ansible hides it, and why a
    # connection failed with it. The connection has a context of its own, renewed for each task.
    action._connection._play_context.no_log = quiet  # noqa: SLF001
    done: dict[str, Any] = action._low_level_execute_command(line, in_data=data, encoding_errors="replace")  # noqa: SLF001
    return done


def _why(action: Any) -> str:
    try:
        _executed(action, "true", b"\n", quiet=False)
    except AnsibleError as error:
        return _one_line(error)
    return "it broke, and could be made again"


def _one_line(error: AnsibleError) -> str:
    return " ".join(str(error).replace("@", " ").split())[:1500]  # ssh draws a box of @ around a changed host key


@contextmanager
def undisturbed() -> Iterator[None]:
    """Lets Ctrl-C wait until the host is as intended, or as before: Ansible would end the worker in between."""
    caught: list[int] = []
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, lambda number, _: caught.append(number)) for one in stops}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if caught:
            os.kill(os.getpid(), caught[0])


def _entry() -> Any:
    if _ENTRY is None:
        raise AnsibleActionFail(
            f"fabricctl is not installed in the Python that runs ansible-playbook ({sys.executable}): {_MISSING}. "
            f"Run: {sys.executable} -m pip install fabricctl, or call the ansible-playbook beside fabricctl"
        )
    return _ENTRY
