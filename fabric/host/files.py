"""Files of ours on a host: which must change, and how they are brought back. Knows not what stands in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fabric.errors import HostError
from fabric.host.actions import Action, PutFile, RemoveLink
from fabric.host.batch import Question, ask
from fabric.host.executor import Executor
from fabric.remote.ssh import ExecResult

__all__ = ("FileChange", "changed_files", "file_questions", "restoring", "standing")


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


def changed_files(files: Iterable[PutFile], found: Mapping[str, PutFile | None]) -> tuple[FileChange, ...]:
    """Returns the files whose text or mode differs from those that were found, once each, in order."""
    wanted = {one.path: one for one in files}
    changes = (_change(one, found[path]) for path, one in wanted.items())
    return tuple(one for one in changes if one is not None)


def file_questions(paths: Sequence[str]) -> list[Question]:
    """Returns what `standing` asks."""
    return [question for path in paths for question in (("stat", "-L", "-c", "%a", "--", path), path)]


def standing(paths: Sequence[str], executor: Executor) -> dict[str, PutFile | None]:
    """Returns path → the file that stands there, None for no file; in one round trip.

    Raises:
        HostError: a file is there and cannot be read, or the host cannot be reached.
    """
    answers = ask(executor, file_questions(paths))
    return {path: _standing(path, *own) for path, *own in zip(paths, answers[::2], answers[1::2], strict=True)}


def _standing(path: str, shown: ExecResult, text: ExecResult) -> PutFile | None:
    if not shown.ok and not text.ok:
        return None
    if not shown.ok or not text.ok:
        raise HostError("a file is there and cannot be read", where=path, remedy="Read it as root: set become.")
    return PutFile(path, text.stdout, int(shown.stdout.strip(), 8))


def _change(wanted: PutFile, found: PutFile | None) -> FileChange | None:
    if found is None:
        return FileChange(wanted)
    return None if found == wanted else FileChange(wanted, found.text, found.mode)


def restoring(changes: Iterable[FileChange]) -> tuple[Action, ...]:
    """Returns the way back, last change first: the old text and mode, or no file."""
    back: list[Action] = []
    for one in changes:
        old = RemoveLink(one.path) if one.before is None else PutFile(one.path, one.before, one.before_mode)
        back.insert(0, old)
    return tuple(back)
