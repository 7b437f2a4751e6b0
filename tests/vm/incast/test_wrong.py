"""One wrong thing at a time: what `check --live` calls it, what an incast then suffers, and that provisioning mends it.

Each row starts from the same saved state of a provisioned lab: one host that reads from two targets through one leaf.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.vm.fabrics import Driven, Saved
from tests.vm.traffic import LOSS_COUNTERS, Reads, grown, namespaces, read_all, rxe_counters

pytestmark = [pytest.mark.vm, pytest.mark.bar]

HOST, TARGETS, LEAF = "host1", ("target1", "target2"), "leaf1"
HOST_PORT: Final = "Ethernet0"
ROCE_PRIORITY: Final = 3


@dataclass(frozen=True, slots=True)
class Suffered:
    """What an incast left behind, as differences of counters.

    Attributes:
        host, targets: Soft-RoCE's loss counters that moved, see `LOSS_COUNTERS`.
        dropped: frames that the switch dropped. marked: that it marked CE.
        pauses: PFC frames that the switch sent, by priority.
        dscps: IP frames that the switch received, by DSCP.
        queues: packets sent to the host, by queue.
    """

    reads: Reads
    host: Mapping[str, int]
    targets: Mapping[str, int]
    dropped: int
    marked: int
    pauses: Mapping[int, int]
    dscps: Mapping[int, int]
    queues: Mapping[int, int]
    path_mtu_bytes: int = 0

    @property
    def retransmitted(self) -> bool:
        """Returns whether any end saw a loss."""
        return bool(self.host or self.targets)


@pytest.fixture(scope="module")
def right(incast: Saved) -> Suffered:
    """Returns what an incast leaves behind on the right fabric."""
    return load(incast.again())


# --- load and what it leaves ----------------------------------------------------------------------------------------


def load(driven: Driven, *, seconds: float = 6) -> Suffered:
    """Returns what happened while the host read from both targets at once."""
    before, rxe_before = switch_counters(driven), {one: counters_of(driven, one) for one in (HOST, *TARGETS)}
    with driven.site.machine(HOST).login() as session:
        reads = read_all(session, namespaces(session), block="1M", depth=8, seconds=seconds)
        devinfo = driven.sh(HOST, "ibv_devinfo")
    after, rxe_after = switch_counters(driven), {one: counters_of(driven, one) for one in (HOST, *TARGETS)}
    moved = {one: grown(rxe_before[one], rxe_after[one]) for one in rxe_before}
    totals = {name: sum(moved[one].get(name, 0) for one in TARGETS) for name in LOSS_COUNTERS}
    return Suffered(
        reads,
        moved[HOST],
        {name: count for name, count in totals.items() if count},
        dropped=after["dropped"] - before["dropped"],
        marked=after["marked"] - before["marked"],
        pauses=less(after["pauses"], before["pauses"]),
        dscps=less(after["dscps"], before["dscps"]),
        queues=less(after["queues"], before["queues"]),
        path_mtu_bytes=int(devinfo.split("active_mtu:")[1].split()[0]),
    )


def counters_of(driven: Driven, machine: str) -> dict[str, int]:
    with driven.site.machine(machine).login() as session:
        return rxe_counters(session)


def switch_counters(driven: Driven) -> dict[str, Any]:
    """Returns the leaf's own truth: drops and marks of all ports, pauses sent, DSCPs received, packets to the host."""
    (ports,) = driven.site.ask("counters", switches=["leaf1"]).values()
    every = [row["counters"] for row in ports.values()]
    queues = [queue for one in every for queue in one["queues"]]
    return {
        "dropped": sum(one["dropped_packets"] for one in queues) + sum(sum(one["pg_dropped_packets"]) for one in every),
        "marked": sum(one["marked_packets"] for one in queues),
        "pauses": {priority: sum(one["pfc_tx_frames"][priority] for one in every) for priority in range(8)},
        "dscps": {dscp: sum(row["dscp_received"].get(str(dscp), 0) for row in ports.values()) for dscp in range(64)},
        "queues": {number: queue["packets"] for number, queue in enumerate(ports[HOST_PORT]["counters"]["queues"][:8])},
    }


