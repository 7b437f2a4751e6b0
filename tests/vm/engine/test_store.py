"""What the engine writes to Linux nvmet is on the target's disk and comes back; the marks of its packets; discovery."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.vm.engine.bench import CLOSED, HOST_PORT, KV, RDMA_IN_CI, TARGET_PORT, TWO, Bench
from tests.vm.engine.programs.common import block

pytestmark = pytest.mark.vm

DSCP: Final = 26
_TYPES: Final = {"rdma": 1, "tcp": 3}  # NVMe-oF 1.1, TRTYPE


def on_disk(bench: Bench, length: int) -> str:
    """Returns the digest of the start of the target's RAM disk, past the page cache."""
    return bench.target(f"dd if=/dev/ram0 iflag=direct bs=64k count={length >> 16} status=none | sha256sum").split()[0]


def assert_stored(done: Mapping[str, Any], *, queues: int = 4) -> None:
    assert done["stored"]["errors"] == []
    assert done["stored"]["wrong"] == 0
    assert done["zeroed"] == {"errors": [], "zeroed": True}
    assert sorted(map(int, done["answers"])) == list(range(queues + 1))
    assert all(done["answers"][str(qid)] > 0 for qid in range(1, queues + 1)), "an I/O queue that carried nothing"


@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_what_is_written_over_four_queues_is_on_the_targets_disk_and_comes_back(bench: Bench, transport: str) -> None:
    before = bench.driven.dscp_received()

    done = bench.run("store", bench.url(transport))

    marks = bench.dscps(before)
    assert_stored(done)
    unit, size = done["stored"]["unit"], 1 << 20
    wanted = b"".join(block(number * size // unit, size, 3) for number in range(2))
    assert on_disk(bench, len(wanted)) == hashlib.sha256(wanted).hexdigest()
    offered = [tuple(one) for one in done["offered"]]
    assert {(KV, _TYPES[transport]), (TWO, _TYPES[transport])} <= set(offered)
    assert CLOSED not in [nqn for nqn, _ in offered], "a subsystem that is closed to this host"
    print(f"{transport}: IP frames by DSCP from the host {marks[HOST_PORT]}, from the target {marks[TARGET_PORT]}")
    assert set(marks[HOST_PORT]) == {DSCP}
    unmarked = marks[TARGET_PORT].pop(0, 0)
    # nvmet-tcp marks as the host does once it has accepted a connection: of each some frames go before that
    assert unmarked <= (6 * 3 if transport == "tcp" else 0)
    assert set(marks[TARGET_PORT]) == {DSCP}
    assert min(marks[HOST_PORT][DSCP], marks[TARGET_PORT][DSCP]) > 500


@pytest.mark.parametrize(
    "digests",
    [
        pytest.param(("header",), marks=pytest.mark.bar),
        pytest.param(("data",), marks=pytest.mark.bar),
        ("header", "data"),
    ],
    ids="-".join,
)
def test_digests_of_nvme_tcp_are_those_of_linux(bench: Bench, digests: tuple[str, ...]) -> None:
    assert_stored(bench.run("store", bench.url("tcp"), *digests))
