"""`python -m tests.brownfield [-o FILE] [-j N]`: takes every sample over, writes the table, prints its last line.

Fails when a complete device was not provisioned, or a refusal is not explained.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fabric.lab.spec import NOS_NAMES
from tests.brownfield.giant import giant
from tests.brownfield.imported import imported_diff
from tests.brownfield.judge import Row, judged, subject_of
from tests.brownfield.quick import plan_for, problems_of
from tests.brownfield.samples import Sample, samples
from tests.brownfield.table import document, failures, figure
from tests.conftest import ROOT, reference_path

_GIANT = 100_000


def main() -> int:
    """Returns the exit status."""
    asked = argparse.ArgumentParser(prog="python -m tests.brownfield")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    asked.add_argument("-o", "--out", type=Path, default=ROOT / "docs" / "evidence" / f"brownfield-{today}.md")
    asked.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    options = asked.parse_args()
    found = samples(reference_path() / "samples")
    rows: list[Row] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for row in pool.map(_judged, found):
            rows.append(row)
            print(
                f"{row.sample.name}: {row.refused or f'{row.way}, {row.ready}, {row.back}'}, {row.seconds:.0f} s",
                flush=True,
            )
    giants = list(_giants())
    print(*giants, sep="\n")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(document(rows, giants), encoding="utf-8")
    failed = failures(rows)
    for name in failed:
        print(f"not as it must be: {name}")
    print(figure(rows))
    return 1 if failed or not rows or any("untouched" not in line for line in giants) else 0


def _judged(sample: Sample) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        return judged(subject_of(sample), Path(folder), imported_diff)


def _giants() -> Iterator[str]:
    for nos in NOS_NAMES:
        subject = giant(nos, _GIANT)
        started = time.process_time()
        plan_for(subject, adopt=nos == "eos")
        problems = problems_of(subject, adopt=nos == "eos")
        spent = time.process_time() - started
        what = "lines" if nos == "eos" else "rows"
        yield (
            f"{nos}: {_GIANT:,} {what} of others, some not UTF-8: planned, applied, judged and taken back in "
            f"{spent:.0f} s of CPU; {'; '.join(problems) or 'untouched'}"
        )


if __name__ == "__main__":
    sys.exit(main())
