"""What a target keeps its namespaces in: memory, or files. Synchronous; knows no command id and no shape."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from fabric.engine.nvmeof.target import StorageFlush, StorageRead, StorageWrite, StorageZero
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.errors import LocalProtocolError

__all__ = ("FileStorage", "NamespaceKey", "RamStorage", "Storage", "StorageWork", "perform", "work_bytes")

NamespaceKey: TypeAlias = tuple[str, int]  # subsystem NQN, NSID
StorageWork: TypeAlias = StorageRead | StorageWrite | StorageZero | StorageFlush
_STATUS_OF = {
    errno.ENOSPC: Status.CAPACITY_EXCEEDED | DNR,
    errno.EDQUOT: Status.CAPACITY_EXCEEDED | DNR,
    errno.EROFS: Status.NAMESPACE_WRITE_PROTECTED | DNR,
    errno.EBADF: Status.NAMESPACE_WRITE_PROTECTED | DNR,  # a descriptor that was opened read-only
}
_ZEROES = bytes(1 << 20)


class Storage(Protocol):
    """Namespaces by subsystem and id. Offsets and lengths in bytes, inside the namespace."""

    def read(self, key: NamespaceKey, offset: int, length: int) -> bytes:
        """Returns `length` bytes. Raises OSError when the medium cannot."""
        ...

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        """Writes. Raises OSError when the medium cannot."""
        ...

    def zero(self, key: NamespaceKey, offset: int, length: int) -> None:
        """Makes bytes read as zeroes. Raises OSError when the medium cannot."""
        ...

    def flush(self, key: NamespaceKey) -> None:
        """Makes what was written durable. Raises OSError when the medium cannot."""
        ...


class RamStorage:
    """Namespaces in memory, zeroed.

    Args:
        sizes: bytes of each.
    """

    def __init__(self, sizes: Mapping[NamespaceKey, int]) -> None:
        self.disks = {key: bytearray(size) for key, size in sizes.items()}

    def read(self, key: NamespaceKey, offset: int, length: int) -> bytes:
        """Returns a copy."""
        return bytes(memoryview(self.disks[key])[offset : offset + length])

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        """Writes; nothing here is durable."""
        del durable
        self.disks[key][offset : offset + len(data)] = data

    def zero(self, key: NamespaceKey, offset: int, length: int) -> None:
        """Writes zeroes."""
        self.disks[key][offset : offset + length] = bytes(length)

    def flush(self, key: NamespaceKey) -> None:
        """Does nothing."""


class FileStorage:
    """Namespaces in files, which must exist and have the size of their namespace; through the page cache.

    Args:
        paths: the file of each.
        read_only: opens them so.

    Raises:
        OSError: a file cannot be opened.
    """

    def __init__(self, paths: Mapping[NamespaceKey, Path], *, read_only: bool = False) -> None:
        flags = os.O_RDONLY if read_only else os.O_RDWR
        self._files: dict[NamespaceKey, int] = {}
        try:
            for key, path in paths.items():
                self._files[key] = os.open(path, flags | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def read(self, key: NamespaceKey, offset: int, length: int) -> bytes:
        """Returns bytes of the file; a file that is too short is a medium error."""
        parts: list[bytes] = []
        while length:
            part = os.pread(self._files[key], length, offset)
            if not part:
                raise OSError(errno.EIO, "the file is shorter than its namespace")
            parts.append(part)
            offset, length = offset + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        """Writes; `durable` waits for the device."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._files[key], rest, offset)
            rest, offset = rest[written:], offset + written
        if durable:
            os.fdatasync(self._files[key])

    def zero(self, key: NamespaceKey, offset: int, length: int) -> None:
        """Writes zeroes: punching holes would give the space back, and a later write could meet a full disk."""
        while length:
            written = os.pwrite(self._files[key], memoryview(_ZEROES)[: min(length, len(_ZEROES))], offset)
            offset, length = offset + written, length - written

    def flush(self, key: NamespaceKey) -> None:
        """Waits for the device."""
        os.fdatasync(self._files[key])

    def close(self) -> None:
        """Closes the files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()


def work_bytes(work: StorageWork) -> int:
    """Returns how many bytes a piece of work moves."""
    if isinstance(work, StorageRead):
        return work.length
    return len(work.data) if isinstance(work, StorageWrite) else 0


def perform(work: StorageWork, storage: Storage) -> tuple[bytes, int]:
    """Returns the data of a read, and the status: 0 when it was done.

    Raises:
        LocalProtocolError: the storage lacks a namespace that the target serves.
    """
    key = (work.subnqn, work.nsid)
    data = b""
    try:
        match work:
            case StorageRead(_task, _nqn, _nsid, offset, length):
                data = storage.read(key, offset, length)
            case StorageWrite(_task, _nqn, _nsid, offset, written, durable):
                storage.write(key, offset, written, durable=durable)
            case StorageZero(_task, _nqn, _nsid, extents):
                for offset, length in extents:
                    storage.zero(key, offset, length)
            case StorageFlush():
                storage.flush(key)
    except KeyError as error:
        raise LocalProtocolError("a namespace without storage", where=work.subnqn, found=str(work.nsid)) from error
    except OSError as error:
        fallback = Status.UNRECOVERED_READ_ERROR if isinstance(work, StorageRead) else Status.WRITE_FAULT
        return b"", _STATUS_OF.get(error.errno or 0, fallback)
    return data, 0
