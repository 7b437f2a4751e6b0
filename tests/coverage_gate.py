"""Judges a coverage JSON file: the whole, and the parts that must be covered to the last branch. Knows only that file."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

OVERALL_PERCENT = 92.0
COMPLETE = ("fabric/diff/", "fabric/plan/", "fabric/push/transaction.py")
PRAGMA = "pragma: no cover"

Summary = Mapping[str, float]


def percent(covered: float, total: float) -> float:
    """Returns the share in percent; all of nothing is 100."""
    return 100.0 * covered / total if total else 100.0


def judge(report: Mapping[str, object], root: Path) -> list[str]:
    """Returns what is wrong, one line each; root is the checkout that the report's paths start from."""
    totals = cast("Summary", report["totals"])
    wrong = [
        f"{what} coverage {found:.2f} % is under {OVERALL_PERCENT:g} %"
        for what, found in (
            ("branch", percent(totals["covered_branches"], totals["num_branches"])),
            ("line", percent(totals["covered_lines"], totals["num_statements"])),
        )
        if found < OVERALL_PERCENT
    ]
    files = cast("Mapping[str, Mapping[str, object]]", report["files"])
    for part in COMPLETE:
        inside = [name for name in files if name.startswith(part)]
        if not inside:
            wrong.append(f"{part} was not measured")
        for name in sorted(inside):
            wrong += gaps(name, files[name])
            if PRAGMA in (root / name).read_text(encoding="utf-8"):
                wrong.append(f"{name}: `{PRAGMA}` is not allowed here")
    return wrong


def gaps(name: str, entry: Mapping[str, object]) -> list[str]:
    """Returns the lines and branches of one file that nothing ran."""
    lines = cast("list[int]", entry["missing_lines"])
    branches = cast("list[list[int]]", entry["missing_branches"])
    found = [f"{name}:{line}: not run" for line in lines]
    return found + [f"{name}:{start}: no test goes from here to line {end}" for start, end in branches]


def main(path: Path) -> int:
    """Returns the exit code and prints the figures."""
    report = json.loads(path.read_text(encoding="utf-8"))
    totals = report["totals"]
    branch = percent(totals["covered_branches"], totals["num_branches"])
    line = percent(totals["covered_lines"], totals["num_statements"])
    wrong = judge(report, Path(__file__).resolve().parent.parent)
    for text in wrong:
        print(f"coverage: {text}")
    print(f"coverage: {branch:.2f} % of branches, {line:.2f} % of lines; gate {'failed' if wrong else 'passed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
