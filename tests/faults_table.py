"""`python -m tests.faults_table`: every fault of the lab at every step of the transaction, for every session.

Writes docs/evidence/fault-table-DATE.md and prints the figure last; exits 1 if a device ended wrong or was told wrongly.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tests.faults.document import Done, document, figure
from tests.faults.keys import few_host_keys
from tests.faults.memory import MemoryRow, memory_rows, run_memory_row, why_not_in_memory
from tests.faults.rows import EVERY, Row, all_rows, run_row, why_not
from tests.faults.steering import why_unreached
from tests.faults.subjects import BY_NAME

__all__ = ("AnyRow", "done", "every_row", "main")

ROOT: Final = Path(__file__).resolve().parent.parent
AnyRow = Row | MemoryRow
_BATCH: Final = 150


def every_row() -> tuple[AnyRow, ...]:
    """Returns the cross product of all subjects."""
    return (*all_rows(), *memory_rows())


def done(row: AnyRow) -> Done:
    """Returns a row with what its runs came to."""
    if isinstance(row, MemoryRow):
        why, runs = why_not_in_memory(row), run_memory_row(row)
    elif why := why_unreached(BY_NAME[row.subject], row.state):
        return Done(row.subject, row.state.value, row.kind.value, why_not=why)
    else:
        why, runs = why_not(row), run_row(row)  # type: ignore[assignment]
    told = tuple(
        (
            "all" if run.position == EVERY else str(run.position),
            run.ended,
            run.said + (", then as before by its commands" if run.played and not run.wrong else ""),
            run.later,
            run.wrong,
        )
        for run in runs
    )
    return Done(row.subject, row.state.value, row.kind.value, told, why)


def _batch(rows: Sequence[AnyRow], threads: int) -> list[Done]:
    with few_host_keys(), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(done, rows))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the rows, writes the table, prints the figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults_table", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / f"docs/evidence/fault-table-{datetime.now(UTC):%Y-%m-%d}.md")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--threads", type=int, default=24, help="rows at a time in each: most of a row is waiting")
    parser.add_argument("--subjects", nargs="*", help="only these sessions; then nothing is written")
    given = parser.parse_args(argv)
    rows = [row for row in every_row() if not given.subjects or row.subject in given.subjects]
    results: list[Done] = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        batches = [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]
        for found in pool.map(_batch, batches, [given.threads] * len(batches)):
            results += found
            for one in found:
                for wrong in one.wrong:
                    print(wrong, flush=True)
            print(f"{len(results)} of {len(rows)} rows", file=sys.stderr, flush=True)
    if not given.subjects:
        given.out.write_text(document(results))
    print(figure(results))
    return 1 if any(one.wrong for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
