"""Everything that may go wrong, each as something that is done to a world at one moment.

| group | what |
|---|---|
| script | each kind of `faults`, to commands under way and to those that come |
| status | each code of the table of statuses, and those with "do not retry" and with a delay |
| medium | errors of the target's storage |
| answer | answers that are doubled, forged, cut, for another queue; data for nobody |
| connection | each way to lose one, or several, and to get none |
| namespace | what changes under the host |
| caller | what the user of the engine does at a bad moment |
"""

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabric.engine.nvmeof.errors import NotReadyError
from fabric.engine.nvmeof.target import FetchData, PushData, Respond
from fabric.engine.nvmeof.target.outputs import TaskId
from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.completion import CQE_BYTES, Cqe
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import DISPOSITIONS, DNR, Disposition
from fabric.engine.transport.faults import Fault, FaultKind
from tests.unit.engine.faults.plan import MS, SECOND
from tests.unit.engine.faults.rough import Item, Warp, changed
from tests.unit.engine.faults.world import World
from tests.unit.engine.nvmeof.rig import NQN

BLIND = frozenset({FaultKind.LOSE_DATA, FaultKind.CORRUPT})  # without a digest only the reader's own check sees these


@dataclass(frozen=True)
class Trouble:
    """Something that goes wrong.

    Attributes:
        name: unique.
        do: does it to a world.
        ends: the engine may be lost by it for good.
        blind: wrong bytes may come, which the reader's own check has to see.
        closes: the engine is closed by it.
        needs_engine: it is done to an open engine.
        steps: it steps the engine, or needs its transport.
    """

    name: str
    do: Callable[[World], None]
    ends: bool = False
    blind: bool = False
    closes: bool = False
    needs_engine: bool = False
    steps: bool = False


def _struck(fault: Fault) -> Callable[[World], None]:
    return lambda world: world.service.strike(fault, world.clock.now_ns)


def _sick(code: int) -> Callable[[World], None]:
    def do(world: World) -> None:
        world.storage.chance, world.storage.codes = 1.0, (code,)

    return do


def _warped(make: Callable[[World], Warp]) -> Callable[[World], None]:
    def do(world: World) -> None:
        before, after = world.service.warp, make(world)
        # what the state has warped so far goes on first
        world.service.warp = lambda item, at: [two for one, when in before(item, at) for two in after(one, when)]

    return do


def _to_answers(change: Callable[[Respond], list[Respond]]) -> Callable[[World], Warp]:
    """A warp of the answers on I/O queues."""

    def make(world: World) -> Warp:
        def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
            if isinstance(item, Respond) and item.peer in world.service.io_peers and len(item.response) == CQE_BYTES:
                return [(one, at_ns) for one in change(item)]
            return [(item, at_ns)]

        return warp

    return make


def _elsewhere(world: World) -> Warp:
    """Answers come on another queue, unless that one has a command of the same id: nothing could tell then."""

    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        peers = world.service.io_peers
        if not isinstance(item, Respond) or item.peer not in peers or len(peers) < 2:
            return [(item, at_ns)]
        other = peers[(peers.index(item.peer) + 1) % len(peers)]
        if (other, Cqe.parse(item.response).cid) in world.service.under_way():
            return [(item, at_ns)]
        return [(Respond(other, item.response), at_ns)]

    return warp


def _longer_data(world: World) -> Warp:
    """Data that is longer than what was asked for, or lies outside of all memory that is registered."""

    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        if isinstance(item, PushData) and item.peer in world.service.io_peers:
            far = item.address + (1 << 40)
            return [(PushData(item.peer, item.cid, far, item.key, item.data + bytes(512)), at_ns)]
        return [(item, at_ns)]

    return warp


def _stray_data(world: World) -> None:
    for peer in world.service.io_peers:
        world.service.say(PushData(peer, 0xFFFF, 0, 0xDEAD, b"stray"), world.clock.now_ns)


def _stray_fetch(world: World) -> None:
    for peer in world.service.io_peers:
        world.service.say(FetchData(peer, TaskId(1 << 40), 0xFFFF, 0, 0xDEAD, 512), world.clock.now_ns)


def _forged(data: bytes) -> Callable[[World], None]:
    def do(world: World) -> None:
        for peer in world.service.io_peers:
            world.service.say(Respond(peer, data), world.clock.now_ns)

    return do


def _break_io(world: World) -> None:
    for peer in world.service.io_peers:
        world.service.drop(peer, world.clock.now_ns)


