"""The fault matrix: every trouble in every state; see `matrix` for what a cell is and what holds in it."""

import pytest

from fabric.engine.nvmeof.host.states import ControllerState, QueueState, SlotState
from fabric.engine.transport.faults import FaultKind
from tests.unit.engine.faults.matrix import WAYS, Cell, absent, cells, try_cell
from tests.unit.engine.faults.states import OPS, CommandState
from tests.unit.engine.faults.troubles import TROUBLES, Trouble

pytestmark = pytest.mark.no_cover  # long and alike: tracing them would double `make test`, and shows nothing new

FAST = ("drop", "all connections break")  # in the unit tier
EACH = 8  # of so many troubles one is tried in `make test`, the rest by `make sweep`


def _marks(at: int, trouble: Trouble) -> tuple[pytest.MarkDecorator, ...]:
    if trouble.name in FAST:
        return ()
    return (pytest.mark.slow,) if at % EACH == 0 else (pytest.mark.sweep,)


@pytest.mark.parametrize(
    "trouble",
    [pytest.param(one, id=one.name, marks=_marks(at, one)) for at, one in enumerate(TROUBLES)],
)
def test_a_trouble_costs_no_wrong_byte_no_time_and_no_memory_in_any_state(trouble: Trouble) -> None:
    for cell in cells(trouble):
        try:
            try_cell(trouble, cell)
        except AssertionError as error:
            raise AssertionError(f"{trouble.name}; {cell}: {error}") from error


def test_the_matrix_has_every_fault_and_every_state_of_the_tables() -> None:
    names = {one.name for one in TROUBLES}
    assert len(names) == len(TROUBLES)
    assert all(any(name.startswith(kind) for name in names) for kind in FaultKind)
    tried = {cell.state for one in TROUBLES for cell in cells(one)}
    assert tried == {*CommandState, *ControllerState, *QueueState}
    assert len(SlotState) == 5  # `states` maps each to a state of commands

    every = len(TROUBLES) * len(WAYS) * (len(CommandState) * len(OPS) + len(ControllerState) + len(QueueState))
    left_out = [
        (one, cell)
        for one in TROUBLES
        for keyed in WAYS
        for cell in (
            *(Cell(state, kind, keyed) for state in CommandState for kind in OPS),
            *(Cell(state, None, keyed) for state in (*ControllerState, *QueueState)),
        )
        if absent(one, cell)
    ]
    assert every - len(left_out) == sum(1 for one in TROUBLES for _ in cells(one))
