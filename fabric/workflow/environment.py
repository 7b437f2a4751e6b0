"""What a run needs from the machine it runs on: the clock, the observer, and where state lies.

Full device configurations carry hashes and keys: they go to the state directory (0700), never to a run folder.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from fabric.clock import Clock
from fabric.observe import Observer, silent
from fabric.remote.ansible import run_playbook
from fabric.workflow.playing import PlaybookRunner

__all__ = ("Environment", "SystemClock", "default_state_dir")


class SystemClock:
    """The machine's own clock."""

    def now_ns(self) -> int:
        """Returns monotonic nanoseconds."""
        return time.monotonic_ns()

    def unix_s(self) -> float:
        """Returns seconds since 1970-01-01 UTC."""
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        """Returns after `seconds`."""
        time.sleep(seconds)


def default_state_dir() -> Path:
    """Returns `$FABRICCTL_STATE`, else `$XDG_STATE_HOME/fabricctl`, else `~/.local/state/fabricctl`."""
    named = os.environ.get("FABRICCTL_STATE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "fabricctl"


@dataclass(frozen=True, slots=True)
class Environment:
    """What a run needs from outside.

    Attributes:
        observer: hears of progress, perhaps from several threads.
        state_dir: locks, journals and full configurations; made 0700 when first used.
        runner: runs the playbooks that work on hosts.
    """

    clock: Clock = field(default_factory=SystemClock)
    observer: Observer = silent
    state_dir: Path = field(default_factory=default_state_dir)
    runner: PlaybookRunner = run_playbook