def _break_one(world: World) -> None:
    for peer in world.service.io_peers[:1]:
        world.service.drop(peer, world.clock.now_ns)


def _break_admin(world: World) -> None:
    for peer in world.service.admin_peers:
        world.service.drop(peer, world.clock.now_ns)


def _break_all(world: World) -> None:
    world.service.drop_all(world.clock.now_ns)


def _break_one_by_one(world: World) -> None:
    """The second breaks while the first is going."""
    for at, peer in enumerate(tuple(world.service.io_peers + world.service.admin_peers)):
        world.run(until_ns=world.clock.now_ns + at * 7 * MS)
        world.service.drop(peer, world.clock.now_ns)


def _outage(kind: CmStatus | str) -> Callable[[World], None]:
    def do(world: World) -> None:
        world.service.outage = kind
        world.service.drop_all(world.clock.now_ns)

    return do


def _remove_device(world: World) -> None:
    assert world.wild is not None
    world.wild.remove_device(world.clock.now_ns)


def _silent_admin(world: World) -> None:
    """The admin queue is answered no more: the next Keep Alive takes the controller down."""

    def make(world: World) -> Warp:
        admin = set(world.service.admin_peers)
        return lambda item, at: [] if isinstance(item, Respond) and item.peer in admin else [(item, at)]

    _warped(make)(world)
    world.service.flood(world.clock.now_ns)


def _stall(world: World) -> None:
    """Nobody steps the engine for longer than any deadline: what has come is heard before anything is judged."""
    world.clock.now_ns += 20 * SECOND
    for one in world.operations:
        one.until_ns += 20 * SECOND


def _expire(world: World) -> None:
    """The target says that the host was silent for too long."""
    target = world.service.target
    for association in target.controllers:
        target._end(association, "keep-alive timeout")
    world.service.announce(world.clock.now_ns)


def _reset(world: World) -> None:
    """The target resets the controller behind the host's back: I/O commands are refused with 0x00C (nvmet)."""
    for association in world.service.target.controllers:
        association.configure(0)


def _shrink(world: World) -> None:
    world.service.target.add_namespace(NQN, 1, IdentifyNamespace(8, 9))
    world.service.announce(world.clock.now_ns)


def _other_blocks(world: World) -> None:
    world.service.target.add_namespace(NQN, 1, IdentifyNamespace(8, 12))
    world.service.announce(world.clock.now_ns)


def _remove(world: World) -> None:
    if 1 in world.service.target._subsystems[NQN].namespaces:
        world.service.target.remove_namespace(NQN, 1)
        world.service.announce(world.clock.now_ns)


def _add(world: World) -> None:
    world.service.target.add_namespace(NQN, 7, IdentifyNamespace(8, 9))
    world.service.announce(world.clock.now_ns)


def _flood(world: World) -> None:
    for _ in range(10):
        world.service.flood(world.clock.now_ns)
        world.step()


def _cancel_all(world: World) -> None:
    for one in world.operations:
        world.cancel(one)


def _cancel_and_reuse(world: World) -> None:
    """Everything is cancelled, and what is free is used again at once."""
    _cancel_all(world)
    for lba in (48, 52, 56):
        world.read(lba, 4)


def _remove_queue(world: World) -> None:
    for qid in world.controller.live_queues[:1]:
        world.controller.remove_queue(qid, world.clock.now_ns)
        world.step()


def _swap_queues(world: World) -> None:
    for qid in world.controller.live_queues:
        world.controller.remove_queue(qid, world.clock.now_ns)
        try:
            world.controller.add_queue(world.clock.now_ns)
        except NotReadyError:
            continue
    world.step()


def _close(world: World) -> None:
    world.close()


def restore(world: World) -> None:
    """The target is well again, and serves what it served."""
    world.service.heal()
    world.storage.chance = 0.0
    served = world.service.target._subsystems[NQN].namespaces
    if served.get(1) != world.namespace:
        world.service.target.add_namespace(NQN, 1, world.namespace)
        world.service.announce(world.clock.now_ns)


