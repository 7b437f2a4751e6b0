"""Work over the RDMA transport on a soft adapter: sends, receives, the descriptor that gives notice of them, memory."""

from collections.abc import Iterator

import pytest

from fabric.engine.nvmeof.host import Completed, ConnectionId, PostSend, Read, Region, Write
from fabric.engine.nvmeof.target import NVMET
from fabric.engine.transport.base import Broken, Received, Sent, allocate
from fabric.engine.transport.driver import wait
from fabric.engine.transport.rdma.layouts import WcStatus
from fabric.errors import EngineError, EnvironmentMissingError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.transport.rig import SECOND, bring_up, world
from tests.unit.engine.transport.softrig import (
    ONE,
    PORT,
    Make,
    answer,
    broken,
    capsule,
    drained,
    live,
    makers,
    pair_of,
    send,
    slots_sent,
)


@pytest.fixture
def make() -> Iterator[Make]:
    yield from makers()


# -- sending and receiving


def test_a_batch_for_one_connection_rings_once_and_arrives_in_order(make: Make) -> None:
    one = make()
    live(one)
    rung = one.fabric.adapter.doorbells

    for order in ([0, 1, 2], [2, 0], [1], [2, 1, 0]):
        one.fabric.adapter.doorbells = rung
        one.post([send(slot) for slot in order], 0)
        assert one.fabric.adapter.doorbells == rung + 1
        assert slots_sent(one) == order, "a request that was chained once may not stay chained"


def test_a_capsule_with_data_is_as_long_as_it_is_and_the_next_one_too(make: Make) -> None:
    one = make()
    live(one)
    lengths: list[int] = []
    one.fabric.service.capsule = lambda _peer, data, _now_ns: lengths.append(len(data))  # type: ignore[method-assign, assignment]

    for extra in (0, 512, 4096, 0):
        one.post([PostSend(ONE, 0, 1, capsule(1, extra))], 0)
        one.post([PostSend(ONE, 0, 1, capsule(1, extra)), send(2)], 0)

    assert lengths == [64, 64, 64, 576, 576, 64, 4160, 4160, 64, 64, 64, 64]


def test_outgoing_bytes_lie_in_the_scratch_and_incoming_ones_come_from_there(make: Make) -> None:
    one = make()
    memory = live(one).memory
    one.post([send(2, outgoing=b"out", incoming_bytes=3)], 0)  # the target refuses it, which is an answer too

    received = [event for event in drained(one) if isinstance(event, Received)]

    assert [event.payload for event in received] == [b"out"]
    assert memory.key in one.fabric.adapter.keys


def test_a_receive_is_posted_again_before_its_answer_is_handed_over(make: Make) -> None:
    one = make()
    live(one)
    for turn in range(12):
        one.fabric.respond(pair_of(one), answer(turn))
        (event,) = drained(one)
        assert isinstance(event, Received)
        assert event.response == answer(turn)
        assert len(pair_of(one).receives) == 4


