"""The files of an emulated SONiC: a few folders in memory, with owners and permission bits as far as they matter.

`root` may do everything; another user reads what is not private to somebody else, and writes below /tmp, /var/tmp and
the own home. Errors are those of the operating system, so that SFTP and the shell can both report them.
"""

import errno
import posixpath
import stat
from dataclasses import dataclass
from typing import Final

from fabric.clock import Clock

__all__ = ("Files",)

_OPEN_FOLDERS: Final = ("/tmp", "/var/tmp")  # noqa: S108 - folders of the emulated device
_SYSTEM_FOLDERS: Final = (
    "/",
    "/etc",
    "/etc/sonic",
    "/etc/sonic/checkpoints",
    "/home",
    "/var",
    "/root",
    "/host",
    "/run",
)


@dataclass(slots=True)
class _File:
    content: bytes
    mode: int
    owner: str
    modified_s: float


class Files:
    """Files by absolute path.

    Args:
        clock: of modification times. user: gets a home.
    """

    def __init__(self, clock: Clock, user: str) -> None:
        self._clock = clock
        self._files: dict[str, _File] = {}
        self._folders = {*_OPEN_FOLDERS, *_SYSTEM_FOLDERS, f"/home/{user}"}

    def absolute(self, path: str, folder: str) -> str:
        """Returns the path from the root, relative ones taken from `folder`."""
        return posixpath.normpath(posixpath.join(folder, path))

    def read(self, path: str, *, user: str = "root") -> bytes:
        """Returns the bytes of a file."""
        found = self._file(path)
        if user not in {"root", found.owner} and not found.mode & 0o044:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return found.content

    def write(self, path: str, content: bytes, *, user: str, mode: int | None = None) -> None:
        """Makes or replaces a file."""
        self._may_write(path, user)
        if path in self._folders:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if posixpath.dirname(path) not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        old = self._files.get(path)
        kept = old.mode if old else 0o644
        owner = old.owner if old else user
        self._files[path] = _File(content, kept if mode is None else mode, owner, self._clock.unix_s())

    def remove(self, path: str, *, user: str) -> None:
        """Removes a file."""
        self._may_write(path, user)
        self._file(path)
        del self._files[path]

    def rename(self, old: str, new: str, *, user: str) -> None:
        """Moves a file, replacing what is there."""
        moved = self._file(old)
        self.write(new, moved.content, user=user, mode=moved.mode)
        self.remove(old, user=user)

    def set_mode(self, path: str, mode: int, *, user: str) -> None:
        """Changes the permission bits."""
        self._may_write(path, user)
        if path not in self._folders:
            self._file(path).mode = stat.S_IMODE(mode)

    def make_folder(self, path: str, *, user: str, parents: bool = False) -> None:
        """Makes a folder; with `parents`, all that lead to it, and none is an error."""
        self._may_write(path, user)
        if path in self._folders:
            if parents:
                return
            raise FileExistsError(errno.EEXIST, "File exists", path)
        parent = posixpath.dirname(path)
        if parent not in self._folders:
            if not parents:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            self.make_folder(parent, user=user, parents=True)
        self._folders.add(path)

    def listing(self, path: str) -> tuple[str, ...]:
        """Returns the names in a folder, sorted."""
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        inside = {one for one in (*self._files, *self._folders) if one != "/" and posixpath.dirname(one) == path}
        return tuple(sorted(posixpath.basename(one) for one in inside))

    def stat(self, path: str) -> tuple[int, int, float]:
        """Returns (mode with the type bits, size in bytes, modification time in Unix seconds)."""
        if path in self._folders:
            return stat.S_IFDIR | 0o755, 0, 0.0
        found = self._file(path)
        return stat.S_IFREG | found.mode, len(found.content), found.modified_s

    def has_file(self, path: str) -> bool:
        """Returns whether there is a file of that path."""
        return path in self._files

    def has_folder(self, path: str) -> bool:
        """Returns whether there is a folder of that path."""
        return path in self._folders

    def _file(self, path: str) -> _File:
        found = self._files.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return found

    def _may_write(self, path: str, user: str) -> None:
        homes = (*_OPEN_FOLDERS, f"/home/{user}")
        old = self._files.get(path)
        is_own = old is None or old.owner == user
        if user != "root" and not (is_own and any(path.startswith(f"{home}/") for home in homes)):
            raise PermissionError(errno.EACCES, "Permission denied", path)
