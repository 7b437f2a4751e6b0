"""Which queue each policy picks, and what a plug-in may not do."""

from collections.abc import Sequence

import pytest

from fabric.engine.queues import Dealer, Path, Queue, QueueId, Transfer
from fabric.engine.queues.dealing import catalog
from fabric.engine.queues.dealing.least_bytes import LeastBytes
from fabric.engine.queues.load import LivePath, LiveQueue, Window
from fabric.errors import IntentError, LocalProtocolError
from fabric.policy import Parameter, ShardPolicy
from tests.unit.engine.queues.world import BLOCK, World, read

NEAR, FAR, OTHER = Path("h0", "p0"), Path("h0", "p1", local=False), Path("h1", "p1")


def world(dealing: str, paths: Sequence[Path], *, depth: int = 8, window: int = 1 << 20) -> World:
    policy = ShardPolicy(
        depth=depth,
        transfer_bytes=4 * BLOCK,
        align_bytes=BLOCK,
        dealing=dealing,
        receiver_bytes=window,
        parameters=(Parameter("shards", 64),) if dealing == "rendezvous" else (),
    )
    made = World(policy)
    for number, path in enumerate(paths):
        made.add(number, path=path, depth=depth)
    return made


def dealt(one: World) -> list[int]:
    return [int(issue.queue) for issue in one.commands()]


def test_round_robin_takes_paths_in_turn_and_on_each_its_queues() -> None:
    one = world("round-robin", (NEAR, NEAR, OTHER))
    one.submit(read(1, 6 * 4))
    assert dealt(one) == [0, 2, 1, 2, 0, 2]


def test_round_robin_passes_over_a_full_queue_and_comes_back() -> None:
    one = world("round-robin", (NEAR, NEAR), depth=2)
    one.limit(QueueId(1), 1)
    one.submit(read(1, 5 * 4))
    issues = one.commands()
    assert [int(issue.queue) for issue in issues] == [0, 1, 0]
    one.complete(*issues[1])
    assert dealt(one) == [1]
    one.remove(QueueId(0))
    one.complete(*issues[0])
    assert dealt(one) == []


def test_round_robin_forgets_a_path_with_its_last_queue() -> None:
    one = world("round-robin", (NEAR, OTHER))
    one.remove(QueueId(1))
    one.submit(read(1, 2 * 4))
    assert dealt(one) == [0, 0]
    one.add(7, path=OTHER)
    one.submit(read(2, 4))
    assert dealt(one) == [7]


def test_least_bytes_takes_the_emptiest_queue_by_bytes_not_by_count() -> None:
    one = world("least-bytes", (NEAR, NEAR))
    for number, blocks in enumerate((4, 1, 1, 1, 1, 1)):
        one.submit(read(number, blocks))
    assert dealt(one) == [0, 1, 1, 1, 1, 0]


def test_least_bytes_compares_over_paths() -> None:
    one = world("least-bytes", (NEAR, OTHER))
    one.submit(read(1, 3 * 4))
    assert dealt(one) == [0, 1, 0]


def test_rail_aware_takes_the_port_nearest_to_the_memory() -> None:
    one = world("rail-aware", (NEAR, OTHER))
    for number, port in enumerate(("h1", "h1", "h0")):
        one.submit(read(number, 4, port=port))
    assert dealt(one) == [1, 1, 0]


def test_rail_aware_stays_on_its_rail_then_balances_ports() -> None:
    one = world("rail-aware", (FAR, NEAR, OTHER))
    one.submit(read(1, 4 * 4))
    assert dealt(one) == [1, 2, 1, 2]


def test_rail_aware_leaves_its_rail_rather_than_wait() -> None:
    one = world("rail-aware", (FAR, NEAR, OTHER), depth=1)
    one.submit(read(1, 3 * 4, port="h0"))
    assert dealt(one) == [1, 0, 2]


def test_full_port_is_avoided_by_every_policy() -> None:
    for dealing in catalog.names():
        one = world(dealing, (NEAR, OTHER), window=4 * BLOCK)
        one.submit(read(1, 3 * 4, key=b"x"))
        assert sorted(dealt(one)) == [0, 1], dealing


def test_rendezvous_goes_elsewhere_when_the_home_is_full() -> None:
    one = world("rendezvous", (NEAR, NEAR, NEAR), depth=1)
    for number in range(3):
        one.submit(read(number, 1, key=b"same"))
    assert sorted(dealt(one)) == [0, 1, 2]


def test_heap_of_loads_stays_small_however_often_loads_change() -> None:
    loads = LeastBytes()
    path = LivePath(NEAR, Window(1), Window(1))
    queues = [LiveQueue(Queue(QueueId(number), "t0", NEAR, 8), path, 8) for number in range(2)]
    for queue in queues:
        loads.added(queue)
    for turn in range(1000):
        queues[1].bytes = turn % 7 + 1
        loads.changed(queues[1])
    assert loads.entries(path) <= 8 * 2 + 65
    assert loads.top(path)[2] is queues[0]


@pytest.mark.parametrize(
    ("dealing", "parameter", "message"),
    [
        (
            "least-bytes",
            Parameter("shards", 1),
            r"parameters: least-bytes has no such parameter \(found shards, expected none\)",
        ),
        ("rendezvous", Parameter("shard", 1), r"no such parameter \(found shard, expected shards\)"),
        ("rendezvous", Parameter("shards", 0), r"parameters.shards: out of range \(found 0, expected 1 to 1048576\)"),
        ("rendezvous", Parameter("shards", "x"), r"out of range \(found 'x', expected 1 to 1048576\)"),
        ("rendezvous", Parameter("shards", True), "out of range"),
    ],
)
def test_wrong_parameter_is_told_when_the_dealer_is_made(dealing: str, parameter: Parameter, message: str) -> None:
    with pytest.raises(IntentError, match=message):
        Dealer(ShardPolicy(dealing=dealing, parameters=(parameter,)))


class Stubborn:
    """A plug-in that always picks the queue that it saw first."""

    def __init__(self) -> None:
        self.queues: list[LiveQueue] = []

    def added(self, queue: LiveQueue) -> None:
        self.queues.append(queue)

    def removed(self, queue: LiveQueue) -> None:
        """Forgets nothing, on purpose."""

    def changed(self, queue: LiveQueue) -> None:
        """Does not care."""

    def choose(self, transfer: Transfer, paths: Sequence[LivePath]) -> LiveQueue:
        del transfer, paths
        return self.queues[0]


def stubborn(parameters: Sequence[Parameter]) -> Stubborn:
    del parameters
    return Stubborn()


def test_plug_in_that_picks_a_full_queue_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog._loaded, "stubborn", stubborn)
    one = world("stubborn", (NEAR, NEAR), depth=1)
    one.submit(read(1, 2 * 4))
    with pytest.raises(LocalProtocolError, match="queue 0: the dealing policy chose a queue that may not take it"):
        one.commands()
