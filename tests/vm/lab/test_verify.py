"""`fabricctl verify` on a provisioned lab: a clean fabric passes, and what is planted is found where it is, by its cause."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from fabric.qos import UNKNOWN
from fabric.verify import Grade, VerdictStatus
from tests.vm.fabrics import Driven, Ran
from tests.vm.incast.test_wrong import pfc_off, without_dscp
from tests.vm.lab.conftest import Provisioned
from tests.vm.verifying import Planted, Running, UnderLoad, caused, running

pytestmark = pytest.mark.vm

HOST_PORT, TARGET_PORT = "Ethernet0", "Ethernet16"
PACKETS: Final = int(os.environ.get("VERIFY_PACKETS", "20000"))  # the bar asks for ten times as many
_LOAD: Final = """\
span: 8MiB
phases:
  - {name: mixed, pattern: all, size: 64KiB, readers: 4, write_percent: 30, seconds: 6}
"""
_INCAST: Final = """\
span: 32MiB
phases:
  - {name: incast, pattern: all, size: 256KiB, readers: 8, write_percent: 100, seconds: 10}
"""
_PROVE: Final = """\
span: 16MiB
phases:
  - {name: incast, pattern: all, size: 256KiB, readers: 8, seconds: 20}
"""


@pytest.fixture(scope="module", name="lab")
def _lab(provisioned: Provisioned) -> Driven:
    """Returns the lab as it was provisioned, whatever other tests did to it."""
    driven = provisioned.saved.again()
    (driven.folder / "prove.yml").write_text(_PROVE)
    return driven


@contextmanager
def alone(driven: Driven, provisioned: Provisioned, load: str = _LOAD) -> Iterator[Running]:
    """Yields sessions to a lab on which nobody else sends: the kernel's connections are ended."""
    for host in ("host1", "host2"):
        driven.sh(host, "systemctl stop 'fabricctl-nvme-*'; nvme disconnect-all")
    with running(driven, provisioned.run, load) as made:
        yield made


@pytest.fixture(scope="module", name="sessions")
def _sessions(lab: Driven, provisioned: Provisioned) -> Iterator[Running]:
    with alone(lab, provisioned) as made:
        yield made


def told(ran: Ran) -> str:
    return ran.stdout[-6000:] + ran.stderr[-6000:]


@pytest.mark.bar  # in CI, the loop verifies a clean fabric twice
def test_a_clean_fabric_passes_with_n_and_its_bound(lab: Driven) -> None:
    begin = time.monotonic()
    done = lab.fabricctl("verify", "--profile", "pairwise", "--seconds", "5", "--scratch", "target1")
    assert done.status == 0, told(done)
    verdict = done.document["verdict"]
    assert verdict["status"] == "pass"
    assert verdict["packets"] > 1000
    assert verdict["bound_95"] == pytest.approx(3 / verdict["packets"], rel=0.01)
    assert {one["status"] for one in verdict["per_device"]} == {"pass"}
    took = time.monotonic() - begin
    print(f"clean: n = {verdict['packets']}, grade {verdict['grade']}, {took:.0f} s; {verdict['unobservable']}")


def test_one_dropped_packet_of_many_is_found(lab: Driven, provisioned: Provisioned) -> None:
    begin = time.monotonic()
    words = ("--profile", str(lab.folder / "prove.yml"), "--scratch", "target1", "--checked", provisioned.run)
    done = lab.fabricctl("verify", *words, "--prove", "--packets", str(PACKETS))
    assert done.status == 0, told(done)
    verdict, proof = done.document["verdict"], done.document["proof"]
    assert proof["dropped"] == 1
    assert proof["place"] == f"leaf1/{TARGET_PORT}"
    assert proof["is_found"]
    assert proof["is_located"]
    assert verdict["packets"] >= PACKETS
    bound = verdict["bound_95"]
    print(
        f"1 of n = {verdict['packets']} found, lost {verdict['lost']}, {time.monotonic() - begin:.0f} s, <= {bound:.3g}"
    )


def test_a_clean_fabric_passes_each_time(sessions: Running) -> None:
    for _ in range(int(os.environ.get("VERIFY_CLEAN", "2"))):
        verdict = sessions.verdict()
        assert verdict.status is VerdictStatus.PASS, (verdict.findings, verdict.invalid)
        assert verdict.lost == 0


@pytest.mark.parametrize(
    ("packet", "port", "nth"),
    [
        ("send", HOST_PORT, 50),
        ("write", TARGET_PORT, 200),
        ("read-request", TARGET_PORT, 20),
        ("read-response", HOST_PORT, 100),
        ("ack", HOST_PORT, 50),
    ],
)
def test_the_nth_packet_of_each_kind_is_missed_where_it_was_lost(
    sessions: Running, packet: str, port: str, nth: int
) -> None:
    fault = {"kind": "drop", "switch": "leaf1", "port": port, "packet": packet, "nth": nth}
    drill = Planted(sessions.driven.site, fault)
    verdict = sessions.verdict(drill)
    assert drill.struck == 1
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.lost == 1
    assert caused(verdict, "loss-on-cable", f"leaf1/{port}"), verdict.findings


