"""The coverage gate fails on each thing that it promises to catch."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import coverage_gate

COMPLETE_FILES = ("fabric/diff/remediation.py", "fabric/plan/planner.py", "fabric/push/transaction.py")


def report(
    *,
    branches: int = 100,
    lines: int = 100,
    measured: tuple[str, ...] = COMPLETE_FILES,
    files: Mapping[str, object] | None = None,
) -> dict[str, object]:
    covered: dict[str, object] = {name: {"missing_lines": [], "missing_branches": []} for name in measured}
    return {
        "totals": {"covered_branches": branches, "num_branches": 100, "covered_lines": lines, "num_statements": 100},
        "files": {**covered, **(files or {})},
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in COMPLETE_FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n", encoding="utf-8")
    return tmp_path


def test_covered_project_passes(root: Path) -> None:
    assert coverage_gate.judge(report(branches=92, lines=92), root) == []


def test_low_branch_coverage_is_caught_though_lines_are_full(root: Path) -> None:
    assert coverage_gate.judge(report(branches=91), root) == ["branch coverage 91.00 % is under 92 %"]


def test_low_line_coverage_is_caught(root: Path) -> None:
    assert coverage_gate.judge(report(lines=50), root) == ["line coverage 50.00 % is under 92 %"]


def test_one_branch_missing_in_a_complete_part_is_caught(root: Path) -> None:
    holes = {"fabric/plan/planner.py": {"missing_lines": [7], "missing_branches": [[6, 9]]}}
    assert coverage_gate.judge(report(files=holes), root) == [
        "fabric/plan/planner.py:7: not run",
        "fabric/plan/planner.py:6: no test goes from here to line 9",
    ]


def test_one_branch_missing_elsewhere_is_allowed(root: Path) -> None:
    holes = {"fabric/lab/front.py": {"missing_lines": [7], "missing_branches": [[6, 9]]}}
    assert coverage_gate.judge(report(files=holes), root) == []


def test_pragma_in_a_complete_part_is_caught(root: Path) -> None:
    (root / "fabric/diff/remediation.py").write_text(f"x = 1  # {coverage_gate.PRAGMA}\n", encoding="utf-8")
    assert coverage_gate.judge(report(), root) == ["fabric/diff/remediation.py: `pragma: no cover` is not allowed here"]


def test_part_that_was_not_measured_is_caught(root: Path) -> None:
    assert coverage_gate.judge(report(measured=COMPLETE_FILES[:2]), root) == [
        "fabric/push/transaction.py was not measured"
    ]
