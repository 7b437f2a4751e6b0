"""What an engine is told besides its URL and its queue policy. Frozen data."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ("Identity", "Settings", "host_identity")

_SECOND: Final = 1_000_000_000
_PREFIX: Final = "nqn.2014-08.org.nvmexpress:uuid:"  # NVMe base 2.0, section 4.5: an NQN from a UUID


@dataclass(frozen=True, slots=True)
class Settings:
    """Patience and sizes.

    Attributes:
        open_ns: how long `open` waits for the controller.
        close_ns: how long `close` waits for an orderly shutdown; then connections end without a word.
        command_ns: a command without an answer for so long takes its queue down; None: the policy's `deadline_ns`.
            A request's own deadline is apart: it fails the request and leaves the queue alone.
        loss_ns: a controller that stays away for so long is given up, and with it every request.
        keep_alive_ms: a target that hears nothing for so long drops the host; 0: never. None is sent while nobody
            steps the engine, but by the thread.
        keep_alive_thread: a thread sends it while nobody steps the engine, and connects again; see `keptlink`.
        quarantine_bytes: of abandoned transfers that may still land; while there are so many, nothing new is taken.
        direct: O_DIRECT for files and devices.
        threads: that work on a file or device, as its depth, where io_uring does not.
        device_depth: ranges of a file or device in flight at most by io_uring; what is more waits in this process.
        tos: type of service of what this side sends, DSCP x 4; over RDMA the target answers in it. None: the
            system's default.
        metrics: `Engine.metrics` counts; off, it has nothing of the queues.
        trace: the file that all inputs are written to, for `fabric.engine.trace.replay`; it is replaced.
    """

    open_ns: int = 30 * _SECOND
    close_ns: int = 2 * _SECOND
    command_ns: int | None = None
    loss_ns: int = 600 * _SECOND
    keep_alive_ms: int = 15_000
    keep_alive_thread: bool = False
    quarantine_bytes: int = 64 << 20
    direct: bool = True
    threads: int = 4
    device_depth: int = 256
    tos: int | None = None
    metrics: bool = True
    trace: Path | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who connects: a name and 16 bytes that belong together."""

    hostnqn: str
    hostid: bytes


def host_identity(hostnqn: str = "") -> Identity:
    """Returns the identity of a host name; without one, a new name that nobody has.

    The id is the UUID in the name, or one derived from it: a target wants the same id with the same name.
    """
    if not hostnqn:
        one = uuid.uuid4()
        return Identity(f"{_PREFIX}{one}", one.bytes)
    try:
        return Identity(hostnqn, uuid.UUID(hostnqn.removeprefix(_PREFIX)).bytes)
    except ValueError:
        return Identity(hostnqn, uuid.uuid5(uuid.NAMESPACE_URL, hostnqn).bytes)
