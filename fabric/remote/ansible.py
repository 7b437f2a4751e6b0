"""The one way to Ansible: reading an inventory with its own loader, and running a playbook through ansible-runner.

It knows how Ansible is called and what it leaves behind; it does not know what a variable means. The choice of
an own reader, and what it was measured against, is in docs/decisions/0002-reading-the-inventory.md.
"""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fabric.errors import EnvironmentMissingError, HostError, IntentError, Problem
from fabric.observe import Event, Observer, silent
from fabric.remote._running import Stopper, control_folder
from fabric.remote.hostkeys import NOT_TOLD, STRICT, host_key_refusal, looked_up
from fabric.resources import data_path
from fabric.serial import Json

__all__ = (
    "CONNECTION_VARIABLES",
    "HOLDER_VARIABLE",
    "PlaybookRun",
    "RawHost",
    "RawInventory",
    "RawProblem",
    "VaultOptions",
    "read_inventory",
    "run_playbook",
)

CONNECTION_VARIABLES: Final = {
    # in Ansible's order, the last one set wins: ansible-core 2.19, plugins/connection/ssh.py, plugins/become/enable.py
    "host": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "username": ("ansible_user", "ansible_ssh_user"),
    "password": ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
    "private_key": ("ansible_private_key_file", "ansible_ssh_private_key_file"),
    "become": ("ansible_become",),
    "enable_secret": ("ansible_become_password", "ansible_become_pass", "ansible_enable_pass"),
}

HOLDER_VARIABLE: Final = "FABRICCTL_HOLDER"
"""Tells the playbooks' plug-ins which process the run is: it lasts over all playbooks of the run."""

_READER: Final = Path(__file__).with_name("_inventory_reader.py")
# Ansible's defaults turn these into warnings, and a broken inventory into an empty one.
_STRICT: Final = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    "ANSIBLE_DUPLICATE_YAML_DICT_KEY": "error",
    "ANSIBLE_NOCOLOR": "true",
    "LC_ALL": "C.UTF-8",  # ansible-core refuses to start in another encoding
}


