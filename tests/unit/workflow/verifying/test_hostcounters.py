"""Counters of one host from what its tools print; what is not there is missing, with the reason."""

import json

import pytest

from fabric.errors import HostError
from fabric.host import NicFacts, RecordedExecutor
from fabric.intent.model import HostNic
from fabric.qos import UNKNOWN
from fabric.remote.ssh import ExecResult
from fabric.state import CounterSet, SourceKind
from fabric.workflow.verifying.hostcounters import Machine, rdma_place, read_machine, read_volumes, unreached

BOOT = "/proc/sys/kernel/random/boot_id"
BASE = "/sys/class/infiniband/mlx5_0"
PROGRAM_MISSING = ExecResult(127, "", "python3: not found")
FACTS = NicFacts("ens1", rdma_device="mlx5_0")


def ok(text: str) -> ExecResult:
    return ExecResult(0, text, "")


def machine(family: str = "mlx5") -> Machine:
    return Machine("gpu1", SourceKind.HOST, (HostNic("ens1", family, 100_000, 9000),))


def executor(**changed: ExecResult | None) -> RecordedExecutor:
    """Returns a host without Python for `ask`, so that each question is a command of its own."""
    values = {"ifname": "mlx5_0", "port": 1, "out_of_sequence": 7, "np_cnp_sent": 3}
    answers = {
        ("rdma", "-j", "statistic", "show"): ok(json.dumps([values])),
        ("ethtool", "-S", "ens1"): ok("NIC statistics:\n     rx_prio3_packets: 50\n     rx_crc_errors_phy: 0\n"),
        ("stat", "-L", "-c", "%i", "/sys/class/net/ens1"): ok("4711\n"),
        ("stat", "-L", "-c", "%i", BASE): ok("815\n"),
        ("grep", "-rs", "", f"{BASE}/ports/1/hw_counters"): ok(
            f"{BASE}/ports/1/hw_counters/lifespan:12\n{BASE}/ports/1/hw_counters/out_of_sequence:6\n"
        ),
    }
    for name, answer in changed.items():
        key = next(one for one in answers if name in one)
        if answer is None:
            del answers[key]
        else:
            answers[key] = answer
    return RecordedExecutor(answers, {BOOT: "3f1c9a2e-0000-4000-8000-000000000000\n"})


def read(host: RecordedExecutor, *, family: str = "mlx5", facts: NicFacts = FACTS) -> dict[str, CounterSet]:
    found = read_machine(machine(family), (facts,), host, now_ns=5)
    return {one.source.place: one for one in found.sets}


def test_rdma_and_netdev_each_with_epoch_width_and_cache() -> None:
    found = read(executor())
    rdma, netdev = found["mlx5_0/1"], found["ens1"]
    assert (rdma.value("out_of_sequence"), rdma.source.family) == (7, "mlx5")
    assert {one.name: one.bits for one in rdma.counters} == {"out_of_sequence": 32, "np_cnp_sent": 64}
    assert (rdma.epoch, netdev.epoch) == ("3f1c9a2e.815", "3f1c9a2e.4711")
    assert (rdma.cache_ns, netdev.cache_ns, rdma.at_ns) == (12_000_000, 1_000_000_000, 5)
    assert (netdev.value("rx_prio3_packets"), netdev.source.family) == (50, "netdev")


def test_without_rdma_tool_the_files_of_sysfs_serve() -> None:
    found = read(executor(rdma=None))
    assert {one.name: one.value for one in found["mlx5_0/1"].counters} == {"out_of_sequence": 6}


def test_a_driver_that_was_loaded_again_is_another_epoch() -> None:
    first = read(executor())["mlx5_0/1"].epoch
    again = executor()
    again.outputs = {**again.outputs, ("stat", "-L", "-c", "%i", BASE): ok("999\n")}
    assert read(again)["mlx5_0/1"].epoch != first


def test_what_gives_nothing_is_missing_never_zero() -> None:
    host = executor(rdma=ok("[]"), grep=ExecResult(2, "", ""), ethtool=ExecResult(1, "", "no stats available"))
    found = read_machine(machine(), (FACTS,), host, now_ns=0)
    assert found.sets == ()
    assert {str(one.source): one.why for one in found.missing} == {
        "gpu1 mlx5_0/1": "neither `rdma -j statistic` nor hw_counters shows a counter",
        "gpu1 ens1": "ethtool -S: no stats available",
    }


def test_a_netdev_without_rdma_device_is_missing_and_one_below_soft_roce_is_not_asked_for() -> None:
    bare = read_machine(machine(), (NicFacts("ens1"),), executor(), now_ns=0)
    assert [one.why for one in bare.missing] == ["there is no RDMA device on ens1"]
    soft = read_machine(
        machine("rxe"), (FACTS,), executor(ethtool=ok("NIC statistics:\n  rx_queue_0_packets: 1\n")), now_ns=0
    )
    assert soft.missing == ()
    assert [one.source.place for one in soft.sets] == ["mlx5_0/1"]


def test_a_host_without_a_boot_id_has_no_epoch_and_so_no_counters() -> None:
    host = executor()
    host.files.clear()
    with pytest.raises(HostError, match="which boot"):
        read_machine(machine(), (FACTS,), host, now_ns=0)


def test_unreached_names_each_nic_and_why() -> None:
    (one,) = unreached(machine(), "the session was lost").missing
    assert (str(one.source), one.why) == ("gpu1 ens1", "the session was lost")
    assert rdma_place(NicFacts("ens1")) == ""


def test_links_that_went_down_are_read_of_every_driver() -> None:
    host = executor()
    host.outputs = {**host.outputs, ("cat", "/sys/class/net/ens1/carrier_down_count"): ok("3\n")}
    assert read(host)["ens1"].value("carrier_down_count") == 3
    host.outputs = {**host.outputs, ("ethtool", "-S", "ens1"): ok("NIC statistics:\n")}
    assert [one.name for one in read(host, family="rxe")["ens1"].counters] == ["carrier_down_count"]


def test_frames_of_the_netdev_are_those_of_the_cable_below_soft_roce_alone() -> None:
    host = executor(ethtool=ok("NIC statistics:\n rx_packets: 9\n rx_packets_phy: 800\n"))
    place = "/sys/class/net/ens1/statistics"
    files = ok(f"{place}/rx_packets:40\n{place}/tx_packets:41\n")
    host.outputs = {**host.outputs, ("grep", "-s", "", f"{place}/rx_packets", f"{place}/tx_packets"): files}
    soft, hard = read(host, family="rxe")["ens1"], read(host)["ens1"]
    assert (soft.value("statistics.rx_packets"), soft.value("statistics.tx_packets")) == (40, 41)
    assert (hard.value("statistics.rx_packets"), hard.value("rx_packets_phy")) == (UNKNOWN, 800)


def test_counts_of_packets_alone_are_read_by_one_command_below_soft_roce() -> None:
    folder = f"{BASE}/ports/1/hw_counters"
    shown = f"{folder}/lifespan:10\n{folder}/sent_pkts:40\n{folder}/rcvd_pkts:41\n{folder}/completer_retry_err:1\n"
    host = RecordedExecutor({("grep", "-rs", "", folder): ok(shown)}, {})
    found = read_volumes(machine("rxe"), (FACTS,), host)
    assert {(str(source), name): value for (source, name), value in found.items()} == {
        ("gpu1 mlx5_0/1", "sent_pkts"): 40,
        ("gpu1 mlx5_0/1", "rcvd_pkts"): 41,
    }
    assert {key[1]: value for key, value in read_volumes(machine(), (FACTS,), executor()).items()} == {
        "rx_prio3_packets": 50
    }
