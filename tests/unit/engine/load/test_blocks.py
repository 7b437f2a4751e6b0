"""What an adapter may do wrong in memory: reads that end well and wrote less, more, or elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fabric.engine
from fabric.engine.client import Engine, Future, Read
from fabric.engine.load import FlawKind, Region, StreamResult
from fabric.engine.load.blocks import BlockStream
from fabric.engine.load.payload import GUARD_BYTES, poison_pattern
from fabric.engine.load.regions import Places
from fabric.engine.load.worker import Moment, Pacer, Shared
from fabric.errors import TransportError
from tests.unit.engine.load.rig import RUN, Disk

SIZE = 16384


class Adapter:
    """An engine whose memory is meddled with after a read has ended well, as a broken adapter would."""

    def __init__(self, engine: Engine, meddle: Callable[[memoryview, int, int], None]) -> None:
        self._engine, self._meddle = engine, meddle
        self._flying: dict[int, tuple[int, int]] = {}
        self.buffer: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def allocate(self, length: int) -> Any:
        self.buffer = self._engine.allocate(length)
        return self.buffer

    def submit(self, batch: list[Any]) -> list[Future]:
        futures = self._engine.submit(batch)
        for work, future in zip(batch, futures, strict=True):
            if isinstance(work, Read):
                (view,) = work.views
                self._flying[future.request] = view.offset, view.length
        return futures

    def step(self) -> list[Future]:
        ended = self._engine.step()
        for future in ended:
            offset, length = self._flying.pop(future.request)
            self._meddle(self.buffer.memory, offset, length)
        return ended


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Disk:
    made = Disk(tmp_path / "disk", 8 * SIZE)
    made.prepare()
    return made


def one_read(disk: Disk, meddle: Callable[[memoryview, int, int], None]) -> StreamResult:
    job = disk.job(readers=1, size_bytes=SIZE)
    now = 0

    def clock() -> int:
        nonlocal now
        now += 1000
        return now

    with fabric.engine.open(disk.stream.url, policy=disk.stream.policy) as engine:
        places = Places(engine.namespace, disk.region, SIZE, 1, is_checked=True)
        adapter: Any = Adapter(engine, meddle)
        ground = disk.grounds.of(RUN, engine.namespace)
        stream = BlockStream(disk.stream, job, adapter, ground, places, Shared(clock, Pacer(None)))
        stream.step(Moment(clock(), is_on=True, burst=None, is_counted=True))
        while not stream.is_idle:
            stream.step(Moment(clock(), is_on=False, burst=None, is_counted=True))
        # what was repaired is not told again: one more read, without meddling
        adapter._meddle = lambda _memory, _offset, _length: None
        stream.step(Moment(clock(), is_on=True, burst=None, is_counted=True))
        while not stream.is_idle:
            stream.step(Moment(clock(), is_on=False, burst=None, is_counted=True))
        return stream.result()


def test_an_adapter_that_writes_everything_has_no_flaw(disk: Disk) -> None:
    result = one_read(disk, lambda _memory, _offset, _length: None)
    assert (result.reads, result.flaw_count) == (2, 0)


@pytest.mark.parametrize("at", [-GUARD_BYTES, -1, SIZE, SIZE + GUARD_BYTES - 1])
def test_a_byte_beside_the_buffer_is_told_once_and_where(disk: Disk, at: int) -> None:
    def meddle(memory: memoryview, offset: int, length: int) -> None:
        del length
        memory[offset + at] ^= 0xFF

    result = one_read(disk, meddle)
    (flaw,) = result.flaws
    assert (flaw.kind, flaw.offset_in_sector, result.flaw_count) == (FlawKind.GUARD, at, 1)


def test_a_buffer_that_stays_as_it_was_is_unwritten(disk: Disk) -> None:
    def meddle(memory: memoryview, offset: int, length: int) -> None:
        memory[offset : offset + length] = poison_pattern(1, length)  # of the first read

    result = one_read(disk, meddle)
    assert [one.kind for one in result.flaws] == [FlawKind.UNWRITTEN] * 4
    assert [one.offset_in_sector for one in result.flaws] == [0] * 4
    assert len({one.lba for one in result.flaws}) == 4


def test_a_half_that_did_not_land_is_unwritten_from_there(disk: Disk) -> None:
    def meddle(memory: memoryview, offset: int, length: int) -> None:
        memory[offset + 6144 : offset + length] = poison_pattern(1, length)[6144:]

    flaws = one_read(disk, meddle).flaws
    assert [one.kind for one in flaws] == [FlawKind.UNWRITTEN] * 3
    assert 2048 <= flaws[0].offset_in_sector < 2048 + 8
    assert [one.offset_in_sector for one in flaws[1:]] == [0, 0]


def test_a_flipped_bit_is_wrong_and_located(disk: Disk) -> None:
    def meddle(memory: memoryview, offset: int, length: int) -> None:
        del length
        memory[offset + 4096 + 777] ^= 0x10

    (flaw,) = one_read(disk, meddle).flaws
    assert (flaw.kind, flaw.offset_in_sector) == (FlawKind.WRONG, 777)
    assert len(flaw.expected.split()) == len(flaw.found.split()) == 16


class Lost:
    """An engine that refuses everything."""

    policy = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, batch: list[Any]) -> list[Future]:
        raise TransportError("the way is lost", found=f"{len(batch)} requests")


def test_a_lost_way_ends_the_stream_and_is_counted_once(disk: Disk) -> None:
    with fabric.engine.open(disk.stream.url) as engine:
        lost: Any = Lost(engine)
        places = Places(engine.namespace, Region(0, disk.region.blocks), SIZE, 1, is_checked=True)
        ground = disk.grounds.of(RUN, engine.namespace)
        stream = BlockStream(disk.stream, disk.job(), lost, ground, places, Shared(lambda: 1, Pacer(None)))
        for _ in range(3):
            stream.step(Moment(1, is_on=True, burst=2, is_counted=True))
        result = stream.result()
    assert result.errors == (("TransportError", 1),)
    assert result.bursts_failed == 1
