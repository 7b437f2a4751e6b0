"""The fault table: it is the whole cross product, and a seeded sample of it holds. The whole of it is bar 06_1."""

import importlib
import os
import pkgutil
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import fabric.push.sessions
from fabric.lab import FaultKind
from fabric.push.session import DeviceSession
from fabric.push.sessions.memory import FaultKind as MemoryFaultKind
from fabric.push.sessions.memory import MemorySession
from fabric.push.transaction import TABLE, Action, State
from tests.faults.document import Done, document, figure, row_keys
from tests.faults.keys import few_host_keys
from tests.faults.memory import memory_rows
from tests.faults.rows import Row, why_not
from tests.faults.steering import way_to
from tests.faults.subjects import BY_NAME, SUBJECTS
from tests.faults_table import ROOT, done, every_row

ROWS = int(os.environ.get("FAULT_ROWS", "8"))
SEED = int(os.environ.get("FAULT_SEED", "0"))


def session_classes() -> set[type]:
    """Returns every class under push/sessions that has all verbs of a session."""
    verbs = [name for name in vars(DeviceSession) if not name.startswith("_")]
    found: set[type] = set()
    for module in pkgutil.iter_modules(fabric.push.sessions.__path__, "fabric.push.sessions."):
        for one in vars(importlib.import_module(module.name)).values():
            if isinstance(one, type) and one is not DeviceSession and all(hasattr(one, verb) for verb in verbs):
                found.add(one)
    return found


def test_every_session_of_the_product_is_a_subject() -> None:
    covered = {one for subject in SUBJECTS for one in subject.classes} | {MemorySession}

    assert session_classes() == covered


def test_the_rows_are_the_cross_product_of_sessions_steps_and_faults() -> None:
    rows = every_row()
    expected = {(subject.name, state, kind.value) for subject in SUBJECTS for state in TABLE for kind in FaultKind}
    expected |= {("memory", state, kind.value) for state in TABLE for kind in MemoryFaultKind}

    assert len(rows) == len(expected)
    assert {(row.subject, row.state, row.kind.value) for row in rows} == expected


def test_the_committed_table_has_every_row_and_each_holds() -> None:
    table = max((ROOT / "docs/evidence").glob("fault-table-2*.md"))
    assert row_keys(table) == {(row.subject, row.state.value, row.kind.value) for row in every_row()}
    assert "**" not in table.read_text()  # what does not hold stands in bold


def test_only_a_rehearsal_does_not_come_to_every_step() -> None:
    unreached = {one.name: {state for state in TABLE if way_to(one, state) is None} for one in SUBJECTS}

    assert not any(states for name, states in unreached.items() if not BY_NAME[name].is_dry), unreached
    for name, states in unreached.items():
        if BY_NAME[name].is_dry:  # what nobody can lose or refuse needs no way back
            assert {TABLE[state].action for state in set(TABLE) - states} >= {Action.COMMIT, Action.SAVE, Action.STAGE}
            assert State.SAVING_LATE in states


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_each_fault_can_strike_somewhere_or_is_of_the_other_kind_of_session(name: str) -> None:
    rows = [row for row in every_row() if isinstance(row, Row) and row.subject == name]
    without = set(FaultKind) - {row.kind for row in rows if not why_not(row)}

    assert without <= {FaultKind.WRONG_PROMPT, FaultKind.REFUSE_REVERT, FaultKind.DROP_AFTER_COMMIT}, without


def test_every_fault_at_every_step_of_the_device_in_memory_ends_well() -> None:
    rows = [done(row) for row in memory_rows()]

    assert not [wrong for one in rows for wrong in one.wrong]
    assert sum(len(one.runs) for one in rows) > 200


def test_a_sample_of_the_rows_holds_over_real_ssh() -> None:
    reachable = [row for row in every_row() if row.subject != "memory" and way_to(BY_NAME[row.subject], row.state)]
    chosen = random.Random(SEED).sample(reachable, ROWS)  # noqa: S311 - no secret
    with few_host_keys(), ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(done, chosen))

    assert not [wrong for one in rows for wrong in one.wrong]


def test_a_row_that_does_not_hold_is_counted_and_shown() -> None:
    rows = [
        Done("eos", "saving", "drop-at", (("1", "intended", "committed", "", ""),)),
        Done("eos", "saving", "refuse", (("1", "neither", "rolled-back", "", "it is another"),)),
        Done("eos", "checking", "refuse", (), "the step sends the device no command"),
    ]

    assert figure(rows).startswith("3 rows (1 cannot be), 2 runs: 1 committed, 1 rolled-back; 1 device neither")
    assert "| saving | refuse | 1: neither, rolled-back **it is another** |" in document(rows)
    assert "| checking | refuse | cannot be: the step sends the device no command |" in document(rows)
