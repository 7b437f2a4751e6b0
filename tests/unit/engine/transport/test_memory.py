"""The memory transport: the window between a timeout and the end of a connection, keys, receives, a lost device."""

from collections.abc import Callable

import pytest

from fabric.engine.nvmeof.host import (
    Completed,
    ControllerState,
    Failed,
    Lost,
    QuarantineReleased,
    QueueDown,
    Read,
    Reconnecting,
    RequestId,
    Write,
)
from fabric.engine.nvmeof.target import SPDK, PeerId, PushData
from fabric.engine.nvmeof.wire.io import IoOpcode
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.shape import Shape
from tests.unit.engine.transport.rig import SECOND, World

Make = Callable[..., World]
READ, WRITE = int(IoOpcode.READ), int(IoOpcode.WRITE)


def late_read(make: Make, delay_ns: int, flush_ns: int) -> World:
    fault = Fault(FaultKind.DELAY, opcodes=(READ,), commands=(0,), delay_ns=delay_ns)
    one = make("memory", Shape(faults=(fault,)), flush_ns=flush_ns, io_timeout_ns=SECOND)
    one.disk[:512] = b"L" * 512
    one.host.submit(1, Read(1, 0, 1, one.arena.region(0, 512)), one.now_ns)
    one.quiet()
    return one


def test_a_late_write_lands_in_the_buffer_of_a_failed_command_before_it_is_released(make: Make) -> None:
    one = late_read(make, delay_ns=3 * SECOND, flush_ns=5 * SECOND)

    one.advance(2 * SECOND)
    (failed,) = one.ends()
    assert isinstance(failed, Failed)
    assert failed.held
    assert one.arena.view[0] == 0
    one.advance(2 * SECOND)
    assert bytes(one.arena.view[:512]) == b"L" * 512
    assert not one.has(QuarantineReleased)
    one.advance(3 * SECOND)

    assert one.has(QuarantineReleased)


def test_no_write_lands_after_the_buffer_is_released(make: Make) -> None:
    one = late_read(make, delay_ns=9 * SECOND, flush_ns=2 * SECOND)

    one.advance(4 * SECOND)
    assert one.has(QuarantineReleased)
    one.advance(10 * SECOND)

    assert not any(one.arena.view[:512])


def test_a_write_without_a_key_breaks_the_connection_and_no_memory(make: Make) -> None:
    one = make("memory")
    connection = one.host.queue(1).connection
    assert connection is not None
    one.service._schedule(PushData(connection, 7, 0, 12345, b"x" * 512), one.now_ns)  # type: ignore[arg-type]

    one.settle(lambda: one.has(QueueDown))

    (down,) = [event for event in one.events if isinstance(event, QueueDown)]
    assert "memory that it may not" in str(down.error)
    assert not any(one.arena.view)


@pytest.mark.parametrize("kind", [FaultKind.LOSE_DATA, FaultKind.CORRUPT])
def test_data_that_rdma_cannot_vouch_for_is_the_readers_to_check(make: Make, kind: FaultKind) -> None:
    one = make("memory", Shape(faults=(Fault(kind, opcodes=(READ,)),)))
    one.disk[:512] = b"d" * 512

    end = one.end_of(one.host.submit(1, Read(1, 0, 1, one.arena.region(0, 512)), 0))

    assert isinstance(end, Completed)
    assert bytes(one.arena.view[:512]) != b"d" * 512


def test_spdk_rejects_a_host_that_allows_no_reads_of_its_memory(make: Make) -> None:
    one = make("memory", profile=SPDK, start=False)
    transport = one.transport
    assert isinstance(transport, MemoryTransport)
    original = transport.service.connect_request

    def refusing(peer: PeerId, private_data: bytes, now_ns: int, *, responder_resources: int = 1) -> None:
        assert responder_resources
        original(peer, private_data, now_ns, responder_resources=0)

    transport.service.connect_request = refusing  # type: ignore[method-assign]

    one.host.start(0)
    one.settle(lambda: one.has(Reconnecting) or one.has(Lost))

    assert one.host.state is not ControllerState.LIVE


def test_nvmet_lets_such_a_host_in_and_its_writes_stall_until_they_time_out(make: Make) -> None:
    one = make("memory")
    transport = one.transport
    assert isinstance(transport, MemoryTransport)
    for link in transport._links.values():
        object.__setattr__(link.order, "responder_resources", 0)
    request = one.host.submit(1, Write(1, 0, 32, one.arena.region(0, 16384)), one.now_ns)

    one.quiet()
    assert one.ends() == []
    one.advance(31 * SECOND, SECOND)

    assert isinstance(one.end_of(request), Failed)


def test_a_removed_device_loses_the_controller_and_ends_every_request(make: Make) -> None:
    one = make("memory", Shape(faults=(Fault(FaultKind.DROP, opcodes=(READ,)),)))
    request = one.host.submit(1, Read(1, 0, 1, one.arena.region(0, 512)), one.now_ns)
    one.quiet()
    assert isinstance(one.transport, MemoryTransport)

    one.transport.remove_device(one.now_ns, "rdma link delete")
    one.settle(lambda: one.has(Lost) and one.has(QuarantineReleased))

    assert isinstance(one.end_of(request), Failed)


def test_more_answers_than_receives_break_the_connection(make: Make) -> None:
    faults = (Fault(FaultKind.DUPLICATE, opcodes=(READ,)),)
    one = make("memory", Shape(faults=faults), io_depth=4)

    for _ in range(3):
        one.host.submit(1, Read(1, 0, 1, one.arena.region(0, 512)), one.now_ns)
    one.settle(lambda: one.has(QueueDown))

    assert len(one.ends()) == 3


@pytest.mark.parametrize("seed", range(20))
def test_seeded_loss_ends_every_request_once_and_leaks_no_slot(make: Make, seed: int) -> None:
    kinds = [kind for kind in FaultKind if kind not in (FaultKind.CORRUPT, FaultKind.LOSE_DATA, FaultKind.STATUS)]
    faults = tuple(Fault(kind, probability=0.05, delay_ns=SECOND * 2) for kind in kinds)
    one = make("memory", Shape(faults=faults, seed=seed), flush_ns=SECOND // 2, io_timeout_ns=SECOND)
    one.disk[:] = b"".join(bytes([at % 251 + 1]) * 512 for at in range(len(one.disk) // 512))
    asked: dict[RequestId, tuple[int, int]] = {}
    for turn in range(60):
        for qid in one.host.live_queues:
            if one.host.room(qid):
                block, place = (turn * 31 + qid) % 4096, len(asked)
                request = one.host.submit(qid, Read(1, block, 1, one.arena.region(place * 512, 512)), one.now_ns)
                asked[request] = (block, place)
        one.advance(SECOND // 10)
    one.advance(20 * SECOND)

    ends = one.ends()
    assert sorted(end.request for end in ends) == sorted(asked)
    for end in ends:
        block, place = asked[end.request]
        if isinstance(end, Completed):
            assert bytes(one.arena.view[place * 512 : place * 512 + 512]) == bytes([block % 251 + 1]) * 512
    held = {end.request for end in ends if isinstance(end, Failed) and end.held}
    released = {one for event in one.events if isinstance(event, QuarantineReleased) for one in event.requests}
    assert held == released
    assert all(one.host.queue(qid).slots.in_use == 0 for qid in one.host.live_queues)