@dataclass(frozen=True, slots=True)
class VaultOptions:
    """How to open vaulted files and values; ansible.cfg and ANSIBLE_VAULT_* count too, as for ansible-playbook.

    Attributes:
        password_files: files, or executable scripts that print the password.
        ids: `label@file`, as `--vault-id` takes them.
        secrets: label and password, from memory: a prompt, or a playbook that has them already. Never in repr.
    """

    password_files: tuple[Path, ...] = ()
    ids: tuple[str, ...] = ()
    secrets: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class RawHost:
    """One host of an inventory.

    Attributes:
        groups: its groups, `all` first, the strongest last.
        variables: name → index into `RawInventory.values`.
    """

    groups: tuple[str, ...]
    variables: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RawProblem:
    """What Ansible could not read: a whole source (`source`, perhaps with the line), or one variable of one host."""

    message: str
    host: str = ""
    variable: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class RawInventory:
    """An inventory after Ansible: groups merged, Jinja rendered, vault opened.

    Attributes:
        values: the distinct values; never in repr, some are secrets.
        hidden: indices of values that came out of a vault, which no message may show.
        hosts: every host. selected: those that the limit leaves.
        warnings: what Ansible said and went on.
    """

    hosts: Mapping[str, RawHost]
    values: Sequence[Json] = field(repr=False)
    hidden: frozenset[int] = frozenset()
    selected: tuple[str, ...] = ()
    problems: tuple[RawProblem, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaybookRun:
    """How a playbook ended.

    Attributes:
        status: `successful`, `failed`, `timeout`, or `canceled` (Ctrl-C).
        exit_code: ansible-playbook's; 254 when it was killed.
        failed_hosts: hosts with a failed task or without a connection, sorted.
        is_changed: any task of any host changed something.
        reasons: host → what Ansible said of its first failure.
        unreachable: those of `failed_hosts` to which there was no connection, or no more.
        said: what ansible-playbook complained of on the whole, "" for nothing.
    """

    status: str
    exit_code: int
    failed_hosts: tuple[str, ...]
    is_changed: bool
    reasons: Mapping[str, str] = field(default_factory=dict)
    unreachable: tuple[str, ...] = ()
    said: str = ""

    @property
    def is_ok(self) -> bool:
        """Returns whether every task of every host went well."""
        return self.status == "successful"


def read_inventory(
    sources: Sequence[Path],
    *,
    vault: VaultOptions | None = None,
    limit: str = "",
    extra_vars: Mapping[str, Json] | None = None,
    once: Iterable[str] = (),
    prefixes: Sequence[str] = ("fabric_",),
    timeout_s: float = 300,
) -> RawInventory:
    """Returns what Ansible makes of the sources, for the `fabric_*` and the connection variables.

    Args:
        sources: files, folders and executable scripts, as `ansible-playbook -i` takes them; the last one wins.
        vault: how to open vaulted parts.
        limit: an Ansible host pattern, "" for all.
        extra_vars: as `ansible-playbook -e`.
        once: variables that are the same for all hosts: a template in them is rendered for the first host only.
        prefixes: how the names of the wanted variables begin, beside the connection variables.
        timeout_s: how long Ansible and the dynamic sources may take.

    Raises:
        EnvironmentMissingError: ansible-core is not here.
        IntentError: Ansible itself broke, or took too long.
    """
    vault = vault or VaultOptions()
    request = {
        "sources": [_source(source) for source in sources],
        "limit": limit,
        "extra_vars": extra_vars or {},
        "playbook_dir": str(data_path("playbooks")),  # group_vars beside the playbooks count for both
        "vault_ids": list(vault.ids),
        "vault_password_files": [str(path.absolute()) for path in vault.password_files],
        "vault_secrets": [[label, base64.b64encode(secret).decode()] for label, secret in vault.secrets],
        "prefixes": list(prefixes),
        "names": [name for names in CONNECTION_VARIABLES.values() for name in names],
        "once": list(once),
    }
    reply = _ask_reader(request, timeout_s)
    hosts = {
        name: RawHost(groups=tuple(host["groups"]), variables=host["vars"]) for name, host in reply["hosts"].items()
    }
    return RawInventory(
        hosts=hosts,
        values=reply["values"],
        hidden=frozenset(reply["hidden"]),
        selected=tuple(reply["selected"]),
        problems=tuple(_problems(reply)),
        warnings=tuple(failure["message"] for failure in reply["failures"]),
    )


def _source(source: Path) -> str:
    text = str(source)
    return text if "," in text else str(source.absolute())  # `leaf1,leaf2` is a list of hosts


def _ask_reader(request: Mapping[str, object], timeout_s: float) -> dict[str, Any]:
    # -P keeps this folder off the path: `import ansible` must not find this file
    argv = [sys.executable, "-P", str(_READER)]
    with tempfile.TemporaryDirectory(prefix="fabric-ansible-") as scratch:  # mode 0700, and nothing is written there
        environment = {**os.environ, **_STRICT, "ANSIBLE_LOCAL_TEMP": scratch}
        try:
            done = subprocess.run(
                argv,
                input=json.dumps(request),
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=timeout_s,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            what = f"Ansible did not read the inventory within {timeout_s:g} s"
            raise IntentError([Problem(what, remedy="Look for a dynamic source that hangs.")]) from error
    if done.returncode != 0:
        raise _broken(done.stderr)
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


def _broken(stderr: str) -> EnvironmentMissingError | IntentError:
    last = (stderr.strip().splitlines() or ["it said nothing"])[-1]
    if "ModuleNotFoundError" in last:
        return EnvironmentMissingError(
            "ansible-core is not installed for this Python", found=last, remedy="Run: pip install ansible-core"
        )
    return IntentError([Problem("Ansible broke while it read the inventory", found=last)])


def _problems(reply: Mapping[str, Any]) -> Iterable[RawProblem]:
    for error in reply["errors"]:
        message = error["message"]
        head, _, source = message.partition("Completely failed to parse inventory source ")
        if head or not source:
            place = error.get("place", "")
            yield RawProblem(message, host=error.get("host", ""), variable=error.get("variable", ""), source=place)
        else:
            reason, place = _reason(source, reply["failures"])
            yield RawProblem(reason, source=place or source)
    for failure in reply["failures"]:
        if failure["message"].startswith("Skipping"):  # Ansible drops a part of the file and goes on
            yield RawProblem(failure["message"])


def _reason(source: str, failures: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Returns what the plug-in said whose kind of file this is, and where; Ansible tries all and prints refusals."""
    wanted = "yaml" if source.endswith((".yml", ".yaml", ".json")) else "script" if os.access(source, os.X_OK) else ""
    for failure in reversed(failures):
        if "Failed to parse inventory" in failure["about"] and f"'{wanted}" in failure["about"]:
            return failure["message"], failure.get("place", "")
    return "no inventory plug-in of Ansible reads it", ""


def run_playbook(  # noqa: PLR0913  each is an option of ansible-playbook
    playbook: Path,
    *,
    sources: Sequence[Path] = (),
    extra_vars: Mapping[str, Json] | None = None,
    vault: VaultOptions | None = None,
    limit: str = "",
    observer: Observer = silent,
    timeout_s: int = 3600,
    check: bool = False,
    forks: int = 0,
) -> PlaybookRun:
    """Returns how `ansible-playbook` ended; its events go to the observer.

    Whatever ansible-runner writes (events, environment, fact cache) lies in a folder of mode 0700 that is
    removed afterwards. Ctrl-C lets each host end what it is at, and gives the status `canceled`; a second one kills.

    Args:
        playbook: its path.
        sources: as for `read_inventory`.
        extra_vars: as `ansible-playbook -e`.
        vault: how to open vaulted parts.
        limit: an Ansible host pattern, "" for all.
        observer: hears of plays, tasks and failures.
        timeout_s: after this it is killed.
        check: in check mode, with diffs: nothing changes.
        forks: hosts at once; 0 for what Ansible is configured to.

    Raises:
        HostError: the playbook is not there.
        EnvironmentMissingError: ansible-runner is not here.
    """
    if not playbook.is_file():
        raise HostError("no such playbook", where=str(playbook))
    try:
        import ansible_runner  # lazy: 0.2 s, and needed by few verbs
    except ModuleNotFoundError as error:
        raise EnvironmentMissingError(
            "ansible-runner is not installed for this Python", remedy="Run: pip install ansible-runner"
        ) from error
    how: dict[str, Any] = {"vault": vault, "extra_vars": extra_vars, "prefixes": ("ansible_ssh_",)}
    vault = vault or VaultOptions()
    words = [*_vault_arguments(vault), *(["--check", "--diff"] if check else [])]
    words += [f"--forks={forks}"] if forks else []
    with (
        tempfile.TemporaryDirectory(prefix="fabric-runner-") as scratch,
        control_folder() as sockets,
        Stopper() as stopper,
    ):
        heard = _Heard(observer, stopper)
        run = ansible_runner.interface.run(
            private_data_dir=scratch,
            playbook=str(playbook.absolute()),
            inventory=[_source(source) for source in sources] or None,
            extravars=dict(extra_vars or {}),
            cmdline=shlex.join(words) or None,
            limit=limit or None,
            envvars=_runner_environment(sockets),
            settings={"pexpect_timeout": 1},  # how often `must_kill` is asked, in seconds
            event_handler=heard,
            status_handler=_Discreet(vault),
            cancel_callback=stopper.must_kill,  # without one, it takes the signals over and never gives them back
            quiet=True,
            timeout=timeout_s,
        )
        result = heard.result("canceled" if stopper.is_asked else run.status, run.rc)
    refused = [host for host, said in result.reasons.items() if NOT_TOLD in said]
    return _with_keys(result, refused, read_inventory(sources, **how)) if refused else result


def _with_keys(result: PlaybookRun, hosts: Sequence[str], inventory: RawInventory) -> PlaybookRun:
    """Returns the result with what is wrong with the host keys of `hosts`, which Ansible does not say."""
    reasons = dict(result.reasons)
    for host in hosts:
        row = inventory.hosts.get(host, RawHost((), {}))
        error = looked_up(host, {name: inventory.values[index] for name, index in row.variables.items()})
        reasons[host] = reasons[host] if error is None else str(error)
    return replace(result, reasons=reasons, unreachable=tuple(sorted({*result.unreachable, *hosts})))


class _Discreet:
    """Keeps secrets out of what ansible-runner writes: vault passwords, and the environment with whatever is in it.

    It is asked before the first file is written. What it changes lies in memory alone.
    """

    def __init__(self, vault: VaultOptions) -> None:
        self._answers = {
            re.compile(rf"Vault password \({re.escape(label)}\):\s*?$", re.MULTILINE): secret.decode()
            for label, secret in vault.secrets
        }

    def __call__(self, status: Mapping[str, Any], runner_config: Any) -> None:
        if status.get("status") == "starting":
            runner_config.expect_passwords = {**self._answers, **runner_config.expect_passwords}
            runner_config.env = _Unwritten(runner_config.env)


class _Unwritten(dict[str, str]):
    """An environment that tells nothing when it is asked first, which is for a file, and all after, for the process.

    Source: ansible-runner 2.4, Runner.run. Were it another way round, ansible-playbook would not be found.
    """

    _is_written = False

    def items(self) -> Any:
        """Returns no pair the first time."""
        asked, self._is_written = self._is_written, True
        return super().items() if asked else ()


def _runner_environment(sockets: Path) -> dict[str, str]:
    here = Path(sys.executable).parent
    package = Path(__file__).resolve().parent.parent.parent  # the plug-ins import the very package that runs here
    paths = {
        "PATH": (str(here), os.environ.get("PATH", "")),
        "PYTHONPATH": (str(package), os.environ.get("PYTHONPATH", "")),
    }
    alive = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"  # a host that dies amid a command would hang the play
    extra = os.environ.get("ANSIBLE_SSH_EXTRA_ARGS", alive)
    return {
        **_STRICT,
        **{name: os.pathsep.join(filter(None, parts)) for name, parts in paths.items()},
        HOLDER_VARIABLE: str(os.getpid()),
        "ANSIBLE_HOST_KEY_CHECKING": "true",  # ansible-runner would turn it off
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
        "ANSIBLE_SSH_EXTRA_ARGS": f"{extra} {STRICT}",
        "ANSIBLE_SSH_RETRIES": "0",  # whether a command was performed before the session broke, nobody knows
    }


def _vault_arguments(vault: VaultOptions) -> list[str]:
    arguments = [f"--vault-password-file={path.absolute()}" for path in vault.password_files]
    arguments += [f"--vault-id={one}" for one in vault.ids]
    return [*arguments, *(f"--vault-id={label}@prompt" for label, _ in vault.secrets)]


_KINDS: Final = {
    "playbook_on_start": "ansible.playbook.started",
    "playbook_on_task_start": "ansible.task.started",
    "runner_on_ok": "ansible.task.done",
    "runner_on_skipped": "ansible.task.done",
    "runner_on_failed": "ansible.task.failed",
    "runner_on_unreachable": "ansible.task.failed",
    "playbook_on_stats": "ansible.playbook.done",
}
_COMPLAINT: Final = re.compile(r"^(?:\[ERROR\]:|ERROR!) *(.+)")


class _Heard:
    """Hears ansible-runner's events: passes them on, and keeps what the whole comes to."""

    def __init__(self, observer: Observer, stopper: Stopper) -> None:
        self._observer = observer
        self._stopper = stopper
        self._reasons: dict[str, str] = {}
        self._unreachable: set[str] = set()
        self._is_changed = False
        self._said: list[str] = []

    def __call__(self, data: Mapping[str, Any]) -> bool:
        if data.get("event") == "playbook_on_start":
            self._stopper.watch(int(data["pid"]))
        self._note(str(data.get("event", "")), data.get("event_data", {}), str(data.get("stdout", "")))
        event = _event(data)
        if event is not None:
            self._observer(event)
        return False  # ansible-runner writes no file for the event

    def result(self, status: str, exit_code: int) -> PlaybookRun:
        return PlaybookRun(
            status=status,
            exit_code=exit_code,
            failed_hosts=tuple(sorted(self._reasons)),
            is_changed=self._is_changed,
            reasons=self._reasons,
            unreachable=tuple(sorted(self._unreachable)),
            said="; ".join(self._said),
        )

    def _note(self, event: str, details: Mapping[str, Any], printed: str) -> None:
        host, result = str(details.get("host", "")), details.get("res", {})
        if event == "verbose":
            self._said += [found[1] for line in printed.splitlines() if (found := _COMPLAINT.match(line))]
        elif event == "runner_on_unreachable" or (event == "runner_on_failed" and not details.get("ignore_errors")):
            said = _message(result) or f"the task {details.get('task', '')!r} failed"
            refusal = host_key_refusal(said, host)
            self._reasons.setdefault(host, said if refusal is None else str(refusal))
            if event == "runner_on_unreachable":
                self._unreachable.add(host)
        elif event == "runner_on_ok" and result.get("changed"):
            self._is_changed = True


def _message(result: Mapping[str, Any]) -> str:
    said = result.get("msg")
    return said if isinstance(said, str) and not result.get("_ansible_no_log") else ""


def _event(data: Mapping[str, Any]) -> Event | None:
    name = _KINDS.get(data.get("event", ""))
    if name is None:
        return None
    details = data.get("event_data", {})
    task, result = str(details.get("task", "")), details.get("res", {})
    said = _message(result) if name.endswith("failed") else ""
    return Event(
        name=name,
        device=str(details.get("host", "")),
        message=f"{task}: {said}" if said else task,
        data={
            "changed": bool(result.get("changed")),
            "skipped": data.get("event") == "runner_on_skipped",
            "action": str(details.get("task_action", "")),
        },
    )
