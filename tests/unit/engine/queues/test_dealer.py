"""The dealer, event by event: ends, deadlines, queues that come and go, and calls that make no sense."""

import pytest

from fabric.engine.queues import (
    Dealer,
    Op,
    Path,
    QueueIdle,
    QueueLoad,
    Reason,
    RequestDone,
    RequestFailed,
    RequestId,
    RequestSettled,
    SetTimer,
    Urgency,
    WindowLoad,
)
from fabric.engine.queues.deadlines import Deadlines
from fabric.engine.queues.request import QueueId
from fabric.errors import IntentError, LocalProtocolError, TransportError
from fabric.policy import ShardPolicy
from fabric.registry import UnknownNameError
from tests.unit.engine.queues.world import BLOCK, ERROR, World, read

Q0, Q1 = QueueId(0), QueueId(1)


def world(*, depth: int = 4, queues: int = 1, redeals: int = 5, transfer: int = BLOCK, window: int = 1 << 20) -> World:
    policy = ShardPolicy(
        depth=depth,
        transfer_bytes=transfer,
        align_bytes=BLOCK,
        redeals=redeals,
        target_bytes=window,
        receiver_bytes=window,
        deadline_ns=1000,
        aging_ns=100,
    )
    made = World(policy)
    for number in range(queues):
        made.add(number, depth=depth)
    return made


def failures(one: World) -> list[RequestFailed]:
    return [command for command in one.log if isinstance(command, RequestFailed)]


def test_request_is_done_when_its_last_transfer_is() -> None:
    one = world()
    one.submit(read(1, 2))
    first, second = one.commands()
    one.complete(*second)
    one.commands()
    assert RequestDone(RequestId(1)) not in one.log
    one.complete(*first)
    one.commands()
    assert one.log[-1] == RequestDone(RequestId(1))


def test_transfers_wait_for_depth_and_go_in_order() -> None:
    one = world(depth=2)
    one.submit(read(1, 4))
    issues = one.commands()
    assert [issue.transfer.lba for issue in issues] == [0, 1]
    one.complete(*issues[1])
    assert [issue.transfer.lba for issue in one.commands()] == [2]


def test_request_without_a_queue_waits_for_one() -> None:
    one = world(queues=0)
    one.submit(read(1, 1))
    assert one.commands() == []
    one.add(0)
    assert len(one.commands()) == 1


def test_deadline_fails_at_once_and_names_what_still_flies() -> None:
    one = world(depth=1)
    one.submit(read(1, 3, deadline_ns=50))
    (issue,) = one.commands()
    assert one.log[-1:] == [SetTimer(50)]
    one.now_ns = 50
    one.commands()
    (failure,) = failures(one)
    assert (failure.reason, failure.abandoned) == (Reason.DEADLINE, (issue,))
    assert str(failure.error) == ("request 1: the deadline has passed (found 3 of its transfers open, 1 in flight)")
    one.complete(*issue)
    one.commands()
    assert one.log[-1:] == [RequestSettled(RequestId(1))]


def test_response_told_before_the_deadline_is_looked_at_counts() -> None:
    one = world()
    one.submit(read(1, 1, deadline_ns=50))
    (issue,) = one.commands()
    one.now_ns = 60
    one.complete(*issue)
    one.commands()
    assert failures(one) == []


def test_request_that_comes_too_late_is_never_issued() -> None:
    one = world()
    one.now_ns = 50
    one.submit(read(1, 1, deadline_ns=50))
    assert one.commands() == []
    assert failures(one)[0].abandoned == ()


def test_timer_is_told_again_only_when_it_must_ring_earlier_or_has_rung() -> None:
    one = world()
    one.submit(read(1, 1, deadline_ns=500))
    one.submit(read(2, 1, deadline_ns=900))
    one.commands()
    one.submit(read(3, 1, deadline_ns=200))
    one.commands()
    one.commands()
    one.now_ns = 200
    one.commands()
    assert [command.at_ns for command in one.log if isinstance(command, SetTimer)] == [500, 200, 500]


