"""One random run: a seed becomes sizes, a policy, faults, a schedule of operations and of troubles.

    python -m tests.unit.engine.faults.scenario SEED [COUNT]

reruns COUNT scenarios from SEED on and stops at the first that fails. All randomness is the seed's.
"""

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from fabric.engine.nvmeof.errors import NotReadyError
from fabric.engine.nvmeof.host.states import ControllerState
from fabric.engine.nvmeof.target import Drop, FetchData, PushData, Respond
from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.completion import CQE_BYTES, Cqe
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import DISPOSITIONS, DNR
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Latency, Shape
from tests.unit.engine.faults.plan import MS, SECOND, Kind, Operation, Plan
from tests.unit.engine.faults.rough import Item, Warp, changed
from tests.unit.engine.faults.world import World
from tests.unit.engine.nvmeof.rig import NQN

# Without a digest nobody below the reader can see these two: what they cost is in the matrix.
UNSEEN = frozenset({FaultKind.LOSE_DATA, FaultKind.CORRUPT})
SEEN = tuple(kind for kind in FaultKind if kind not in UNSEEN)
READ, WRITE = 2, 1


@dataclass
class Result:
    """How scenarios went: how many, what their operations ended with and how often, how many engines were lost."""

    scenarios: int
    ends: Counter[str]
    lost: int


def run(seed: int) -> Result:
    """Runs the scenario of a seed.

    Raises:
        AssertionError: something does not hold; `HangError` is one.
    """
    source = random.Random(seed)  # noqa: S311, repeatable on purpose
    world = World(_plan(source, seed))
    troubles = [source.choice(TROUBLES) for _ in range(source.choice((0, 0, 1, 1, 2, 3)))]
    moments = sorted((source.randrange(120 * MS), one) for one in troubles)
    world.storage.chance = source.choice((0.0, 0.0, 0.0, 0.1))
    world.service.warp = _loss(source)
    for _ in range(source.randrange(3, 11)):
        _act(world, source)
        until_ns = world.clock.now_ns + source.choice((0, 0, 0, MS, 10 * MS, 60 * MS))
        while moments and moments[0][0] <= until_ns:
            at_ns, trouble = moments.pop(0)
            world.run(until_ns=max(at_ns, world.clock.now_ns))
            trouble(world, source)
        world.run(until_ns=until_ns)
    for _at_ns, trouble in moments:
        trouble(world, source)
    if source.random() < 0.15:
        world.close()  # in the middle of it all
    else:
        _to_the_end(world, source)
    ends = Counter(type(one.future.error).__name__ if one.future.error else "well" for one in world.operations)
    lost = world.engine.lost is not None and not isinstance(world.engine.lost, NotReadyError)
    return Result(1, ends, int(lost))


def _to_the_end(world: World, source: random.Random) -> None:
    world.settle()
    world.service.heal()
    world.storage.chance = 0.0
    world.pass_time(200 * MS)  # what was said before may still come
    if world.engine.lost is None:
        world.run(world.is_up, until_ns=world.clock.now_ns + 60 * SECOND)
        assert world.engine.lost is not None or world.is_up(), f"healed, and not up again: {world.state()}"
    served = world.service.target._subsystems[NQN].namespaces
    known = world.controller.namespaces
    if world.engine.lost is None and served.get(1) == known.get(1) == world.namespace:
        for lba in source.sample(range(0, world.plan.blocks, 8), 2):  # what is there can be read, and is right
            operation = world.read(lba, 8, 20 * SECOND)
            assert operation is not None, f"nothing is taken: {world.log}"
            world.run(lambda one=operation: one.future.settled)  # type: ignore[misc]
            assert operation.well, f"healed, and not read: {operation.future.error!r}"
    world.run(lambda: _is_idle(world), until_ns=world.clock.now_ns + 2 * SECOND)
    world.check_idle()
    world.close()


def _is_idle(world: World) -> bool:
    return not any(world.controller.queue(qid).slots.in_use for qid in world.controller.live_queues)


