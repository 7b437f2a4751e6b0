"""What a flush said is there stays, whenever the target loses its power: real TCP, a medium with a volatile cache."""

import random

import pytest

from fabric.engine.client import Engine, Flush, Read, Settings, Write, WriteZeroes, open_engine
from fabric.engine.transport.storage import NamespaceKey, RamStorage
from fabric.errors import TransportError
from tests.unit.engine.client.rig import MIB, MS, POLICY, served
from tests.unit.engine.nvmeof.rig import NQN

PATIENCE_NS = 20_000 * MS
BLOCKS = 8  # of a record
RECORDS = 32
BYTES = BLOCKS * 512


class Cached(RamStorage):
    """Memory as a cache, and behind it the medium that power loss leaves."""

    def __init__(self) -> None:
        super().__init__({(NQN, 1): MIB})
        self.medium = bytearray(MIB)

    def write(self, key: NamespaceKey, offset: int, data: bytes, *, durable: bool) -> None:
        super().write(key, offset, data, durable=durable)
        if durable:
            self.medium[offset : offset + len(data)] = data

    def flush(self, key: NamespaceKey) -> None:
        self.medium[:] = self.disks[key]

    def lose_power(self) -> None:
        self.disks[NQN, 1][:] = self.medium


def one(engine: Engine, work: Read | Write | Flush | WriteZeroes) -> bool:
    """Does one thing; returns whether it ended well."""
    (future,) = engine.submit([work])
    assert engine.wait([future], PATIENCE_NS)
    assert engine.settle([future], PATIENCE_NS)
    assert future.error is None or isinstance(future.error, TransportError)
    return future.error is None


class Store:
    """A caller that remembers what it was told.

    Attributes:
        kept: records that have to be there, by place.
        written: records that nobody has flushed yet.
    """

    def __init__(self, engine: Engine, seed: int) -> None:
        self.kept: dict[int, bytes] = {}
        self.written: dict[int, bytes] = {}
        self._engine = engine
        self._buffer = engine.allocate(BYTES)
        self._draw = random.Random(seed)  # noqa: S311, repeatable on purpose

    def check(self) -> None:
        """Reads all that has to be there."""
        for place, record in self.kept.items():
            assert one(self._engine, Read(place * BLOCKS, (self._buffer.view(),)))
            assert self._buffer.memory == record, "a flush said more than was so"

    def flush(self) -> bool:
        """Flushes; returns whether that was told to have worked."""
        if not one(self._engine, Flush()):
            return False
        self.kept |= self.written
        self.written.clear()
        return True

    def write(self, *, through: bool) -> None:
        """Writes a record somewhere."""
        place, record = self._draw.randrange(RECORDS), self._draw.randbytes(BYTES)
        self._buffer.memory[:] = record
        self._forget(place)
        if one(self._engine, Write(place * BLOCKS, (self._buffer.view(),), fua=through)):
            (self.kept if through else self.written)[place] = record

    def zero(self) -> None:
        """Zeroes a record."""
        place = self._draw.randrange(RECORDS)
        self._forget(place)
        if one(self._engine, WriteZeroes(place * BLOCKS, BLOCKS)):
            self.written[place] = bytes(BYTES)

    def step(self) -> None:
        """Does one of these."""
        match self._draw.choice(("write", "write", "through", "flush", "zero")):
            case "flush":
                self.flush()
            case "zero":
                self.zero()
            case kind:
                self.write(through=kind == "through")

    def steps(self) -> None:
        """Does some of these."""
        for _step in range(self._draw.randrange(3, 12)):
            self.step()

    def _forget(self, place: int) -> None:
        self.kept.pop(place, None)
        self.written.pop(place, None)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_what_was_flushed_or_written_through_survives_every_power_loss(seed: int) -> None:
    storage = Cached()
    with served() as target:
        target.service.storage = storage
        engine = open_engine(target.url, policy=POLICY, settings=Settings(keep_alive_thread=bool(seed % 2)))
        store = Store(engine, seed)
        store.steps()
    for crash in range(3):
        storage.lose_power()
        with served(port=target.port) as again:
            again.service.storage = storage
            if store.written and crash % 2:
                assert not store.flush(), "what was in the cache before the power loss is gone"
                store.written.clear()
                assert store.flush() or store.flush()  # an earlier loss may not have been told yet
            store.written.clear()
            store.check()
            store.steps()
    engine.close()


def test_that_the_medium_of_this_test_forgets() -> None:
    storage = Cached()
    storage.write((NQN, 1), 0, b"a" * 512, durable=False)
    storage.write((NQN, 1), 512, b"b" * 512, durable=True)
    storage.lose_power()
    assert storage.read((NQN, 1), 0, 1024) == bytes(512) + b"b" * 512
