"""A read or write of a run of blocks for each view: over a file in one transfer, over a controller in one for each."""

from pathlib import Path

import pytest

import fabric.engine
from fabric.engine.client import Engine, Read, Write
from fabric.errors import LocalProtocolError

BLOCKS = 256


@pytest.fixture(params=["file", "memory"])
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Engine:
    path = tmp_path / "disk"
    path.write_bytes(bytes(BLOCKS * 4096))
    return fabric.engine.open(f"file://{path}" if request.param == "file" else f"memory://?bytes={BLOCKS * 4096}")


def test_each_view_has_a_run_of_its_own(engine: Engine) -> None:
    with engine:
        unit = engine.namespace.namespace.block_bytes
        blocks = engine.namespace.blocks
        buffer = engine.allocate(64 * unit)
        for at in range(32):
            buffer.memory[at * unit : (at + 1) * unit] = bytes([at + 1]) * unit
        lbas = tuple((at * 37) % blocks for at in range(32))
        wrote = engine.submit([Write(lbas, tuple(buffer.view(at * unit, unit) for at in range(32)))])
        engine.wait(wrote)
        read = engine.submit([Read(lbas[::-1], tuple(buffer.view((32 + at) * unit, unit) for at in range(32)))])
        engine.wait(read)

        assert [one.result() for one in (*wrote, *read)] == [32 * unit] * 2
        assert [buffer.memory[(32 + at) * unit] for at in range(32)] == list(range(32, 0, -1))
        assert not engine.load().waiting


def test_runs_that_cannot_be_right_are_refused(engine: Engine) -> None:
    with engine:
        unit, blocks = engine.namespace.namespace.block_bytes, engine.namespace.blocks
        buffer = engine.allocate(4 * unit)
        one, two = buffer.view(0, unit), buffer.view(unit, 2 * unit)
        for lbas, views in (((0,), (one, two)), ((), ()), ((0, blocks - 1), (one, two)), ((-1, 0), (one, two))):
            with pytest.raises(LocalProtocolError):
                engine.submit([Read(lbas, views)])
        good = engine.submit([Read((blocks - 1, blocks - 2), (one, two))])
        engine.wait(good)
        assert good[0].result() == 3 * unit
