"""Files of ours on a host: which must change, and how they are brought back. Knows not what stands in them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fabric.errors import HostError
from fabric.host.actions import Action, PutFile, RemoveLink
from fabric.host.executor import Executor

__all__ = ("FileChange", "changed_files", "restoring")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that is not as it shall be.

    Attributes:
        after: what shall stand there.
        before: the text that stood there, None for no file; repr does not show it, it may be secret.
        before_mode: its permission bits.
    """

    after: PutFile
    before: str | None = field(default=None, repr=False)
    before_mode: int = 0o644

    @property
    def path(self) -> str:
        """Returns where it lies."""
        return self.after.path


def changed_files(files: Iterable[PutFile], executor: Executor) -> tuple[FileChange, ...]:
    """Returns the files whose text or mode differs, once each, in order.

    Raises:
        HostError: a file is there and cannot be read: it must not be replaced unseen.
    """
    wanted = {one.path: one for one in files}
    changes = (_change(one, executor) for one in wanted.values())
    return tuple(one for one in changes if one is not None)


def _change(wanted: PutFile, executor: Executor) -> FileChange | None:
    shown = executor.run(["stat", "-L", "-c", "%a", "--", wanted.path])
    if not shown.ok:
        return FileChange(wanted)
    text, mode = executor.read(wanted.path), int(shown.stdout.strip(), 8)
    if text is None:
        raise HostError("a file is there and cannot be read", where=wanted.path, remedy="Read it as root: set become.")
    return None if (text, mode) == (wanted.text, wanted.mode) else FileChange(wanted, text, mode)


def restoring(changes: Iterable[FileChange]) -> tuple[Action, ...]:
    """Returns the way back, last change first: the old text and mode, or no file."""
    back: list[Action] = []
    for one in changes:
        old = RemoveLink(one.path) if one.before is None else PutFile(one.path, one.before, one.before_mode)
        back.insert(0, old)
    return tuple(back)
