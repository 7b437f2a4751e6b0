"""What the scenarios and the matrix found, one test each: it failed before the code was mended."""

from fabric.engine.nvmeof.host import Controller, ControllerState
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.transport.shape import Latency, Shape
from tests.unit.engine.faults.world import MS, SECOND, world
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
