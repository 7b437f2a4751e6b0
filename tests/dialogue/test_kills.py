"""A few seeded kills of a real `fabricctl provision`; sixty are bar 06_2."""

import os
from concurrent.futures import ThreadPoolExecutor

from tests.faults.keys import few_host_keys
from tests.kills import killed, reference

KILLS = int(os.environ.get("KILLS", "5"))
SEED = int(os.environ.get("KILL_SEED", "0"))


def test_a_run_that_is_killed_is_taken_back_or_brought_to_its_end() -> None:
    with few_host_keys(), ThreadPoolExecutor(4) as pool:
        ends = reference()
        kills = list(pool.map(lambda number: killed(number, SEED, ends), range(KILLS)))

    assert [str(one) for one in kills if one.wrong] == []