def _plan(source: random.Random, seed: int) -> Plan:
    transfer = source.choice((1, 2, 4, 8))
    faults = tuple(
        Fault(
            source.choice(SEEN),
            queues=source.choice(("io", "io", "io", "all")),
            opcodes=source.choice(((), (READ,), (WRITE,))),
            probability=source.choice((0.05, 0.2, 0.5, 1.0)),
            commands=source.choice(((), (0,), (1, 2), tuple(range(20, 40)))),
            delay_ns=source.choice((0, MS, 30 * MS, 90 * MS)),
            status=source.choice(tuple(DISPOSITIONS)) | source.choice((0, 0, DNR)),
        )
        for _ in range(source.choice((0, 1, 1, 2)))
    )
    shape = Shape(
        service_ns=source.choice((0, 0, MS)),
        latency=Latency(source.choice(("fixed", "exponential")), source.choice((0, 0, 2 * MS, 20 * MS))),
        faults=tuple(one if one.queues == "io" or one.opcodes else _late_admin(one) for one in faults),
        seed=seed,
    )
    return Plan(
        keyed=source.random() < 0.5,
        queues=source.choice((1, 2, 3)),
        depth=source.choice((1, 2, 4)),
        transfer_blocks=transfer,
        window_blocks=max(transfer, source.choice((8, 16, 64))),
        redeals=source.choice((0, 1, 5)),
        deadline_ns=source.choice((5 * MS, 40 * MS, 200 * MS, SECOND)),
        command_ns=source.choice((20 * MS, 60 * MS)),
        flush_ns=source.choice((0, 0, 15 * MS, 80 * MS)),
        sent_ns=source.choice((0, 0, 3 * MS)),
        loss_ns=source.choice((600 * SECOND, 600 * SECOND, 150 * MS)),
        kato_ms=source.choice((15_000, 200, 0)),
        quarantine_blocks=source.choice((1 << 16, 8)),
        shape=shape,
        seed=seed,
    )


def _late_admin(fault: Fault) -> Fault:
    """The same, but not of the commands that open the engine."""
    return (
        Fault(
            fault.kind,
            "all",
            (READ, WRITE, 6, 0x0C, 0x18),
            fault.commands,
            fault.probability,
            fault.delay_ns,
            fault.status,
        )
        if fault.commands == tuple(range(20, 40))
        else Fault(fault.kind, "io", fault.opcodes, fault.commands, fault.probability, fault.delay_ns, fault.status)
    )


def _act(world: World, source: random.Random) -> None:
    count = source.choice((1, 1, 2, 5, 8))
    lba = source.randrange(world.plan.blocks - count + 1)
    deadline_ns = source.choice((None, None, None, 0, MS, 25 * MS))
    kind = source.random()
    if kind < 0.6:
        world.read(lba, count, deadline_ns)
    elif kind < 0.9:
        world.submit(
            source.choice((Kind.WRITE, Kind.WRITE, Kind.WRITE, Kind.DURABLE, Kind.ZERO)), lba, count, deadline_ns
        )
    elif kind < 0.94:
        world.submit(Kind.FLUSH, deadline_ns=deadline_ns)
    elif world.operations:
        world.cancel(source.choice(world.operations))


def _loss(source: random.Random) -> Warp:
    """Loses, delays, doubles or swaps anything that the target says on its I/O queues, now and then."""
    chance = source.choice((0.0, 0.0, 0.02, 0.1))
    late_ns = source.choice((MS, 30 * MS, 100 * MS))
    kinds = source.sample(("lose", "delay", "double", "sqhd"), 2)

    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        if not chance or not isinstance(item, Respond | FetchData) or source.random() >= chance:
            return [(item, at_ns)]
        kind = source.choice(kinds)
        if kind == "lose":
            return []
        if kind == "delay":
            return [(item, at_ns + late_ns)]
        if kind == "double":
            return [(item, at_ns), (item, at_ns + late_ns)]
        return [(changed(item, sqhd=source.randrange(1 << 16)) if isinstance(item, Respond) else item, at_ns)]

    return warp


# -- troubles: what else happens to an engine


def _break_one(world: World, source: random.Random) -> None:
    if peers := world.service.io_peers:
        world.service.drop(source.choice(peers), world.clock.now_ns)


def _break_admin(world: World, source: random.Random) -> None:
    for peer in world.service.admin_peers:
        world.service.drop(peer, world.clock.now_ns)


def _break_all(world: World, source: random.Random) -> None:
    world.service.drop_all(world.clock.now_ns)


def _die(world: World, source: random.Random) -> None:
    """The target goes; a later trouble, or the end, brings it back."""
    world.service.outage = source.choice(("silence", CmStatus.NONE, CmStatus.NO_RESOURCES))
    world.service.drop_all(world.clock.now_ns)


def _heal(world: World, source: random.Random) -> None:
    world.service.outage = None


def _refuse_for_good(world: World, source: random.Random) -> None:
    world.service.outage = CmStatus.INVALID_RECORD_FORMAT
    world.service.drop_all(world.clock.now_ns)


def _flood(world: World, source: random.Random) -> None:
    for _ in range(source.choice((1, 8))):
        world.service.flood(world.clock.now_ns)
        world.step()


def _shrink(world: World, source: random.Random) -> None:
    smaller = IdentifyNamespace(source.choice((8, 40)), 9)
    world.service.target.add_namespace(NQN, 1, smaller)
    world.service.announce(world.clock.now_ns)


def _remove(world: World, source: random.Random) -> None:
    if 1 in world.service.target._subsystems[NQN].namespaces:
        world.service.target.remove_namespace(NQN, 1)
        world.service.announce(world.clock.now_ns)


