"""Opens a file or block device and says what has to be known of it. Knows no post."""

import errno
import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from fabric.engine.transport.block.job import By
from fabric.errors import EnvironmentMissingError, LocalProtocolError

__all__ = ("BlockConfig", "BlockDevice", "hardware_queues", "open_device")

_BLKSSZGET = 0x1268  # linux/fs.h: _IO(0x12, 104), logical sector size
_FILE_ALIGNMENT = 4096  # statx's dio_offset_align needs 6.1 and is not in the standard library; 4096 fits every device


@dataclass(frozen=True, slots=True)
class BlockConfig:
    """What to open, and how many threads may work on it.

    Attributes:
        path: file or block device.
        threads: each carries out one range at a time, so this is the depth that the device sees. io_uring has one.
        direct: O_DIRECT; without it the page cache answers, and a test of speed measures that.
        read_only: opens it so; writes fail.
        cpus: each thread is pinned to one of these sets, in turn; None takes the device's hardware queues.
        by: who carries out posts.
        depth: ranges in flight at most by io_uring; what is more waits here.
    """

    path: Path
    threads: int = 4
    direct: bool = True
    read_only: bool = False
    cpus: tuple[frozenset[int], ...] | None = None
    by: By = By.AUTO
    depth: int = 256


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """An open device.

    Attributes:
        descriptor: to close in the end.
        length: bytes.
        alignment: of offsets, lengths and memory.
        cpus: sets to pin threads to; empty: none.
    """

    descriptor: int
    length: int
    alignment: int
    cpus: tuple[frozenset[int], ...]

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self.descriptor)


def open_device(config: BlockConfig) -> BlockDevice:
    """Returns the device, open.

    Raises:
        EnvironmentMissingError: it is not there, may not be opened, or its file system has no O_DIRECT.
        LocalProtocolError: it is neither a file nor a block device, or there are no threads.
    """
    if config.threads < 1:
        raise LocalProtocolError(
            "nobody would carry out a post", expected="1 thread or more", found=str(config.threads)
        )
    flags = (os.O_RDONLY if config.read_only else os.O_RDWR) | os.O_CLOEXEC | (os.O_DIRECT if config.direct else 0)
    try:
        descriptor = os.open(config.path, flags)
    except OSError as error:
        no_direct = error.errno == errno.EINVAL and config.direct
        remedy = "Use a file system with O_DIRECT, or say direct=False." if no_direct else "Check path and permissions."
        raise EnvironmentMissingError(
            "the device cannot be opened", where=str(config.path), found=os.strerror(error.errno or 0), remedy=remedy
        ) from error
    found = os.fstat(descriptor)
    is_block = stat.S_ISBLK(found.st_mode)
    if not is_block and not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise LocalProtocolError("this is neither a file nor a block device", where=str(config.path))
    alignment = 1
    if config.direct:
        alignment = _sector_bytes(descriptor) if is_block else _FILE_ALIGNMENT
    cpus = config.cpus
    if cpus is None:
        cpus = hardware_queues(found.st_rdev if is_block else found.st_dev)
    usable = tuple(shared for one in cpus if (shared := one & os.sched_getaffinity(0)))
    return BlockDevice(descriptor, os.lseek(descriptor, 0, os.SEEK_END), alignment, usable)


def hardware_queues(device: int, sysfs: Path = Path("/sys")) -> tuple[frozenset[int], ...]:
    """Returns the CPUs of each hardware queue of a block device (blk-mq); empty where the kernel does not say.

    Args:
        device: its number, as in `st_rdev`.
        sysfs: where sysfs is.
    """
    node = sysfs / "dev" / "block" / f"{os.major(device)}:{os.minor(device)}"
    for folder in (node / "mq", node.resolve().parent / "mq"):  # of a partition the disk has them
        if folder.is_dir():
            lists = sorted(folder.glob("*/cpu_list"), key=lambda path: int(path.parent.name))
            return tuple(cpus for path in lists if (cpus := _cpu_list(path.read_text(encoding="ascii"))))
    return ()


def _cpu_list(text: str) -> frozenset[int]:
    cpus: set[int] = set()
    for part in text.replace(" ", "").strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def _sector_bytes(descriptor: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(descriptor, _BLKSSZGET, bytes(4)))[0])
