"""What people see: text for a terminal, or one JSON document with --json. The only place that prints."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from fabric.observe import Event
from fabric.serial import to_json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ("Printer", "clean", "warnings_shown")

_ACTION = "fabricctl_host"  # of playbooks/action_plugins
_LOUD = frozenset({"started", "done", "failed"})


class Printer:
    """Prints results on stdout, progress and errors on stderr.

    Args:
        as_json: one JSON document on stdout, nothing else.
        quiet: no progress.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet or as_json
        self._out: Console | None = None

    def console(self) -> "Console":
        """Returns the terminal; rich is imported when something is printed (0.1 s)."""
        if self._out is None:
            from rich.console import Console

            # no emoji: rich would make one of the `:b:` in an IPv6 address
            self._out = Console(highlight=False, soft_wrap=True, emoji=False)
        return self._out

    def line(self, text: str = "", *, style: str = "") -> None:
        """Prints one line for people; nothing with --json. Markup in `text` is not interpreted.

        What follows a line end is set in, so that no text from elsewhere can pass for a line of ours.
        """
        if not self.as_json:
            self.console().print(_indented(clean(text)), style=style or None, markup=False)

    def document(self, value: object) -> None:
        """Prints a value as JSON, with --json only."""
        if self.as_json:
            sys.stdout.write(json.dumps(to_json(value), indent=1) + "\n")

    def progress(self, event: Event) -> None:
        """Shows one event on stderr; an observer for the library."""
        if self.quiet or event.name.rpartition(".")[2] not in _LOUD or _is_chatter(event):
            return
        where = f"{event.device}: " if event.device else ""
        _write(sys.stderr, f"  {where}{event.name}{f' — {event.message}' if event.message else ''}")


def _is_chatter(event: Event) -> bool:
    """Returns whether the event is one of Ansible's that tells nothing of a host: only our own action does."""
    if not event.name.startswith("ansible.") or event.name == "ansible.task.failed":
        return False
    is_done = event.name == "ansible.task.done" and not event.data.get("skipped")
    return not (is_done and event.data.get("action") == _ACTION)


class _Clean(logging.Formatter):
    """One line a record, and nothing in it that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        return _one(super().format(record))


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Shows on stderr what the library warns of meanwhile."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Clean("warning: %(message)s"))
    logger = logging.getLogger("fabric")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def clean(text: str) -> str:
    """Returns `text` with what a terminal would obey replaced: configurations and inventories are not ours."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _write(stream: TextIO, text: str) -> None:
    stream.write(_one(text) + "\n")
    stream.flush()


def _one(text: str) -> str:
    return clean(text.replace("\n", " "))


def _indented(text: str) -> str:
    return text.replace("\n", "\n      ")
