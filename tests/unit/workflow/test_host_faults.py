"""A sample of the fault table of hosts and targets; all of it is committed under docs/evidence."""

import os
import re
from pathlib import Path

import pytest

from tests.faults_table_hosts import CASES, cases

EVERY = int(os.environ.get("HOST_FAULTS_EVERY", "73"))  # a prime: no step and no fault is always left out


@pytest.mark.no_cover  # long and alike
def test_each_sampled_fault_ends_as_told_and_is_brought_to_the_standard_afterwards() -> None:
    rows = tuple(cases(EVERY))
    assert [
        f"{row.case} #{row.number} {row.step} x {row.fault}: {row.said}: {row.wrong}" for row in rows if row.wrong
    ] == []
    assert {row.case for row in rows} == {one.name for one in CASES}
    assert {"committed", "rolled-back", "failed", "uncertain", "killed"} <= {row.said for row in rows}


def test_committed_table_has_every_case_and_nothing_wrong() -> None:
    tables = sorted((Path(__file__).parents[3] / "docs" / "evidence").glob("fault-table-hosts-*.md"))
    text = tables[-1].read_text(encoding="utf-8")
    assert re.search(r"^\d{4,} cases, 0 wrong: ", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [one.name for one in CASES]
    assert "**" not in text
