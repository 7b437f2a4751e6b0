"""An engine on a wild target, in simulated time, with everything that must hold checked as it goes.

| checked | when |
|---|---|
| every block that a read gives is the right one, in a version that it may have | when the read ends, and again before its memory is used anew |
| nothing lands outside of what was asked for | guards beside each buffer, at the end of each operation and of the run |
| nothing lands in memory that is settled | it is filled with garbage, and looked at at the end |
| no end comes after the deadline | when it comes; and whenever time moves |
| nothing is kept | slots, lines, windows, quarantine, dealer, descriptors, at the end |
| the target holds nothing that nobody wrote | at the end |

Time moves to the next timer of the engine and no further; an engine that waits without a timer hangs, and one whose
timer rings for nothing spins: both are failures.
"""

import contextlib
import os
import select
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import fabric.engine.client.engine as engine_module
import fabric.engine.client.opening as opening_module
from fabric.engine.client import Engine, Flush, Read, Settings, Write, WriteZeroes
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.link import Usable
from fabric.engine.client.opening import open_link
from fabric.engine.client.work import QuarantinedError, QuarantineFullError, Work
from fabric.engine.nvmeof.host import Controller, HostConfig
from fabric.engine.nvmeof.host.states import QueueState
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.queues import Path
from fabric.errors import EngineError
from fabric.policy import ShardPolicy, fit
from tests.unit.engine.faults.blocks import BLOCK, GARBAGE, GUARD, Store, holds, named, split
from tests.unit.engine.faults.plan import MS, SECOND, WRITERS, Clock, HangError, Kind, Operation, Plan
from tests.unit.engine.faults.rough import SickStorage, WildService, WildTransport
from tests.unit.engine.nvmeof.rig import HOST_ID, HOST_NQN, NQN

KEY = (NQN, 1)
_BLOCKS = "wait"  # the one call that blocks, in the modules that make it
PATIENCE = 2_000  # steps without progress in time


