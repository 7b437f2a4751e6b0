"""Arista EOS: a configuration session, its diff, a commit timer. Knows the CLI's verbs, no QoS.

The commit is confirmed from a fresh connection, which proves that the change did not cut off management.
Source: switches.md 1.4 (NAPALM's eos driver uses the same commands for revert_in). What an existing or missing session
answers to `commit` and `abort` is unconfirmed; nothing below depends on more than a `%` line in a refusal.
"""

import re
from contextlib import suppress
from enum import Enum
from typing import Final

from fabric.clock import Clock
from fabric.errors import CommandRejectedError, CommitTimeoutError, RollbackFailedError
from fabric.intent.access import DeviceAccess
from fabric.nos.base import SessionSpec
from fabric.push.session import StagedChange
from fabric.push.sessions.netmiko_cli import NetmikoCli
from fabric.push.sessions.target import ssh_target
from fabric.push.words import refused_control, safe

__all__ = ("EosSession",)

_LINE_S: Final = 30.0
_SLOW_S: Final = 180.0  # whole configurations, commits of large sessions
_REFUSAL: Final = r"^\s*% ?\S"  # EOS puts a per cent sign before every refusal, a `!` before a mere warning


class _Confirmation(Enum):
    NOT_SENT = "not sent"
    SENT = "sent"
    DONE = "done"


class EosSession:
    """A session with an EOS device; satisfies `DeviceSession`."""

    def __init__(self, access: DeviceAccess, spec: SessionSpec, *, clock: Clock) -> None:
        self._device = access.device
        self._spec = spec
        self._cli = NetmikoCli(ssh_target(access), spec.device_type, enable_secret=access.enable_secret, clock=clock)
        self._refusals = tuple(re.compile(pattern, re.MULTILINE) for pattern in (_REFUSAL, *spec.error_patterns))
        self._inside = ""  # name of the configuration session in whose mode the command line is
        self._entered = ""  # name of the one that was entered and not aborted, as far as we know
        self._confirmation = _Confirmation.NOT_SENT
        self._may_be_saved = False  # a saving that got no answer may have been done

    def open(self) -> None:
        """Connects, checks the host key, enters privileged mode."""
        self._inside = ""
        self._cli.open()

    def fetch(self) -> str:
        """Returns the running configuration."""
        return self.run(self._spec.fetch)

    def run(self, command: str) -> str:
        """Returns the output of a read-only command.

        Raises:
            CommandRejectedError: the device does not know it.
        """
        output = self._cli.send(command, timeout_s=_SLOW_S)
        # the first words only: a banner in a configuration may hold anything
        if output.lstrip("^ \n").startswith("% "):
            raise self._rejected(command, output)
        return output

    def stage(self, change: StagedChange) -> str:
        """Types the lines into a configuration session; returns its diffs.

        Raises:
            CommandRejectedError: a line was refused; the session was aborted.
        """
        self._fill(_name(change), change.payload)
        return self._say("show session-config diffs", timeout_s=_SLOW_S)

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        """Commits under EOS's own timer."""
        name = _name(change)
        if self._inside != name:
            self._enter(name)
        hours, rest = divmod(confirm_s, 3600)
        self._say(f"commit timer {hours:02}:{rest // 60:02}:{rest % 60:02}", timeout_s=_SLOW_S)
        self._inside = ""

    def confirm(self, change: StagedChange) -> None:
        """Confirms the pending commit.

        Raises:
            CommitTimeoutError: EOS has no such commit any more.
        """
        before, self._confirmation = self._confirmation, _Confirmation.SENT
        try:
            self._say(f"configure session {_name(change)} commit", timeout_s=_SLOW_S)
        except CommandRejectedError as error:
            self._confirmation = before  # one that got no answer may have arrived
            raise CommitTimeoutError(
                "the commit could not be confirmed", where=self._device, found=error.found
            ) from error
        self._confirmation = _Confirmation.DONE

    def save(self, change: StagedChange) -> None:
        """Copies running-config to startup-config."""
        del change
        before, self._may_be_saved = self._may_be_saved, True
        try:
            self._say("write memory", timeout_s=_SLOW_S)
        except CommandRejectedError:
            self._may_be_saved = before
            raise

    def revert(self, change: StagedChange) -> None:
        """Aborts the pending commit; after a confirmation, commits the way back instead.

        Raises:
            RollbackFailedError: EOS refused the way back.
        """
        if self._confirmation is _Confirmation.NOT_SENT:
            self._abort(_name(change))
            return
        with suppress(CommandRejectedError):  # nothing is pending if the confirmation arrived
            self._abort(_name(change))
        self._undo(change)

    def discard(self, change: StagedChange) -> None:
        """Aborts the configuration session."""
        if self._entered == _name(change):
            self._abort(_name(change))

    def recovery(self, change: StagedChange) -> tuple[str, ...]:
        """Returns the lines that abort what is pending, commit the way back and save."""
        name = _name(change)
        return (
            f"configure session {name} abort",
            f"configure session {name}-undo",
            *_lines(change.rollback),
            "commit",
            "write memory",
        )

    def close(self) -> None:
        """Ends the session."""
        self._inside = ""
        self._cli.close()

    def _undo(self, change: StagedChange) -> None:
        if not _lines(change.rollback):
            raise RollbackFailedError("there is no way back to type", where=self._device)
        try:
            self._fill(f"{_name(change)}-undo", change.rollback)
            self._say("commit", timeout_s=_SLOW_S)
            self._inside = ""
            if self._may_be_saved:
                self.save(change)
        except CommandRejectedError as error:
            raise RollbackFailedError(error.what, where=self._device, found=error.found) from error

    def _fill(self, name: str, payload: str) -> None:
        lines = _lines(payload)
        for line in lines:
            if why := refused_control(line):
                raise CommandRejectedError(
                    "a line cannot be typed safely", where=self._device, found=f"{line!r}: {why}"
                )
        self._enter(name)
        try:
            for line in lines:
                self._say(line)
        except CommandRejectedError:
            self._abort(name)
            raise

    def _enter(self, name: str) -> None:
        self._entered = name
        self._say(f"configure session {name}")
        self._inside = name

    def _abort(self, name: str) -> None:
        self._say("abort" if self._inside == name else f"configure session {name} abort", timeout_s=_SLOW_S)
        self._inside = self._entered = ""

    def _say(self, line: str, *, timeout_s: float = _LINE_S) -> str:
        output = self._cli.send(line, timeout_s=timeout_s)
        if any(pattern.search(output) for pattern in self._refusals):
            raise self._rejected(line, output)
        return output

    def _rejected(self, line: str, output: str) -> CommandRejectedError:
        return CommandRejectedError(
            f"the device refused the line {line.strip()!r}", where=self._device, found=safe(output, limit=500)
        )


def _name(change: StagedChange) -> str:
    return f"fabricctl-{change.transaction}"


def _lines(payload: str) -> tuple[str, ...]:
    # A lone `!` is a comment; `\n` is the only line end that counts: splitlines() would also cut at U+2028.
    return tuple(line for line in payload.split("\n") if line.strip() not in {"", "!"})
