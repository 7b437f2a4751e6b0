"""The tables: states, statuses, refusals; each row is reachable, and a missing one is an error."""

import pytest

from fabric.engine.nvmeof.errors import (
    AuthenticationRequiredError,
    CapacityError,
    CommandRefusedError,
    ConnectRefusedError,
    MediumError,
    NvmeStatusError,
    PathError,
    QueueFullError,
    status_error,
)
from fabric.engine.nvmeof.host.backoff import Backoff
from fabric.engine.nvmeof.host.bringup import AFTER, Step
from fabric.engine.nvmeof.host.outputs import RequestId
from fabric.engine.nvmeof.host.refusals import refused_connect, rejection
from fabric.engine.nvmeof.host.slots import Pending, SlotTable
from fabric.engine.nvmeof.host.states import (
    CONTROLLER,
    QUEUE,
    SLOT,
    ControllerState,
    Machine,
    QueueInput,
    QueueState,
    SlotState,
    draw,
)
from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.fabrics import ConnectField
from fabric.engine.nvmeof.wire.status import (
    DISPOSITIONS,
    DNR,
    Disposition,
    Status,
    disposition,
    retry_delay_index,
    text,
)
from fabric.errors import EngineError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.nvmeof.rig import MS, SECOND, config


class Waiter:
    """Someone who submits and does not care."""

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes the answer."""

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss."""


def pending(request: int = 1) -> Pending:
    return Pending(Waiter(), 1, 0, RequestId(request))


@pytest.mark.parametrize(
    ("status", "expected", "kind"),
    [
        (0x300, Disposition.RETRY_ELSEWHERE, PathError),
        (0x303 | DNR, Disposition.RETRY_ELSEWHERE, PathError),
        (0x370, Disposition.RETRY_ELSEWHERE, PathError),
        (0x3FF, Disposition.RETRY_ELSEWHERE, PathError),
        (0x00C | DNR, Disposition.RETRY_ELSEWHERE, PathError),
        (0x021, Disposition.RETRY_LATER, PathError),
        (0x082, Disposition.RETRY_LATER, PathError),
        (0x181, Disposition.RETRY_LATER, PathError),
        (0x082 | DNR, Disposition.FATAL, CommandRefusedError),
        (0x002, Disposition.FATAL, CommandRefusedError),
        (0x00F, Disposition.FATAL, CommandRefusedError),
        (0x080, Disposition.FATAL, CommandRefusedError),
        (0x020, Disposition.FATAL, CommandRefusedError),
        (0x281, Disposition.INTEGRITY, MediumError),
        (0x285 | DNR, Disposition.INTEGRITY, MediumError),
        (0x287, Disposition.INTEGRITY, MediumError),
        (0x081, Disposition.CAPACITY, CapacityError),
        (0x191, Disposition.AUTH, AuthenticationRequiredError),
        (0x006, Disposition.RETRY_LATER, PathError),
        (0x006 | DNR, Disposition.FATAL, CommandRefusedError),
    ],
)
def test_a_status_says_what_to_do_and_who_does_it(
    status: int, expected: Disposition, kind: type[NvmeStatusError]
) -> None:
    error = status_error(status, where="queue 1")

    assert disposition(status) is expected
    assert type(error) is kind
    assert error.status == status


def test_every_known_disposition_is_of_a_failure() -> None:
    assert Status.SUCCESS not in DISPOSITIONS
    assert set(DISPOSITIONS.values()) == set(Disposition)


def test_a_status_reads_as_text() -> None:
    assert text(Status.SGL_LENGTH_INVALID | DNR) == "sgl length invalid (0x00f, do not retry)"
    assert text(0x7FF) == "unknown status (0x7ff)"
    assert retry_delay_index(0x082 | 2 << 11) == 2


@pytest.mark.parametrize("status", CmStatus)
def test_each_rejection_is_the_operators_or_worth_another_try(status: CmStatus) -> None:
    error = rejection(status, "queue 0")

    again = status in (CmStatus.NONE, CmStatus.NO_RESOURCES)
    assert isinstance(error, TransportError if again else ConnectRefusedError)
    assert bool(error.remedy) is not again


@pytest.mark.parametrize("field", ConnectField)
def test_each_refused_field_has_a_remedy(field: ConnectField) -> None:
    status = Status.CONNECT_INVALID_PARAMETER | DNR
    error = refused_connect(status, field.result, admin=True, where="q")

    assert isinstance(error, ConnectRefusedError)
    assert f"field {field.name}" in error.found
    assert error.remedy
    assert isinstance(refused_connect(status, field.result, admin=False, where="q"), PathError)


def test_a_target_that_wants_authentication_is_the_operators() -> None:
    error = refused_connect(Status.AUTH_REQUIRED, 0, admin=True, where="q")

    assert isinstance(error, AuthenticationRequiredError)
    assert isinstance(refused_connect(Status.CONNECT_BUSY, 0, admin=True, where="q"), PathError)


def test_diagrams_are_drawn_from_the_tables() -> None:
    drawn = draw(SLOT)

    assert drawn.startswith("stateDiagram-v2\n")
    assert "    posted --> quarantined: timeout\n" in drawn
    assert drawn.count("-->") == len(SLOT)
    assert "    live --> resetting: fail\n" in draw(CONTROLLER)
    assert "    connecting --> greeting: connected\n" in draw(QUEUE)


