"""What a run of ansible-playbook needs around it: a short folder for SSH's sockets, and an orderly end on Ctrl-C.

It knows processes, signals and sockets; it does not know what a playbook does.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, Protocol, Self

from fabric.errors import EnvironmentMissingError

__all__ = ("Stopper", "control_folder")

# A unix socket's path has at most 107 bytes: "/", ten digits of Ansible's, and 17 that OpenSSH adds while it binds.
_LONGEST: Final = 107 - 1 - 10 - 17
_GRACE_S: Final = 120.0  # a host that is being changed is finished, or taken back, before its worker ends


class _Handler(Protocol):
    def __call__(self, signum: int, frame: FrameType | None, /) -> object: ...


@contextmanager
def control_folder() -> Iterator[Path]:
    """Gives a private folder whose path is short enough for SSH's control sockets; ends the sessions left in it.

    Raises:
        EnvironmentMissingError: no temporary folder has a path that is short enough.
    """
    folder = _short_folder()
    try:
        yield folder
    finally:
        for socket in folder.iterdir():
            _end_session(socket)
        shutil.rmtree(folder, ignore_errors=True)


def _short_folder() -> Path:
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]  # noqa: S108  mkdtemp makes it private
    for place in places:
        if place and len(os.fsencode(place)) + len("/fc-12345678") <= _LONGEST:
            with suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="fc-", dir=place))
    raise EnvironmentMissingError(
        "no folder for SSH's control sockets",
        found=", ".join(place for place in places if place),
        expected=f"a folder that can be written, with a path of at most {_LONGEST - 12} bytes",
        remedy="Set TMPDIR to such a folder.",
    )


def _end_session(socket: Path) -> None:
    """Ends the SSH master behind the socket: ControlPersist would keep it for a minute."""
    with suppress(OSError, subprocess.SubprocessError):
        # the host's name is not used: the socket decides
        argv = ["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "control"]
        subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)


class Stopper:
    """Turns Ctrl-C and SIGTERM into an orderly end of ansible-playbook; a second one ends it at once.

    Signals belong to the main thread: in another one it only follows what ansible-runner asks.

    Attributes:
        is_asked: somebody asked for the end.
    """

    def __init__(self, grace_s: float = _GRACE_S) -> None:
        self.is_asked = False
        self._grace_s = grace_s
        self._pid: int | None = None
        self._kill_at_s = 0.0
        self._before: dict[int, _Handler | int | None] = {}

    def __enter__(self) -> Self:
        with suppress(ValueError):  # not the main thread
            for one in (signal.SIGINT, signal.SIGTERM):
                self._before[one] = signal.signal(one, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)

    def watch(self, pid: int) -> None:
        """Tells which process is ansible-playbook."""
        self._pid = self._pid or pid

    def must_kill(self) -> bool:
        """Returns whether ansible-runner shall kill the process now."""
        return self.is_asked and (self._pid is None or time.monotonic() >= self._kill_at_s)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        del signum, frame
        again, self.is_asked = self.is_asked, True
        self._kill_at_s = time.monotonic() + (0 if again else self._grace_s)
        if self._pid is not None and not again:
            with suppress(ProcessLookupError):  # it ended in this moment
                os.kill(self._pid, signal.SIGINT)  # it runs in a session of its own: the terminal's did not reach it