def test_one_in_a_thousand_is_counted(sessions: Running) -> None:
    fault: dict[str, Any] = {"kind": "drop", "switch": "leaf1", "port": TARGET_PORT, "packet": "roce"}
    drill = Planted(sessions.driven.site, {**fault, "nth": 1000, "every": True})
    verdict = sessions.verdict(drill)
    assert drill.struck >= 2
    assert verdict.status is VerdictStatus.FAIL
    assert verdict.lost == drill.struck
    assert caused(verdict, "loss-on-cable", f"leaf1/{TARGET_PORT}"), verdict.findings


def test_bytes_that_change_under_right_checksums_are_found_by_the_payload(sessions: Running) -> None:
    fault = {"kind": "corrupt", "switch": "leaf1", "port": TARGET_PORT, "packet": "write", "nth": 100}
    drill = Planted(sessions.driven.site, fault)
    verdict = sessions.verdict(drill)
    assert drill.struck == 1
    assert verdict.status is VerdictStatus.FAIL
    assert caused(verdict, "payload-corrupted", f"leaf1/{TARGET_PORT}"), verdict.findings


def test_a_port_that_flaps_is_named(sessions: Running) -> None:
    site = sessions.driven.site

    def flap() -> None:
        for _ in range(5):  # all the load long: one flap of a slow machine may lose in one direction alone, or nothing
            time.sleep(1.0)
            number = site.ask("fault-add", kind="down", switch="leaf1", port=TARGET_PORT)
            time.sleep(0.4)
            site.ask("fault-remove", number=number)

    verdict = sessions.verdict(UnderLoad(flap, at="verify.load.started"))
    assert verdict.status is VerdictStatus.FAIL
    assert caused(verdict, "link-flap", f"leaf1/{TARGET_PORT}"), verdict.findings


def test_a_watchdog_that_trips_is_named(sessions: Running) -> None:
    site = sessions.driven.site

    def storm() -> None:
        site.ask("fault-add", kind="storm", switch="leaf1", port=HOST_PORT, priority=3, duration_ms=3000)

    verdict = sessions.verdict(UnderLoad(storm))
    assert verdict.status is VerdictStatus.FAIL
    assert caused(verdict, "watchdog-tripped", f"leaf1/{HOST_PORT}"), verdict.findings


def test_a_switch_that_gives_no_counters_lowers_the_grade_and_is_listed(sessions: Running) -> None:
    setting = sessions.setting
    access = {**setting.asked.loaded.access}
    access["leaf1"] = replace(access["leaf1"], port=1)
    blind = replace(setting.collector, loaded=replace(setting.asked.loaded, access=access))
    verdict = Running(sessions.driven, replace(setting, collector=blind), sessions.hearers).verdict()
    assert verdict.status is VerdictStatus.PASS
    assert verdict.grade is not Grade.A
    assert any(one.startswith("leaf1") for one in verdict.unobservable)
    assert verdict.packets is not UNKNOWN


def test_a_host_that_reboots_under_the_load_voids_the_run(sessions: Running) -> None:
    verdict = sessions.verdict(UnderLoad(lambda: sessions.driven.site.reboot("host2")))
    assert verdict.status is VerdictStatus.INVALID
    assert any("host2" in one and "began anew" in one for one in verdict.invalid), verdict.invalid


def test_counters_that_begin_anew_void_the_run(provisioned: Provisioned) -> None:
    """In a lab of its own: Linux's target does not listen on a device that is made anew."""
    driven = provisioned.saved.again()

    def again() -> None:
        driven.sh("target1", "rdma link delete rxe_data0; rdma link add rxe_data0 type rxe netdev data0")

    with alone(driven, provisioned) as sessions:
        verdict = sessions.verdict(UnderLoad(again))
    assert verdict.status is VerdictStatus.INVALID
    assert any("target1" in one and "began anew" in one for one in verdict.invalid), verdict.invalid


def test_an_incast_on_the_right_switch_pauses_and_loses_nothing(provisioned: Provisioned) -> None:
    """Both hosts write to the one target; tests/vm/incast has one host that reads from two."""
    with alone(provisioned.saved.again(), provisioned, _INCAST) as sessions:
        verdict = sessions.verdict()
    assert verdict.status is VerdictStatus.PASS, (verdict.findings, verdict.invalid)
    assert verdict.lost == 0
    assert any(one.startswith("pause-sent: ") for one in verdict.notes), "the incast was none: nothing was paused"
    assert verdict.victims == ()  # both are paused for the port that they congest; this switch counts no marks


@pytest.mark.parametrize(
    ("break_it", "cause"), [(pfc_off, "pfc-off"), (without_dscp, "dscp-misclassified")], ids=["pfc-off", "dscp"]
)
def test_what_is_wrong_with_a_switch_is_named_under_an_incast(
    provisioned: Provisioned, break_it: Callable[[Driven], None], cause: str
) -> None:
    driven = provisioned.saved.again()
    break_it(driven)
    with alone(driven, provisioned, _INCAST) as sessions:
        verdict = sessions.verdict()
    assert verdict.status is VerdictStatus.FAIL
    found = [one for one in verdict.findings if one.status is VerdictStatus.FAIL]
    assert cause in {one.cause for one in found}
    assert {one.device for one in found if one.cause == cause} == {"leaf1"}
