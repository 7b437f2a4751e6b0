"""Engines over each way, with a pattern that tells each block from every other. Sockets are real, on loopback."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

from fabric.engine.client import Buffer, Engine, Read, Settings, Write, open_engine
from fabric.engine.client.address import MemoryAddress
from fabric.engine.nvmeof.target import NVMET, Subsystem, Target, TargetProfile
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.engine.transport.storage import RamStorage
from fabric.engine.transport.tcp import ServerConfig, TcpServer, serve
from fabric.policy import ShardPolicy
from tests.unit.engine.nvmeof.rig import NQN

MIB = 1 << 20
MS = 1_000_000
SIZE = 4 * MIB
UNIT = 4096  # divides by every block size in use
POLICY = ShardPolicy(queues=4, depth=8, transfer_bytes=64 << 10)


def pattern(start: int, length: int) -> bytes:
    """Bytes of which each unit names its own place."""
    units = range(start // UNIT, (start + length) // UNIT)
    return b"".join(blake2b(unit.to_bytes(8, "little")).digest() * (UNIT // 64) for unit in units)


def service(
    shape: Shape = UNSHAPED, *, nqn: str = MemoryAddress().nqn, size: int = SIZE, profile: TargetProfile = NVMET
) -> Service:
    """A target of one namespace that holds the pattern."""
    target = Target(profile, subsystems=[Subsystem(nqn, {1: IdentifyNamespace(size // 512, 9)})], transport="tcp")
    storage = RamStorage({(nqn, 1): size})
    storage.disks[nqn, 1][:] = pattern(0, size)
    return Service(target, storage, shape)


class Hand:
    """A clock that stands still until the test moves it: engines on it close without waiting (`close_ns=0`)."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def move(self, engine: Engine, duration_ns: int) -> None:
        """Lets time pass, and the engine notice."""
        self.now_ns += duration_ns
        engine.step()


def in_memory(
    shape: Shape = UNSHAPED,
    policy: ShardPolicy = POLICY,
    settings: Settings | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
) -> tuple[Engine, Service]:
    """An engine on a target in this process."""
    one = service(shape)
    return open_engine("memory://", policy=policy, settings=settings or Settings(), service=one, clock=clock), one


class SystemClock:
    """Real time, for the server."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def unix_s(self) -> float:
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        time.sleep(seconds)


@contextlib.contextmanager
def served(shape: Shape = UNSHAPED, port: int = 0, profile: TargetProfile = NVMET) -> Iterator["Served"]:
    """A target on loopback, with a thread of its own."""
    one = Served(shape, port, profile)
    try:
        yield one
    finally:
        one.kill()


class Served:
    """A running target."""

    def __init__(self, shape: Shape, port: int = 0, profile: TargetProfile = NVMET) -> None:
        self.service = service(shape, nqn=NQN, profile=profile)
        server = TcpServer(self.service, ServerConfig(service=port))
        self.port = server.port
        self.url = f"nvme+tcp://127.0.0.1:{server.port}/{NQN}?nsid=1"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=serve, args=(server, SystemClock(), self._stop.is_set))
        self._thread.start()

    def kill(self) -> None:
        """Closes every socket of it."""
        self._stop.set()
        self._thread.join()


def reads(engine: Engine, buffer: Buffer, size: int = 256 << 10) -> list[Read]:
    """Reads that fill the buffer with the start of the namespace."""
    block = engine.namespace.namespace.block_bytes
    return [Read(at // block, (buffer.view(at, size),)) for at in range(0, buffer.memory.nbytes, size)]


def writes(engine: Engine, buffer: Buffer, size: int = 256 << 10) -> list[Write]:
    """Writes of the buffer to the start of the namespace."""
    return [Write(one.lba, one.views) for one in reads(engine, buffer, size)]


def assert_right(buffer: Buffer, work: Sequence[Read], done: Sequence[bool], block: int = 512) -> None:
    """What was read well is what lies there."""
    for one, well in zip(work, done, strict=True):
        (view,) = one.views
        assert isinstance(one.lba, int)
        if well:
            assert buffer.memory[view.offset : view.offset + view.length] == pattern(one.lba * block, view.length)
