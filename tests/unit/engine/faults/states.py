"""The states in which a fault may find an engine, and how each is reached: the tables of the machines, and what the
layers above them add. A state that is not reached is an error of the test, not a cell less.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fabric.engine.nvmeof.host.states import ControllerState, QueueState, SlotState
from fabric.engine.nvmeof.target import PushData, Respond
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Latency, Shape
from tests.unit.engine.faults.blocks import BLOCK
from tests.unit.engine.faults.plan import MS, SECOND, HangError, Kind, Operation, Plan
from tests.unit.engine.faults.rough import Item
from tests.unit.engine.faults.world import World

LATENCY_NS = 10 * MS
PLAN: Mapping[str, object] = MappingProxyType(
    {
        "queues": 2,
        "depth": 2,
        "blocks": 64,
        "deadline_ns": 400 * MS,
        "command_ns": 60 * MS,
        "flush_ns": 15 * MS,
        "shape": Shape(latency=Latency("fixed", LATENCY_NS)),
    }
)
_CRD_1 = 1 << 11  # the status asks for the first of three delays (NVMe base 1.4, section 4.6.1)
_CRDT_AT = 128  # Identify Controller, CRDT1 (hosts study 1.6; NVMe base 1.4 figure 247)


class CommandState(enum.StrEnum):
    """Where a command is: its slot's states, by the names of the table, and those that the engine adds."""

    WAITING = "waiting"  # in the dealer: no queue has room
    PARKED = "parked"  # dealt, and no slot is free
    POSTED = "posted"
    SENT = "sent"
    HALF_PLACED = "half placed"  # some of its data is in memory
    HALF_DONE = "half done"  # some of its transfers have landed
    ANSWERED = "answered"
    ENDED = "free"  # its slot is free again
    DELAYED = "delayed"  # it failed, and is told later: the target asked for that
    AGAIN = "sent again"
    CANCELLED = "cancelled"
    OVERDUE = "overdue"  # its deadline passed, and it may still land
    QUARANTINED = "quarantined"  # its command timed out, and its queue is going


_OF_SLOT = {
    SlotState.FREE: CommandState.ENDED,
    SlotState.POSTED: CommandState.POSTED,
    SlotState.SENT: CommandState.SENT,
    SlotState.ANSWERED: CommandState.ANSWERED,
    SlotState.QUARANTINED: CommandState.QUARANTINED,
}
if set(_OF_SLOT) != set(SlotState):
    raise AssertionError("a state of slots is not among those of commands")

OPS = tuple(Kind)
ABSENT: Mapping[tuple[CommandState, Kind], str] = MappingProxyType(
    {
        **{(CommandState.HALF_PLACED, one): "no data comes to the host" for one in OPS if one is not Kind.READ},
        **{(CommandState.HALF_DONE, one): "it is one command" for one in (Kind.FLUSH, Kind.ZERO)},
        **{(CommandState.DELAYED, one): "it is not sent again" for one in (Kind.WRITE, Kind.DURABLE, Kind.ZERO)},
        **{(CommandState.AGAIN, one): "it is not sent again" for one in (Kind.WRITE, Kind.DURABLE, Kind.ZERO)},
        (CommandState.CANCELLED, Kind.FLUSH): "it touches nothing: it is settled when it ends",
        (CommandState.OVERDUE, Kind.FLUSH): "it touches nothing: it is settled when it ends",
        (CommandState.DELAYED, Kind.FLUSH): "it is kept with the orders, and no queue holds it",
    }
)


@dataclass
class Scene:
    """A world in which one operation is in the state that was asked for."""

    world: World
    victim: Operation
    beside: list[Operation] = field(default_factory=list)


def command_scene(state: CommandState, kind: Kind, *, keyed: bool) -> Scene:
    """A world whose victim is in that state."""
    slow_sends = state in (CommandState.POSTED, CommandState.ANSWERED, CommandState.PARKED)
    changes = dict(PLAN) | {"keyed": keyed, "sent_ns": 40 * MS if slow_sends else 0}
    if state is CommandState.HALF_DONE:
        changes["window_blocks"] = 4
    world = World(_plan(changes), _delays if state is CommandState.DELAYED else None)
    scene = Scene(world, _BEFORE.get(state, _at_once)(world, kind))
    if state in (CommandState.SENT, CommandState.POSTED, CommandState.AGAIN, CommandState.OVERDUE):
        scene.beside = [one for lba in (40, 44) if (one := world.read(lba, 4)) is not None]
    if state is not CommandState.HALF_DONE:
        world.step()
    bound_ns = world.clock.now_ns + SECOND
    reached = _REACHED[state]
    if not world.run(lambda: reached(world, scene.victim), until_ns=bound_ns):
        raise HangError(f"never {state}: {world.state()}")
    return scene


