"""A host and a target in one process: the wire between them is a list of messages, the disks are bytearrays.

By default every message arrives at once and in order. A test may set `fate`, which decides of each message: how often
it arrives, and how many steps late. What an RDMA connection promises is kept: the data of a read is in memory before
its answer is seen, and nothing of a connection that the host took down arrives.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fabric.engine.nvmeof.host import Controller, HostConfig, QueueMemory, Region, RequestId
from fabric.engine.nvmeof.host import outputs as h
from fabric.engine.nvmeof.target import Address, PeerId, Subsystem, Target, TargetProfile
from fabric.engine.nvmeof.target import outputs as t
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.errors import EngineError, TransportError

NQN = "nqn.2026-11.io.example:kv"
HOST_NQN = "nqn.2014-08.org.nvmexpress:uuid:3b0ba9a4-0000-4000-8000-000000000001"
HOST_ID = bytes(range(16))
NAMESPACE = IdentifyNamespace(blocks=4096, block_shift=9)
ARENA_KEY = 0xA7E4A
SECOND = 1_000_000_000
MS = 1_000_000


def config(**changes: object) -> HostConfig:
    """A host of two queues of eight entries."""
    base: dict[str, object] = {
        "subnqn": NQN,
        "hostnqn": HOST_NQN,
        "hostid": HOST_ID,
        "io_queues": 2,
        "io_depth": 8,
    }
    return HostConfig(**(base | changes))  # type: ignore[arg-type]


@dataclass
class Message:
    """Something on its way.

    Attributes:
        kind: "request", "reply", "capsule", "data", "answer", "fetch", "fetched", "sent", "break".
        peer: the connection; the same number on both sides.
        deliver: what arriving does.
        after: steps to wait.
        detail: the SQE or CQE, for a fate that looks.
    """

    kind: str
    peer: int
    deliver: Callable[[], None]
    after: int = 0
    detail: bytes = b""


def arrive(message: Message) -> list[int]:
    """The default fate: once, at once."""
    del message
    return [0]


@dataclass
class Rig:
    """Both ends, and what is between and under them."""

    target: Target
    host: Controller
    fate: Callable[[Message], list[int]] = arrive
    now_ns: int = 0
    wire: list[Message] = field(default_factory=list)
    disks: dict[tuple[str, int], bytearray] = field(default_factory=dict)
    arena: bytearray = field(default_factory=lambda: bytearray(1 << 20))
    events: list[h.Output] = field(default_factory=list)
    sent: list[h.PostSend] = field(default_factory=list)
    connects: list[h.Connect] = field(default_factory=list)
    writable: Callable[[int, int], None] | None = None
    refuse: Callable[[h.Connect], tuple[bytes, bool] | None] | None = None
    hold_storage: bool = False
    held_work: list[t.Output] = field(default_factory=list)
    _alive: set[int] = field(default_factory=set)
    _scratch: dict[tuple[int, int], bytearray] = field(default_factory=dict)
    _incoming: dict[tuple[int, int], int] = field(default_factory=dict)
    _regions: dict[tuple[int, int], tuple[int, Region | None]] = field(default_factory=dict)
    _pushes: dict[tuple[int, int], t.PushData] = field(default_factory=dict)
    _pushed: dict[int, t.PushData] = field(default_factory=dict)
    _timers: dict[str, int | None] = field(default_factory=lambda: {"host": None, "target": None})

    # -- running

    def pump(self) -> None:
        """Turns outputs of both ends into messages."""
        for output in self.host.drain():
            self._from_host(output)
        for answer in self.target.drain():
            self._from_target(answer)

    def step(self) -> bool:
        """Delivers what is due now; returns whether anything is still on its way."""
        self.pump()
        if not self.wire:
            return False
        due = [one for one in self.wire if one.after <= 0]
        self.wire = [one for one in self.wire if one.after > 0]
        for one in self.wire:
            one.after -= 1
        for one in due:
            one.deliver()
            self.pump()
        return True

    def settle(self) -> None:
        """Steps until nothing moves without time."""
        for _ in range(100_000):
            if not self.step():
                return
        raise AssertionError("the two ends never come to rest")

    def advance(self, duration_ns: int) -> None:
        """Lets time pass, from timer to timer."""
        end_ns = self.now_ns + duration_ns
        self.settle()
        while (due_ns := self.next_timer_ns()) is not None and due_ns <= end_ns:
            before = dict(self._timers)
            self.tick(due_ns)
            self.settle()
            assert self._timers != before, "a timer that does nothing"
        self.now_ns = end_ns

    def next_timer_ns(self) -> int | None:
        """When either end wants to be called."""
        return min((at for at in self._timers.values() if at is not None), default=None)

    def tick(self, now_ns: int) -> None:
        """Calls both ends at `now_ns`, or now when that is past."""
        self.now_ns = max(self.now_ns, now_ns)
        self.host.tick(self.now_ns)
        self.target.tick(self.now_ns)
        self.pump()

    def bring_up(self) -> None:
        """Starts the host and waits for it."""
        self.host.start(self.now_ns)
        self.settle()

    # -- reading

    def of(self, kind: type[h.Output]) -> list[h.Output]:
        """Events of one kind, oldest first."""
        return [one for one in self.events if isinstance(one, kind)]

    def end_of(self, request: RequestId) -> h.Completed | h.Failed:
        """The one end of a request."""
        ends = [one for one in self.events if isinstance(one, h.Completed | h.Failed) and one.request == request]
        assert len(ends) == 1, f"request {request} has {len(ends)} ends"
        return ends[0]

    def region(self, index: int, length: int) -> Region:
        """A part of the arena, 4 KiB apart."""
        return Region(index * 4096, length, ARENA_KEY)

    def break_connection(self, qid: int, error: EngineError | None = None) -> None:
        """The peer, or the adapter, breaks the newest connection of a queue."""
        connection = self.host.queue(qid).connection
        assert connection is not None
        self.host.failed(connection, error or TransportError("broken by the test"), self.now_ns)

    # -- the host's side

    def _from_host(self, output: h.Output) -> None:
        match output:
            case h.Connect():
                self.connects.append(output)
                self._post("request", output.connection, lambda: self._ask(output))
            case h.PostSend():
                self.sent.append(output)
                key = (output.connection, output.slot)
                self._scratch[key] = bytearray(output.outgoing.ljust(4096, b"\0"))
                self._incoming[key] = output.incoming_bytes
                cid = int.from_bytes(output.capsule[2:4], "little")
                self._regions[output.connection, cid] = (output.slot, output.region)
                capsule = output.capsule
                if output.region is not None and output.carries_region:
                    start = output.region.address
                    capsule += self.arena[start : start + output.region.length]
                peer = PeerId(output.connection)
                self._post("sent", peer, lambda: self.host.sent(output.connection, output.slot))
                self._post("capsule", peer, lambda: self.target.capsule(peer, capsule, self.now_ns), capsule)
            case h.Disconnect(connection):
                self._alive.discard(connection)
                self.wire = [one for one in self.wire if one.peer != connection]
                peer = PeerId(connection)
                self.wire.append(Message("gone", peer, lambda: self._gone(connection)))
            case h.SetTimer(at_ns):
                self._timers["host"] = at_ns
            case _:
                self.events.append(output)

    def _gone(self, connection: h.ConnectionId) -> None:
        self.target.disconnected(PeerId(connection))
        self.host.disconnected(connection, self.now_ns)

    def _ask(self, connect: h.Connect) -> None:
        refusal = self.refuse(connect) if self.refuse else None
        if refusal is not None:
            self.host.rejected(connect.connection, refusal[0], self.now_ns, stale=refusal[1])
            return
        self._alive.add(connect.connection)
        self.target.connect_request(
            PeerId(connect.connection), connect.private_data, responder_resources=connect.responder_resources
        )

    def _answer(self, connection: h.ConnectionId, response: bytes, push: t.PushData | None) -> None:
        if push is not None:
            self._push(push)
        slot, _region = self._regions.get((connection, int.from_bytes(response[12:14], "little")), (-1, None))
        key = (connection, slot)
        payload = bytes(self._scratch.get(key, b"")[: self._incoming.get(key, 0)])
        self.host.received(connection, response, self.now_ns, payload=payload)

    def _resolve(self, peer: int, cid: int, address: int, key: int) -> tuple[int, int]:
        """Where data goes: on TCP the host's transport knows it by the command id."""
        if self.host.config.transport == "rdma":
            return address, key
        slot, region = self._regions[peer, cid]
        return (region.address, ARENA_KEY) if region else ((peer << 32) + slot * 4096, peer)

    # -- the target's side

    def _from_target(self, output: t.Output) -> None:
        match output:
            case t.Accept(peer, private_data):
                connection = h.ConnectionId(peer)
                memory = QueueMemory(address=peer << 32, key=peer)
                area = private_data.ljust(196, b"\0")  # what the connection manager hands over
                self._post("reply", peer, lambda: self.host.connected(connection, area, memory, self.now_ns))
            case t.Reject(peer, private_data):
                connection = h.ConnectionId(peer)
                area = private_data.ljust(148, b"\0")
                self._post("reply", peer, lambda: self.host.rejected(connection, area, self.now_ns))
            case t.FetchData(peer, task, cid, address, key, length):
                where = self._resolve(peer, cid, address, key)
                self._post("fetch", peer, lambda: self._fetch(peer, task, self._slice(peer, *where, length)))
            case t.PushData():
                self._pushes[output.peer, output.cid] = output
                self._post("data", output.peer, lambda: self._push(output))
            case t.Respond(peer, response):
                connection = h.ConnectionId(peer)
                push = self._pushes.pop((peer, int.from_bytes(response[12:14], "little")), None)
                self._post("answer", peer, lambda: self._answer(connection, response, push), response)
            case t.Drop(peer, reason):
                connection = h.ConnectionId(peer)
                error = TransportError("the target disconnected", found=reason)
                self._post("break", peer, lambda: self.host.failed(connection, error, self.now_ns))
            case t.SetTimer(at_ns):
                self._timers["target"] = at_ns
            case _ if self.hold_storage:
                self.held_work.append(output)
            case _:
                self.store(output)

    def _slice(self, peer: int, address: int, key: int, length: int) -> bytes:
        if key == ARENA_KEY:
            return bytes(self.arena[address : address + length])
        offset = address - (peer << 32)
        slot = offset // 4096
        return bytes(self._scratch[peer, slot][offset % 4096 : offset % 4096 + length])

    def _fetch(self, peer: int, task: t.TaskId, data: bytes) -> None:
        self._post("fetched", peer, lambda: self.target.data_fetched(task, data, self.now_ns))

    def _push(self, push: t.PushData) -> None:
        if id(push) in self._pushed:
            return
        self._pushed[id(push)] = push
        address, key = self._resolve(push.peer, push.cid, push.address, push.key)
        if key == ARENA_KEY:
            if self.writable:
                self.writable(address, len(push.data))
            self.arena[address : address + len(push.data)] = push.data
            return
        offset = address - (push.peer << 32)
        start = offset % 4096
        self._scratch[push.peer, offset // 4096][start : start + len(push.data)] = push.data

    def store(self, work: t.Output) -> None:
        """Does what storage is asked for."""
        match work:
            case t.StorageRead(task, nqn, nsid, offset, length):
                self.target.stored(task, data=bytes(self.disk(nqn, nsid)[offset : offset + length]))
            case t.StorageWrite(task, nqn, nsid, offset, data):
                self.disk(nqn, nsid)[offset : offset + len(data)] = data
                self.target.stored(task)
            case t.StorageZero(task, nqn, nsid, extents):
                for offset, length in extents:
                    self.disk(nqn, nsid)[offset : offset + length] = bytes(length)
                self.target.stored(task)
            case t.StorageFlush(task):
                self.target.stored(task)
            case _:
                raise AssertionError(f"no storage work: {work}")
        self.pump()

    def disk(self, nqn: str = NQN, nsid: int = 1) -> bytearray:
        """The bytes of a namespace."""
        size = NAMESPACE.blocks * NAMESPACE.block_bytes
        return self.disks.setdefault((nqn, nsid), bytearray(size))

    def _post(self, kind: str, peer: int, deliver: Callable[[], None], detail: bytes = b"") -> None:
        message = Message(kind, peer, deliver, 0, detail)

        def if_alive() -> None:
            if kind == "request" or peer in self._alive:
                deliver()

        for after in self.fate(message):
            self.wire.append(Message(kind, peer, if_alive, after, detail))


def rig(profile: TargetProfile, host: HostConfig | None = None, **changes: object) -> Rig:
    """A target of one subsystem with one namespace, and a host that has not begun."""
    subsystem = Subsystem(NQN, {1: NAMESPACE})
    wanted = host or config(**changes)
    target = Target(profile, [subsystem], [Address("10.0.0.1")], transport=wanted.transport)
    return Rig(target, Controller(wanted))
