"""What may happen to the bytes of NVMe/TCP, at bytes all over its streams: with digests no wrong byte, whatever it is."""

import os
import random

import pytest

from fabric.engine.client import Engine, Read, Write
from fabric.errors import EngineError
from tests.unit.engine.faults.blocks import BLOCK, GARBAGE, holds, split
from tests.unit.engine.faults.plan import SECOND
from tests.unit.engine.faults.streams import KEY, Meddling, Side, Streams, streams

pytestmark = pytest.mark.no_cover  # long and alike: tracing them would double `make test`, and shows nothing new

OFFSETS = 12  # bytes that are meddled with, of each stream
COUNT = 16  # blocks of each read and write
# without digests these can change data, and only the reader's own check can tell
CHANGES = (Meddling.TURN, Meddling.LEAVE_OUT, Meddling.DOUBLE, Meddling.PUT_IN)


@pytest.fixture(scope="module", params=[True, False], ids=["digests", "no digests"])
def digests(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def lengths(*, digests: bool) -> dict[tuple[int, Side], int]:
    """How many bytes each stream has when nobody meddles."""
    with streams(None, Side.TO_HOST, 0, 0, digests=digests) as one:
        assert one.engine is not None
        _work(one, one.engine, blind=False)
        assert {kept for kept, _side in one.meddler.passed} == {0, 1}
        return dict(one.meddler.passed)


@pytest.mark.slow
@pytest.mark.parametrize("connection", [0, 1], ids=["admin", "io"])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("what", Meddling)
def test_a_meddled_stream_costs_no_wrong_byte(
    what: Meddling, side: Side, connection: int, lengths: dict[tuple[int, Side], int], *, digests: bool
) -> None:
    total = lengths[connection, side]
    source = random.Random(f"{what}{side}{connection}{digests}")  # noqa: S311, repeatable on purpose
    for at in sorted({0, 1, 7, 8, total - 1, *(source.randrange(total) for _ in range(OFFSETS))}):
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208, a count
        with streams(what, side, connection, at, digests=digests) as one:
            if one.engine is None:
                assert isinstance(one.error, EngineError), f"{what} at {at}"
            else:
                blind = what in CHANGES and not digests
                for healed in (False, False, one.meddler.struck):  # a byte too many is noticed with what follows it
                    _work(one, one.engine, blind=blind, healed=healed)
        assert len(os.listdir("/proc/self/fd")) == before, "descriptors leaked"  # noqa: PTH208, a count


def _work(one: Streams, engine: Engine, *, blind: bool, healed: bool = False) -> None:
    """Writes, reads, and looks at both; `healed`: it has to work."""
    source, sink = engine.allocate(COUNT * BLOCK), engine.allocate(COUNT * BLOCK)
    version, data = one.store.begin(0, COUNT)
    source.memory[:], sink.memory[:] = data, GARBAGE * (COUNT * BLOCK)
    (written,) = engine.submit([Write(0, (source.view(),))])
    may = [set(versions) for versions in one.store.may[:COUNT]]
    reads = engine.submit([Read(0, (sink.view(0, 8 * BLOCK),)), Read(8, (sink.view(8 * BLOCK),))])
    started_ns = one.clock.now_ns

    one.until_done([written, *reads], started_ns + 25 * SECOND)

    for future in (written, *reads):
        assert (future.done, future.settled) == (True, True), "it hangs"
        assert not healed or future.error is None, f"{future.error!r}"
    if written.error is None:
        one.store.done(0, COUNT, version)
    else:
        one.store.failed(0, COUNT)
    for at, future in enumerate(reads):
        if future.error is None and not blind:
            for lba, found in enumerate(split(sink.memory[at * 8 * BLOCK : (at + 1) * 8 * BLOCK]), at * 8):
                assert holds(found, lba, may[lba]), f"block {lba} of {may[lba]}: {bytes(found[:16]).hex()}"
    if not blind:
        assert not one.store.wrong(one.storage.disks[KEY])
    else:
        for lba in range(COUNT):
            one.store.may[lba].add(version)
    load = engine.load()
    assert (load.requests, load.draining, load.waiting, sum(queue.bytes for queue in load.queues)) == (0, 0, 0, 0)
    assert not engine.quarantined
