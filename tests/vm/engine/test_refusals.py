"""What Linux nvmet refuses it refuses with the status that our tables know; and how a target that never answers is left.

The cases of hosts.md 7.4, each on the wire as it is.
"""

import hashlib
from typing import Any, Final

import pytest

from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.status import DNR, Status
from tests.vm.engine.bench import CLOSED, KV, RDMA_IN_CI, TWO, Bench

pytestmark = pytest.mark.vm

_NVMET: Final = f"/sys/kernel/config/nvmet/subsystems/{KV}/namespaces"


def refused(status: Status, field: str = "") -> dict[str, Any]:
    return {"status": status | DNR, "field": field}


@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_nvmet_refuses_what_our_tables_say_it_refuses(bench: Bench, transport: str) -> None:
    found = bench.run("refusals", *(bench.url(transport, nqn) for nqn in (KV, CLOSED, TWO)))

    print(f"{transport}: {found}")
    assert found["wrong subsystem"] == refused(Status.CONNECT_INVALID_PARAMETER, "SUBNQN")
    assert found["host not allowed"] == refused(Status.CONNECT_INVALID_HOST, "HOSTNQN")
    assert found["queue 3 of 2"] == refused(Status.CONNECT_INVALID_PARAMETER, "QID")
    assert found["queue 1 twice"]["status"] == Status.COMMAND_SEQUENCE_ERROR | DNR
    assert found["SGL of another length"]["status"] == Status.SGL_LENGTH_INVALID | DNR
    assert found["flush"]["status"] == Status.SUCCESS
    assert "responder_resources" in found["no_reads"]
    if transport == "rdma":
        assert found["admin queue of 33"] == CmStatus.INVALID_HOST_SQ_SIZE
        assert found["SGL of type 0"]["status"] == Status.INVALID_FIELD | DNR


@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_a_namespace_that_is_added_is_seen_and_used_and_one_that_goes_is_missed(bench: Bench, transport: str) -> None:
    with bench.talk("watch", bench.url(transport), "3") as talk:
        talk.until("open")
        bench.add_namespace(3, "/dev/ram0")
        talk.until("seen")
        bench.remove_namespace(3)
        talk.say()
        end = talk.end()

    assert end == {"before": [1], "seen": True, "gone": True, "same": True, "errors": []}


@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_a_target_that_never_answers_costs_a_queue_and_holds_memory_until_nothing_can_land(
    bench: Bench, transport: str
) -> None:
    bench.add_namespace(2, "/dev/slow")
    try:
        with bench.talk("silent", bench.url(transport, nsid=2)) as talk:
            talk.until("back")
            bench.target(
                f"cd {_NVMET}/2; echo 0 >enable; echo /dev/ram0 >device_path; echo 1 >enable"
            )  # the same namespace, from a disk that answers
            talk.say()
            end = talk.end()
    finally:
        bench.remove_namespace(2)

    print(f"{transport}: {end}")
    assert end["ended"]
    assert end["errors"] == ["EngineError"], "of the deadline, which comes before the command's own"
    assert end["held"] == 4
    assert end["refused"], "memory that may still be written to was taken again"
    assert end["settled"]
    assert not end["late"], "something wrote into memory that had been released"
    assert (end["back"], end["quarantined"], end["leaked"]) == (2, 0, 0)
    assert end["after"] == []
    page = bench.target("dd if=/dev/ram0 iflag=direct bs=4k count=1 status=none | sha256sum").split()[0]
    assert end["page"] == page
    assert page != hashlib.sha256(bytes(4096)).hexdigest(), "the disk holds nothing to compare with"
