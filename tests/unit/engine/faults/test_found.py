"""What the scenarios and the matrix found, one test each: it failed before the code was mended."""

import contextlib
import traceback

from fabric.engine.client import Settings, open_engine
from fabric.engine.nvmeof.host import Controller, ControllerState
from fabric.engine.nvmeof.target import Respond, Subsystem, Target
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Latency, Shape
from fabric.errors import EngineError
from tests.unit.engine.client.rig import POLICY, Hand, in_memory
from tests.unit.engine.faults.plan import MS, SECOND, Kind
from tests.unit.engine.faults.rough import Item, straight
from tests.unit.engine.faults.states import CommandState, command_scene
from tests.unit.engine.faults.world import world
from tests.unit.engine.nvmeof.rig import NAMESPACE, NQN, Rig, config

FLOOD = 20


def test_a_scan_that_finds_no_slot_does_not_stop_the_next_bring_up() -> None:
    one = world(sent_ns=3 * MS)  # slots come back late, so that a flood of events uses them up
    for _ in range(FLOOD):
        one.service.flood(one.clock.now_ns)
        one.step()
    assert one.controller.state is not ControllerState.LIVE  # the controller is taken down, as a queue that is broken

    one.run(one.is_up, until_ns=one.clock.now_ns + 10 * SECOND)

    assert one.is_up()
    one.close()


def test_a_discovery_log_that_finds_no_slot_fails_and_can_be_read_again() -> None:
    rig = Rig(Target(), Controller(config(subnqn="nqn.2014-08.org.nvmexpress.discovery", io_queues=0)))
    rig.bring_up()
    queue = rig.host.queue(0)
    while queue.slots.in_use < queue.slots.count:  # a peer that never completes our sends
        queue.slots.take(queue.slots._pending[0], None)  # type: ignore[arg-type]

    request = rig.host.read_discovery_log(rig.now_ns)
    rig.advance(SECOND)

    assert type(rig.end_of(request)).__name__ == "Failed"
    assert rig.host.state is ControllerState.LIVE
    rig.host.read_discovery_log(rig.now_ns)
    rig.settle()
    assert rig.events[-1].__class__.__name__ == "DiscoveryLog"


def test_a_controller_that_is_stopping_opens_no_queue() -> None:
    stopped = 0
    while _stopped_after(stopped + 1):
        stopped += 1
    assert stopped > 10


def _stopped_after(steps: int) -> bool:
    """Stops a controller in the middle of its bring-up; returns whether it still was in it."""
    rig = Rig(Target(subsystems=[Subsystem(NQN, {1: NAMESPACE})]), Controller(config()))
    rig.host.start(0)
    for _ in range(steps):
        rig.step()
    if rig.host.state is ControllerState.LIVE:
        return False
    asked = len(rig.connects)

    rig.host.stop(0)
    rig.advance(SECOND)

    assert rig.host.state is ControllerState.CLOSED
    assert rig.connects[asked:] == []
    return True


def test_transfers_of_failed_requests_do_not_count_as_waiting_for_ever() -> None:
    one = world(queues=1, depth=1, transfer_blocks=1, shape=Shape(latency=Latency("fixed", 10 * MS)))
    for lba in range(0, 32, 8):
        one.read(lba, 8, 5 * MS)
    one.settle()

    assert one.engine.load().waiting == 0
    one.close()


def test_a_lost_engine_keeps_nothing_of_those_who_ask_it_again() -> None:
    one = world(loss_ns=50 * MS)
    operation = one.read(0)
    one.close()

    for _ in range(100):
        for call in (lambda: one.engine.submit([]), operation.future.result if operation else list):
            with contextlib.suppress(EngineError):
                call()

    error = one.engine.lost
    assert error is not None
    assert len(list(traceback.walk_tb(error.__traceback__))) < 10


def test_cancel_leaves_the_work_of_another_engine_alone() -> None:
    one, other = world(shape=Shape(latency=Latency("fixed", 10 * MS))), world()
    mine, theirs = one.read(0), other.read(0)
    assert mine is not None
    assert theirs is not None
    assert mine.future.request == theirs.future.request

    one.engine.cancel(theirs.future)

    one.settle()
    assert mine.well
    for each in (one, other):
        with each.simulated():
            each.engine.close()


def test_a_target_that_asks_for_an_hour_holds_no_memory_of_what_was_cancelled() -> None:
    scene = command_scene(CommandState.DELAYED, Kind.READ, keyed=True)
    scene.world.link._late = [(at + 3600 * SECOND, order, landed) for at, order, landed in scene.world.link._late]

    scene.world.cancel(scene.victim)

    assert scene.victim.future.settled
    scene.world.check_idle()
    scene.world.close()


def test_a_target_in_this_process_forgets_an_engine_that_closed_without_a_word() -> None:
    clock = Hand()
    first, one = in_memory(settings=Settings(close_ns=0), clock=clock)
    first.close()
    second = open_engine("memory://", policy=POLICY, settings=Settings(close_ns=0), service=one, clock=clock)

    for _ in range(40):  # past the keep-alive timeout of the first
        clock.move(second, 500 * MS)

    assert second.link.controller.state is ControllerState.LIVE  # type: ignore[attr-defined]
    assert len(one.target.controllers) == 1
    assert len(second.load().queues) == POLICY.queues
    second.close()


def test_a_controller_that_the_target_reset_is_connected_anew() -> None:
    one = world()
    for association in one.service.target.controllers:
        association.configure(0)  # CC.EN = 0, as a target does that starts anew

    operation = one.read(0, 4)
    one.settle()

    assert operation is not None
    assert operation.well  # after a reconnect, and not an error to the caller
    one.close()


def test_an_order_that_waits_for_others_needs_no_timer() -> None:
    one = world(queues=1, depth=2, shape=Shape(latency=Latency("fixed", 10 * MS)))
    for _ in range(4):
        one.submit(Kind.FLUSH)
    one.service.strike(Fault(FaultKind.STATUS, status=0x006), one.clock.now_ns)
    one.pass_time(10 * MS)
    one.service.heal()

    one.settle()  # a timer that rings for nothing would be seen here

    one.check_idle()
    one.close()


def test_an_answer_that_comes_twice_ends_no_other_command() -> None:
    """With one command at a time the id came again after 8192 commands, or 512 at a depth of 128: now after 65536."""
    one = world(queues=1, depth=4, kato_ms=0)
    seen: list[Respond] = []

    def warp(item: Item, at_ns: int) -> list[tuple[Item, int]]:
        if isinstance(item, Respond) and item.peer in one.service.io_peers:
            seen.append(item)
        return [(item, at_ns)]

    one.service.warp = warp
    for lba in range(40):
        assert one.read(lba) is not None
        one.step()
    one.service.warp = straight
    ids = [int.from_bytes(answer.response[12:14], "little") for answer in seen]
    assert len(set(ids)) == len(ids) == 40

    one.service.say(seen[0], one.clock.now_ns)
    one.pass_time(SECOND)
    assert one.is_up()  # the queue went, and came again
    one.close()