def _restore(world: World, source: random.Random) -> None:
    world.service.target.add_namespace(NQN, 1, world.namespace)
    world.service.announce(world.clock.now_ns)


def _remove_queue(world: World, source: random.Random) -> None:
    if world.controller.live_queues:
        world.controller.remove_queue(source.choice(world.controller.live_queues), world.clock.now_ns)
        world.step()
        _add_queue(world, source)


def _add_queue(world: World, source: random.Random) -> None:
    try:
        world.controller.add_queue(world.clock.now_ns)
    except NotReadyError:
        return


def _forge(world: World, source: random.Random) -> None:
    """An answer to no open command, of a random kind."""
    if peers := world.service.io_peers:
        data = source.choice((bytes(16), bytes(12) + source.randbytes(2) + bytes(2), b"", bytes(15), bytes(17)))
        world.service.say(Respond(source.choice(peers), data), world.clock.now_ns)


def _misdirect(world: World, source: random.Random) -> None:
    """From now on answers of one queue come on another, unless a command of the same id is out there.

    That one would be ended by the wrong answer, and nothing in the protocol could tell.
    """
    peers = world.service.io_peers
    if len(peers) < 2:
        return
    wrong = dict(zip(peers, peers[1:] + peers[:1], strict=True))
    left = source.choice((1, 5))

    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        nonlocal left
        if isinstance(item, Respond) and item.peer in wrong and left and len(item.response) == CQE_BYTES:
            if (wrong[item.peer], Cqe.parse(item.response).cid) in world.service.under_way():
                return [(item, at_ns)]
            left -= 1
            return [(Respond(wrong[item.peer], item.response), at_ns)]
        return [(item, at_ns)]

    world.service.warp = warp


def _stray_data(world: World, source: random.Random) -> None:
    """Data for a key or command that is none of ours."""
    if peers := world.service.io_peers:
        push = PushData(source.choice(peers), 0xFFFF, 0, 0xDEAD, b"stray data")
        world.service.say(push, world.clock.now_ns)


def _cancel_all(world: World, source: random.Random) -> None:
    for one in world.operations:
        world.cancel(one)


def _twice(world: World, source: random.Random) -> None:
    """Two failures in one moment."""
    _break_one(world, source)
    _break_admin(world, source)


def _drop_in_a_while(world: World, source: random.Random) -> None:
    if peers := world.service.io_peers:
        world.service.say(Drop(source.choice(peers), "the test"), world.clock.now_ns + 35 * MS)


def _device(world: World, source: random.Random) -> None:
    assert world.wild is not None
    if world.controller.state is not ControllerState.LOST:
        world.wild.remove_device(world.clock.now_ns)


def _give_one_back(world: World, source: random.Random) -> None:
    finished: list[Operation] = [one for one in world.operations if one.ended_ns is not None]
    if finished:
        world.cancel(source.choice(finished))


TROUBLES: tuple[Callable[[World, random.Random], None], ...] = (
    _break_one,
    _break_one,
    _break_admin,
    _break_all,
    _die,
    _heal,
    _refuse_for_good,
    _flood,
    _shrink,
    _remove,
    _restore,
    _remove_queue,
    _add_queue,
    _forge,
    _stray_data,
    _misdirect,
    _cancel_all,
    _twice,
    _drop_in_a_while,
    _device,
    _give_one_back,
)


def rerun(seed: int) -> str:
    """The line that runs one scenario again."""
    return f"python -m tests.unit.engine.faults.scenario {seed}"


def sweep(first: int, count: int) -> Result:
    """Runs scenarios one after another; a failure names its seed and the line that reruns it."""
    total = Result(0, Counter(), 0)
    gc.disable()  # its runs cost a tenth of the time; worlds are rings, and are collected by the hundred
    try:
        for seed in range(first, first + count):
            result = _run_or_name(seed)
            total.scenarios += 1
            total.ends += result.ends
            total.lost += result.lost
            if not total.scenarios % 100:
                gc.collect()
    finally:
        gc.enable()
    return total


def _run_or_name(seed: int) -> Result:
    try:
        return run(seed)
    except Exception as error:
        raise AssertionError(f"scenario {seed}: {type(error).__name__}: {error}\nrerun: {rerun(seed)}") from error


def _main(arguments: list[str]) -> None:
    first, count = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1
    gc.freeze()  # what was imported stays
    began_s = time.process_time()
    total = sweep(first, count)
    spent_s = time.process_time() - began_s
    print(f"scenarios {first} to {first + count - 1}: {total.scenarios} passed, {total.lost} of their engines lost")
    print(f"operations: {', '.join(f'{name} {number}' for name, number in total.ends.most_common())}")
    print(f"{spent_s:.1f} s of CPU, {count / spent_s:.0f} scenarios a second")


if __name__ == "__main__":
    _main(sys.argv[1:])
