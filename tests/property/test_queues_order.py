"""Who is next: shares between tenants hold within their bound, nothing starves, and few keys move."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.queues import Op, Path, Queue, QueueId, Urgency
from fabric.engine.queues.dealing.rendezvous import Rendezvous
from fabric.engine.queues.load import LivePath, LiveQueue, Window
from fabric.policy import Parameter, ShardPolicy, Share
from tests.unit.engine.queues.world import BLOCK, World, read

pytestmark = pytest.mark.no_cover  # long and alike: the unit tests show coverage

LONGEST = 8 * BLOCK
seeds = st.integers(0, 2**32 - 1)


def land(world: World, random: Random) -> None:
    """Lets at least one transfer that flies come back, drawn at random."""
    flying = [(wire.queue.id, one) for wire in world.wires.values() for one in wire.flying.values()]
    for queue, transfer in random.sample(flying, random.randint(1, len(flying))):
        world.complete(queue, transfer)


@given(seed=seeds, weights=st.tuples(st.integers(1, 8), st.integers(1, 8)), window=st.integers(1, 6))
def test_tenants_that_both_wait_get_their_shares_within_three_transfers(
    seed: int, weights: tuple[int, int], window: int
) -> None:
    random = Random(seed)  # noqa: S311  # a schedule, no secret
    shares = tuple(Share(f"t{index}", weight) for index, weight in enumerate(weights))
    bound = window * LONGEST
    world = World(
        ShardPolicy(transfer_bytes=LONGEST, align_bytes=BLOCK, target_bytes=bound, receiver_bytes=bound, shares=shares)
    )
    for number in range(3):
        world.add(number)
    for number in range(120):
        world.submit(read(number, random.randint(1, 24), tenant=f"t{number % 2}"))
    left = {share.tenant: 0 for share in shares}
    for transfer in world.waiting.values():
        left[world.told[transfer.request].request.tenant] += transfer.length
    lead, lowest, highest = 0.0, 0.0, 0.0
    while all(left.values()):
        for issue in world.commands():
            index = int(world.told[issue.transfer.request].request.tenant[1:])
            left[f"t{index}"] -= issue.transfer.length
            if all(left.values()):
                lead += issue.transfer.length / weights[index] * (1 if index == 0 else -1)
                lowest, highest = min(lead, lowest), max(lead, highest)
        land(world, random)
    assert highest - lowest <= 3 * LONGEST


@given(seed=seeds, aging=st.integers(1, 400))
def test_prefetch_goes_once_each_aging_time_and_no_more_while_demand_waits(seed: int, aging: int) -> None:
    random = Random(seed)  # noqa: S311
    policy = ShardPolicy(depth=1, transfer_bytes=BLOCK, align_bytes=BLOCK, aging_ns=aging, deadline_ns=10**9)
    world = World(policy)
    world.add(0)
    world.submit(read(0, 20, urgency=Urgency.PREFETCH))
    world.submit(read(1, 400))
    times, last_ns, step = [], 0, 10
    while any(one.request == 0 for one in world.waiting.values()) and any(
        one.request == 1 for one in world.waiting.values()
    ):
        for issue in world.commands():
            if issue.transfer.request == 0:
                times.append(world.now_ns - last_ns)
                last_ns = world.now_ns
        world.now_ns += random.randint(1, step)
        land(world, random)
    assert all(aging <= gap <= aging + step for gap in times)
    assert times or world.now_ns <= aging + step


@pytest.mark.parametrize(
    ("bound", "short", "long", "target"),
    [
        ("receiver_bytes", Op.READ, Op.READ, "t1"),  # two targets send to one port of this host
        ("receiver_bytes", Op.WRITE, Op.WRITE, "t1"),
        ("target_bytes", Op.READ, Op.WRITE, "t0"),  # both directions share the target
        ("target_bytes", Op.WRITE, Op.READ, "t0"),
    ],
)
@given(seed=seeds)
def test_long_transfer_is_not_starved_by_short_ones_at_one_window(
    bound: str, short: Op, long: Op, target: str, seed: int
) -> None:
    random = Random(seed)  # noqa: S311
    policy = ShardPolicy(depth=64, transfer_bytes=LONGEST, align_bytes=BLOCK)
    world = World(
        replace(policy, target_bytes=LONGEST) if bound == "target_bytes" else replace(policy, receiver_bytes=LONGEST)
    )
    for number, name in enumerate(("t0", "t1")):
        world.add(number, target=name, path=Path("h0", "p0"), depth=64)
    for number in range(64):
        world.submit(read(number, 1, op=short))
    world.commands()
    world.submit(read(64, 8, target=target, op=long))
    landed, numbers = 0, iter(range(65, 10_000))
    while any(one.request == 64 for one in world.waiting.values()):
        assert landed <= LONGEST // BLOCK + 1  # one short transfer may have stood in line before it
        world.commands()
        flying = [one for one in world.wires[QueueId(0)].flying.values() if one.request != 64]
        if flying:
            world.complete(QueueId(0), random.choice(flying))
            landed += 1
        for _ in range(4):
            world.submit(read(next(numbers), 1, op=short))


def live(number: int) -> LiveQueue:
    path = Path("h", "p")
    return LiveQueue(Queue(QueueId(number), "t", path, 8), LivePath(path, Window(1), Window(1)), 8)


@given(numbers=st.lists(st.integers(0, 10**6), min_size=2, max_size=12, unique=True))
def test_removed_queue_moves_its_own_keys_only(numbers: list[int]) -> None:
    table = Rendezvous(512)
    queues = [live(number) for number in numbers]
    for queue in queues:
        table.added(queue)
    before = [table.owner(shard) for shard in range(512)]
    table.removed(queues[0])
    after = [table.owner(shard) for shard in range(512)]
    assert all(new == old for old, new in zip(before, after, strict=True) if old != numbers[0])
    assert numbers[0] not in after
    table.added(queues[0])
    assert [table.owner(shard) for shard in range(512)] == before


@pytest.mark.parametrize("count", [1, 3, 7, 15])
def test_new_queue_takes_its_share_of_keys_and_no_more(count: int) -> None:
    table = Rendezvous()
    for number in range(count):
        table.added(live(number))
    before = [table.owner(shard) for shard in range(4096)]
    table.added(live(count))
    moved = [new for shard, old in enumerate(before) if (new := table.owner(shard)) != old]
    assert set(moved) == {count}
    share = 4096 / (count + 1)
    assert 0.85 * share <= len(moved) <= 1.15 * share


@given(keys=st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=20, unique=True))
def test_key_keeps_its_queue_while_there_is_room(keys: list[bytes]) -> None:
    shards = (Parameter("shards", 64),)
    world = World(ShardPolicy(transfer_bytes=BLOCK, align_bytes=BLOCK, dealing="rendezvous", parameters=shards))
    for number in range(5):
        world.add(number)
    homes: dict[bytes, QueueId] = {}
    for number, key in enumerate(keys * 2):
        world.submit(read(number, 1, key=key))
        (issue,) = world.commands()
        assert homes.setdefault(key, issue.queue) == issue.queue
        world.complete(*issue)
