"""SONiC: checkpoint, dry run, a deadman of ours in systemd, apply-patch; first install by reload. Knows no table.

SONiC has no commit-confirm, and on an error its updater "does not take any automatic action". So before anything is
applied, `systemd-run` is told to bring the device back after `confirm_s`; confirming is stopping that timer. An
ordinary change goes back by `config rollback`. A disruptive one replaces the whole configuration with `config reload`,
and goes back by reloading the configuration from before, which lies on the device in a file of mode 0600.
Neither touches what the device boots with until `config save`.

Source: switches.md 1.1 (sonic-utilities config/main.py, doc/config-generic-update-rollback). Unconfirmed: that
`systemctl stop` of a transient timer which has run fails with "not loaded" (systemd-run sets RemainAfterElapse=no).
"""

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fabric.clock import Clock
from fabric.errors import CommandRejectedError, CommitTimeoutError, ConnectError, DeviceError, RollbackFailedError
from fabric.intent.access import DeviceAccess
from fabric.nos.base import SessionSpec
from fabric.push.session import StagedChange
from fabric.push.sessions.target import ssh_target
from fabric.push.words import safe
from fabric.remote.ssh import ExecResult, SshClient

__all__ = ("SonicSession", "refusal")

_SHOW_S: Final = 120.0
_CHANGE_S: Final = 600.0  # the patch sorter takes minutes on a large change
_ILLEGAL: Final = re.compile(r"Modification of \S+ table is illegal[^\n]*")
_ERROR_LINE: Final = re.compile(r"(?im)^.*\b(?:error|failed|fail|refused|invalid|not found|doesn't exist)\b.*$")


def refusal(result: ExecResult) -> str:
    """Returns the device's own reason in what a failed command printed: the updater's verdict if there is one."""
    text = f"{result.stdout}\n{result.stderr}"
    if found := _ILLEGAL.search(text):
        return safe(found[0], limit=500)
    errors = _ERROR_LINE.findall(text)
    words = errors[-1] if errors else text.strip()[-500:]
    return safe(words, limit=500) or f"exit status {result.status}, no words"