def controller_scene(state: ControllerState, *, keyed: bool) -> World:
    """A world whose controller is in that state, with a read and a write that wait for it where that can be."""
    changes = dict(PLAN) | {"keyed": keyed, "deadline_ns": 2 * SECOND}
    if state is ControllerState.LOST:
        changes["loss_ns"] = 50 * MS
    world = World(_plan(changes))
    service = world.service
    service.greet_ns, service.admin_ns = 4 * MS, 3 * MS
    for kind, lba in ((Kind.READ, 8), (Kind.WRITE, 16)):
        world.submit(kind, lba, 8)
    if state is ControllerState.LIVE:
        return world
    if state is ControllerState.LOST:
        service.outage = "silence"
    service.drop_all(world.clock.now_ns)
    reached = world.run(lambda: world.controller.state is state, until_ns=world.clock.now_ns + 5 * SECOND)
    if not reached:
        raise HangError(f"never {state}: {world.state()}")
    for kind, lba in ((Kind.READ, 24), (Kind.FLUSH, 0)):
        world.submit(kind, lba, 8)
    return world


def queue_scene(state: QueueState, *, keyed: bool) -> World:
    """A world one of whose queues is in that state, with work on both."""
    world = World(_plan(dict(PLAN) | {"keyed": keyed, "deadline_ns": 2 * SECOND}))
    service = world.service
    service.greet_ns, service.admin_ns = 4 * MS, 3 * MS
    for at, kind in enumerate((Kind.READ, Kind.WRITE, Kind.READ, Kind.FLUSH)):
        world.submit(kind, at * 8, 8)
    if state is not QueueState.LIVE:
        peer = service.peer_of(1)
        assert peer is not None
        service.drop(peer, world.clock.now_ns)
    if not world.run(lambda: world.queue_state(1) is state, until_ns=world.clock.now_ns + SECOND):
        raise HangError(f"never {state}: {world.state()}")
    return world


def _plan(changes: dict[str, object]) -> Plan:
    return Plan(**changes)  # type: ignore[arg-type]


def _at_once(world: World, kind: Kind) -> Operation:
    return _submitted(world, kind)


def _submitted(world: World, kind: Kind, count: int = 4, deadline_ns: int | None = None) -> Operation:
    operation = world.submit(kind, 8, count, deadline_ns)
    assert operation is not None, world.log
    return operation


def _behind_others(world: World, kind: Kind) -> Operation:
    for at in range(6):
        world.submit(Kind.FLUSH if kind in (Kind.FLUSH, Kind.ZERO) else Kind.READ, 24 + at * 4, 4)
    return _submitted(world, kind)


def _while_slots_are_kept(world: World, kind: Kind) -> Operation:
    for at in range(4):
        world.read(24 + at * 4, 4)
    world.pass_time(LATENCY_NS + MS)  # they were answered, and their sends are not done
    return _submitted(world, kind)


def _in_halves(world: World, kind: Kind) -> Operation:
    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        if not isinstance(item, PushData) or item.peer not in world.service.io_peers:
            return [
                (item, at_ns + 5 * MS if isinstance(item, Respond) and item.peer in world.service.io_peers else at_ns)
            ]
        half = len(item.data) // 2
        return [
            (PushData(item.peer, item.cid, item.address, item.key, item.data[:half]), at_ns),
            (PushData(item.peer, item.cid, item.address + half, item.key, item.data[half:]), at_ns + 5 * MS),
        ]

    world.service.warp = warp
    return _submitted(world, kind)


def _two_transfers(world: World, kind: Kind) -> Operation:
    return _submitted(world, kind, 8)


def _delays(world: World) -> None:
    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        if isinstance(item, PushData) and len(item.data) == 4096 and item.data[514 - 2 : 516 - 2] == b"\x66\x44":
            data = bytearray(item.data)
            data[_CRDT_AT : _CRDT_AT + 2] = (1).to_bytes(2, "little")  # 100 ms
            item = PushData(item.peer, item.cid, item.address, item.key, bytes(data))
        return [(item, at_ns)]

    world.service.warp = warp