def test_a_short_response_is_the_targets_fault(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.respond(pair_of(one), bytes(8))
    assert isinstance(broken(drained(one)), RemoteProtocolError)


@pytest.mark.parametrize(
    ("status", "found", "kind"),
    [
        (WcStatus.RETRY_EXC_ERR, "RETRY_EXC_ERR", TransportError),
        (WcStatus.REM_ACCESS_ERR, "REM_ACCESS_ERR", TransportError),
        (WcStatus.WR_FLUSH_ERR, "WR_FLUSH_ERR", TransportError),
        (WcStatus.LOC_LEN_ERR, "LOC_LEN_ERR", RemoteProtocolError),
        (99, "status 99", TransportError),
    ],
)
def test_a_failed_completion_breaks_its_connection_once_by_its_first_cause(
    make: Make, status: int, found: str, kind: type[EngineError]
) -> None:
    one = make()
    live(one)
    live(one, 2)
    pair = next(iter(one.fabric.adapter.pairs.values()))
    one.fabric.adapter.complete(pair.receives.popleft().wr_id, status)
    pair.flush()

    seen = drained(one)

    assert type(broken(seen)) is kind
    assert broken(seen).found == found
    assert [event.connection for event in seen if isinstance(event, Broken)] == [1]
    one.post([send(0), send(0, 2)], 0)
    assert [event for event in drained(one) if isinstance(event, Sent)] == [Sent(ConnectionId(2), 0)]


@pytest.mark.parametrize("what", ["refuse_sends", "refuse_receives"])
def test_an_adapter_that_refuses_a_request_breaks_the_connection(make: Make, what: str) -> None:
    one = make()
    live(one)
    setattr(one.fabric.adapter, what, 1)
    one.post([send(0)], 0)
    if what == "refuse_receives":
        one.fabric.respond(pair_of(one), answer(0))
    assert "refused" in broken(drained(one)).what


def test_a_region_that_is_not_registered_is_refused_before_anything_of_the_batch_is_sent(make: Make) -> None:
    one = make()
    live(one)
    arena = one.register(allocate(4096))
    wrong = [
        Region(arena.address, 8, arena.key + 1),
        Region(arena.address - 1, 8, arena.key),
        Region(arena.address + 4090, 8, arena.key),
        Region(arena.address, -8, arena.key),
    ]
    for region in wrong:
        with pytest.raises(LocalProtocolError, match="not registered"):
            one.post([send(0), send(1, region=region)], 0)
    assert drained(one) == []
    one.post([send(0, region=arena.region(0, 4096))], 0)
    assert slots_sent(one) == [0]


# -- the descriptor


def test_what_comes_after_an_empty_poll_makes_the_descriptor_readable(make: Make) -> None:
    one = make()
    live(one)
    descriptor = one.fileno()
    for turn in range(3):
        assert drained(one) == []
        assert not wait([descriptor], 0)
        one.fabric.respond(pair_of(one), answer(turn))
        assert wait([descriptor], 0)
        assert len(drained(one)) == 1


def test_the_end_of_a_send_wakes_nobody_while_its_answer_is_to_come(make: Make) -> None:
    one = make()
    live(one)
    pair_of(one).peer = None  # nobody answers by himself
    drained(one)
    one.post([send(0)], 0)
    assert not wait([one.fileno()], 0)

    one.fabric.respond(pair_of(one), answer(0))
    assert wait([one.fileno()], 0)
    assert [type(event) for event in drained(one)] == [Sent, Received]


def test_a_send_that_ends_after_its_answer_gives_notice(make: Make) -> None:
    one = make()
    live(one)
    pair_of(one).peer = None
    drained(one)
    adapter = one.fabric.adapter
    adapter.held = type(adapter.sends)()
    one.post([send(0)], 0)
    held, adapter.held = adapter.held, None
    one.fabric.respond(pair_of(one), answer(0))
    assert [type(event) for event in drained(one)] == [Received]
    assert not wait([one.fileno()], 0)

    for completion in held:
        adapter.complete(*completion)
    assert wait([one.fileno()], 0)
    assert slots_sent(one) == [0]


def test_a_completion_between_the_last_look_and_the_notice_is_not_missed(make: Make) -> None:
    one = make()
    live(one)
    adapter = one.fabric.adapter
    plain = adapter.arm
    adapter.is_armed = False
    one._is_armed = False

    def late() -> None:
        one.fabric.respond(pair_of(one), answer(7))  # it ends just before the adapter is asked for a notice
        plain()

    adapter.arm = late  # type: ignore[method-assign]
    (event,) = one.poll(0)
    assert isinstance(event, Received)


def test_a_stream_of_completions_does_not_hide_what_else_happens(make: Make) -> None:
    one = make()
    live(one)
    one.fabric.manager.tell(next(iter(one.fabric.manager.ids.values())), PORT.DISCONNECTED)
    for turn in range(40):
        one.fabric.respond(pair_of(one), answer(turn))
        if any(isinstance(event, Broken) for event in one.poll(0)):
            return
    pytest.fail("the target's goodbye was never heard")


# -- memory


def test_memory_of_another_device_counts_from_its_offset(make: Make) -> None:
    one = make()
    live(one)
    arena = one.register_dmabuf(5, 8192, 4096)
    assert arena.address == 8192
    one.post([send(0, region=Region(8192 + 4000, 96, arena.key))], 0)
    assert slots_sent(one) == [0]
    with pytest.raises(EnvironmentMissingError, match="dma-buf"):
        one.register_dmabuf(-1, 0, 4096)
    with pytest.raises(LocalProtocolError, match="another length"):
        one.register_dmabuf(5, 0, 4096, memoryview(bytearray(8)))


def test_memory_that_cannot_be_pinned_is_a_matter_of_this_machine(make: Make) -> None:
    one = make()
    one.fabric.adapter.refuse_registration = 1
    with pytest.raises(EnvironmentMissingError, match="ulimit -l"):
        one.register(allocate(4096))


def test_registered_memory_is_held_until_close(make: Make) -> None:
    one = make()
    memory = bytearray(4096)
    one.register(memoryview(memory))
    with pytest.raises(BufferError):
        memory.extend(b"x")
    one.close()
    one.close()


def test_a_whole_host_reads_and_writes_over_it() -> None:
    one = bring_up(world("rdma", profile=NVMET))
    one.arena.view[:512] = b"w" * 512
    wrote = one.host.submit(1, Write(1, 3, 1, one.arena.region(0, 512)), 0)
    assert isinstance(one.end_of(wrote), Completed)
    read = one.host.submit(2, Read(1, 3, 1, one.arena.region(4096, 512)), 0)
    assert isinstance(one.end_of(read), Completed)
    assert bytes(one.arena.view[4096:4608]) == b"w" * 512
    one.advance(20 * SECOND, SECOND)
    one.close()