class SonicSession:
    """A session with a SONiC device; satisfies `DeviceSession`."""

    def __init__(self, access: DeviceAccess, spec: SessionSpec, *, clock: Clock) -> None:
        self._device = access.device
        self._spec = spec
        self._ssh = SshClient(ssh_target(access), clock=clock)
        self._home = ""
        self._running = ""  # as last fetched
        self._checkpointed = False
        self._armed = False
        self._may_be_saved = False  # a saving that got no answer may have been done
        self._was_save_refused = False

    def open(self) -> None:
        """Connects and checks the host key."""
        self._ssh.open()

    def fetch(self) -> str:
        """Returns the running configuration as JSON text."""
        self._running = self.run(self._spec.fetch)
        return self._running

    def run(self, command: str) -> str:
        """Returns the standard output of a read-only command.

        Raises:
            CommandRejectedError: its exit status is not 0.
        """
        return self._must(shlex.split(command), timeout_s=_SHOW_S).stdout

    def stage(self, change: StagedChange) -> str:
        """Uploads the change and lets the device judge it; returns what its dry run says.

        Raises:
            CommandRejectedError: the device refused; nothing of the change is left on it.
        """
        self._home = self._ssh.home()
        # for the deadman of a disruptive change, and for the recovery commands of any
        self._ssh.put(self._path(change, "before"), (self._running or self.fetch()).encode())
        if change.disruptive:
            self._ssh.put(self._path(change, "full"), change.full_config.encode())
            return ""
        self._ssh.put(self._path(change, "patch"), change.payload.encode())
        self._must(["sudo", "config", "checkpoint", _checkpoint(change)], timeout_s=_SHOW_S)
        self._checkpointed = True
        words = self._must(["sudo", "config", "apply-patch", "-d", self._path(change, "patch")])
        return words.stdout

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        """Arms the deadman, then applies.

        Raises:
            CommandRejectedError: the deadman could not be armed, or the change was refused, perhaps half way.
        """
        self._armed = True
        self._must(
            [
                "sudo",
                "systemd-run",
                f"--on-active={confirm_s}s",
                "--timer-property=AccuracySec=1s",  # systemd's default lets a timer run a minute late
                f"--unit={_unit(change)}",
                *self._way_back(change),
            ],
            timeout_s=_SHOW_S,
        )
        if not change.disruptive:
            self._must(["sudo", "config", "apply-patch", self._path(change, "patch")])
            return
        with suppress(ConnectError):  # a reload restarts the network: the fresh connection will tell
            self._reload(change, "full")

    def confirm(self, change: StagedChange) -> None:
        """Stops the deadman's timer.

        Raises:
            CommitTimeoutError: it is not running any more.
        """
        result = self._stop_deadman(change)
        if not result.ok:
            raise CommitTimeoutError(
                "the deadman's timer was gone before the confirmation", where=self._device, found=refusal(result)
            )

    def save(self, change: StagedChange) -> None:
        """Writes the running configuration to config_db.json; then removes our files and the checkpoint."""
        before, self._may_be_saved = self._may_be_saved, True
        try:
            self._save()
        except CommandRejectedError:
            self._may_be_saved, self._was_save_refused = before, True
            raise
        with suppress(DeviceError):  # it is saved; leftovers under our name have no effect
            self._clean(change)

    def revert(self, change: StagedChange) -> None:
        """Goes back now; the deadman is stopped only after that.

        Raises:
            RollbackFailedError: the updater refused: its field validators hold for a rollback too.
            CommandRejectedError: it failed otherwise; the deadman is still armed.
        """
        if change.disruptive:
            # lost here, nobody knows whether it is done: the deadman must stay armed, or somebody must look
            self._reload(change, "before", then_save=self._may_be_saved or self._was_save_refused)
            with suppress(ConnectError):  # the reload cuts the session a moment later; `discard` stops it too
                self._stop_deadman(change)
            return
        result = self._exec(["sudo", *self._way_back(change)])
        if not result.ok:
            kind = RollbackFailedError if _ILLEGAL.search(result.stdout + result.stderr) else CommandRejectedError
            raise kind("the device refused its rollback", where=self._device, found=refusal(result))
        self._stop_deadman(change)
        self._save_again()

    def discard(self, change: StagedChange) -> None:
        """Removes our files, the checkpoint and, if it was armed, the deadman."""
        if self._armed:
            self._stop_deadman(change)
        self._clean(change)

    def recovery(self, change: StagedChange) -> tuple[str, ...]:
        """Returns the commands that stop the deadman and load the configuration from before; this cuts traffic."""
        before = self._path(change, "before")
        commands = (
            f"sudo systemctl stop {_unit(change)}.timer",
            f"sudo config reload -y -f {shlex.quote(before)}",
        )
        return (*commands, "sudo config save -y") if self._may_be_saved else commands

    def close(self) -> None:
        """Ends the session."""
        self._ssh.close()

    def _way_back(self, change: StagedChange) -> list[str]:
        if change.disruptive:
            return ["config", "reload", "-y", "-f", self._path(change, "before")]
        return ["config", "rollback", _checkpoint(change)]

    def _save(self) -> None:
        self._must(["sudo", "config", "save", "-y"])

    def _save_again(self) -> None:
        """Saves what was taken back, where what it was taken back from may have been saved."""
        if self._may_be_saved:
            self._save()
        elif self._was_save_refused:
            with suppress(CommandRejectedError):  # it writes the file in place: a refused one may have cut it off
                self._save()

    def _stop_deadman(self, change: StagedChange) -> ExecResult:
        return self._exec(["sudo", "systemctl", "stop", f"{_unit(change)}.timer"], timeout_s=_SHOW_S)

    def _reload(self, change: StagedChange, kind: str, *, then_save: bool = False) -> None:
        """Loads a whole configuration, in a unit of its own: a session that dies must not break it off.

        Source: systemd-run(1): with --wait the exit status is that of the command; its output is in the journal.
        """
        unit = f"{_unit(change)}-{kind}"
        command = ["config", "reload", "-y", "-f", self._path(change, kind)]
        if then_save:
            command = ["sh", "-c", f"{shlex.join(command)} && config save -y"]
        result = self._exec(["sudo", "systemd-run", "--wait", "--collect", "--quiet", f"--unit={unit}", *command])
        if not result.ok:
            journal = self._exec(["sudo", "journalctl", "--no-pager", "-o", "cat", "-u", unit], timeout_s=_SHOW_S)
            raise CommandRejectedError(
                f"the device refused {shlex.join(command)!r}",
                where=self._device,
                found=journal.stdout.strip() or refusal(result),
            )

    def _clean(self, change: StagedChange) -> None:
        for kind in ("patch", "full", "before"):
            self._ssh.remove(self._path(change, kind))
        if self._checkpointed:
            self._must(["sudo", "config", "delete-checkpoint", _checkpoint(change)], timeout_s=_SHOW_S)

    def _path(self, change: StagedChange, kind: str) -> str:
        return f"{self._home}/fabricctl-{change.transaction}.{kind}.json"

    def _exec(self, argv: Sequence[str], *, timeout_s: float = _CHANGE_S) -> ExecResult:
        return self._ssh.exec(argv, timeout_s=timeout_s)

    def _must(self, argv: Sequence[str], *, timeout_s: float = _CHANGE_S) -> ExecResult:
        result = self._exec(argv, timeout_s=timeout_s)
        if not result.ok:
            raise CommandRejectedError(
                f"the device refused {shlex.join(argv)!r}", where=self._device, found=refusal(result)
            )
        return result


def _checkpoint(change: StagedChange) -> str:
    return f"fabricctl-{change.transaction}"


def _unit(change: StagedChange) -> str:
    return f"fabricctl-deadman-{change.transaction}"
