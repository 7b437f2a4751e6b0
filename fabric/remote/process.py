"""A command over SSH that goes on: lines in, lines out, while it runs. Knows no host and no login.

    client.open_process(argv) ──▶ write_line ⇄ lines … ──▶ close: its input ends, and with it the command

Nothing here waits but `write_line` and `close`, each with a limit. To wait for lines of many of them, give `fileno` to
`select`. The command has to end when its input does: a session that is lost then leaves nothing running.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import paramiko

__all__ = ("Guard", "Process")

Guard: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""`mapped` of the target: turns paramiko's errors into ours."""

_CHUNK_BYTES: Final = 65536
_LONGEST_LINE: Final = 64 << 20
_KEPT_ERRORS: Final = 8192
_NO_STATUS: Final = -1  # paramiko: the channel closed without a status


class Process:
    """A command that runs. Made by `SshClient.open_process`; used from the thread of its client.

    Args:
        channel: on which it was started.
        guard: maps errors.
        name: of the command, for messages.

    Attributes:
        is_ended: no more lines will come; what it printed has been handed out.
    """

    def __init__(self, channel: "paramiko.Channel", guard: Guard, name: str) -> None:
        self.is_ended = False
        self._channel = channel
        self._guard = guard
        self._name = name
        self._rest = bytearray()
        self._errors = bytearray()

    @property
    def errors(self) -> str:
        """The last 8 KiB of what it printed on its standard error."""
        return self._errors.decode("utf-8", errors="replace")

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs, and for ever when the session was lost before it ended."""
        if not self._channel.status_event.is_set() or self._channel.exit_status == _NO_STATUS:
            return None
        return self._channel.exit_status

    def fileno(self) -> int:
        """Returns a descriptor that is readable when `lines` has something, or the end, to tell; the same for life."""
        return self._channel.fileno()

    def write_line(self, text: str, *, timeout_s: float = 10.0) -> None:
        """Sends a line.

        Raises:
            ConnectError: the session is lost, or the command reads nothing.
        """
        with self._guard(f"writing to {self._name}"):
            if self._channel.closed:
                raise EOFError("the command has ended")
            self._channel.settimeout(timeout_s)
            self._channel.sendall(text.encode() + b"\n")

    def lines(self) -> list[str]:
        """Returns the lines that have come since the last call, without waiting.

        Raises:
            ConnectError: a line has no end.
        """
        channel = self._channel
        with self._guard(f"reading from {self._name}"):
            was_over = channel.eof_received or channel.closed  # asked first: what came before the end is there now
            while channel.recv_ready():
                self._rest += channel.recv(_CHUNK_BYTES)
            while channel.recv_stderr_ready():
                self._errors += channel.recv_stderr(_CHUNK_BYTES)
            del self._errors[:-_KEPT_ERRORS]
            *whole, rest = self._rest.split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise EOFError(f"a line is longer than {_LONGEST_LINE >> 20} MiB")
        self._rest = rest
        if was_over:
            self.is_ended = True
            whole += [self._rest] if self._rest else []
            self._rest = bytearray()
        return [one.decode("utf-8", errors="replace") for one in whole]

    def close(self, *, timeout_s: float = 5.0) -> int | None:
        """Ends its input, waits for its end, closes the channel; returns the status, None without one in time."""
        channel = self._channel
        try:
            with self._guard(f"ending {self._name}"):
                if not channel.closed:
                    channel.shutdown_write()
                channel.status_event.wait(timeout_s)
            self.lines()
            return self.status
        finally:
            channel.close()
