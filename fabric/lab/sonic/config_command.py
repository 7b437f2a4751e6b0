"""The `config` command of an emulated SONiC. Wordings: sonic-utilities config/main.py (read); else `unconfirmed`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fabric.errors import FabricError
from fabric.lab.device import Reply
from fabric.lab.sonic.configdb import copy_database, merge, read_database, write_database
from fabric.lab.sonic.updater import UpdateRefusedError

if TYPE_CHECKING:
    from fabric.lab.sonic.device import SonicDevice
    from fabric.lab.sonic.shell import Process

__all__ = ("STARTUP", "config_command")

STARTUP: Final = "/etc/sonic/config_db.json"
_WITH_VALUE: Final = ("-f", "--format", "-i", "--ignore-path", "-n", "--namespace", "-p", "--path-trace")
_DRY_RUN: Final = "** DRY RUN EXECUTION **\n"  # source: sonic-utilities, DryRun in generic_updater (unconfirmed)


@dataclass(frozen=True, slots=True)
class _Options:
    flags: frozenset[str]
    values: Mapping[str, str]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        return any(name in self.flags for name in names)


def config_command(device: "SonicDevice", process: "Process") -> Reply:
    """Returns the answer to `config …`."""
    if process.user != "root":
        return Reply(error="Root privileges are required for this operation\n", exit_status=1)
    verb = process.argv[1] if len(process.argv) > 1 else ""
    action = _VERBS.get(verb)
    if action is None:
        return _usage("config", f'No such command "{verb}".')
    takes_value = _WITH_VALUE if verb in {"apply-patch", "replace"} else ()
    return action(device, _options(process.argv[2:], takes_value), process.folder)


def _options(arguments: Sequence[str], takes_value: Sequence[str]) -> _Options:
    flags: set[str] = set()
    values: dict[str, str] = {}
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        one = rest.pop(0)
        name, has_value, value = one.partition("=")
        if not one.startswith("-"):
            operands.append(one)
        elif name in takes_value:
            values[name] = value if has_value else rest.pop(0) if rest else ""
        else:
            flags.add(one)
    return _Options(frozenset(flags), values, tuple(operands))


def _usage(command: str, message: str) -> Reply:
    """Returns click's way of failing."""
    return Reply(error=f'Usage: {command} [OPTIONS]\nTry "{command} -h" for help.\n\nError: {message}\n', exit_status=2)


def _refused(command: str, what: str, error: Exception) -> Reply:
    usage = _usage(command, str(error))
    return Reply(error=f"Failed to {what} due to: {error}\n{usage.error}", exit_status=2)


def _apply_patch(device: "SonicDevice", options: _Options, folder: str) -> Reply:
    if len(options.operands) != 1:
        return _usage("config apply-patch", 'Missing argument "PATCH_FILE_PATH".')
    if options.values.get("-f", options.values.get("--format", "CONFIGDB")) != "CONFIGDB":
        return _usage("config apply-patch", "only the format CONFIGDB is emulated")
    dry_run = options.has("-d", "--dry-run")
    try:
        text = device.files.read(device.files.absolute(options.operands[0], folder)).decode()
        device.updater.patch(text, dry_run=dry_run)
    except (UpdateRefusedError, OSError) as error:
        return _refused("config apply-patch", "apply patch", error)
    log = (
        "Patch Applier: localhost: Patch application starting.\nPatch Applier: localhost patch application completed.\n"
    )
    return Reply(f"{_DRY_RUN if dry_run else ''}{log}Patch applied successfully.\n")


def _replace(device: "SonicDevice", options: _Options, folder: str) -> Reply:
    if len(options.operands) != 1:
        return _usage("config replace", 'Missing argument "TARGET_FILE_PATH".')
    try:
        text = device.files.read(device.files.absolute(options.operands[0], folder)).decode()
        device.updater.replace(text, dry_run=options.has("-d", "--dry-run"))
    except (UpdateRefusedError, OSError) as error:
        return _refused("config replace", "replace config", error)
    return Reply("Config replaced successfully.\n")


