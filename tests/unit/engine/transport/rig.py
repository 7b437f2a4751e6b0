"""A host on a transport against a target behind it, in one thread; time is a number that the test moves.

Sockets are real and on loopback: `settle` steps both ends until what it waits for is there. Waiting is on descriptors;
no test measures time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from fabric.engine.nvmeof.host import Completed, Controller, Failed, Output, PostSend, Ready, RequestId
from fabric.engine.nvmeof.target import NVMET, Subsystem, Target, TargetProfile
from fabric.engine.nvmeof.tcp import Digests
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.transport.base import Arena, Transport, allocate
from fabric.engine.transport.driver import HostDriver, wait
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.engine.transport.storage import RamStorage, Storage
from fabric.engine.transport.tcp import ServerConfig, TcpConfig, TcpServer, TcpTransport
from tests.unit.engine.nvmeof.rig import NQN, config
from tests.unit.engine.transport.softrdma import SoftFabric, SoftRdmaTransport

BLOCKS = 8192
KEY = (NQN, 1)
MIB = 1 << 20
SECOND = 1_000_000_000
Kind = Literal["memory", "memory-by-id", "tcp", "tcp-digests", "rdma"]
KINDS: tuple[Kind, ...] = ("memory", "memory-by-id", "tcp", "tcp-digests", "rdma")


def service(
    transport: str, shape: Shape = UNSHAPED, storage: Storage | None = None, profile: TargetProfile = NVMET
) -> Service:
    """One namespace of 4 MiB."""
    target = Target(profile, [Subsystem(NQN, {1: IdentifyNamespace(BLOCKS, 9)})], transport=transport)
    return Service(target, storage or RamStorage({KEY: BLOCKS * 512}), shape)


@dataclass
class World:
    """Both ends."""

    host: Controller
    driver: HostDriver
    transport: Transport[PostSend]
    service: Service
    server: TcpServer | None
    arena: Arena
    now_ns: int = 0
    events: list[Output] = field(default_factory=list)

    @property
    def disk(self) -> bytearray:
        """The namespace's bytes."""
        storage = self.service.storage
        assert isinstance(storage, RamStorage)
        return storage.disks[KEY]

    def step(self) -> bool:
        """Both ends take one step; returns whether anything happened."""
        before = len(self.events)
        self.events += self.driver.step(self.now_ns)
        busy = self.server.poll(self.now_ns) if self.server else False
        return busy or len(self.events) > before

    def settle(self, until: Callable[[], bool]) -> None:
        """Steps until `until` holds."""
        idle = 0
        while not until():
            if self.step():
                idle = 0
                continue
            idle += 1
            assert idle < 100, f"nothing moves any more: {self.events[-5:]}"
            descriptors = [self.transport.fileno()] + ([self.server.fileno()] if self.server else [])
            wait(descriptors, 20_000_000 if self.server else 0)

    def quiet(self, rounds: int = 20) -> None:
        """Steps for a while without expecting anything."""
        for _ in range(rounds):
            self.step()

    def advance(self, duration_ns: int, step_ns: int = SECOND // 10) -> None:
        """Lets time pass."""
        end_ns = self.now_ns + duration_ns
        while self.now_ns < end_ns:
            self.now_ns = min(end_ns, self.now_ns + step_ns)
            self.quiet(4)

    def end_of(self, request: RequestId) -> Completed | Failed:
        """Waits for the one end of a request."""
        self.settle(lambda: any(one.request == request for one in self.ends()))
        (end,) = [one for one in self.ends() if one.request == request]
        return end

    def ends(self) -> list[Completed | Failed]:
        """All ends so far."""
        return [one for one in self.events if isinstance(one, Completed | Failed)]

    def has(self, kind: type[Output]) -> bool:
        """Whether such an event came."""
        return any(isinstance(one, kind) for one in self.events)

    def close(self) -> None:
        """Gives descriptors back."""
        self.transport.close()
        if self.server:
            self.server.close()


def world(
    kind: Kind, shape: Shape = UNSHAPED, *, flush_ns: int = 0, profile: TargetProfile = NVMET, **changes: object
) -> World:
    """Two ends that have not begun."""
    speaks = "rdma" if kind in ("memory", "rdma") else "tcp"
    one = service(speaks, shape, profile=profile)
    server: TcpServer | None = None
    transport: Transport[PostSend]
    if kind.startswith("memory"):
        transport = MemoryTransport(one, keyed=kind == "memory", flush_ns=flush_ns)
    elif kind == "rdma":
        transport = SoftRdmaTransport(SoftFabric(one))
    else:
        server = TcpServer(one, ServerConfig(tos=104))
        digests = Digests(True, True) if kind == "tcp-digests" else Digests()
        transport = TcpTransport(TcpConfig("127.0.0.1", server.port, tos=104, digests=digests))
    host = Controller(config(transport=speaks, **changes))
    return World(host, HostDriver(host, transport), transport, one, server, transport.register(allocate(4 * MIB)))


def bring_up(one: World) -> World:
    """Starts the host and waits until it is ready."""
    one.host.start(one.now_ns)
    one.settle(lambda: one.has(Ready))
    return one


def worlds() -> Iterator[Callable[..., World]]:
    """Makes worlds, and closes them after the test (the body of a fixture)."""
    made: list[World] = []

    def make(kind: Kind, shape: Shape = UNSHAPED, *, start: bool = True, **changes: object) -> World:
        made.append(world(kind, shape, **changes))  # type: ignore[arg-type]  # changes go through to the host's config
        return bring_up(made[-1]) if start else made[-1]

    yield make
    for one in made:
        one.close()