def _descriptors() -> int:
    """How many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208, it is called for each scenario, and three times as fast


class World:
    """One engine and what it works on.

    Args:
        plan: sizes.
        prepare: is given the service before the engine opens.
    """

    def __init__(self, plan: Plan, prepare: Callable[["World"], None] | None = None) -> None:
        self.plan = plan
        self.clock = Clock()
        self.store = Store(plan.blocks)
        self.storage = SickStorage({KEY: self.store.image()}, plan.seed)
        self.namespace = IdentifyNamespace(plan.blocks, 9)
        transport = "rdma" if plan.keyed else "tcp"
        target = Target(subsystems=[Subsystem(NQN, {1: self.namespace})], transport=transport)
        self.service = WildService(target, self.storage, plan.shape)
        self.operations: list[Operation] = []
        self.log: list[str] = []
        self.hook: Callable[[], None] | None = None
        self.documented: tuple[type[Exception], ...] = (EngineError,)
        self._descriptors = _descriptors()
        self.blind = False  # wrong bytes are counted: the fault is one that only the reader can see
        self._spins = 0
        self._rest: list[Operation] = []  # ended, and not looked at for the last time
        self._poll = select.poll()
        self._engine: Engine | None = None
        self._link: ControllerLink | None = None
        self.wild: WildTransport | None = None
        if prepare is not None:
            prepare(self)
        with self.simulated():
            self._open()

    # -- opening and closing

    def _open(self) -> None:
        plan = self.plan
        policy = ShardPolicy(
            queues=plan.queues,
            depth=plan.depth,
            transfer_bytes=plan.transfer_blocks * BLOCK,
            align_bytes=BLOCK,
            target_bytes=plan.window_blocks * BLOCK,
            receiver_bytes=plan.window_blocks * BLOCK,
            deadline_ns=plan.deadline_ns,
            redeals=plan.redeals,
        )
        settings = Settings(
            open_ns=30 * SECOND,
            close_ns=2 * SECOND,
            command_ns=plan.command_ns,
            loss_ns=plan.loss_ns,
            keep_alive_ms=plan.kato_ms,
            quarantine_bytes=plan.quarantine_blocks * BLOCK,
        )
        config = HostConfig(
            subnqn=NQN,
            hostnqn=HOST_NQN,
            hostid=HOST_ID,
            transport="rdma" if plan.keyed else "tcp",
            io_queues=plan.queues,
            io_depth=plan.depth + 1,
            kato_ms=plan.kato_ms,
            io_timeout_ns=plan.command_ns,
            admin_timeout_ns=2 * SECOND,
            connect_timeout_ns=SECOND,
            controller_loss_ns=plan.loss_ns,
        )
        self.wild = WildTransport(self.service, keyed=plan.keyed, flush_ns=plan.flush_ns, sent_ns=plan.sent_ns)
        self._link = ControllerLink(Controller(config), self.wild, 1, Path("any", "memory"))
        try:
            news = open_link(self._link, settings, self.clock)
            (usable,) = [one for one in news if isinstance(one, Usable)]
            fitted, _notes = fit(policy, usable.limits)
            self._engine = Engine(self._link, news, fitted, settings, self.clock)
        except BaseException:
            self._link.close()
            raise
        self._poll.register(self._engine.fileno(), select.POLLIN)
        size = plan.slot_blocks * BLOCK
        self.buffer = self._engine.allocate(plan.slots * (size + BLOCK) + BLOCK)
        self._free = list(range(plan.slots))
        self.buffer.memory[:] = GUARD * self.buffer.memory.nbytes
        for slot in range(plan.slots):
            self._memory(slot)[:] = GARBAGE * size

    @property
    def engine(self) -> Engine:
        """The engine."""
        assert self._engine is not None
        return self._engine

    @property
    def link(self) -> ControllerLink:
        """Its way."""
        assert self._link is not None
        return self._link

    @property
    def controller(self) -> Controller:
        """Its machine."""
        return self.link.controller

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        """Waiting moves the clock instead of blocking."""
        modules = (engine_module, opening_module)
        before = [getattr(one, _BLOCKS) for one in modules]
        for one in modules:
            setattr(one, _BLOCKS, self._wait)
        try:
            yield
        finally:
            for one, real in zip(modules, before, strict=True):
                setattr(one, _BLOCKS, real)

    def _wait(self, descriptors: Iterable[int], timeout_ns: int | None) -> bool:
        if self.hook is not None:
            self.hook()
        poller = select.poll()
        for one in descriptors:
            poller.register(one, select.POLLIN)
        if poller.poll(0):
            self._spin("a descriptor stays readable")
            return True
        if timeout_ns is None:
            raise HangError("waits for ever")
        if timeout_ns:
            self._spins = 0
            self.clock.now_ns += timeout_ns
        else:
            self._spin("a timer rings for nothing")
        return False

    def close(self) -> None:
        """Closes the engine, and looks at everything once more."""
        began_ns = self.clock.now_ns
        with self.simulated():
            self.engine.close()
        took_ns, self.clock.now_ns = self.clock.now_ns - began_ns, began_ns
        self._hear()  # operations ended when close began
        assert took_ns <= 2 * SECOND, f"close took {took_ns} ns"
        assert not self.engine.quarantined, "the quarantine is not empty after close"
        for one in self.operations:
            assert (one.future.done, one.future.settled) == (True, True), f"{one.future} after close"
        self.check_memory()
        assert self.engine.next_timer_ns() is None or self.engine.lost is not None
        del self._poll
        self._descriptors_are_back()

    def _descriptors_are_back(self) -> None:
        found = _descriptors()
        assert found == self._descriptors, f"{found - self._descriptors} descriptors leaked"

    # -- working

    def submit(self, kind: Kind, lba: int = 0, count: int = 1, deadline_ns: int | None = None) -> Operation | None:
        """Submits; None when there is no memory for it, the engine takes none, or another write is about its blocks."""
        blocks = range(lba, lba + count)
        if kind in WRITERS and any(one in self.store.unsettled for one in blocks):
            return None
        slot = self._take_slot()
        if slot is None:
            return None
        if kind not in WRITERS:
            may = [set(self.store.may[one]) for one in blocks] if kind is Kind.READ else []
            return self._submit(kind, slot, lba, count, None, may, deadline_ns)
        before = [set(one) for one in self.store.may]
        version, data = self.store.begin(lba, count, zero=kind is Kind.ZERO)
        self._memory(slot)[: count * BLOCK] = data
        for one in self.operations:
            if one.kind is Kind.READ and one.ended_ns is None:
                for at in range(one.count):
                    if one.lba + at in blocks:
                        one.may[at].add(version)
        operation = self._submit(kind, slot, lba, count, version, [], deadline_ns)
        if operation is None:  # nothing was taken
            self.store.failed(lba, count)
            for at in blocks:
                self.store.may[at] = before[at]
        return operation

    def read(self, lba: int, count: int = 1, deadline_ns: int | None = None) -> Operation | None:
        """Submits a read."""
        return self.submit(Kind.READ, lba, count, deadline_ns)

    def cancel(self, operation: Operation) -> None:
        """Cancels."""
        self.engine.cancel(operation.future)
        self._hear()

    def _submit(
        self,
        kind: Kind,
        slot: int,
        lba: int,
        count: int,
        version: int | None,
        may: list[set[int]],
        deadline_ns: int | None,
    ) -> Operation | None:
        now_ns = self.clock.now_ns
        try:
            (future,) = self.engine.submit([self._work(kind, slot, lba, count, deadline_ns)])
        except self.documented as error:
            if isinstance(error, QuarantinedError):
                raise AssertionError("this memory was settled") from error
            if not isinstance(error, QuarantineFullError):
                self.log.append(f"{now_ns}: refused: {error}")
            self._free.append(slot)
            self._memory(slot)[:] = GARBAGE * (self.plan.slot_blocks * BLOCK)
            return None
        until_ns = now_ns + (self.plan.deadline_ns if deadline_ns is None else deadline_ns)
        operation = Operation(future, kind, slot, lba, count, version, until_ns, may)
        self.operations.append(operation)
        self._rest.append(operation)
        self._hear()
        return operation

    def _work(self, kind: Kind, slot: int, lba: int, count: int, deadline_ns: int | None) -> Work:
        views = (self.buffer.view(self._at(slot), count * BLOCK),)
        match kind:
            case Kind.READ:
                return Read(lba, views, deadline_ns=deadline_ns)
            case Kind.WRITE | Kind.DURABLE:
                return Write(lba, views, deadline_ns=deadline_ns, fua=kind is Kind.DURABLE)
            case Kind.ZERO:
                return WriteZeroes(lba, count, deadline_ns=deadline_ns)
            case Kind.FLUSH:
                return Flush(deadline_ns=deadline_ns)

    def step(self) -> None:
        """Everything that can happen at this moment happens."""
        for _ in range(PATIENCE):
            self.engine.step()
            self._hear()
            if not self._poll.poll(0):
                return
        raise HangError("the descriptor stays readable though step does all there is")

    def run(self, until: Callable[[], bool] | None = None, *, until_ns: int | None = None) -> bool:
        """Lets time pass until something holds, or until a moment; returns whether it holds."""
        while True:
            self.step()
            if until is not None and until():
                return True
            now_ns, due_ns = self.clock.now_ns, self.engine.next_timer_ns()
            at_ns = min((one for one in (due_ns, until_ns) if one is not None), default=None)
            if at_ns is None:
                if until is None:
                    return False
                raise HangError(f"at {now_ns}: nothing will ever happen; {self.state()}")
            if until_ns is not None and now_ns >= until_ns:
                return False
            if at_ns <= now_ns:
                self._spin(f"a timer at {due_ns} rings for nothing")
                continue
            self._spins = 0
            late = [one for one in self._rest if one.ended_ns is None and one.until_ns < at_ns]
            assert not late, f"no timer at the deadline {late[0].until_ns}: {at_ns}; {self.state()}"
            self.clock.now_ns = at_ns

    def pass_time(self, duration_ns: int) -> None:
        """Lets so much time pass."""
        self.run(until_ns=self.clock.now_ns + duration_ns)

    def settle(self) -> None:
        """Runs until every operation is settled; that must come within a bound."""
        plan = self.plan
        open_ns = max((one.until_ns for one in self.operations), default=self.clock.now_ns)
        bound_ns = max(open_ns, self.clock.now_ns) + plan.command_ns + plan.flush_ns + 10 * MS
        self.run(lambda: all(one.future.settled for one in self.operations), until_ns=bound_ns)
        open_ = [one for one in self.operations if not one.future.settled]
        assert not open_, f"not settled {bound_ns - open_ns} ns after the last deadline: {open_}; {self.state()}"

    def _hear(self) -> None:
        """Looks at operations that ended or settled."""
        for one in tuple(self._rest):
            if one.future.done and one.ended_ns is None:
                self._ended(one)
            if one.future.settled and one.settled_ns is None:
                self._settled(one)

    def _ended(self, one: Operation) -> None:
        one.ended_ns = self.clock.now_ns
        assert one.ended_ns <= one.until_ns, f"{one.future} ended {one.ended_ns - one.until_ns} ns late"
        if one.future.error is not None:
            assert isinstance(one.future.error, self.documented), f"not documented: {one.future.error!r}"
        elif one.kind is Kind.READ:
            self._judge(one)
        self._check_guards(one.slot)

    def _settled(self, one: Operation) -> None:
        assert one.future.done, "settled before it ended"
        one.settled_ns = self.clock.now_ns
        if one.version is not None:
            if one.well:
                self.store.done(one.lba, one.count, one.version)
            else:
                self.store.failed(one.lba, one.count)
        if one.kind is not Kind.READ or not one.well:
            self._memory(one.slot)[:] = GARBAGE * (self.plan.slot_blocks * BLOCK)  # its owner uses it for other things

    def _judge(self, one: Operation) -> None:
        try:
            self.check_read(one)
        except AssertionError:
            if not self.blind:
                raise
            one.caught = bytes(self._memory(one.slot))

    def check_read(self, one: Operation) -> None:
        """What a read gave is right, and stays so."""
        data = self._memory(one.slot)[: one.count * BLOCK]
        for at, found in enumerate(split(data)):
            came = f"{named(found)} came: {found[:16].hex()}"
            assert holds(found, one.lba + at, one.may[at]), f"block {one.lba + at} of {one.may[at]}: {came}"
        rest = self._memory(one.slot)[one.count * BLOCK :]
        assert rest == GARBAGE * rest.nbytes, "bytes beyond the read"

    def check_memory(self) -> None:
        """No guard was touched, no settled memory changed, and the target holds what was written."""
        for slot in range(self.plan.slots):
            self._check_guards(slot)
        for one in tuple(self._rest):
            if one.settled_ns is not None:
                self._look(one)
        assert not (wrong := self.store.wrong(self.storage.disks[KEY])), wrong[:4]

    def check_idle(self) -> None:
        """Nothing is kept, once all has settled."""
        load = self.engine.load()
        flying = [(one.queue, one.commands, one.bytes) for one in load.queues if one.commands or one.bytes]
        used = [(one.kind, one.used) for one in load.windows if one.used]
        kept = (load.requests, load.draining, load.waiting, flying, used)
        assert kept == (0, 0, 0, [], []), f"the dealer keeps {kept}"
        assert not self.engine.quarantined, "the quarantine keeps memory"
        assert not self.engine._quarantine.bytes, "the quarantine counts bytes"
        assert not self.engine._live, "live requests"
        assert not self.engine._abandoned, "abandoned requests"
        for qid, line in self.link._lines.items():
            assert (len(line.flying), len(line.parked)) == (0, 0), f"queue {qid} keeps {line}"
        assert not self.link._late, "late failures"
        for qid in self.controller.live_queues:
            assert not self.controller.queue(qid).slots.in_use, f"slots of queue {qid} are in use"

    def state(self) -> str:
        """Where everything is, for messages."""
        queues = {qid: str(self.controller.queue(qid).state) for qid in self._queue_ids()}
        return (
            f"now {self.clock.now_ns}, controller {self.controller.state}, queues {queues}, {self.engine.load()}, "
            f"lines {self.link._lines}"
        )

    def _queue_ids(self) -> list[int]:
        return [0, *self.controller._life.io._members]

    def is_up(self) -> bool:
        """Every queue is live, and known to the dealer."""
        live = self.controller.live_queues
        known = [one.queue for one in self.engine.load().queues if one.state == "open"]
        return bool(live) and len(live) == len(self._queue_ids()) - 1 and sorted(known) == sorted(live)

    def queue_state(self, qid: int) -> QueueState:
        """Where a queue is."""
        return self.controller.queue(qid).state

    # -- memory

    def _at(self, slot: int) -> int:
        return BLOCK + slot * (self.plan.slot_blocks + 1) * BLOCK

    def _memory(self, slot: int) -> memoryview:
        return self.buffer.memory[self._at(slot) : self._at(slot) + self.plan.slot_blocks * BLOCK]

    def _take_slot(self) -> int | None:
        if not self._free:
            for one in tuple(self._rest):
                if one.settled_ns is not None:
                    self._look(one)
                    self._rest.remove(one)
                    self._free.append(one.slot)
                    self._memory(one.slot)[:] = GARBAGE * (self.plan.slot_blocks * BLOCK)
        return self._free.pop(0) if self._free else None

    def _look(self, one: Operation) -> None:
        if one.caught:
            assert self._memory(one.slot) == one.caught, "a read changed after it ended"
        elif one.kind is Kind.READ and one.well:
            self.check_read(one)
        else:
            size = self.plan.slot_blocks * BLOCK
            assert self._memory(one.slot) == GARBAGE * size, f"memory changed after it was settled: {one.future}"

    def _check_guards(self, slot: int) -> None:
        at, size = self._at(slot), self.plan.slot_blocks * BLOCK
        for edge in (at - BLOCK, at + size):
            assert self.buffer.memory[edge : edge + BLOCK] == GUARD * BLOCK, f"a guard of slot {slot} was written to"

    def _spin(self, why: str) -> None:
        self._spins += 1
        if self._spins > PATIENCE:
            raise HangError(f"{why}; {self.state() if self._engine else ''}")


def world(prepare: Callable[[World], None] | None = None, **changes: object) -> World:
    """An open world."""
    return World(replace(Plan(), **changes), prepare)  # type: ignore[arg-type]
