"""A host against a target while the wire loses, delays, reorders and repeats: no wrong byte, no hang, no leak.

The wire keeps what an RDMA connection promises (see `rig`); all else is drawn from a seed that hypothesis prints.
"""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.nvmeof.errors import NotReadyError, PathError, QueueFullError
from fabric.engine.nvmeof.host import (
    Completed,
    ControllerState,
    Failed,
    Output,
    QuarantineReleased,
    Read,
    RequestId,
    Write,
)
from fabric.engine.nvmeof.target import NVMET, SPDK, TargetProfile
from tests.unit.engine.nvmeof.rig import MS, NAMESPACE, NQN, SECOND, Message, Rig, arrive, rig

pytestmark = pytest.mark.no_cover  # long and alike: the unit tests show coverage

TIMEOUT_NS = 2 * SECOND
EXTENT_BYTES = 4096
EXTENT_BLOCKS = EXTENT_BYTES // NAMESPACE.block_bytes
PARTS = 32


@dataclass
class Asked:
    """A request that is out."""

    region: int
    extent: int
    is_write: bool
    pattern: bytes
    at_ns: int
    place: tuple[int, int]


@dataclass
class Chaos:
    """One run: what is out, what memory and disk should hold, and what must never happen."""

    seed: int
    profile: TargetProfile
    transport: str = "rdma"
    out: dict[RequestId, Asked] = field(default_factory=dict)
    held: dict[RequestId, Asked] = field(default_factory=dict)
    ended: set[RequestId] = field(default_factory=set)
    quarantined: set[tuple[int, int]] = field(default_factory=set)
    model: dict[int, bytes | None] = field(default_factory=dict)
    seen: int = 0
    posted: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311, a repeatable scheduler
        self.pair: Rig = rig(
            self.profile,
            transport=self.transport,
            io_timeout_ns=TIMEOUT_NS,
            admin_timeout_ns=4 * SECOND,
            connect_timeout_ns=SECOND,
            kato_ms=8_000,
            reconnect_cap_ns=SECOND,
            io_depth=4,
        )
        self.pair.writable = self.check_owner
        self.model = dict.fromkeys(range(PARTS), bytes(EXTENT_BYTES))

    def fate(self, message: Message) -> list[int]:
        """Loss, delay, repetition, by what a connection may do to each kind."""
        if message.kind in ("sent", "break"):
            return [self.random.randrange(8)]
        if self.random.random() < 0.03:
            return []
        late = self.random.choice((0, 0, 0, 1, 2, 5, 20))
        if message.kind == "answer" and self.random.random() < 0.03:
            return [late, late + self.random.randrange(30)]
        return [late]

    def check_owner(self, address: int, length: int) -> None:
        """Nothing may write to memory that no request owns."""
        part = address // EXTENT_BYTES
        owners = [one for one in (*self.out.values(), *self.held.values()) if one.region == part]
        assert owners, f"{length} bytes written to free memory at {address}"

    def run(self) -> None:
        """The whole story."""
        pair = self.pair
        pair.bring_up()
        pair.fate = self.fate
        for _ in range(250):
            self.act()
            self.look()
        pair.fate = arrive
        self.calm()

    def act(self) -> None:
        """One thing happens."""
        dice = self.random.random()
        if dice < 0.45:
            self.submit()
        elif dice < 0.85:
            self.pair.step()
        elif dice < 0.985:
            self.wait(self.random.choice((1, 10, 100, 700)) * MS)
        elif self.pair.host.state is ControllerState.LIVE:
            qid = self.random.choice((0, 1, 2))
            if self.pair.host.queue(qid).connection is not None:
                self.pair.break_connection(qid)

    def wait(self, duration_ns: int) -> None:
        """Time passes, no further than the next timer."""
        self.pair.pump()
        due_ns = self.pair.next_timer_ns()
        until_ns = self.pair.now_ns + duration_ns
        self.pair.tick(until_ns if due_ns is None else min(until_ns, due_ns))

    def submit(self) -> None:
        """A read or a write, if there is room for it."""
        pair, dice = self.pair, self.random
        busy = {one.region for one in (*self.out.values(), *self.held.values())}
        written = {one.extent for one in self.out.values() if one.is_write}
        read = {one.extent for one in self.out.values()}
        region = dice.choice([part for part in range(PARTS) if part not in busy])
        is_write = dice.random() < 0.4
        free = [part for part in range(PARTS) if part not in (read if is_write else written)]
        usable = [part for part in free if not is_write or self.model[part] is not None]
        if not usable:
            return
        extent, memory = dice.choice(usable), pair.region(region, EXTENT_BYTES)
        pattern = dice.randbytes(16) * (EXTENT_BYTES // 16)
        pair.arena[memory.address : memory.address + EXTENT_BYTES] = pattern
        kind = Write if is_write else Read
        try:
            request = pair.host.submit(
                dice.choice((1, 2)), kind(1, extent * EXTENT_BLOCKS, EXTENT_BLOCKS, memory), pair.now_ns
            )
        except (QueueFullError, NotReadyError):
            return
        pair.pump()
        place = (pair.sent[-1].connection, pair.sent[-1].slot)
        self.out[request] = Asked(region, extent, is_write, pattern, pair.now_ns, place)

    def look(self) -> None:
        """Reads the new events and holds them to their word."""
        self.pair.pump()
        for post in self.pair.sent[self.posted :]:
            assert (post.connection, post.slot) not in self.quarantined, "a slot in quarantine was used"
        self.posted = len(self.pair.sent)
        fresh, self.seen = self.pair.events[self.seen :], len(self.pair.events)
        for event in fresh:
            self.judge(event)

    def judge(self, event: Output) -> None:
        """One event."""
        if isinstance(event, Completed | Failed):
            assert event.request not in self.ended, "a request ended twice"
            self.ended.add(event.request)
            asked = self.out.pop(event.request)
            assert self.pair.now_ns <= asked.at_ns + TIMEOUT_NS, "a request outlived its deadline"
        if isinstance(event, Completed):
            self.completed(asked)
        elif isinstance(event, Failed):
            assert event.held or isinstance(event.error, PathError), f"a right request was refused: {event.error}"
            if asked.is_write:
                self.model[asked.extent] = None  # it may or may not have happened, now or later
            if event.held:
                self.held[event.request] = asked
                self.quarantined.add(asked.place)
        elif isinstance(event, QuarantineReleased):
            for request in event.requests:
                del self.held[request]

    def completed(self, asked: Asked) -> None:
        """A success: disk and memory agree with the model."""
        at = asked.region * EXTENT_BYTES
        if asked.is_write:
            self.model[asked.extent] = asked.pattern
            disk = self.pair.disk(NQN)[asked.extent * EXTENT_BYTES : (asked.extent + 1) * EXTENT_BYTES]
            assert disk == asked.pattern, "a write completed that did not happen"
        elif (known := self.model[asked.extent]) is not None:
            assert self.pair.arena[at : at + EXTENT_BYTES] == known, "a read brought wrong bytes"

    def calm(self) -> None:
        """The wire is good again: everything ends, nothing is left over, all is readable."""
        for _ in range(40):
            self.wait_all(SECOND)
        assert not self.out, "a request hangs"
        assert not self.held, "memory is held for ever"
        assert self.pair.host.live_queues == (1, 2)
        assert [self.pair.host.queue(qid).slots.in_use for qid in (1, 2)] == [0, 0], "a slot leaked"
        assert self.pair.host.queue(0).slots.in_use == 4, "an admin slot leaked: four event requests are open"
        assert self.pair.target.open_tasks == 0
        self.pair.writable = None
        for extent, known in self.model.items():
            if known is not None:
                self.pair.host.submit(
                    1, Read(1, extent * EXTENT_BLOCKS, EXTENT_BLOCKS, self.pair.region(0, 4096)), self.pair.now_ns
                )
                self.pair.settle()
                assert self.pair.arena[:EXTENT_BYTES] == known

    def wait_all(self, duration_ns: int) -> None:
        """Time passes, through every timer."""
        until_ns = self.pair.now_ns + duration_ns
        self.pair.settle()
        self.look()
        while (due_ns := self.pair.next_timer_ns()) is not None and due_ns <= until_ns:
            self.pair.tick(due_ns)
            self.look()
            self.pair.settle()
            self.look()
        self.pair.now_ns = until_ns


@given(st.integers(0, 2**32 - 1), st.sampled_from((NVMET, SPDK)), st.sampled_from(("rdma", "tcp")))
def test_no_wire_makes_a_wrong_byte_a_hang_or_a_leak(seed: int, profile: TargetProfile, transport: str) -> None:
    Chaos(seed, profile, transport).run()


@given(st.integers(0, 2**32 - 1))
def test_no_noise_on_a_connection_makes_the_host_raise(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311, a repeatable fuzz
    pair = rig(NVMET)
    pair.bring_up()
    connection = pair.host.queue(source.choice((0, 1))).connection
    assert connection is not None

    pair.host.received(connection, source.randbytes(source.choice((0, 15, 16, 16, 16, 64))), pair.now_ns, payload=b"x")
    pair.advance(5 * SECOND)

    assert pair.host.state is ControllerState.LIVE


@given(st.lists(st.binary(max_size=200), max_size=5), st.sampled_from((NVMET, SPDK)))
def test_no_noise_makes_the_target_raise(capsules: list[bytes], profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()
    source = random.Random(repr(capsules))  # noqa: S311, likewise
    for capsule in capsules:
        connection = pair.host.queue(source.choice((0, 1))).connection
        if connection is not None:
            pair.target.capsule(connection, capsule, pair.now_ns)  # type: ignore[arg-type]
            noisy = bytearray(capsule.ljust(64, b"\0"))
            noisy[1], noisy[39] = 0x40, source.choice((0x40, 0x01, 0x5A))
            noisy[0] = source.choice((0, 1, 2, 6, 8, 9, 0x0C, 0x18, 0x7F))
            pair.target.capsule(connection, bytes(noisy), pair.now_ns)  # type: ignore[arg-type]
            pair.target.drain()
