"""An engine over NVMe/TCP whose bytes pass through a meddler: cut, turned, left out, doubled, put in, held up.

Sockets are real and on loopback, all in one thread; time is the test's, so that deadlines cost nothing.
"""

import contextlib
import enum
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from fabric.engine.client import Engine, Future, Settings
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.link import Usable
from fabric.engine.nvmeof.host import Controller, HostConfig
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.tcp import Digests
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.queues import Path
from fabric.engine.transport.driver import wait
from fabric.engine.transport.service import Service
from fabric.engine.transport.storage import RamStorage
from fabric.engine.transport.tcp import ServerConfig, TcpConfig, TcpServer, TcpTransport
from fabric.errors import EngineError
from fabric.policy import ShardPolicy, fit
from tests.unit.engine.faults.blocks import BLOCK, Store
from tests.unit.engine.faults.plan import MS, SECOND, Clock
from tests.unit.engine.nvmeof.rig import HOST_ID, HOST_NQN, NQN

KEY = (NQN, 1)
_CHUNK = 1 << 16
_MOST_ROUNDS = 4_000


class Meddling(enum.StrEnum):
    """What happens to a byte of a stream, and to what follows."""

    CUT = "the connection ends before it"
    TURN = "one bit of it is another"
    LEAVE_OUT = "it never comes"
    DOUBLE = "it comes twice"
    PUT_IN = "16 bytes come before it that nobody sent"
    STOP = "nothing more comes, and the connection stays"
    TRICKLE = "it and 400 more come one by one"


class Side(enum.StrEnum):
    """Which direction of the connection is meddled with."""

    TO_HOST = "to the host"
    TO_TARGET = "to the target"


@dataclass
class _Pipe:
    """One direction of one connection."""

    source: socket.socket
    sink: socket.socket
    side: Side
    number: int
    passed: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    is_stopped: bool = False
    slow: int = 0  # bytes that are still to come one by one
    has_ended: bool = False


