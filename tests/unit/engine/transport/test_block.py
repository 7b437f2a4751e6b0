"""The block transport: the contract's calls on a real file, and calls that hang or fail."""

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fabric.engine.nvmeof.errors import CapacityError, CommandTimeoutError, MediumError
from fabric.engine.nvmeof.host import Connect, ConnectionId, Region
from fabric.engine.transport.base import Connected, Disconnected, Done, Event, Released, allocate
from fabric.engine.transport.block import (
    BlockConfig,
    BlockOp,
    BlockPost,
    BlockTransport,
    By,
    allocation,
    core,
    hardware_queues,
)
from fabric.engine.transport.block.workers import SYSTEM, FileCalls
from fabric.engine.transport.driver import wait
from fabric.errors import EnvironmentMissingError, LocalProtocolError

BLOCK = 4096
ONE = ConnectionId(1)


class Calls:
    """The system's, but for reads: these wait for the gate, then do what they are told."""

    def __init__(self, *, error: int = 0, most: int = 1 << 30) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.error, self.most = error, most

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        self.begun.release()
        assert self.gate.wait(10)
        if self.error:
            raise OSError(self.error, "")
        return os.preadv(fd, [buffer[: self.most] for buffer in buffers], offset)

    def pwritev(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        if self.error:
            raise OSError(self.error, "")
        return os.pwritev(fd, [buffer[: self.most] for buffer in buffers], offset)

    def fdatasync(self, fd: int, /) -> None:
        os.fdatasync(fd)

    zero = staticmethod(allocation.zero)
    discard = staticmethod(allocation.discard)


Opener = Callable[..., BlockTransport]


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[Opener]:
    yield from openers(tmp_path / "disk", By.AUTO)


@pytest.fixture(params=list(By))
def every(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens by each of those who can carry out posts here."""
    by = request.param
    if by in (By.THREADS, By.IO_URING):
        need_core()
    try:
        yield from openers(tmp_path / "disk", by)
    except EnvironmentMissingError as error:
        if by is not By.IO_URING:
            raise
        pytest.skip(f"{error}")


def need_core() -> None:
    """Skips where the core is not compiled; continuous integration has a compiler, and fails."""
    if not core.available():
        assert os.environ.get("CI") != "true", "core.c was not compiled"
        pytest.skip("core.c was not compiled")


def openers(path: Path, by: By) -> Iterator[Opener]:
    path.write_bytes(b"".join(bytes([index]) * BLOCK for index in range(64)))
    made: list[BlockTransport] = []

    def make(calls: FileCalls = SYSTEM, **changes: object) -> BlockTransport:
        config = BlockConfig(path, **{"threads": 2, "by": by, **changes})  # type: ignore[arg-type]
        made.append(BlockTransport(config, calls))
        made[-1].connect(Connect(ONE, 1, 64, b"", 0), 0)
        return made[-1]

    yield make
    for one in made:
        one.close()


def collect(one: BlockTransport, count: int, now_ns: int = 0) -> list[Event]:
    """Polls until so many events came."""
    seen: list[Event] = list(one.poll(now_ns))
    while len(seen) < count:
        assert wait([one.fileno()], 10_000_000_000), seen
        seen += one.poll(now_ns)
    return seen


@pytest.mark.parametrize("direct", [True, False])
def test_a_batch_is_read_to_its_places_and_written_from_them(every: Opener, direct: bool) -> None:
    one = every(direct=direct, threads=4)
    arena = one.register(allocate(64 * BLOCK))
    order = [(index * 13) % 64 for index in range(64)]

    reads = [
        BlockPost(ONE, at, BlockOp.READ, of * BLOCK, arena.region(at * BLOCK, BLOCK)) for at, of in enumerate(order)
    ]
    one.post(reads, 0)
    seen = collect(one, 65)
    assert seen[0] == Connected(ONE, b"", seen[0].memory)  # type: ignore[union-attr]
    assert sorted(event.tag for event in seen if isinstance(event, Done)) == list(range(64))
    assert not any(event.error for event in seen if isinstance(event, Done))
    assert [arena.view[at * BLOCK] for at in range(64)] == order

    arena.view[: 2 * BLOCK] = b"w" * (2 * BLOCK)
    one.post([BlockPost(ONE, 1, BlockOp.WRITE, BLOCK, arena.region(0, 2 * BLOCK))], 0)
    assert collect(one, 1) == [Done(ONE, 1)]
    one.post([BlockPost(ONE, 2, BlockOp.FLUSH)], 0)
    assert collect(one, 1) == [Done(ONE, 2)]
    assert one.device.length == 64 * BLOCK
    data = os.pread(one.device.descriptor, BLOCK, 0) if not direct else b"\0" * BLOCK
    assert data == b"\0" * BLOCK


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("has_fallocate", [True, False])
def test_blocks_are_zeroed_and_discarded_and_written_through(
    every: Opener, direct: bool, has_fallocate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "")

    if not has_fallocate:
        monkeypatch.setattr(allocation, "_fallocate", refuse)
    one = every(direct=direct)
    arena = one.register(allocate(64 * BLOCK))
    collect(one, 1)

    one.post([BlockPost(ONE, 1, BlockOp.ZERO, 8 * BLOCK, length=8 * BLOCK)], 0)
    assert collect(one, 1) == [Done(ONE, 1)]
    one.post([BlockPost(ONE, 2, BlockOp.DISCARD, 32 * BLOCK, length=8 * BLOCK)], 0)
    assert collect(one, 1) == [Done(ONE, 2)]
    arena.view[:BLOCK] = b"d" * BLOCK
    one.post([BlockPost(ONE, 3, BlockOp.WRITE_DURABLE, 50 * BLOCK, arena.region(0, BLOCK))], 0)
    assert collect(one, 1) == [Done(ONE, 3)]
    one.post([BlockPost(ONE, 4, BlockOp.READ, 0, arena.region(0, 64 * BLOCK))], 0)
    assert collect(one, 1) == [Done(ONE, 4)]

    expected = [index for index in range(64) if not 8 <= index < 16 and not 32 <= index < 40 and index != 50]
    assert [arena.view[index * BLOCK] for index in expected] == expected
    assert arena.view[8 * BLOCK : 16 * BLOCK] == bytes(8 * BLOCK)
    assert arena.view[50 * BLOCK : 51 * BLOCK] == b"d" * BLOCK
    assert arena.view[32 * BLOCK] in (0, 32)
    assert one.device.length == 64 * BLOCK


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 0), (0, 100), (100, BLOCK), (63 * BLOCK, 2 * BLOCK), (-BLOCK, BLOCK)]
)
def test_zeroes_off_the_alignment_or_the_device_are_refused(every: Opener, offset: int, length: int) -> None:
    with pytest.raises(LocalProtocolError, match=r"alignment|outside"):
        every().post([BlockPost(ONE, 1, BlockOp.ZERO, offset, length=length)], 0)


def test_a_medium_that_cannot_say_so_fails_the_zeroes(every: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(allocation, "_fallocate", refuse)
    one = every()
    collect(one, 1)
    posts = [BlockPost(ONE, tag, op, 0, length=BLOCK) for tag, op in enumerate((BlockOp.ZERO, BlockOp.DISCARD))]
    one.post(posts, 0)
    errors = [event.error for event in collect(one, 2) if isinstance(event, Done)]
    assert [type(error) for error in errors] == [CapacityError] * 2


def test_a_call_that_does_not_return_is_held_and_then_released(opener: Opener) -> None:
    calls = Calls()
    one = opener(calls, threads=1)
    arena = one.register(allocate(2 * BLOCK))
    collect(one, 1)
    one.post([BlockPost(ONE, at, BlockOp.READ, 5 * BLOCK, arena.region(at * BLOCK, BLOCK), 100) for at in (0, 1)], 0)
    calls.begun.acquire()

    assert one.next_timer_ns() == 100
    assert one.poll(99) == []
    late = one.poll(100)
    assert [(event.tag, event.held, type(event.error)) for event in late if isinstance(event, Done)] == [
        (0, True, CommandTimeoutError),
        (1, True, CommandTimeoutError),
    ]
    assert one.next_timer_ns() is None
    calls.gate.set()

    assert collect(one, 2, 200) == [Released(ONE, 0), Released(ONE, 1)]
    assert arena.view[0] == 5
    assert arena.view[BLOCK] == 0  # had not begun when its time was over, and never did


def test_a_connection_is_gone_only_when_no_call_touches_its_memory(opener: Opener) -> None:
    calls = Calls()
    one = opener(calls, threads=1)
    arena = one.register(allocate(2 * BLOCK))
    collect(one, 1)
    one.post([BlockPost(ONE, at, BlockOp.READ, BLOCK, arena.region(at * BLOCK, BLOCK)) for at in (0, 1)], 0)
    calls.begun.acquire()

    one.disconnect(ONE, 0)
    one.disconnect(ONE, 0)
    one.post([BlockPost(ONE, 9, BlockOp.READ, 0, arena.region(0, BLOCK))], 0)
    assert one.poll(0) == []
    calls.gate.set()

    assert collect(one, 1) == [Disconnected(ONE, "taken down")]
    assert one.poll(0) == []


def test_partial_transfers_are_continued(opener: Opener) -> None:
    calls = Calls(most=1000)
    calls.gate.set()
    one = opener(calls, direct=False)
    arena = one.register(allocate(BLOCK))
    one.post([BlockPost(ONE, 0, BlockOp.READ, 7 * BLOCK, arena.region(0, BLOCK))], 0)
    collect(one, 2)
    assert bytes(arena.view) == bytes([7]) * BLOCK

    one.post([BlockPost(ONE, 0, BlockOp.WRITE, 8 * BLOCK, arena.region(0, BLOCK))], 0)
    collect(one, 1)
    assert os.pread(one.device.descriptor, BLOCK, 8 * BLOCK) == bytes([7]) * BLOCK


@pytest.mark.parametrize(
    ("code", "op", "kind"),
    [
        (errno.EIO, BlockOp.READ, MediumError),
        (errno.ENOSPC, BlockOp.WRITE, CapacityError),
        (errno.EINVAL, BlockOp.READ, LocalProtocolError),
    ],
)
def test_errors_say_who_must_act(opener: Opener, code: int, op: BlockOp, kind: type[Exception]) -> None:
    calls = Calls(error=code)
    calls.gate.set()
    one = opener(calls)
    arena = one.register(allocate(BLOCK))

    one.post([BlockPost(ONE, 0, op, 0, arena.region(0, BLOCK))], 0)

    (done,) = [event for event in collect(one, 2) if isinstance(event, Done)]
    assert isinstance(done.error, kind)
    assert not done.held


def test_a_file_that_shrank_is_a_medium_error(every: Opener) -> None:
    one = every(direct=False)
    arena = one.register(allocate(2 * BLOCK))
    os.ftruncate(one.device.descriptor, BLOCK)

    one.post([BlockPost(ONE, 0, BlockOp.READ, 0, arena.region(0, 2 * BLOCK))], 0)

    (done,) = [event for event in collect(one, 2) if isinstance(event, Done)]
    assert isinstance(done.error, MediumError)


def test_posts_that_cannot_be_right_are_refused_whole(every: Opener) -> None:
    one = every()
    arena = one.register(allocate(4 * BLOCK))
    good = BlockPost(ONE, 1, BlockOp.READ, 0, arena.region(0, BLOCK))
    wrong = [
        BlockPost(ONE, 2, BlockOp.READ, 100, arena.region(0, BLOCK)),
        BlockPost(ONE, 2, BlockOp.READ, 0, arena.region(0, 100)),
        BlockPost(ONE, 2, BlockOp.READ, 64 * BLOCK, arena.region(0, BLOCK)),
        BlockPost(ONE, 2, BlockOp.READ, 0, Region(0, BLOCK, 99)),
        BlockPost(ONE, 2, BlockOp.READ),
        good,
    ]
    collect(one, 1)

    for post in wrong:
        with pytest.raises(LocalProtocolError):
            one.post([good, post], 0)

    assert one.poll(0) == []
    assert not wait([one.fileno()], 0)


def test_what_cannot_be_opened_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissingError, match="Check path"):
        BlockTransport(BlockConfig(tmp_path / "absent"))
    with pytest.raises(LocalProtocolError, match="neither"):
        BlockTransport(BlockConfig(Path("/dev/null"), direct=False))
    with pytest.raises(LocalProtocolError, match="nobody"):
        BlockTransport(BlockConfig(tmp_path, threads=0))


def test_threads_are_pinned_to_the_cpus_of_the_hardware_queues(opener: Opener) -> None:
    cpu = min(os.sched_getaffinity(0))

    class Where:
        seen: frozenset[int] = frozenset()

        def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
            Where.seen = frozenset(os.sched_getaffinity(0))
            return os.preadv(fd, buffers, offset)

        pwritev, fdatasync = staticmethod(os.pwritev), staticmethod(os.fdatasync)

    one = opener(Where(), threads=1, cpus=(frozenset({cpu, 4096}),))
    arena = one.register(allocate(BLOCK))
    one.post([BlockPost(ONE, 0, BlockOp.READ, 0, arena.region(0, BLOCK))], 0)
    collect(one, 2)

    assert Where.seen == {cpu}
    assert os.sched_getaffinity(0) != {4096}


def test_hardware_queues_are_read_from_sysfs(tmp_path: Path) -> None:
    disk = tmp_path / "devices" / "nvme0n1"
    for queue, cpus in (("0", "0-1, 8\n"), ("10", "3\n"), ("2", "2\n"), ("11", "\n")):
        (disk / "mq" / queue).mkdir(parents=True)
        (disk / "mq" / queue / "cpu_list").write_text(cpus)
    (disk / "part").mkdir()
    nodes = tmp_path / "dev" / "block"
    nodes.mkdir(parents=True)
    (nodes / "259:0").symlink_to(disk)
    (nodes / "259:1").symlink_to(disk / "part")
    expected = (frozenset({0, 1, 8}), frozenset({2}), frozenset({3}))

    assert hardware_queues(os.makedev(259, 0), tmp_path) == expected
    assert hardware_queues(os.makedev(259, 1), tmp_path) == expected
    assert hardware_queues(os.makedev(1, 1), tmp_path) == ()


def test_closing_waits_for_calls_that_have_begun_and_starts_no_more(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(b"x" * 2 * BLOCK)
    calls = Calls()
    one = BlockTransport(BlockConfig(path, threads=1), calls)
    one.connect(Connect(ONE, 1, 8, b"", 0), 0)
    arena = one.register(allocate(2 * BLOCK))
    one.post([BlockPost(ONE, at, BlockOp.READ, 0, arena.region(at * BLOCK, BLOCK)) for at in (0, 1)], 0)
    calls.begun.acquire()
    threading.Timer(0.01, calls.gate.set).start()

    one.close()

    assert arena.view[0] == ord("x")
    assert arena.view[BLOCK] == 0
