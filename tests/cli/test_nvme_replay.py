"""`--trace` and `fabricctl nvme replay` as a shell sees them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app

RUNNER = CliRunner()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The trace of one read."""
    path = tmp_path / "run.trace"
    done = RUNNER.invoke(app, ["nvme", "read", "memory://", "--bytes", "64KiB", "--trace", str(path)])
    assert done.exit_code == 0, done.output
    return path


def test_a_recorded_read_is_replayed(trace: Path) -> None:
    done = RUNNER.invoke(app, ["nvme", "replay", str(trace)])

    assert done.exit_code == 0
    assert done.output.startswith("same: ")


def test_a_write_is_recorded_too(tmp_path: Path) -> None:
    (tmp_path / "blocks").write_bytes(bytes(4096))
    trace = str(tmp_path / "run.trace")
    command = ["nvme", "write", "memory://", str(tmp_path / "blocks"), "--overwrite", "--trace", trace]

    assert RUNNER.invoke(app, command).exit_code == 0
    assert RUNNER.invoke(app, ["nvme", "replay", trace]).exit_code == 0


def test_a_benchmark_is_recorded_too(tmp_path: Path) -> None:
    trace = str(tmp_path / "run.trace")
    command = ["nvme", "bench", "memory://", "--size", "4k", "--seconds", "0.05", "--readers", "2", "--trace", trace]

    done = RUNNER.invoke(app, command)
    assert done.exit_code == 0, done.output
    again = RUNNER.invoke(app, ["nvme", "replay", trace])
    assert again.exit_code == 0, again.output


def test_a_difference_is_shown_with_its_line_and_ends_with_one(trace: Path) -> None:
    lines = trace.read_text().splitlines()
    at = next(at for at, line in enumerate(lines) if json.loads(line)["k"] == "post")
    lines[at] = lines[at].replace('"ns":', '"ns":1')
    trace.write_text("\n".join(lines) + "\n")

    done = RUNNER.invoke(app, ["nvme", "replay", str(trace), "--json"])

    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (found["same"], found["line"]) == (False, at + 1)
    text = RUNNER.invoke(app, ["nvme", "replay", str(trace)])
    assert (text.exit_code, f"differs at line {at + 1}" in text.output) == (1, True)


def test_what_is_no_trace_is_told(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk\n")
    assert RUNNER.invoke(app, ["nvme", "replay", str(tmp_path / "junk")]).exit_code == 2
    assert RUNNER.invoke(app, ["nvme", "replay", str(tmp_path / "none")]).exit_code == 5