def test_every_state_is_entered_by_some_row() -> None:
    assert set(CONTROLLER.values()) == set(ControllerState) - {ControllerState.NEW}
    assert set(QUEUE.values()) == set(QueueState)
    assert set(SLOT.values()) == set(SlotState)


def test_quarantine_has_one_way_out() -> None:
    ways = {new for (old, _one), new in SLOT.items() if old is SlotState.QUARANTINED} - {SlotState.QUARANTINED}

    assert ways == {SlotState.FREE}
    assert [one.name for (old, one), new in SLOT.items() if old is SlotState.QUARANTINED and new is SlotState.FREE] == [
        "TEAR_DOWN"
    ]


def test_bring_up_steps_follow_one_another_to_the_queues() -> None:
    for discovery, table in AFTER.items():
        step, walked = Step.READ_CAP, [Step.READ_CAP]
        while step in table:
            step = table[step]
            walked.append(step)
        assert step is Step.OPEN_QUEUES
        assert (Step.SCAN in walked) is not discovery


def test_a_move_that_the_table_lacks_is_our_own_fault() -> None:
    machine = Machine(QUEUE, QueueState.DOWN, "queue 1")

    with pytest.raises(LocalProtocolError, match="queue 1 cannot take 'granted' while down"):
        machine.fire(QueueInput.GRANTED)


@pytest.mark.parametrize("answer_first", [True, False])
def test_a_slot_is_free_when_both_the_answer_and_the_send_are_seen(*, answer_first: bool) -> None:
    slots = SlotTable(4, 1)
    slot, cid = slots.take(pending(), None)

    slots.answer(cid) if answer_first else slots.send_done(slot)
    half = slots.in_use
    slots.send_done(slot) if answer_first else slots.answer(cid)

    assert (half, slots.in_use) == (1, 0)


def test_an_answer_is_taken_once() -> None:
    slots = SlotTable(1, 1)
    slot, cid = slots.take(pending(), None)
    slots.answer(cid)

    with pytest.raises(RemoteProtocolError, match="an answer to no open command"):
        slots.answer(cid)
    slots.send_done(slot)
    again, other = slots.take(pending(2), None)
    assert again == slot
    assert other != cid
    with pytest.raises(RemoteProtocolError):
        slots.answer(cid)


@pytest.mark.parametrize("count", [1, 3, 127, 1024])
def test_a_command_id_comes_again_only_after_all_others(count: int) -> None:
    slots = SlotTable(count, 3)
    bits = max(1, (count - 1).bit_length())
    seen = set()
    for _ in range(count << 16 - bits):  # one at a time, as a caller does that waits for each
        slot, cid = slots.take(pending(), None)
        slots.send_done(slot)
        slots.answer(cid)
        seen.add(cid)

    assert len(seen) == count << 16 - bits


def test_queues_that_start_together_use_different_command_ids() -> None:
    def first(qid: int) -> int:
        _slot, cid = SlotTable(127, qid).take(pending(), None)
        return cid

    assert len({first(qid) for qid in range(256)}) == 256


def test_a_send_completion_for_nothing_is_our_own_fault() -> None:
    slots = SlotTable(4, 1)

    with pytest.raises(LocalProtocolError, match="cannot take 'send_done'"):
        slots.send_done(0)
    with pytest.raises(LocalProtocolError, match="names no slot"):
        slots.send_done(4)


def test_a_late_answer_leaves_the_slot_in_quarantine() -> None:
    slots = SlotTable(2, 1)
    _slot, cid = slots.take(pending(7), 10)

    assert [one.request for one in slots.expire(10)] == [7]
    assert slots.answer(cid) is None
    assert slots.in_use == 1
    assert slots.next_deadline_ns() is None
    assert slots.tear_down() == (7,)
    assert slots.in_use == 0


def test_a_send_that_never_completes_costs_its_slot_but_not_its_request() -> None:
    slots = SlotTable(2, 1)
    _slot, cid = slots.take(pending(7), 10)
    slots.answer(cid)

    assert slots.expire(10) == []
    assert slots.states.count(SlotState.QUARANTINED) == 1
    assert slots.tear_down() == ()


def test_slots_run_out() -> None:
    slots = SlotTable(2, 1)
    slots.take(pending(), None)
    slots.take(pending(), None)

    with pytest.raises(QueueFullError):
        slots.take(pending(), None)


def test_waits_double_up_to_the_cap_and_start_again_after_a_success() -> None:
    backoff = Backoff(config(reconnect_first_ns=100 * MS, reconnect_cap_ns=SECOND))

    assert [backoff.delay_ns() for _ in range(6)] == [100 * MS, 200 * MS, 400 * MS, 800 * MS, SECOND, SECOND]
    backoff.reset()
    assert [backoff.delay_ns(stale=True) for _ in range(6)] == [10 * MS] * 5 + [100 * MS]
    assert backoff.attempts == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"io_depth": 1},
        {"io_depth": 2000},
        {"admin_depth": 8},
        {"kato_ms": -1},
        {"async_events": 9},
        {"subnqn": "n" * 224},
        {"hostid": b"short"},
        {"io_queues": -1},
    ],
)
def test_a_configuration_that_cannot_work_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(LocalProtocolError):
        config(**changes)