def test_failed_transfer_fails_its_request_and_its_siblings_are_abandoned() -> None:
    one = world(depth=2)
    one.submit(read(1, 3))
    first, second = one.commands()
    one.fail(*first, again=False)
    assert one.commands() == []
    (failure,) = failures(one)
    assert (failure.reason, failure.error, failure.abandoned) == (Reason.TRANSFER, ERROR, (second,))


def test_read_that_may_succeed_is_dealt_again_so_often_and_no_more() -> None:
    one = world(redeals=1)
    one.submit(read(1, 1))
    one.fail(*one.commands()[0], again=True)
    (issue,) = one.commands()
    assert issue.transfer.attempt == 1
    one.dealer.failed(*issue, ERROR, again=True)
    assert [type(command) for command in one.dealer.commands(0)] == [RequestFailed]


def test_write_is_never_dealt_twice() -> None:
    one = world()
    one.submit(read(1, 1, op=Op.WRITE))
    (issue,) = one.commands()
    one.dealer.failed(*issue, ERROR, again=True)
    assert [type(command) for command in one.dealer.commands(0)] == [RequestFailed]


def test_cancel_ends_a_request_once() -> None:
    one = world()
    one.submit(read(1, 1))
    one.dealer.cancel(RequestId(1))
    one.dealer.cancel(RequestId(1))
    assert one.commands() == []
    assert [failure.reason for failure in failures(one)] == [Reason.CANCELLED]


def test_removed_queue_finishes_what_flies_and_is_idle_then() -> None:
    one = world(queues=2, depth=1)
    one.submit(read(1, 3))
    issues = {issue.queue: issue for issue in one.commands()}
    one.remove(Q0)
    assert one.commands() == []
    one.complete(*issues[Q0])
    assert one.commands() == []
    assert one.log[-1] == QueueIdle(Q0)
    one.complete(*issues[Q1])
    assert [issue.queue for issue in one.commands()] == [Q1]


def test_lost_queue_holds_its_reads_until_it_is_released() -> None:
    one = world(queues=2, depth=2)
    one.submit(read(1, 4))
    issues = one.commands()
    one.lose(Q0)
    one.complete(*next(issue for issue in issues if issue.queue == Q0))  # its response had arrived
    for issue in issues:
        if issue.queue == Q1:
            one.complete(*issue)
    assert one.commands() == []
    one.release(Q0)
    (again,) = one.commands()
    assert (again.queue, again.transfer.attempt) == (Q1, 1)


def test_lost_queue_counts_against_bounds_until_it_is_released() -> None:
    one = world(queues=2, window=2 * BLOCK, depth=1)
    one.submit(read(1, 3))
    one.commands()
    one.lose(Q0)
    load = one.dealer.load()
    assert load.queues[0] == QueueLoad(Q0, "t0", Path("h0", "p0"), "lost", 1, 1, BLOCK)
    assert load.windows == (
        WindowLoad("target", "t0", 2 * BLOCK, 2 * BLOCK),
        WindowLoad("host-port", "h0", 2 * BLOCK, 2 * BLOCK),
        WindowLoad("target-port", "p0", 0, 2 * BLOCK),
    )
    assert (load.requests, load.waiting, load.draining) == (1, 1, 0)


def test_write_on_a_lost_queue_fails_at_once_and_settles_on_release() -> None:
    one = world()
    one.submit(read(1, 1, op=Op.WRITE))
    (issue,) = one.commands()
    one.lose(Q0)
    one.commands()
    (failure,) = failures(one)
    assert (failure.reason, failure.abandoned) == (Reason.QUEUE_LOST, (issue,))
    assert isinstance(failure.error, TransportError)
    one.release(Q0)
    one.commands()
    assert one.log[-1:] == [RequestSettled(RequestId(1))]


def test_read_out_of_redeals_fails_when_its_queue_is_released() -> None:
    one = world(redeals=0)
    one.submit(read(1, 1))
    one.commands()
    one.dealer.lose_queue(Q0)
    one.dealer.release_queue(Q0)
    (command,) = one.dealer.commands(0)
    assert isinstance(command, RequestFailed)
    assert (command.reason, command.abandoned) == (Reason.QUEUE_LOST, ())


