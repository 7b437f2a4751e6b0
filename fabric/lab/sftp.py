"""The SFTP side of an emulated device: paramiko's server calls, answered from a `FileStore`.

Imports paramiko at the top: this module is loaded only when a lab is served.
"""

import os
import posixpath
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from paramiko import ServerInterface, SFTPAttributes, SFTPHandle, SFTPServer, SFTPServerInterface
from paramiko.sftp import SFTP_OK

from fabric.lab.device import Device, FileStore

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ("StoreInterface",)


class _Store:
    """The files as one user sees them; errors become SFTP's numbers."""

    def __init__(self, device: Device, files: FileStore, user: str) -> None:
        self._device = device
        self._files = files
        self._user = user
        self._home = "/root" if user == "root" else f"/home/{user}"

    def absolute(self, path: str) -> str:
        """Returns the path from the root, relative ones taken from the user's home."""
        return posixpath.normpath(posixpath.join(self._home, path))

    def attributes(self, path: str) -> SFTPAttributes:
        mode, size_bytes, modified_s = self._files.stat(path)
        found = SFTPAttributes()
        found.filename = path.rsplit("/", 1)[-1]
        found.st_mode, found.st_size = mode, size_bytes
        found.st_mtime = found.st_atime = int(modified_s)
        found.st_uid = found.st_gid = 0
        return found

    def answer(self, call: Callable[[FileStore, str], object]) -> object:
        """Returns what the call returns, or the number of its error."""
        try:
            with self._device.lock:
                return call(self._files, self._user)
        except OSError as error:
            return SFTPServer.convert_errno(error.errno or 0)

    def code(self, call: Callable[[FileStore, str], object]) -> int:
        """Returns OK, or the number of the call's error."""
        found = self.answer(call)
        return found if isinstance(found, int) else SFTP_OK


class _Handle(SFTPHandle):
    """One open file; what was written reaches the store when it is closed."""

    def __init__(self, store: _Store, path: str, flags: int, content: bytes) -> None:
        super().__init__(flags)
        self._store = store
        self._path = path
        self._content = bytearray(content)
        self._is_changed = False

    def stat(self) -> SFTPAttributes | int:
        return cast("SFTPAttributes | int", self._store.answer(lambda *_: self._store.attributes(self._path)))

    def read(self, offset: int, length: int) -> bytes | int:
        return bytes(self._content[offset : offset + length])

    def write(self, offset: int, data: "Buffer") -> int:
        data = bytes(data)
        self._content[offset : offset + len(data)] = data
        self._is_changed = True
        return SFTP_OK

    def chattr(self, attr: SFTPAttributes) -> int:
        mode = attr.st_mode
        if mode is None:
            return SFTP_OK
        return self._store.code(lambda files, user: files.set_mode(self._path, mode, user=user))

    def close(self) -> None:
        if self._is_changed:
            self._is_changed = False
            self._store.code(lambda files, user: files.write(self._path, bytes(self._content), user=user))


class StoreInterface(SFTPServerInterface):
    """The files of one device, for one connection.

    Args:
        server: paramiko's own, of the connection.
        device: whose lock guards the files.
        files: what is served.
        user: as whom.
    """

    def __init__(self, server: ServerInterface, device: Device, files: FileStore, user: str) -> None:
        super().__init__(server)
        self._store = _Store(device, files, user)

    def list_folder(self, path: str) -> list[SFTPAttributes] | int:
        """Returns the entries of a folder."""
        path = self._store.absolute(path)

        def entries(files: FileStore, _user: str) -> list[SFTPAttributes]:
            return [self._store.attributes(f"{path.rstrip('/')}/{name}") for name in files.listing(path)]

        return cast("list[SFTPAttributes] | int", self._store.answer(entries))

    def stat(self, path: str) -> SFTPAttributes | int:
        """Returns the attributes of a file."""
        path = self._store.absolute(path)
        return cast("SFTPAttributes | int", self._store.answer(lambda *_: self._store.attributes(path)))

    def lstat(self, path: str) -> SFTPAttributes | int:
        """Returns the attributes of a file; there are no links."""
        return self.stat(path)

    def open(self, path: str, flags: int, attr: SFTPAttributes) -> SFTPHandle | int:
        """Returns an open file."""
        path = self._store.absolute(path)
        mode = stat.S_IMODE(attr.st_mode) if attr.st_mode is not None else None

        def opened(files: FileStore, user: str) -> SFTPHandle:
            if not flags & (os.O_WRONLY | os.O_RDWR):
                return _Handle(self._store, path, flags, files.read(path, user=user))
            is_new = isinstance(self.stat(path), int)
            keeps = not flags & os.O_TRUNC and not (is_new and flags & os.O_CREAT)
            content = files.read(path, user=user) if keeps else b""
            files.write(path, content, user=user, mode=mode)
            return _Handle(self._store, path, flags, content)

        return cast("SFTPHandle | int", self._store.answer(opened))

    def remove(self, path: str) -> int:
        """Removes a file."""
        path = self._store.absolute(path)
        return self._store.code(lambda files, user: files.remove(path, user=user))

    def rename(self, oldpath: str, newpath: str) -> int:
        """Moves a file."""
        old, new = self._store.absolute(oldpath), self._store.absolute(newpath)
        return self._store.code(lambda files, user: files.rename(old, new, user=user))

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        """Moves a file over another."""
        return self.rename(oldpath, newpath)

    def mkdir(self, path: str, attr: SFTPAttributes) -> int:
        """Makes a folder."""
        del attr
        path = self._store.absolute(path)
        return self._store.code(lambda files, user: files.make_folder(path, user=user))

    def chattr(self, path: str, attr: SFTPAttributes) -> int:
        """Changes the permission bits; other attributes are left alone."""
        path = self._store.absolute(path)
        mode = attr.st_mode
        if mode is None:
            return SFTP_OK
        return self._store.code(lambda files, user: files.set_mode(path, mode, user=user))

    def canonicalize(self, path: str) -> str:
        """Returns the path from the root, relative ones taken from the user's home."""
        return self._store.absolute(path)
