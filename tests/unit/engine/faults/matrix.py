"""The fault matrix: every trouble in every state, one world for each pair, nothing merged.

    python -m tests.unit.engine.faults.matrix [PART OF A TROUBLE'S NAME]

runs it and prints a table. A cell holds when every check of the world holds: no wrong byte, no end after its deadline,
nothing kept, and the engine works again afterwards, unless the trouble is one that ends engines.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fabric.engine.nvmeof.errors import NotReadyError
from fabric.engine.nvmeof.host.states import ControllerState, QueueState
from fabric.errors import EngineError
from tests.unit.engine.faults.plan import MS, SECOND, Kind, Operation, Plan
from tests.unit.engine.faults.states import (
    ABSENT,
    OPS,
    PLAN,
    CommandState,
    command_scene,
    controller_scene,
    queue_scene,
)
from tests.unit.engine.faults.troubles import TROUBLES, Trouble, restore
from tests.unit.engine.faults.world import World

WAYS = (True, False)  # memory by key, as on RDMA; by command id, as on TCP


class Cell(NamedTuple):
    """One pair."""

    state: CommandState | ControllerState | QueueState
    kind: Kind | None
    keyed: bool

    def __str__(self) -> str:
        """For people."""
        of = {CommandState: "command", ControllerState: "controller", QueueState: "queue"}[type(self.state)]
        way = "by key" if self.keyed else "by id"
        return f"{of} {self.state}, {self.kind}, {way}" if self.kind else f"{of} {self.state}, {way}"


def cells(trouble: Trouble) -> Iterator[Cell]:
    """All states in which a trouble is tried."""
    return (cell for cell in _states() if not absent(trouble, cell))


def _states() -> Iterator[Cell]:
    for keyed in WAYS:
        for state in CommandState:
            for kind in OPS:
                yield Cell(state, kind, keyed)
        for controller in ControllerState:
            yield Cell(controller, None, keyed)
        for queue in QueueState:
            yield Cell(queue, None, keyed)


def absent(trouble: Trouble, cell: Cell) -> str:
    """Why there is no such cell; "" when there is."""
    if isinstance(cell.state, CommandState):
        assert cell.kind is not None
        if cell.state is CommandState.HALF_PLACED and not cell.keyed:
            return "the memory transport places data by id all at once (the tests of streams have it in parts)"
        return ABSENT.get((cell.state, cell.kind), "")
    if cell.state is ControllerState.NEW and trouble.needs_engine:
        return "there is no engine yet to which it could be done"
    if cell.state in (ControllerState.STOPPING, ControllerState.CLOSED) and trouble.steps:
        return "the engine that it steps is closed"
    if cell.state is ControllerState.STOPPING and trouble.closes:
        return "an engine is used from one thread: nobody else can close it meanwhile"
    return ""


def try_cell(trouble: Trouble, cell: Cell) -> Counter[str]:
    """Runs one cell; returns how its operations ended.

    Raises:
        AssertionError: something does not hold.
    """
    match cell.state:
        case ControllerState.NEW:
            return _new(trouble, cell)
        case ControllerState.STOPPING | ControllerState.CLOSED:
            return _ending(trouble, cell)
        case ControllerState():
            world = controller_scene(cell.state, keyed=cell.keyed)
        case QueueState():
            world = queue_scene(cell.state, keyed=cell.keyed)
        case CommandState():
            assert cell.kind is not None
            world = command_scene(cell.state, cell.kind, keyed=cell.keyed).world
    world.blind = trouble.blind
    trouble.do(world)
    if not trouble.closes:
        _aftermath(world, may_end=trouble.ends or cell.state is ControllerState.LOST)
    return _ends(world.operations)


def _aftermath(world: World, *, may_end: bool) -> None:
    world.pass_time(60 * MS)  # it goes on for a while
    world.read(32, 8)  # and meets work that comes meanwhile
    world.pass_time(90 * MS)
    restore(world)
    world.settle()
    world.pass_time(200 * MS)  # what was said before may still come
    lost = world.engine.lost
    if lost is None:
        world.run(lambda: world.is_up() or world.engine.lost is not None, until_ns=world.clock.now_ns + 60 * SECOND)
        lost = world.engine.lost
    assert lost is None or may_end, f"the engine was lost: {lost!r}"
    if lost is None:
        assert world.is_up(), f"the target is well, and the engine not up: {world.state()}"
        _works(world)
    world.settle()
    world.pass_time(50 * MS)  # send completions that are late
    world.check_idle()
    world.close()


def _works(world: World) -> None:
    """Everything that is there can be read, and written."""
    world.blind = False
    for kind, lba in ((Kind.READ, 0), (Kind.READ, 32), (Kind.WRITE, 8), (Kind.READ, 8)):
        operation = world.submit(kind, lba, 8, 20 * SECOND)
        assert operation is not None, f"nothing is taken: {world.log[-1:]}"
        world.run(lambda one=operation: one.future.settled)  # type: ignore[misc]
        assert operation.well, f"the target is well, and a {kind} not: {operation.future.error!r}"


def _new(trouble: Trouble, cell: Cell) -> Counter[str]:
    """The trouble is there before the engine opens: it opens, or says why not in time, and leaves nothing behind."""
    plan = Plan(**(dict(PLAN) | {"keyed": cell.keyed}))  # type: ignore[arg-type]
    try:
        world = World(plan, lambda one: None if trouble.closes else trouble.do(one))
    except EngineError as error:
        return Counter({type(error).__name__: 1})
    world.blind = trouble.blind
    for kind in OPS:
        world.submit(kind, 8 * OPS.index(kind), 8)
    if trouble.closes:
        world.close()
    else:
        _aftermath(world, may_end=trouble.ends)
    return _ends(world.operations)


def _ending(trouble: Trouble, cell: Cell) -> Counter[str]:
    """The trouble comes while the engine is closed, or after that."""
    world = queue_scene(QueueState.LIVE, keyed=cell.keyed)
    world.blind = trouble.blind
    done: list[bool] = []

    def strike() -> None:
        if not done and world.controller.state is ControllerState.STOPPING:
            done.append(True)
            trouble.do(world)

    if cell.state is ControllerState.STOPPING:
        world.hook = strike
        world.close()
        assert done, "never stopping"
    else:
        world.close()
        if trouble.closes:
            world.engine.close()
        else:
            trouble.do(world)
    assert not world.engine.step() or world.engine.lost is not None
    assert isinstance(world.engine.lost, NotReadyError)
    assert world.submit(Kind.READ, 0) is None
    return _ends(world.operations)


def _ends(operations: list[Operation]) -> Counter[str]:
    def end(one: Operation) -> str:
        if one.caught:
            return "wrong, and seen by the reader's check"
        return "well" if one.well else type(one.future.error).__name__

    return Counter(map(end, operations))


def run_all(part: str = "") -> str:
    """Runs the matrix, or the troubles with `part` in their names; returns the tables as Markdown.

    Raises:
        AssertionError: a cell does not hold.
    """
    troubles = [one for one in TROUBLES if part in one.name]
    rows, total, ends = [], 0, Counter[str]()
    by_state: Counter[str] = Counter()
    for trouble in troubles:
        found = Counter[str]()
        number = 0
        for cell in cells(trouble):
            try:
                found += try_cell(trouble, cell)
            except AssertionError as error:
                raise AssertionError(f"{trouble.name}; {cell}: {error}") from error
            number += 1
            by_state[str(cell)] += 1
        ended = ", ".join(f"{name} {count}" for name, count in found.most_common())
        rows.append(f"| {trouble.name} | {number} | {ended} |")
        total, ends = total + number, ends + found
    return "\n".join(
        [
            *("| trouble | cells | how operations ended |", "|---|---|---|", *rows, ""),
            *("| state | cells |", "|---|---|", *(f"| {name} | {count} |" for name, count in by_state.items()), ""),
            "lose-data and corrupt are what no host sees without a digest; whoever reads has to check its blocks.",
            "",
            f"{total} cells, {ends.total()} operations: 0 wrong bytes unseen, 0 ends after a deadline, 0 leaks",
        ]
    )


def _left_out() -> str:
    reasons = Counter(reason for one in TROUBLES for cell in _states() if (reason := absent(one, cell)))
    return "\n".join(f"- {reason}: {count}" for reason, count in reasons.items())


def _main(arguments: list[str]) -> None:
    began_s = time.process_time()
    tables = run_all(arguments[0] if arguments else "")
    print("# The fault matrix of the engine\n")
    print(f"Made by `{_COMMAND}`; {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}.")
    print("The target is the soft one of this repository, on the memory transport, in simulated time.\n")
    print(f"{tables}\n\nPairs that are no cells, and why:\n\n{_left_out()}")
    print(f"\n{time.process_time() - began_s:.0f} s of CPU")


_COMMAND = "python -m tests.unit.engine.faults.matrix"

if __name__ == "__main__":
    _main(sys.argv[1:])