def test_queue_lost_before_it_was_told_idle_is_not_idle() -> None:
    one = world()
    one.remove(Q0)
    one.lose(Q0)
    assert one.commands() == []
    assert one.log == []
    one.release(Q0)
    assert one.dealer.load().queues == ()


def test_degraded_queue_is_dealt_less_and_restored() -> None:
    one = world(depth=4)
    one.submit(read(1, 10))
    issues = one.commands()
    one.limit(Q0, 1)
    for issue in issues[:3]:
        one.complete(*issue)
    assert one.commands() == []
    one.limit(Q0, 0)
    one.complete(*issues[3])
    assert one.commands() == []
    one.limit(Q0, 4)
    assert len(one.commands()) == 4


def test_demand_passes_prefetch_that_came_first() -> None:
    one = world(depth=1)
    one.submit(read(1, 2, urgency=Urgency.PREFETCH))
    one.submit(read(2, 1))
    order = []
    while issues := one.commands():
        order.append(int(issues[0].transfer.request))
        one.complete(*issues[0])
    assert order == [2, 1, 1]


def test_deadlines_of_done_requests_do_not_pile_up() -> None:
    live: set[RequestId] = set()
    deadlines = Deadlines(live)
    for number in range(1000):
        live.add(RequestId(number))
        deadlines.add(10_000 - number, RequestId(number))
        live.discard(RequestId(number - 1))
    assert deadlines.entries() <= 2 * len(live) + 65
    assert deadlines.next_ns() == 10_000 - 999


def test_failed_requests_do_not_pile_up_where_no_queue_is() -> None:
    one = world(queues=0)
    for number in range(50):
        one.submit(read(number, 20, deadline_ns=number + 1))
    one.submit(read(50, 1))
    one.now_ns = 60
    one.commands()
    assert one.dealer.load().waiting < 50 * 20 / 4
    one.add(0)
    assert [issue.transfer.request for issue in one.commands()] == [50]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.add(0), "queue 0: this queue was added before"),
        (lambda one: one.add(1, depth=0), r"queue 1: no such depth \(found 0, expected 1 or more\)"),
        (lambda one: one.dealer.limit_queue(Q0, 5), r"queue 0: no such depth \(found 5, expected 0 to 4\)"),
        (lambda one: one.dealer.remove_queue(Q1), r"queue 1: no such queue \(expected one that was added\)"),
        (lambda one: (one.remove(Q0), one.remove(Q0)), "queue 0: this queue was removed or lost before"),
        (lambda one: (one.lose(Q0), one.lose(Q0)), "queue 0: this queue was lost before"),
        (lambda one: one.dealer.release_queue(Q0), "queue 0: this queue was not lost"),
        (
            lambda one: (one.submit(read(3, 1)), one.submit(read(3, 1))),
            r"request 3: .*rise \(found 3, expected more than 3\)",
        ),
    ],
)
def test_call_that_makes_no_sense_is_refused(call: object, message: str) -> None:
    with pytest.raises(LocalProtocolError, match=message):
        call(world())  # type: ignore[operator]


def test_second_response_and_response_on_another_queue_are_refused() -> None:
    one = world(queues=2)
    one.submit(read(1, 2))
    issues = {issue.queue: issue.transfer for issue in one.commands()}
    with pytest.raises(LocalProtocolError, match="queue 1, transfer 0: what did not fly has completed"):
        one.dealer.completed(Q1, issues[Q0])
    one.complete(Q0, issues[Q0])
    with pytest.raises(LocalProtocolError, match="what did not fly"):
        one.dealer.failed(Q0, issues[Q0], ERROR)
    assert one.commands() == []


def test_refused_request_changes_nothing() -> None:
    one = world()
    with pytest.raises(LocalProtocolError):
        one.dealer.submit(read(1, 0), 0)
    one.submit(read(1, 1))
    assert [issue.transfer.id for issue in one.commands()] == [0]


def test_wrong_policy_is_refused_when_the_dealer_is_made() -> None:
    with pytest.raises(IntentError, match="depth: out of range"):
        Dealer(ShardPolicy(depth=0))
    with pytest.raises(UnknownNameError, match="Did you mean 'round-robin'"):
        Dealer(ShardPolicy(dealing="roundrobin"))
