"""Who carries out block posts: the same contract for threads of Python, threads of the C library and io_uring."""

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from fabric.engine.nvmeof.errors import CapacityError, MediumError
from fabric.engine.nvmeof.host import Connect, ConnectionId
from fabric.engine.transport.base import Disconnected, Done, Event, Released, allocate
from fabric.engine.transport.block import BlockConfig, BlockOp, BlockPost, BlockTransport, By, Runs, core
from fabric.engine.transport.block.core import Core
from fabric.engine.transport.driver import wait
from fabric.errors import EnvironmentMissingError, LocalProtocolError
from tests.unit.engine.transport.test_block import need_core

BLOCK = 4096
BLOCKS = 4096  # 16 MiB, so that a batch over all of it is still at work when the call returns
ONE = ConnectionId(1)
CARRIERS = (By.PYTHON, By.THREADS, By.IO_URING)
Opener = Callable[..., BlockTransport]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("carriers") / "disk"
    path.write_bytes(b"".join(index.to_bytes(4, "big") * (BLOCK // 4) for index in range(BLOCKS)))
    return path


@pytest.fixture(params=CARRIERS)
def by(request: pytest.FixtureRequest, disk: Path) -> By:
    found = By(request.param)
    if found is not By.PYTHON:
        need_core()
        try:
            BlockTransport(BlockConfig(disk, by=found, read_only=True)).close()
        except EnvironmentMissingError as error:
            pytest.skip(str(error))
    return found


@pytest.fixture
def opener(disk: Path, by: By) -> Iterator[Opener]:
    made: list[BlockTransport] = []

    def make(path: Path = disk, **changes: object) -> BlockTransport:
        made.append(BlockTransport(BlockConfig(path, **{"threads": 2, "by": by, **changes})))  # type: ignore[arg-type]
        made[-1].connect(Connect(ONE, 1, 64, b"", 0), 0)
        made[-1].poll(0)
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


def runs(firsts: Iterable[int], places: Iterable[int]) -> Runs:
    """Blocks of the device, each into its place in the first arena."""
    pairs = tuple(zip(firsts, places, strict=False))
    return Runs(BLOCK, tuple(first for first, _at in pairs), tuple((0, at * BLOCK, BLOCK) for _first, at in pairs))


def numbers(memory: memoryview) -> list[int]:
    """The number of each block in memory."""
    return [int.from_bytes(memory[at : at + 4], "big") for at in range(0, memory.nbytes, BLOCK)]


@pytest.mark.parametrize("direct", [True, False])
def test_a_post_of_many_ranges_ends_once_with_each_in_its_place(opener: Opener, by: By, direct: bool) -> None:
    one = opener(direct=direct)
    assert one.by is by
    arena = one.register(allocate(BLOCKS * BLOCK))
    order = list(range(BLOCKS))
    random.Random(5).shuffle(order)  # noqa: S311  # an order that is no order
    posts = [
        BlockPost(ONE, tag, BlockOp.READ, runs=runs(order[at : at + 100], range(at, BLOCKS)))
        for tag, at in enumerate(range(0, BLOCKS, 100))
    ]

    one.post(posts, 0)

    assert sorted(collect(one, len(posts))) == [Done(ONE, tag) for tag in range(len(posts))]
    assert numbers(arena.view) == order


def test_what_is_written_in_many_ranges_is_read_back(opener: Opener, tmp_path: Path) -> None:
    path = tmp_path / "written"
    path.write_bytes(bytes(64 * BLOCK))
    one = opener(path)
    arena = one.register(allocate(64 * BLOCK))
    for at in range(64):
        arena.view[at * BLOCK] = at + 1

    for tag, op in enumerate((BlockOp.WRITE, BlockOp.WRITE_DURABLE)):
        one.post([BlockPost(ONE, tag, op, runs=runs(range(63 - tag, -1, -2), range(tag, 64, 2)))], 0)
        assert collect(one, 1) == [Done(ONE, tag)]
    one.post([BlockPost(ONE, 9, BlockOp.FLUSH)], 0)
    assert collect(one, 1) == [Done(ONE, 9)]

    assert [path.read_bytes()[at * BLOCK] for at in range(64)] == list(range(64, 0, -1))


def test_one_bad_range_is_refused_with_its_batch(opener: Opener) -> None:
    one = opener()
    arena = one.register(allocate(4 * BLOCK))
    good = (0, 0, BLOCK)
    for first, view in (
        (BLOCKS, good),
        (-1, good),
        (1 << 63, good),
        (0, (0, 0, 100)),
        (0, (0, 0, 0)),
        (0, (0, 4 * BLOCK, BLOCK)),
        (0, (0, -BLOCK, BLOCK)),
        (0, (0, 0, 8 * BLOCK)),
        (0, (1, 0, BLOCK)),
    ):
        bad = Runs(BLOCK, (0, first), (good, view))
        fine = BlockPost(ONE, 1, BlockOp.READ, 0, arena.region(0, BLOCK))
        with pytest.raises(LocalProtocolError):
            one.post([fine, BlockPost(ONE, 2, BlockOp.READ, runs=bad)], 0)
    with pytest.raises(LocalProtocolError, match="alignment"):
        one.post([BlockPost(ONE, 1, BlockOp.READ, runs=Runs(100, (1,), (good,)))], 0)
    assert one.poll(0) == []


def test_late_posts_are_held_until_nothing_writes_to_their_memory(opener: Opener) -> None:
    one = opener(threads=1, depth=2)
    arena = one.register(allocate(BLOCKS * BLOCK))
    tags = range(64)
    step = BLOCKS // 64

    def part(tag: int) -> range:
        return range(tag * step, (tag + 1) * step)

    one.post([BlockPost(ONE, tag, BlockOp.READ, deadline_ns=100, runs=runs(part(tag), part(tag))) for tag in tags], 0)
    seen = one.poll(100)  # 4096 reads of 4 KiB, and nobody has waited for one
    held = {event.tag for event in seen if isinstance(event, Done) and event.held}
    assert held
    assert one.next_timer_ns() is None
    seen += collect(one, len(held), 200)

    assert sorted(event.tag for event in seen if isinstance(event, Done)) == list(tags)
    assert {event.tag for event in seen if isinstance(event, Released)} == held
    before = bytes(arena.view)
    one.close()
    assert arena.view == before
    for tag in set(tags) - held:
        assert numbers(arena.view[tag * step * BLOCK : (tag + 1) * step * BLOCK]) == [
            *range(tag * step, (tag + 1) * step)
        ]


def test_a_connection_is_gone_when_none_of_its_ranges_is_in_flight(opener: Opener) -> None:
    one = opener(threads=1, depth=2)
    arena = one.register(allocate(BLOCKS * BLOCK))
    one.post([BlockPost(ONE, 1, BlockOp.READ, runs=runs(range(BLOCKS), range(BLOCKS)))], 0)

    one.disconnect(ONE, 0)

    assert collect(one, 1) == [Disconnected(ONE, "taken down")]
    before = bytes(arena.view)
    one.close()
    assert arena.view == before


def test_closing_leaves_nothing_in_flight_and_no_descriptor(disk: Path, by: By) -> None:
    def descriptors() -> list[str]:
        return sorted(str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())

    before = descriptors()
    for depth in (1, 64):
        one = BlockTransport(BlockConfig(disk, by=by, depth=depth))
        one.connect(Connect(ONE, 1, 64, b"", 0), 0)
        arena = one.register(allocate(BLOCKS * BLOCK))
        one.post([BlockPost(ONE, tag, BlockOp.READ, runs=runs(range(BLOCKS), range(BLOCKS))) for tag in range(4)], 0)
        one.close()
        found = bytes(arena.view)
        assert arena.view == found
    assert len(descriptors()) <= len(before)


def test_errors_of_the_kernel_say_who_must_act(opener: Opener, tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(8 * BLOCK))
    one = opener(path, direct=False)
    one.register(allocate(8 * BLOCK))
    os.truncate(path, 2 * BLOCK)
    one.post([BlockPost(ONE, 1, BlockOp.READ, runs=runs(range(8), range(8)))], 0)
    (done,) = collect(one, 1)
    assert isinstance(done, Done)
    assert isinstance(done.error, MediumError)

    full = opener(read_only=True)
    arena = full.register(allocate(BLOCK))
    full.post([BlockPost(ONE, 1, BlockOp.WRITE, 0, arena.region(0, BLOCK))], 0)
    (done,) = collect(full, 1)
    assert isinstance(done, Done)
    assert done.error is not None
    assert not isinstance(done.error, CapacityError | MediumError)


def test_memory_off_the_alignment_is_the_callers_error(opener: Opener) -> None:
    one = opener()
    memory = allocate(2 * BLOCK)
    arena = one.register(memory[8 : 8 + BLOCK])
    one.post([BlockPost(ONE, 1, BlockOp.READ, 0, arena.region(0, BLOCK))], 0)
    (done,) = collect(one, 1)
    assert isinstance(done, Done)
    if done.error is not None:  # a file system may copy where a device would refuse
        assert isinstance(done.error, LocalProtocolError)
    else:
        assert memory[8 : 8 + BLOCK].tobytes() == bytes(BLOCK)


def test_posts_go_on_coming_while_others_fly(opener: Opener) -> None:
    one = opener(depth=4)
    arena = one.register(allocate(64 * BLOCK))
    rng = random.Random(7)  # noqa: S311  # the same each time
    tags = itertools.count()
    flying: dict[int, tuple[int, int]] = {}
    free = list(range(64))
    ended = 0
    while ended < 3000:
        batch = []
        while free and rng.random() < 0.9:
            at, of, tag = free.pop(rng.randrange(len(free))), rng.randrange(BLOCKS), next(tags)
            flying[tag] = at, of
            batch.append(BlockPost(ONE, tag, BlockOp.READ, of * BLOCK, arena.region(at * BLOCK, BLOCK)))
        one.post(batch, 0)
        if not free:
            wait([one.fileno()], 10_000_000_000)
        for event in one.poll(0):
            assert isinstance(event, Done)
            assert event.error is None
            at, of = flying.pop(event.tag)
            assert numbers(arena.view[at * BLOCK : (at + 1) * BLOCK]) == [of]
            free.append(at)
            ended += 1


def test_threads_of_the_core_are_pinned_and_gone_after_close(disk: Path) -> None:
    need_core()
    cpu = min(os.sched_getaffinity(0))

    def threads() -> set[int]:
        return {int(path.name) for path in Path("/proc/self/task").iterdir()}

    before = threads()
    one = BlockTransport(BlockConfig(disk, 3, by=By.THREADS, cpus=(frozenset({cpu, 4096}),)))
    made = threads() - before
    assert len(made) == 3
    assert [os.sched_getaffinity(thread) for thread in made] == [{cpu}] * 3
    one.close()
    assert not made & threads()


def test_memory_is_read_by_threads_and_devices_by_io_uring(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_core()
    shared = Path("/dev/shm") / f"fabricctl-test-{os.getpid()}"  # noqa: S108  # tmpfs on every Linux
    shared.write_bytes(bytes(BLOCK))
    try:
        choices = []
        for path, direct in ((shared, False), (disk, False), (disk, True)):
            one = BlockTransport(BlockConfig(path, direct=direct))
            choices.append(one.by)
            one.close()
    finally:
        shared.unlink()
    assert choices[:2] == [By.THREADS, By.THREADS]
    assert choices[2] in (By.THREADS, By.IO_URING)

    class Forbidden(Core[object]):
        def __init__(self, *arguments: object, depth: int = 0, **others: object) -> None:
            if depth:
                raise EnvironmentMissingError("io_uring cannot be used")
            super().__init__(*arguments, **others)  # type: ignore[arg-type]  # goes through

    monkeypatch.setattr(core, "Core", Forbidden)
    one = BlockTransport(BlockConfig(disk))
    assert one.by is By.THREADS
    one.close()
    with pytest.raises(EnvironmentMissingError, match="io_uring"):
        BlockTransport(BlockConfig(disk, by=By.IO_URING))


def test_without_the_compiled_core_threads_of_python_do_it(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_library", lambda: None)
    one = BlockTransport(BlockConfig(disk))
    assert one.by is By.PYTHON
    one.close()
    with pytest.raises(EnvironmentMissingError, match="compiler"):
        BlockTransport(BlockConfig(disk, by=By.THREADS))


FORBIDS = """
import ctypes, struct, sys
from pathlib import Path
from fabric.engine.transport.block import BlockConfig, BlockTransport
# BPF: load the number of the call; 425 (io_uring_setup) fails with EPERM, everything else goes on
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
one = BlockTransport(BlockConfig(Path(sys.argv[1])))
print(one.by.value)
one.close()
"""


def test_where_seccomp_forbids_io_uring_threads_do_it(disk: Path) -> None:
    need_core()
    found = subprocess.run([sys.executable, "-c", FORBIDS, disk], capture_output=True, text=True, check=False)
    if "SECCOMP" in found.stderr:
        pytest.skip("no seccomp here")
    assert found.stdout == "threads\n", found.stderr


def test_an_idle_transport_does_not_wake_up(opener: Opener) -> None:
    one = opener()
    arena = one.register(allocate(BLOCK))
    one.post([BlockPost(ONE, 1, BlockOp.READ, 0, arena.region(0, BLOCK))], 0)
    collect(one, 1)
    one.poll(0)
    start_s = time.process_time()
    assert not wait([one.fileno()], 50_000_000)
    assert time.process_time() - start_s < 0.03