def _statuses() -> list[Trouble]:
    codes = [*DISPOSITIONS, 0x004, 0x006, 0x007, 0x008, 0x280, 0x286, 0x37F, 0x7FF]
    later = [code for code, kind in DISPOSITIONS.items() if kind is Disposition.RETRY_LATER]
    elsewhere = [code for code, kind in DISPOSITIONS.items() if kind is Disposition.RETRY_ELSEWHERE]
    marked = [*(code | DNR for code in (*later, *elsewhere, 0x006)), *(code | 3 << 11 for code in later)]
    return [
        Trouble(f"status 0x{code:04x}", _struck(Fault(FaultKind.STATUS, status=code)))
        for code in sorted([*codes, *marked])
    ]


def _scripted() -> list[Trouble]:
    late = (FaultKind.DELAY, FaultKind.LATE_ANSWER, FaultKind.REORDER, FaultKind.DUPLICATE)
    found = []
    for kind in FaultKind:
        if kind is FaultKind.STATUS:
            continue
        for delay_ns in (5 * MS, 90 * MS) if kind in late else (0,):
            name = f"{kind} by {delay_ns // MS} ms" if delay_ns else str(kind)
            found.append(Trouble(name, _struck(Fault(kind, delay_ns=delay_ns)), blind=kind in BLIND))
    return found


_WIRE = {
    "answers doubled": _warped(_to_answers(lambda one: [one, one])),
    "answers with a wrong SQHD": _warped(_to_answers(lambda one: [changed(one, sqhd=0x1234)])),
    "answers with the phase bit set": _warped(_to_answers(lambda one: [changed(one, status=one.response[14] | 1)])),
    "answers to another generation": _warped(_to_answers(lambda one: [changed(one, cid=_cid(one) ^ 0x8000)])),
    "answers to another slot": _warped(_to_answers(lambda one: [changed(one, cid=_cid(one) ^ 0x4001)])),
    "answers cut to 15 bytes": _warped(_to_answers(lambda one: [Respond(one.peer, one.response[:15])])),
    "answers on another queue": _warped(_elsewhere),
    "data outside of what was asked for": _warped(_longer_data),
    "an answer of zeroes": _forged(bytes(16)),
    "an empty answer": _forged(b""),
    "an answer to no command": _forged(bytes(12) + b"\xff\xff" + bytes(2)),
    "an answer of a megabyte": _forged(bytes(1 << 20)),
    "data for nobody": _stray_data,
    "a fetch for nobody": _stray_fetch,
}
_CONNECTION = {
    "one I/O connection breaks": _break_one,
    "all I/O connections break": _break_io,
    "the admin connection breaks": _break_admin,
    "all connections break": _break_all,
    "the admin queue is silent": _silent_admin,
    "the target falls silent": _outage("silence"),
    "the keep-alive expires": _expire,
    "the target resets the controller": _reset,
}
_NAMESPACE = {
    "the namespace is removed": _remove,
    "the namespace shrinks": _shrink,
    "the namespace has other blocks": _other_blocks,
    "another namespace is added": _add,
}
_CALLER = {
    "the caller cancels everything": _cancel_all,
    "the caller cancels, and uses memory again": _cancel_and_reuse,
    "the caller stalls for 20 s": _stall,
    "a queue is removed": _remove_queue,
    "all queues are replaced": _swap_queues,
}
GROUPS: Mapping[str, tuple[Trouble, ...]] = {
    "script": tuple(_scripted()),
    "status": tuple(_statuses()),
    "medium": tuple(
        Trouble(f"storage says {errno.errorcode[one]}", _sick(one))
        for one in (errno.EIO, errno.ENOSPC, errno.EROFS, errno.ETIMEDOUT)
    ),
    "answer": tuple(Trouble(name, do) for name, do in _WIRE.items()),
    "connection": (
        *(Trouble(name, do) for name, do in _CONNECTION.items()),
        Trouble("connections break one by one", _break_one_by_one, needs_engine=True, steps=True),
        *(
            Trouble(f"connections break, and new ones are rejected: {one.name.lower()}", _outage(one), ends=True)
            for one in CmStatus
        ),
        Trouble("the device is removed", _remove_device, ends=True, needs_engine=True, steps=True),
    ),
    "namespace": (
        *(Trouble(name, do) for name, do in _NAMESPACE.items()),
        Trouble("events come in a flood", _flood, needs_engine=True, steps=True),
    ),
    "caller": (
        *(Trouble(name, do, needs_engine=True, steps=True) for name, do in _CALLER.items()),
        Trouble("the caller closes the engine", _close, closes=True),
    ),
}
TROUBLES = tuple(one for group in GROUPS.values() for one in group)


def _cid(answer: Respond) -> int:
    return Cqe.parse(answer.response).cid
