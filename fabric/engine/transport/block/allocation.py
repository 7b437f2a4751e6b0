"""Zeroes and holes: the system calls that change what blocks read as without data. Works on files and block devices.

| asked | first | where that is not supported |
|---|---|---|
| zero | FALLOC_FL_ZERO_RANGE: the space stays allocated | zeroes are written |
| discard | FALLOC_FL_PUNCH_HOLE | nothing is done: it was advice |

Source: fallocate(2); Linux block/fops.c, blkdev_fallocate.
"""

import ctypes
import errno
import functools
import mmap
import os
from collections.abc import Callable
from typing import Final

__all__ = ("discard", "zero")

_KEEP_SIZE: Final = 0x01  # linux/falloc.h
_PUNCH_HOLE: Final = 0x02
_ZERO_RANGE: Final = 0x10
_CHUNK: Final = 1 << 20
_UNSUPPORTED: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS})


def zero(descriptor: int, offset: int, length: int) -> None:
    """Makes bytes read as zeroes. Raises OSError when the medium cannot."""
    try:
        _fallocate(descriptor, _ZERO_RANGE | _KEEP_SIZE, offset, length)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _write_zeroes(descriptor, offset, length)


def discard(descriptor: int, offset: int, length: int) -> None:
    """Says that bytes hold nothing of worth; what they read as then is the medium's choice. Raises OSError."""
    try:
        _fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, offset, length)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def _write_zeroes(descriptor: int, offset: int, length: int) -> None:
    with mmap.mmap(-1, min(length, _CHUNK)) as memory, memoryview(memory) as zeroes:  # page-aligned, for O_DIRECT
        while length:
            with zeroes[: min(length, _CHUNK)] as part:
                written = os.pwrite(descriptor, part, offset)
            offset, length = offset + written, length - written


def _fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    if _function()(descriptor, mode, offset, length):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@functools.cache
def _function() -> Callable[[int, int, int, int], int]:
    # the standard library has posix_fallocate alone, which knows no mode; ctypes gives the interpreter's lock back
    function = ctypes.CDLL(None, use_errno=True).fallocate64
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    function.restype = ctypes.c_int
    return function
