"""An engine's side of the dealer, played: it keeps its own account of everything and holds the dealer to it.

Nothing here reads the dealer's state to judge it; what flies and what waits is counted again from the commands.
"""

from dataclasses import dataclass, field
from random import Random

from fabric.engine.queues import (
    Dealer,
    Extent,
    Issue,
    Namespace,
    Op,
    Path,
    Queue,
    QueueId,
    QueueIdle,
    Request,
    RequestDone,
    RequestFailed,
    RequestId,
    RequestSettled,
    SetTimer,
    Transfer,
    TransferId,
    Urgency,
    View,
    split,
)
from fabric.errors import TransportError
from fabric.policy import ShardPolicy

BLOCK = 512
ERROR = TransportError("made by the test", where="the test")


@dataclass
class Told:
    """One request as the test knows it."""

    request: Request
    deadline_ns: int
    wanted: dict[TransferId, Transfer]
    good: set[TransferId] = field(default_factory=set)
    end: RequestDone | RequestFailed | None = None


@dataclass
class Wire:
    """One queue as the test knows it."""

    queue: Queue
    limit: int
    state: str = "open"
    flying: dict[TransferId, Transfer] = field(default_factory=dict)


def read(number: int, blocks: int, *, target: str = "t0", lba: int = 0, op: Op = Op.READ, **more: object) -> Request:
    """Returns a request of one extent into one view of its own buffer."""
    extents = (Extent(Namespace(1, target, BLOCK), lba, blocks),)
    return Request(RequestId(number), extents, (View(number, 0, blocks * BLOCK),), op, **more)  # type: ignore[arg-type]


