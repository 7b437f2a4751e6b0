"""On a model of a path (a cap per queue, a cap of the link), sharding lifts throughput to the link's cap. Model only."""

import pytest

from fabric.engine.queues import Dealer
from fabric.engine.queues.dealing import catalog
from fabric.policy import ShardPolicy
from tests.unit.engine.queues.shaped import ShapedPath
from tests.unit.engine.queues.world import BLOCK, read

TRANSFER = 64 * BLOCK
REQUESTS, BLOCKS = 16, 64 * 40
TOTAL = REQUESTS * BLOCKS * BLOCK


def mb_per_s(queues: dict[int, int], link: int, *, dealing: str = "least-bytes", depth: int = 4) -> float:
    path = ShapedPath(queues, link)
    dealer = Dealer(ShardPolicy(depth=depth, transfer_bytes=TRANSFER, dealing=dealing))
    path.connect(dealer, depth)
    keys = [read(number, BLOCKS, key=b"%d" % number) for number in range(REQUESTS)]
    return TOTAL * 1000 / path.run(dealer, keys)


@pytest.mark.parametrize("dealing", catalog.names())
def test_one_queue_gives_its_own_cap_and_many_the_links(dealing: str) -> None:
    assert mb_per_s({0: 100}, 800, dealing=dealing) == pytest.approx(100, rel=0.02)
    assert mb_per_s(dict.fromkeys(range(4), 100), 800, dealing=dealing) == pytest.approx(400, rel=0.05)
    assert mb_per_s(dict.fromkeys(range(16), 100), 800, dealing=dealing) >= 0.95 * 800


def test_slow_queue_costs_no_more_than_itself_with_least_bytes() -> None:
    queues = {0: 25, 1: 100, 2: 100, 3: 100}
    assert mb_per_s(queues, 800) >= 0.9 * 325  # the slow queue ends last


def test_bound_on_bytes_in_flight_limits_what_queues_could_do() -> None:
    path = ShapedPath(dict.fromkeys(range(8), 100), 800)
    bound = 2 * TRANSFER
    dealer = Dealer(ShardPolicy(transfer_bytes=TRANSFER, receiver_bytes=bound, target_bytes=bound))
    path.connect(dealer, 4)
    took_ns = path.run(dealer, [read(0, BLOCKS)])
    assert BLOCKS * BLOCK * 1000 / took_ns <= 200
