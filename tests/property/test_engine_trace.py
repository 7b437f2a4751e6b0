"""Whatever a faulty target does to an engine happens again from the trace; a trace that was changed is found out."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.engine.trace import TraceError, replay
from tests.unit.engine.trace.rig import Story

pytestmark = pytest.mark.no_cover  # long and alike: the unit tests show coverage

OUTPUTS = ("connect", "post", "disconnect", "end")


def recorded(folder: str, seed: int) -> Path:
    path = Path(folder) / "trace"
    Story(path, seed, 30).engine.close()
    return path


@given(st.integers(0, 2**32 - 1))
def test_a_recorded_run_happens_again(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = recorded(folder, seed)

        report = replay(path)

        assert report.same, str(report)
        assert report.lines == path.read_bytes().count(b"\n")


@given(st.integers(0, 2**32 - 1))
def test_what_the_engine_did_cannot_be_changed_unnoticed(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = recorded(folder, seed)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        dice = random.Random(seed)  # noqa: S311, repeatable
        at = dice.choice([at for at, line in enumerate(lines) if line["k"] in OUTPUTS])
        lines[at]["ns"] = lines[at].get("ns", 0) + 1
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

        report = replay(path)

        assert (report.same, report.line) == (False, at + 1)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_no_change_of_a_trace_makes_a_replay_hang_or_crash(seed: int, how: int) -> None:
    with TemporaryDirectory() as folder:
        path = recorded(folder, seed)
        lines = path.read_bytes().splitlines(keepends=True)
        dice = random.Random(how)  # noqa: S311, repeatable
        at = dice.randrange(1, len(lines))
        match dice.randrange(4):
            case 0:
                del lines[at]
            case 1:
                lines[at] = lines[dice.randrange(len(lines))]
            case 2:
                raw = bytearray(lines[at])
                raw[dice.randrange(len(raw) - 1)] = dice.choice(b"0123456789abcdef")
                lines[at] = bytes(raw)
            case _:
                del lines[at:]
                lines[-1] = lines[-1][: dice.randrange(len(lines[-1]))]
        path.write_bytes(b"".join(lines))
        try:
            report = replay(path)
        except TraceError:
            return
        assert report.line is None or report.line >= 1
        assert str(report)