class World:
    """Drives a dealer and checks each command."""

    def __init__(self, policy: ShardPolicy, *, segments: int = 1) -> None:
        self.policy = policy
        self.segments = segments
        self.dealer = Dealer(policy, segments=segments)
        self.now_ns = 0
        self.timer_ns: int | None = None
        self.told: dict[RequestId, Told] = {}
        self.wires: dict[QueueId, Wire] = {}
        self.waiting: dict[TransferId, Transfer] = {}
        self.landed: set[RequestId] = set()  # failed requests that must settle with the next commands
        self.log: list[object] = []
        self.next_transfer = 0

    # What the engine tells.

    def submit(self, request: Request) -> None:
        self.dealer.submit(request, self.now_ns)
        policy = self.policy
        transfers = split(
            request,
            transfer_bytes=policy.transfer_bytes,
            align_bytes=policy.align_bytes,
            segments=self.segments,
            first=self.next_transfer,
        )
        self.next_transfer += len(transfers)
        deadline_ns = request.deadline_ns
        deadline_ns = self.now_ns + policy.deadline_ns if deadline_ns is None else deadline_ns
        self.told[request.id] = Told(request, deadline_ns, {one.id: one for one in transfers})
        self.waiting |= {one.id: one for one in transfers}

    def add(self, number: int, *, target: str = "t0", path: Path | None = None, depth: int = 4) -> None:
        queue = Queue(QueueId(number), target, path or Path("h0", "p0"), depth)
        self.dealer.add_queue(queue)
        self.wires[queue.id] = Wire(queue, min(depth, self.policy.depth))

    def complete(self, queue: QueueId, transfer: Transfer) -> None:
        self.dealer.completed(queue, transfer)
        self._land(queue, transfer)
        told = self.told[transfer.request]
        if told.end is None:
            told.good.add(transfer.id)

    def fail(self, queue: QueueId, transfer: Transfer, *, again: bool) -> None:
        self.dealer.failed(queue, transfer, ERROR, again=again)
        self._land(queue, transfer)
        if again:
            self._again(transfer)

    def remove(self, queue: QueueId) -> None:
        self.dealer.remove_queue(queue)
        self.wires[queue].state = "draining"

    def lose(self, queue: QueueId) -> None:
        self.dealer.lose_queue(queue)
        self.wires[queue].state = "lost"

    def release(self, queue: QueueId) -> None:
        self.dealer.release_queue(queue)
        for transfer in list(self.wires[queue].flying.values()):
            self._land(queue, transfer)
            self._again(transfer)
        del self.wires[queue]

    def limit(self, queue: QueueId, depth: int) -> None:
        self.dealer.limit_queue(queue, depth)
        self.wires[queue].limit = min(depth, self.policy.depth)

    # What the dealer tells.

    def commands(self) -> list[Issue]:
        """Returns the issues of one dealing, after all checks."""
        issues: list[Issue] = []
        for command in self.dealer.commands(self.now_ns):
            self.log.append(command)
            match command:
                case Issue():
                    self._issued(command)
                    issues.append(command)
                case RequestDone(number):
                    self._done(self.told[number], command)
                case RequestFailed():
                    self._failed(self.told[command.request], command)
                case RequestSettled(number):
                    assert not [one for one in self._flying() if one.request == number]
                    self.landed.remove(number)
                case QueueIdle(queue):
                    wire = self.wires.pop(queue)
                    assert (wire.state, wire.flying) == ("draining", {})
                case SetTimer(at_ns):
                    self.timer_ns = at_ns
        self.check()
        return issues

    def check(self) -> None:
        """Holds the dealer to its bounds, its deadlines and its diligence."""
        assert not self.landed
        live = [told for told in self.told.values() if told.end is None]
        assert all(told.deadline_ns > self.now_ns for told in live)
        if live:
            assert self.timer_ns is not None
            assert self.now_ns < self.timer_ns <= min(told.deadline_ns for told in live)
        used = self.used()
        assert all(length <= self._bound(key) for key, length in used.items())
        for target, op in {(one.namespace.target, one.op) for one in self.waiting.values()}:
            self._must_wait(target, op, used)

    def used(self) -> dict[tuple[str, str], int]:
        """Returns bytes in flight per target and per receiving port."""
        used: dict[tuple[str, str], int] = {}
        for wire in self.wires.values():
            for transfer in wire.flying.values():
                for key in (("target", wire.queue.target), self._receiver(wire, transfer.op)):
                    used[key] = used.get(key, 0) + transfer.length
        return used

    def finish(self) -> None:
        """Lets everything that can end well do so, and checks that nothing is left."""
        for wire in [one for one in self.wires.values() if one.state == "lost"]:
            self.release(wire.queue.id)
        for wire in self.wires.values():
            if wire.state == "open":
                self.limit(wire.queue.id, wire.queue.depth)
        self.commands()
        while any(wire.flying for wire in self.wires.values()):
            for wire in list(self.wires.values()):
                for transfer in list(wire.flying.values()):
                    self.complete(wire.queue.id, transfer)
            self.commands()
        assert all(told.end is not None for told in self.told.values())
        load = self.dealer.load()
        assert (load.requests, load.draining) == (0, 0)
        assert all(window.used == 0 for window in load.windows)
        assert all((queue.commands, queue.bytes) == (0, 0) for queue in load.queues)
        assert {queue.queue for queue in load.queues} == set(self.wires)

    def _bound(self, key: tuple[str, str]) -> int:
        return self.policy.target_bytes if key[0] == "target" else self.policy.receiver_bytes

    @staticmethod
    def _receiver(wire: Wire, op: Op) -> tuple[str, str]:
        path = wire.queue.path
        return ("host", path.host_port) if op is Op.READ else ("target-port", path.target_port)

    def _must_wait(self, target: str, op: Op, used: dict[tuple[str, str], int]) -> None:
        # A bound is full when the longest transfer does not fit: a short one may not pass a long one that waits.
        longest = self.policy.transfer_bytes
        if used.get(("target", target), 0) + longest > self.policy.target_bytes:
            return
        for wire in self.wires.values():
            if wire.state != "open" or wire.queue.target != target:
                continue
            is_full = len(wire.flying) >= wire.limit
            full = used.get(self._receiver(wire, op), 0) + longest > self.policy.receiver_bytes
            assert is_full or full, f"a {op} waits although queue {wire.queue.id} could take it"

    def _flying(self) -> list[Transfer]:
        return [transfer for wire in self.wires.values() for transfer in wire.flying.values()]

    def _land(self, queue: QueueId, transfer: Transfer) -> None:
        del self.wires[queue].flying[transfer.id]
        told = self.told[transfer.request]
        if told.end is not None and not [one for one in self._flying() if one.request == transfer.request]:
            self.landed.add(transfer.request)

    def _again(self, transfer: Transfer) -> None:
        if self.told[transfer.request].end is None:
            again = transfer._replace(attempt=transfer.attempt + 1)
            self.waiting[transfer.id] = self.told[transfer.request].wanted[transfer.id] = again

    def _issued(self, issue: Issue) -> None:
        wire, transfer = self.wires[issue.queue], issue.transfer
        assert self.waiting.pop(transfer.id) == transfer, "dealt twice, or never asked for"
        assert self.told[transfer.request].end is None
        assert (wire.state, wire.queue.target) == ("open", transfer.namespace.target)
        wire.flying[transfer.id] = transfer
        assert len(wire.flying) <= wire.limit

    def _done(self, told: Told, command: RequestDone) -> None:
        assert told.end is None
        told.end = command
        assert told.good == set(told.wanted)

    def _failed(self, told: Told, command: RequestFailed) -> None:
        assert told.end is None
        told.end = command
        assert command.error.where
        flying = {
            (wire.queue.id, one.id)
            for wire in self.wires.values()
            for one in wire.flying.values()
            if one.id in told.wanted
        }
        # A response that came in between the failure and this command took its transfer out already.
        abandoned = {(issue.queue, issue.transfer.id) for issue in command.abandoned}
        assert flying <= abandoned
        for transfer in told.wanted:
            self.waiting.pop(transfer, None)
        if abandoned and not flying:
            self.landed.add(told.request.id)


def request_of(random: Random, number: int, now_ns: int, targets: int) -> Request:
    """Returns a request drawn at random: several extents, memory scattered, sometimes urgent, late or a write."""
    extents = []
    for _ in range(random.randint(1, 3)):
        namespace = Namespace(1, f"t{random.randrange(targets)}", BLOCK)
        extents.append(Extent(namespace, random.randrange(64), random.randint(1, 40)))
    left, views = sum(extent.blocks for extent in extents), []
    while left:
        blocks = random.randint(1, left)
        views.append(View(random.randrange(3), random.randrange(1000) * BLOCK, blocks * BLOCK))
        left -= blocks
    return Request(
        RequestId(number),
        tuple(extents),
        tuple(views),
        Op.WRITE if random.random() < 0.2 else Op.READ,
        tenant=random.choice(("", "a", "b")),
        urgency=random.choice((Urgency.DEMAND, Urgency.PREFETCH)),
        deadline_ns=now_ns + random.randint(0, 300) if random.random() < 0.3 else None,
        key=random.randbytes(4) if random.random() < 0.5 else b"",
        port=random.choice(("", "h0", "h1")),
    )
