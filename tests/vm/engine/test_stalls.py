"""Callers that stall for longer than a target listens, and a device that is taken away under load."""

import time
from typing import Final

import pytest

from tests.vm.engine.bench import RDMA_IN_CI, Bench

pytestmark = pytest.mark.vm

KATO_MS: Final = 5_000
STALL_S: Final = 12


@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_a_keep_alive_that_expires_in_a_stall_costs_a_reconnect_and_no_byte(bench: Bench, transport: str) -> None:
    with bench.talk("load", bench.url(transport), str(KATO_MS)) as talk:
        talk.until("loaded")
        talk.say(f"stall {STALL_S}")
        talk.until("lost")
        talk.until("back")
        talk.say("stop")
        end = talk.end()

    print(f"{transport}: {end}")
    assert (end["errors"], end["wrong"], end["quarantined"], end["leaked"]) == ([], 0, 0, 0)
    assert bench.target("dmesg | grep -c 'keep-alive timer .* expired'") != "0"


@pytest.mark.bar  # in CI, tests/unit/engine has the thread, and the stall above its end
@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_the_keep_alive_thread_keeps_the_controller_through_the_same_stall(bench: Bench, transport: str) -> None:
    created = "dmesg | grep -c 'nvmet: creating nvm controller'"
    with bench.talk("load", bench.url(transport), str(KATO_MS), "thread") as talk:
        talk.until("loaded")
        before = bench.target(created)
        talk.say(f"stall {STALL_S}")
        talk.until("stalled")
        talk.say("stop")
        end = talk.end()

    assert (end["errors"], end["wrong"], end["quarantined"], end["leaked"]) == ([], 0, 0, 0)
    assert end["longest_s"] > STALL_S - 1
    assert bench.target(created) == before


def test_a_device_that_is_removed_under_load_ends_everything_at_once_and_says_so(bench: Bench) -> None:
    with bench.talk("load", bench.url("rdma"), str(KATO_MS)) as talk:
        talk.until("loaded")
        began = time.monotonic()
        bench.host("rdma link delete rxe0")
        took_s = time.monotonic() - began
        end = talk.end()
    bench.host("rdma link add rxe0 type rxe netdev data0")

    print(f"rdma link delete returned after {took_s:.1f} s; {end}")
    assert end["lost"] == "ControllerLostError"
    assert set(end["errors"]) <= {"ControllerLostError"}  # none where all that were open had just ended
    assert end["refused"] in {"", "ControllerLostError", "EnvironmentMissingError"}
    assert (end["wrong"], end["quarantined"], end["unsettled_at_end"]) == (0, 0, 0)