def less(after: Mapping[int, int], before: Mapping[int, int]) -> dict[int, int]:
    return {key: after[key] - before[key] for key in after if after[key] != before[key]}


# --- one wrong thing each -------------------------------------------------------------------------------------------


def without_tos(driven: Driven) -> None:
    """The connections ask for no type of service, and the device has no default either."""
    driven.sh(
        HOST,
        "sed -i 's/ --tos=[0-9]*//' /etc/systemd/system/fabricctl-nvme-*.service\n"
        "systemctl daemon-reload\n"
        "d=/sys/kernel/config/rdma_cm/rxe_data0; [ -d $d ] || mkdir $d; echo 0 >$d/ports/1/default_roce_tos",
    )
    reconnect(driven)


def reconnect(driven: Driven) -> None:
    driven.sh(HOST, "nvme disconnect-all; systemctl restart 'fabricctl-nvme-*.service'")
    wait_for_namespaces(driven)


def wait_for_namespaces(driven: Driven, *, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    with driven.site.machine(HOST).login() as session:
        while len(namespaces(session)) < len(TARGETS):
            assert time.monotonic() < end, driven.sh(HOST, "systemctl status --no-pager 'fabricctl-nvme-*' || true")
            time.sleep(0.5)


def patch(driven: Driven, make: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    driven.patch_switch("leaf1", make(json.loads(driven.site.ask("configs")["leaf1"])))


def _pointer(*parts: str) -> str:
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in parts)


def without_dscp(driven: Driven) -> None:
    def make(config: dict[str, Any]) -> list[dict[str, Any]]:
        maps = config["DSCP_TO_TC_MAP"]
        return [{"op": "replace", "path": _pointer("DSCP_TO_TC_MAP", name, "26"), "value": "0"} for name in maps]

    patch(driven, make)


def pfc_off(driven: Driven) -> None:
    def make(config: dict[str, Any]) -> list[dict[str, Any]]:
        ports = [name for name, row in config["PORT_QOS_MAP"].items() if "pfc_enable" in row]
        return [{"op": "remove", "path": _pointer("PORT_QOS_MAP", name, "pfc_enable")} for name in ports]

    patch(driven, make)


def wrong_priority(driven: Driven) -> None:
    """The leaf keeps RoCE in class 4 and pauses priority 4; the NICs send and obey priority 3."""

    def make(config: dict[str, Any]) -> list[dict[str, Any]]:
        maps = config["DSCP_TO_TC_MAP"]
        found = [{"op": "replace", "path": _pointer("DSCP_TO_TC_MAP", name, "26"), "value": "4"} for name in maps]
        groups_of = config["TC_TO_PRIORITY_GROUP_MAP"]
        found += [
            {"op": "add", "path": _pointer("TC_TO_PRIORITY_GROUP_MAP", name, "4"), "value": "4"} for name in groups_of
        ]
        for name, row in config["PORT_QOS_MAP"].items():
            if "pfc_enable" in row:
                found.append({"op": "replace", "path": _pointer("PORT_QOS_MAP", name, "pfc_enable"), "value": "4"})
        for name, row in config["BUFFER_PG"].items():
            port, _, groups = name.partition("|")
            if groups == "3":
                found.append({"op": "remove", "path": _pointer("BUFFER_PG", name)})
                found.append({"op": "add", "path": _pointer("BUFFER_PG", f"{port}|4"), "value": row})
        return found

    patch(driven, make)


def ecn_off(driven: Driven) -> None:
    def make(config: dict[str, Any]) -> list[dict[str, Any]]:
        rows = [name for name, row in config["QUEUE"].items() if "wred_profile" in row]
        return [{"op": "remove", "path": _pointer("QUEUE", name, "wred_profile")} for name in rows]

    patch(driven, make)


def small_mtu(driven: Driven) -> None:
    driven.sh(HOST, "ip link set data0 mtu 1500")
    reconnect(driven)


def loses(one: Suffered) -> bool:
    return one.dropped > 0 and one.retransmitted


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong thing.

    Attributes:
        device: the one that is wrong, and so provisioned again.
        rules: those that name it, each FAIL.
        symptom: what the incast suffers then, in words and as a test.
    """

    name: str
    device: str
    make: Callable[[Driven], None]
    rules: frozenset[str]
    symptom: str
    shows: Callable[[Suffered, Suffered], bool]


TABLE: Final = (
    Wrong(
        "host without type of service",
        HOST,
        without_tos,
        frozenset({"nvme-connection-tos", "host-default-tos"}),
        "RoCE comes with DSCP 0, in the lossy queue: drops and retransmissions",
        lambda one, _: loses(one) and one.dscps.get(0, 0) > 100 * one.dscps.get(26, 0),
    ),
    Wrong(
        "switch map without DSCP 26",
        LEAF,
        without_dscp,
        frozenset({"dscp-maps-to-lossy-tc"}),
        "RoCE comes with DSCP 26 and goes out through the lossy queue: drops and retransmissions",
        lambda one, _: loses(one) and one.dscps[26] > 0 and one.queues.get(ROCE_PRIORITY, 0) == 0,
    ),
    Wrong(
        "PFC off",
        LEAF,
        pfc_off,
        frozenset({"pfc-not-on-data-priority"}),
        "no pause on any priority: drops and retransmissions",
        lambda one, _: loses(one) and not one.pauses,
    ),
    Wrong(
        "MTU 1500 on the host",
        HOST,
        small_mtu,
        frozenset({"host-netdev-mtu", "rdma-mtu-below-planned"}),
        "path MTU 1024: more packets for the same bytes",
        lambda one, right: one.path_mtu_bytes == 1024 and right.path_mtu_bytes == 4096,
    ),
    Wrong(
        "wrong priority",
        LEAF,
        wrong_priority,
        frozenset({"pfc-not-on-data-priority"}),
        "pauses on priority 4, which no NIC sends: drops and retransmissions",
        lambda one, _: loses(one) and set(one.pauses) == {4},
    ),
    Wrong(
        "ECN off",
        LEAF,
        ecn_off,
        frozenset({"ecn-off-on-lossless-queue"}),
        "no packet is marked although the queue builds up to pauses",
        lambda one, right: one.marked == 0 < right.marked and one.pauses.get(ROCE_PRIORITY, 0) > 0,
    ),
)


def test_right_fabric_loses_nothing_under_incast(right: Suffered) -> None:
    one = right
    print(one)
    assert one.reads.errors == 0
    assert (one.dropped, one.host, one.targets) == (0, {}, {})
    assert one.pauses.get(ROCE_PRIORITY, 0) > 0, "the incast was none: nothing had to be paused"
    assert set(one.pauses) == {ROCE_PRIORITY}
    assert one.marked > 0


@pytest.mark.parametrize("wrong", [pytest.param(one, id=one.name) for one in TABLE])
def test_wrong_thing_is_named_hurts_and_is_mended(incast: Saved, right: Suffered, wrong: Wrong) -> None:
    driven = incast.again()
    wrong.make(driven)
    checked = driven.fabricctl("check", "--live")
    assert checked.status == 1, checked.stdout + checked.stderr
    assert wrong.rules <= checked.failed_rules(), checked.failed_rules()

    suffered = load(driven)
    print(f"{wrong.name}: {wrong.symptom}\n  {suffered}")
    if "lossy" in wrong.symptom:
        ratio = right.reads.mib_s / suffered.reads.mib_s
        print(f"goodput of the same reads, lossless against lossy: {ratio:.1f}x")
    assert wrong.shows(suffered, right), suffered

    mended = driven.fabricctl("provision", "--disruptive", "--limit", wrong.device)
    assert mended.status == 0, mended.stdout + mended.stderr
    wait_for_namespaces(driven)
    again = load(driven)
    assert (again.reads.errors, again.dropped, again.host, again.targets) == (0, 0, {}, {}), again
