"""One host's agent: logs in, unpacks the engine into a private folder, starts it there, ends it.

The folder is the login user's alone. The shell that holds the agent removes it when the agent ends, however that comes
about; where no shell came to be, whoever unpacked it does.
"""

import re
import select
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fabric.errors import ConnectError, FabricError, HostError
from fabric.intent import DeviceAccess
from fabric.push.sessions.target import ssh_target
from fabric.remote.process import Process
from fabric.remote.ssh import SshClient
from fabric.serial import Json, SerialError, parse_json
from fabric.workflow.environment import Environment

__all__ = ("REMEDY", "AgentHost", "close_host", "ended", "open_host", "parsed")

REMEDY: Final = "Look at the host's load and its targets; then run again."

_PROTOCOL: Final = 1
_READY_S: Final = 30.0
_UNPACK_S: Final = 60.0
_CLOSE_S: Final = 10.0

_UNPACK: Final = """\
umask 077
folder=$(mktemp -d "${TMPDIR:-/tmp}/fabricctl.XXXXXXXXXX") || exit 1
if tar -xzf - -C "$folder"; then printf '%s' "$folder"; else rm -rf -- "$folder"; exit 1; fi
"""
# -E and -s: nothing of the user's own Python; -B: nothing is written. The module is found in the current folder.
_SERVE: Final = """\
trap 'cd /; rm -rf -- "$1"' EXIT
cd "$1" || exit 1
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'
then python3 -EsB -m fabric.engine.load
else echo 'Python 3.11 or newer is missing' >&2; exit 1
fi
"""
_FOLDER: Final = re.compile(r"/[\w./-]*/fabricctl\.[A-Za-z0-9]{10}")  # it is given to rm -rf


@dataclass(slots=True)
class AgentHost:
    """One host with a running agent. `offset_s`: its clock less ours."""

    name: str
    client: SshClient
    process: Process
    folder: str
    offset_s: float = 0.0


def open_host(access: DeviceAccess | None, name: str, archive: bytes, environment: Environment) -> AgentHost:
    """Returns a running agent.

    Args:
        access: how to log in, None when the inventory does not say.
        name: of the host.
        archive: what `remote.bundle.pack` returned.
        environment: the clock.

    Raises:
        AuthError: host key or credentials.
        ConnectError: it cannot be reached, or was lost on the way.
        HostError: it cannot run an agent.
    """
    if access is None:
        raise ConnectError(
            "the inventory does not say how to reach it",
            where=name,
            remedy="Give it ansible_host, ansible_user and a password or key.",
        )
    client = SshClient(ssh_target(access), clock=environment.clock)
    client.open()
    try:
        folder = _unpacked(client, name, archive)
        become = ("sudo", "-n") if access.become else ()
        process = client.open_process([*become, "sh", "-c", _SERVE, "fabricctl", folder])
        try:
            _await_ready(process, name, environment)
        except HostError:
            process.close(timeout_s=_CLOSE_S)
            client.exec(["rm", "-rf", "--", folder])  # sudo may have refused, and then no shell removes it
            raise
    except BaseException:  # Ctrl-C too must leave no session
        client.close()
        raise
    return AgentHost(name, client, process, folder)


def _unpacked(client: SshClient, name: str, archive: bytes) -> str:
    done = client.exec(["sh", "-c", _UNPACK], stdin=archive, timeout_s=_UNPACK_S)
    folder = done.stdout.strip()
    if not done.ok or not _FOLDER.fullmatch(folder):
        found = done.stderr.strip().rpartition("\n")[2] or folder
        remedy = "Check the room in its temporary folder, and that it has sh, mktemp and tar."
        raise HostError("the engine could not be unpacked", where=name, found=found, remedy=remedy)
    return folder


def _await_ready(process: Process, name: str, environment: Environment) -> None:
    end_ns = environment.clock.now_ns() + round(_READY_S * 1e9)
    poller = select.poll()
    poller.register(process.fileno(), select.POLLIN)
    while (left_ns := end_ns - environment.clock.now_ns()) > 0:
        poller.poll(left_ns // 1_000_000 + 1)
        for line in process.lines():
            told = parsed(line)
            if told.get("event") == "ready" and told.get("protocol") == _PROTOCOL:
                return
        if process.is_ended:
            raise ended(name, process)
    raise HostError("the agent did not begin in time", where=name, expected=f"within {_READY_S:g} s", remedy=REMEDY)


def ended(name: str, process: Process) -> FabricError:
    """Returns the error for an agent that has ended by itself, with its last words."""
    said = process.errors.strip().rpartition("\n")[2]
    if process.status is None:
        return ConnectError("the session with the agent was lost", where=name, found=said)
    remedy = "It needs Python 3.11 or newer, and sudo without a password where ansible_become is set."
    return HostError(f"the agent ended with status {process.status}", where=name, found=said, remedy=remedy)


def parsed(line: str) -> dict[str, Json]:
    """Returns what an agent said; {} for a line that is no JSON object."""
    try:
        data = parse_json(line)
    except SerialError:
        return {}
    return data if isinstance(data, dict) else {}


def close_host(host: AgentHost) -> None:
    """Ends the agent by ending its input, and logs out."""
    try:
        with suppress(ConnectError):
            host.process.close(timeout_s=_CLOSE_S)
    finally:
        host.client.close()
