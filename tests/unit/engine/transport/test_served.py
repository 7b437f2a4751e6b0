"""What stands behind a target's wire: storage, the arithmetic of a shape, the rules of faults, commands beyond MDTS."""

import os
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from fabric.engine.nvmeof.host import Failed, Lost, Read
from fabric.engine.nvmeof.target import StorageFlush, StorageRead, StorageWrite, StorageZero, TaskId
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.transport.faults import Fault, FaultKind, FaultScript
from fabric.engine.transport.shape import Latency, Shape, Shaper
from fabric.engine.transport.storage import FileStorage, RamStorage, Storage, StorageWork, perform
from fabric.errors import LocalProtocolError
from tests.unit.engine.transport.rig import KEY, World

Make = Callable[..., World]
TASK, SIZE = TaskId(1), 3 << 20


def ram(path: Path) -> Storage:
    del path
    return RamStorage({KEY: SIZE})


def file(path: Path, *, read_only: bool = False) -> FileStorage:
    (path / "disk").write_bytes(bytes(SIZE))
    return FileStorage({KEY: path / "disk"}, read_only=read_only)


def do(work: StorageWork, storage: Storage) -> bytes:
    data, status = perform(work, storage)
    assert status == 0
    return data


@pytest.mark.parametrize("kind", [ram, file])
def test_storage_keeps_what_is_written_and_zeroes_what_is_told(kind: Callable[[Path], Storage], tmp_path: Path) -> None:
    storage = kind(tmp_path)
    do(StorageWrite(TASK, *KEY, 512, b"w" * (SIZE - 512), durable=True), storage)
    do(StorageZero(TASK, *KEY, ((1024, 2 << 20), (0, 512)), discard=True), storage)
    do(StorageFlush(TASK, *KEY), storage)

    data = do(StorageRead(TASK, *KEY, 0, SIZE), storage)

    assert data == bytes(512) + b"w" * 512 + bytes(2 << 20) + b"w" * (SIZE - 1024 - (2 << 20))
    if isinstance(storage, FileStorage):
        assert (tmp_path / "disk").read_bytes() == data
        storage.close()


def test_what_a_medium_cannot_do_is_a_status(tmp_path: Path) -> None:
    storage = file(tmp_path, read_only=True)
    os.truncate(tmp_path / "disk", 512)

    assert perform(StorageRead(TASK, *KEY, 0, 1024), storage) == (b"", Status.UNRECOVERED_READ_ERROR)
    status = Status.NAMESPACE_WRITE_PROTECTED | DNR
    assert perform(StorageWrite(TASK, *KEY, 0, b"x", durable=False), storage) == (b"", status)
    storage.close()
    with pytest.raises(OSError, match="No such file"):
        FileStorage({KEY: tmp_path / "disk", ("other", 1): tmp_path / "absent"})


def test_a_namespace_without_storage_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="without storage"):
        perform(StorageRead(TASK, "other", 1, 0, 512), RamStorage({}))


def test_a_read_beyond_mdts_is_refused_by_the_target_too(make: Make) -> None:
    one = make("memory")
    one.service.max_transfer_bytes = 512

    end = one.end_of(one.host.submit(1, Read(1, 0, 2, one.arena.region(0, 1024)), 0))

    assert isinstance(end, Failed)
    assert not one.has(Lost)


def test_a_queue_serves_one_command_at_a_time_and_queues_do_not_wait_for_each_other() -> None:
    shaper = Shaper(Shape(service_ns=100, queue_bytes_per_s=1_000_000_000))

    assert [shaper.storage_done_ns(1, 50, 0) for _ in range(3)] == [150, 300, 450]
    assert shaper.storage_done_ns(2, 0, 0) == 100
    assert shaper.storage_done_ns(1, 0, 1000) == 1100
    shaper.forget(1)
    assert shaper.storage_done_ns(1, 0, 0) == 100


def test_the_link_is_shared_by_all() -> None:
    shaper = Shaper(Shape(link_bytes_per_s=1_000_000))

    assert [shaper.link_done_ns(1000, 0), shaper.link_done_ns(1000, 0)] == [1_000_000, 2_000_000]
    assert shaper.link_done_ns(1000, 10_000_000) == 11_000_000


@pytest.mark.parametrize("kind", ["fixed", "uniform", "exponential", "lognormal"])
def test_half_of_the_latencies_are_below_the_median_and_a_seed_repeats(
    kind: Literal["fixed", "uniform", "exponential", "lognormal"],
) -> None:
    latency = Latency(kind, 100_000, 0.5)
    first, again = (
        [latency.draw(source) for _ in range(4001)]
        for source in (random.Random(7), random.Random(7))  # noqa: S311
    )

    assert first == again
    assert statistics.median(first) == pytest.approx(100_000, rel=0.1)
    assert Latency(kind).draw(random.Random(7)) == 0  # noqa: S311


def test_rules_count_what_fits_them_and_the_first_that_strikes_decides() -> None:
    drop = Fault(FaultKind.DROP, opcodes=(2,), commands=(1,))
    admin = Fault(FaultKind.BREAK, queues="admin", commands=(0,))
    late = Fault(FaultKind.DELAY, queues="all", commands=(2,), delay_ns=5)
    script = FaultScript((drop, admin, late))

    assert [script.judge(2, is_io=True), script.judge(1, is_io=True)] == [None, None]
    assert script.judge(2, is_io=True) is drop  # `late` fits too and is counted
    assert script.judge(6, is_io=False) is admin
    assert [script.judge(2, is_io=True), script.judge(6, is_io=False)] == [None, None]


def test_probabilities_come_from_the_seed() -> None:
    rule = Fault(FaultKind.DROP, probability=0.3)
    runs = []
    for seed in (1, 1, 2):
        script = FaultScript((rule,), seed)
        runs.append([script.judge(2, is_io=True) is rule for _ in range(1000)])

    assert runs[0] == runs[1] != runs[2]
    assert 240 < sum(runs[0]) < 360