class Meddler:
    """Passes bytes between hosts and a target; meddles with the byte at `at` of one connection, once.

    Args:
        port: of the target.
        what, side, connection, at: the meddling; `connection` counts from 0, the admin queue.
    """

    def __init__(self, port: int, what: Meddling | None, side: Side, connection: int, at: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = int(self.listener.getsockname()[1])
        self.struck = False
        self.passed: dict[tuple[int, Side], int] = {}
        self._target = port
        self._what, self._side, self._connection, self._at = what, side, connection, at
        self._pipes: list[_Pipe] = []
        self._count = 0

    def poll(self) -> bool:
        """Passes on what there is; returns whether there was anything."""
        busy = self._accept()
        for pipe in tuple(self._pipes):
            busy |= self._take(pipe)
            busy |= self._give(pipe)
        return busy

    def close(self) -> None:
        """Closes everything."""
        self.listener.close()
        for pipe in self._pipes:
            pipe.source.close()

    def _accept(self) -> bool:
        try:
            near, _address = self.listener.accept()
        except BlockingIOError:
            return False
        far = socket.create_connection(("127.0.0.1", self._target))
        for one in (near, far):
            one.setblocking(False)
        self._pipes += [
            _Pipe(near, far, Side.TO_TARGET, self._count),
            _Pipe(far, near, Side.TO_HOST, self._count),
        ]
        self._count += 1
        return True

    def _take(self, pipe: _Pipe) -> bool:
        if pipe.has_ended or len(pipe.waiting) > _CHUNK:
            return False
        try:
            data = pipe.source.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            pipe.has_ended = True
            return True
        before, pipe.passed = pipe.passed, pipe.passed + len(data)
        self.passed[pipe.number, pipe.side] = pipe.passed
        if not pipe.is_stopped:
            pipe.waiting += data
        is_here = (pipe.number, pipe.side) == (self._connection, self._side)
        if is_here and not self.struck and self._what and before <= self._at < pipe.passed:
            self._meddle(pipe, len(pipe.waiting) - (pipe.passed - self._at), self._what)
        return True

    def _meddle(self, pipe: _Pipe, at: int, what: Meddling) -> None:
        self.struck = True
        data = pipe.waiting
        match what:
            case Meddling.CUT:
                del data[at:]
                pipe.has_ended = True
            case Meddling.TURN:
                data[at] ^= 0x10
            case Meddling.LEAVE_OUT:
                del data[at]
            case Meddling.DOUBLE:
                data.insert(at, data[at])
            case Meddling.PUT_IN:
                data[at:at] = bytes(range(16))
            case Meddling.STOP:
                del data[at:]
                pipe.is_stopped = True
            case Meddling.TRICKLE:
                pipe.slow = 400

    def _give(self, pipe: _Pipe) -> bool:
        if not pipe.waiting:
            if pipe.has_ended:
                self._drop(pipe)
            return False
        try:
            sent = pipe.sink.send(pipe.waiting[:1] if pipe.slow else pipe.waiting)
        except BlockingIOError:
            return False
        except OSError:
            self._drop(pipe)
            return True
        del pipe.waiting[:sent]
        pipe.slow = max(0, pipe.slow - sent)
        return True

    def _drop(self, pipe: _Pipe) -> None:
        """Both directions end, as when a box between the two forgets a connection."""
        self._pipes = [one for one in self._pipes if one.number != pipe.number]
        pipe.source.close()
        pipe.sink.close()


@dataclass
class Streams:
    """An engine, the meddler and a target."""

    clock: Clock
    store: Store
    storage: RamStorage
    server: TcpServer
    meddler: Meddler
    link: ControllerLink
    engine: Engine | None = None
    error: EngineError | None = None
    failed_to_open: bool = False

    def step(self) -> bool:
        """Everything takes a step; returns whether anything moved."""
        busy = self.meddler.poll()
        busy |= self.server.poll(self.clock.now_ns)
        if self.engine is not None:
            busy |= bool(self.engine.step())
        return busy

    def until_done(self, futures: list[Future], until_ns: int) -> None:
        """Steps until all are settled; time moves only when nothing else does."""
        assert self.engine is not None
        idle = 0
        for _ in range(_MOST_ROUNDS):
            if all(one.settled for one in futures) or self.clock.now_ns > until_ns:
                return
            if self.step():
                idle = 0
                continue
            idle += 1
            wait([self.engine.fileno(), self.server.fileno(), self.meddler.listener.fileno()], MS)
            if idle > 3:
                due_ns = self.engine.next_timer_ns()
                assert due_ns is not None, "it waits for what never comes"
                self.clock.now_ns = max(self.clock.now_ns, min(due_ns, until_ns + 1))
                idle = 0
        raise AssertionError("it never comes to rest")


@contextlib.contextmanager
def streams(
    what: Meddling | None, side: Side, connection: int, at: int, *, digests: bool, blocks: int = 64
) -> Iterator[Streams]:
    """An engine on one I/O queue, open unless the meddling kept it from that."""
    clock, store = Clock(), Store(blocks)
    storage = RamStorage({KEY: blocks * BLOCK})
    storage.disks[KEY][:] = store.image()
    target = Target(subsystems=[Subsystem(NQN, {1: IdentifyNamespace(blocks, 9)})], transport="tcp")
    server = TcpServer(Service(target, storage), ServerConfig())
    meddler = Meddler(server.port, what, side, connection, at)
    both = Digests(header=digests, data=digests)
    transport = TcpTransport(TcpConfig("127.0.0.1", meddler.port, digests=both, connect_timeout_ns=SECOND))
    config = HostConfig(
        subnqn=NQN,
        hostnqn=HOST_NQN,
        hostid=HOST_ID,
        transport="tcp",
        io_queues=1,
        io_depth=5,
        io_timeout_ns=SECOND,
        admin_timeout_ns=SECOND,
        connect_timeout_ns=SECOND,
    )
    link = ControllerLink(Controller(config), transport, 1, Path("any", "meddled"))
    one = Streams(clock, store, storage, server, meddler, link)
    try:
        _open(one)
        yield one
    finally:
        if one.engine is not None:
            one.engine.close()
        link.close()
        meddler.close()
        server.close()


def _open(one: Streams) -> None:
    """Opens, and opens again when the first try was meddled with, as a caller does."""
    settings = Settings(command_ns=SECOND, close_ns=0)
    policy = ShardPolicy(queues=1, depth=4, transfer_bytes=4 * BLOCK, align_bytes=BLOCK, deadline_ns=20 * SECOND)
    one.link.start(one.clock.now_ns)
    news = []
    idle = 0
    for _ in range(_MOST_ROUNDS):
        busy = one.meddler.poll() | one.server.poll(one.clock.now_ns)
        fresh = one.link.step(one.clock.now_ns)
        news += fresh
        usable = [two for two in news if isinstance(two, Usable)]
        if usable:
            fitted, _notes = fit(policy, usable[0].limits)
            one.engine = Engine(one.link, news, fitted, settings, one.clock)
            return
        for two in fresh:
            if (error := getattr(two, "error", None)) is not None:
                one.error, one.failed_to_open = error, True
                return
        idle = 0 if busy or fresh else idle + 1
        if idle > 3:
            wait([one.link.fileno(), one.server.fileno(), one.meddler.listener.fileno()], MS)
            due_ns = one.link.next_timer_ns()
            assert due_ns is not None, "it waits for what never comes"
            one.clock.now_ns = max(one.clock.now_ns, due_ns)
    raise AssertionError("it never opens, and never says why")