def _rollback(device: "SonicDevice", options: _Options, _folder: str) -> Reply:
    if len(options.operands) != 1:
        return _usage("config rollback", 'Missing argument "CHECKPOINT_NAME".')
    try:
        device.updater.rollback(options.operands[0], dry_run=options.has("-d", "--dry-run"))
    except UpdateRefusedError as error:
        return _refused("config rollback", "rollback config", error)
    return Reply("Config rolled back successfully.\n")


def _checkpoint(device: "SonicDevice", options: _Options, _folder: str) -> Reply:
    if len(options.operands) != 1:
        return _usage("config checkpoint", 'Missing argument "CHECKPOINT_NAME".')
    device.updater.checkpoint(options.operands[0])
    return Reply("Checkpoint created successfully.\n")


def _delete_checkpoint(device: "SonicDevice", options: _Options, _folder: str) -> Reply:
    if len(options.operands) != 1:
        return _usage("config delete-checkpoint", 'Missing argument "CHECKPOINT_NAME".')
    try:
        device.updater.delete(options.operands[0])
    except UpdateRefusedError as error:
        return _refused("config delete-checkpoint", "delete config checkpoint", error)
    return Reply("Checkpoint deleted successfully.\n")


def _list_checkpoints(device: "SonicDevice", _options: _Options, _folder: str) -> Reply:
    return Reply(json.dumps(list(device.updater.names()), indent=4) + "\n")


def _save(device: "SonicDevice", options: _Options, folder: str) -> Reply:
    if not options.has("-y", "--yes"):
        return _aborted("Existing file will be overwritten, continue? [y/N]: ")
    path = device.files.absolute(options.operands[0], folder) if options.operands else STARTUP
    try:
        device.files.write(path, write_database(device.database).encode(), user="root")
    except OSError as error:
        return _usage("config save", str(error))
    return Reply(f"Running command: /usr/local/bin/sonic-cfggen -d --print-data > {path}\n")


def _load(device: "SonicDevice", options: _Options, folder: str) -> Reply:
    if not options.has("-y", "--yes"):
        return _aborted("Load config from the file(s)? [y/N]: ")
    path = device.files.absolute(options.operands[0], folder) if options.operands else STARTUP
    try:
        more = read_database(device.files.read(path).decode(), where=path)
    except (OSError, FabricError) as error:
        return _usage("config load", str(error))
    database = copy_database(device.database)
    merge(database, more)
    device.set_database(database)
    return Reply(f"Running command: /usr/local/bin/sonic-cfggen -j {path} --write-to-db\n")


def _reload(device: "SonicDevice", options: _Options, folder: str) -> Reply:
    if not options.has("-y", "--yes"):
        return _aborted("Clear current config and reload config from the file? [y/N]: ")
    path = device.files.absolute(options.operands[0], folder) if options.operands else STARTUP
    try:
        database = read_database(device.files.read(path).decode(), where=path)
    except (OSError, FabricError) as error:
        return _usage("config reload", str(error))
    device.set_database(copy_database(database))
    device.reloads += 1
    device.request_outage(device.spec.reload_s)
    return Reply(
        "Acquired lock on /etc/sonic/reload.lock\nDisabling container and routing services...\n"
        "Stopping SONiC target ...\n"
        f"Running command: /usr/local/bin/sonic-cfggen -j {path} --write-to-db\n"
        "Restarting SONiC target ...\nReleased lock on /etc/sonic/reload.lock\n"
    )


def _aborted(question: str) -> Reply:
    return Reply(question, "Aborted!\n", 1)


_Action = Callable[["SonicDevice", _Options, str], Reply]
_VERBS: Final[Mapping[str, _Action]] = {
    "apply-patch": _apply_patch,
    "checkpoint": _checkpoint,
    "delete-checkpoint": _delete_checkpoint,
    "list-checkpoints": _list_checkpoints,
    "load": _load,
    "reload": _reload,
    "replace": _replace,
    "rollback": _rollback,
    "save": _save,
}