def _refused_for_now(world: World, kind: Kind) -> Operation:
    world.service.strike(Fault(FaultKind.STATUS, commands=(0,), status=0x21 | _CRD_1), world.clock.now_ns)
    return _submitted(world, kind)


def _after_a_break(world: World, kind: Kind) -> Operation:
    operation = _submitted(world, kind)
    world.pass_time(5 * MS)
    for peer, _cid in world.service.under_way():
        world.service.drop(peer, world.clock.now_ns)
    return operation


def _cancelled(world: World, kind: Kind) -> Operation:
    operation = _submitted(world, kind)
    world.pass_time(5 * MS)
    world.cancel(operation)
    return operation


def _too_late(world: World, kind: Kind) -> Operation:
    return _submitted(world, kind, deadline_ns=5 * MS)


def _never_answered(world: World, kind: Kind) -> Operation:
    operation = _submitted(world, kind)
    world.service.doomed.update(world.service.under_way())
    return operation


_BEFORE: Mapping[CommandState, Callable[[World, Kind], Operation]] = {
    CommandState.WAITING: _behind_others,
    CommandState.PARKED: _while_slots_are_kept,
    CommandState.HALF_PLACED: _in_halves,
    CommandState.HALF_DONE: _two_transfers,
    CommandState.DELAYED: _refused_for_now,
    CommandState.AGAIN: _after_a_break,
    CommandState.CANCELLED: _cancelled,
    CommandState.OVERDUE: _too_late,
    CommandState.QUARANTINED: _never_answered,
}


def _flies(world: World, one: Operation) -> bool:
    lines = world.link._lines.values()
    moved = any(transfer.request == one.future.request for line in lines for transfer in line.flying.values())
    return moved or any(order.request == one.future.request for _queue, order in world.link._ordered.values())


def _is_parked(world: World, one: Operation) -> bool:
    lines = world.link._lines.values()
    moved = any(transfer.request == one.future.request for line in lines for transfer in line.parked)
    return moved or any(order.request == one.future.request for _queue, order in world.link._parked)


def _slot_states(world: World) -> list[SlotState]:
    return [state for qid in world.controller._life.io._members for state in world.controller.queue(qid).slots.states]


def _attempts(world: World, one: Operation) -> int:
    lines = world.link._lines.values()
    moved = [t.attempt for line in lines for t in line.flying.values() if t.request == one.future.request]
    ordered = [o.attempt for _queue, o in world.link._ordered.values() if o.request == one.future.request]
    return max(moved + ordered, default=0)


def _half_is_placed(world: World, one: Operation) -> bool:
    memory = world._memory(one.slot)
    placed = memory[:BLOCK] != b"\xa5" * BLOCK
    return placed and memory[3 * BLOCK : 4 * BLOCK] == b"\xa5" * BLOCK and not one.future.done


_REACHED: Mapping[CommandState, Callable[[World, Operation], bool]] = {
    CommandState.WAITING: lambda w, o: not o.future.done and not _flies(w, o) and not _is_parked(w, o),
    CommandState.PARKED: lambda w, o: not o.future.done and _is_parked(w, o),
    CommandState.POSTED: lambda w, o: _flies(w, o) and SlotState.POSTED in _slot_states(w),
    CommandState.SENT: lambda w, o: _flies(w, o) and SlotState.SENT in _slot_states(w),
    CommandState.HALF_PLACED: _half_is_placed,
    CommandState.HALF_DONE: lambda w, o: not o.future.done and _flies(w, o) and w.clock.now_ns >= LATENCY_NS,
    CommandState.ANSWERED: lambda w, o: o.well and SlotState.ANSWERED in _slot_states(w),
    CommandState.ENDED: lambda w, o: o.well and set(_slot_states(w)) == {SlotState.FREE},
    CommandState.DELAYED: lambda w, _o: bool(w.link._late),
    CommandState.AGAIN: lambda w, o: not o.future.done and _flies(w, o) and _attempts(w, o) > 0,
    CommandState.CANCELLED: lambda _w, o: o.future.done and not o.future.settled,
    CommandState.OVERDUE: lambda _w, o: o.future.done and not o.future.settled,
    CommandState.QUARANTINED: lambda w, _o: SlotState.QUARANTINED in _slot_states(w),
}
