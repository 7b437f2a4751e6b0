"""Random requests, queues and faults: what goes in comes out once, no bound is passed, nothing waits without need."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.queues import Op, Path, QueueId, RequestDone, RequestFailed
from fabric.engine.queues.dealing import catalog
from fabric.policy import Parameter, ShardPolicy, Share
from tests.unit.engine.queues.world import BLOCK, World, request_of

pytestmark = pytest.mark.no_cover  # long and alike: the unit tests show coverage

STEPS = 60
seeds = st.integers(0, 2**32 - 1)


def policy_of(random: Random, dealing: str) -> ShardPolicy:
    transfer = BLOCK * random.choice((1, 4, 16))
    return ShardPolicy(
        depth=random.randint(1, 6),
        transfer_bytes=transfer,
        align_bytes=random.choice((BLOCK, transfer)),
        dealing=dealing,
        parameters=(Parameter("shards", 64),) if dealing == "rendezvous" else (),
        target_bytes=transfer * random.randint(1, 12),
        receiver_bytes=transfer * random.randint(1, 12),
        shares=(Share("a", random.randint(1, 5)),),
        demand_first=random.random() < 0.8,
        aging_ns=random.randint(1, 50),
        deadline_ns=1_000_000,
        redeals=1000,
    )


class Schedule:
    """A schedule drawn from a seed, and the world that it happens to."""

    def __init__(self, seed: int, dealing: str) -> None:
        self.random = Random(seed)  # noqa: S311  # a schedule, no secret
        self.targets = self.random.randint(1, 3)
        self.world = World(policy_of(self.random, dealing), segments=self.random.choice((1, 3)))
        self.numbers = iter(range(10_000))

    def step(self) -> None:
        kinds = (self.submit, self.connect, self.respond, self.remove, self.lose, self.release, self.limit, self.cancel)
        self.world.now_ns += self.random.randint(0, 5)
        self.random.choices(kinds, weights=(25, 8, 42, 5, 6, 6, 4, 4))[0]()
        if self.random.random() < 0.7:
            self.world.commands()

    def queues(self, *states: str) -> list[QueueId]:
        """Returns at most one queue, drawn from those in these states."""
        found = [wire.queue.id for wire in self.world.wires.values() if wire.state in states]
        return self.random.sample(found, min(1, len(found)))

    def submit(self) -> None:
        self.world.submit(request_of(self.random, next(self.numbers), self.world.now_ns, self.targets))

    def connect(self) -> None:
        random = self.random
        path = Path(f"h{random.randrange(2)}", f"p{random.randrange(2)}", local=random.random() < 0.5)
        target = f"t{random.randrange(self.targets)}"
        self.world.add(next(self.numbers), target=target, path=path, depth=random.randint(1, 8))

    def respond(self) -> None:
        world, random = self.world, self.random
        flying = [(wire.queue.id, one) for wire in world.wires.values() for one in wire.flying.values()]
        for queue, transfer in random.sample(flying, min(random.randint(1, 6), len(flying))):
            if random.random() < 0.9:
                world.complete(queue, transfer)
            else:
                world.fail(queue, transfer, again=transfer.op is Op.READ and random.random() < 0.7)

    def remove(self) -> None:
        for queue in self.queues("open"):
            self.world.remove(queue)

    def lose(self) -> None:
        for queue in self.queues("open", "draining"):
            self.world.lose(queue)

    def release(self) -> None:
        for queue in self.queues("lost"):
            self.world.release(queue)

    def limit(self) -> None:
        for queue in self.queues("open"):
            self.world.limit(queue, self.random.randint(0, self.world.wires[queue].queue.depth))

    def cancel(self) -> None:
        if self.world.told:
            self.world.dealer.cancel(self.random.choice(list(self.world.told)))


def play(seed: int, dealing: str) -> World:
    """Returns a world after a random schedule, everything ended."""
    schedule = Schedule(seed, dealing)
    for _ in range(STEPS):
        schedule.step()
    for number in range(schedule.targets):
        schedule.world.add(next(schedule.numbers), target=f"t{number}")
    schedule.world.finish()
    return schedule.world


@pytest.mark.parametrize("dealing", catalog.names())
@given(seed=seeds)
def test_every_request_ends_once_and_no_bound_is_passed(dealing: str, seed: int) -> None:
    world = play(seed, dealing)
    ends = [one.request for one in world.log if isinstance(one, RequestDone | RequestFailed)]
    assert sorted(ends) == sorted(world.told)


@given(seed=seeds, dealing=st.sampled_from(catalog.names()))
def test_same_schedule_gives_same_commands(seed: int, dealing: str) -> None:
    first, second = play(seed, dealing), play(seed, dealing)
    assert [str(one) for one in first.log] == [str(one) for one in second.log]
