"""Sixty seeded kills of a real `fabricctl provision`, the first few of them in `make test`; bar 06_2 draws its seed."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.keys import few_host_keys
from tests.kills import killed, reference

KILLS, SHARE = 60, 5
SEED = int(os.environ.get("KILL_SEED", "0"))


@pytest.mark.parametrize(
    "first", [pytest.param(at, marks=pytest.mark.sweep if at else ()) for at in range(0, KILLS, SHARE)]
)
def test_a_run_that_is_killed_is_taken_back_or_brought_to_its_end(first: int) -> None:
    with few_host_keys(), ThreadPoolExecutor(4) as pool:
        ends = reference()
        kills = list(pool.map(lambda number: killed(number, SEED, ends), range(first, first + SHARE)))

    assert [str(one) for one in kills if one.wrong] == []
