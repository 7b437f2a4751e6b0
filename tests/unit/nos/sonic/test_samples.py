"""What the sample configurations are known to do (samples/SOURCES.md), read from the facts there where they are plain."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fabric.nos.sonic import SONIC
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    BufferModel,
    DeviceQos,
    PfcMode,
    PortQos,
    PortWatchdog,
    SchedulerKind,
    Threshold,
    Trust,
)

pytestmark = pytest.mark.reference


@cache
def _facts_of(path: Path) -> dict[str, Any]:
    sections = re.findall(r"### `sonic/configs/(\S+)`.*?```json\n(.*?)```", path.read_text(), re.DOTALL)
    return {name: json.loads(text) for name, text in sections}


@pytest.fixture
def facts(reference: Path) -> Callable[[str], Any]:
    return lambda name: _facts_of(reference / "samples" / "SOURCES.md")[name]


@pytest.fixture
def sample(reference: Path) -> Callable[[str], DeviceQos]:
    return lambda name: SONIC.parse((reference / "samples" / "sonic" / "configs" / name).read_text())


def _curve(port: PortQos, queue: int) -> Aqm:
    found = port.queue(queue)
    assert found is not None
    assert isinstance(found.aqm, Aqm)
    return found.aqm


def _tc(port: PortQos, dscp: int) -> int | None:
    assert isinstance(port.dscp_to_tc, tuple)
    return port.dscp_to_tc[dscp]


def _bound(qos: DeviceQos) -> list[PortQos]:
    return [port for port in qos.ports if isinstance(port.tc_to_queue, tuple) or port.pfc.mode is PfcMode.ON]


def _watched(port: PortQos) -> object:
    return port.watchdog.priorities if isinstance(port.watchdog, PortWatchdog) else frozenset()


DSCP_FACTS = [
    ("azure_dualtor_26_lossy_qos.json", "Ethernet0"),
    ("azure_t1_4600c_26_lossy_qos.json", "Ethernet0"),
    ("centec_es6428a_wred_drops_lossless_qos.json", "Ethernet1"),
    ("dell_z9264f_old_reference_format_config_db.json", "Ethernet256"),
    ("inventec_d7032_partial_maps_qos.json", "Ethernet124"),
    ("voq_chassis_partial_qos.json", "Ethernet0"),
]


@pytest.mark.parametrize(("name", "port"), DSCP_FACTS)
def test_dscps_fall_into_the_classes_of_the_facts(
    sample: Callable[[str], DeviceQos], facts: Callable[[str], Any], name: str, port: str
) -> None:
    found = sample(name).port(port)
    assert found is not None
    wanted = {int(key[4:-3]): tc for key, tc in facts(name).items() if re.fullmatch(r"dscp\d+_tc", key)}
    assert wanted
    assert {dscp: _tc(found, dscp) for dscp in wanted} == wanted
    assert found.trust is Trust.DSCP


def test_dual_tor_watches_fewer_priorities_than_it_pauses_on_uplinks(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("azure_dualtor_26_lossy_qos.json")
    uplinks = [port for port in qos.ports if port.pfc.priorities == frozenset({2, 3, 4, 6})]
    downlinks = [port for port in qos.ports if port.pfc.priorities == frozenset({3, 4})]
    assert (len(uplinks), len(downlinks)) == (8, 24)
    assert {port.name for port in uplinks} >= {"Ethernet24", "Ethernet28", "Ethernet32", "Ethernet100"}
    assert {_watched(port) for port in qos.ports} == {frozenset({3, 4})}
    assert all(_curve(port, queue).kmin == Threshold(1048576) for port in qos.ports for queue in (3, 4))
    assert all(_curve(port, queue).kmax == Threshold(2097152) for port in uplinks for queue in (2, 6))
    assert {_curve(port, 3).pmax_percent for port in qos.ports} == {5}
    assert {_curve(port, 3).kind for port in qos.ports} == {AqmKind.MARK}
    assert isinstance(qos.global_dscp_to_tc, tuple)
    assert qos.global_dscp_to_tc == downlinks[0].dscp_to_tc
    assert {group.lossless for port in qos.ports for group in port.priority_groups} == {UNKNOWN}
    # uplinks have maps of their own; class 8 of the tunnel map is no priority
    assert isinstance(uplinks[0].tc_to_queue, tuple)
    assert isinstance(downlinks[0].tc_to_queue, tuple)
    assert (uplinks[0].tc_to_queue[2], uplinks[0].tc_to_queue[6]) == (2, 6)
    assert (downlinks[0].tc_to_queue[2], downlinks[0].tc_to_queue[6]) == (1, 1)
    assert isinstance(downlinks[0].tc_to_pg, tuple)
    assert downlinks[0].tc_to_pg[2:7] == (2, 3, 4, 0, 6)


def test_t1_has_no_scheduler_on_queue_7(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("azure_t1_4600c_26_lossy_qos.json")
    assert len(_bound(qos)) == 28
    for port in _bound(qos):
        assert (port.pfc.priorities, _watched(port)) == (frozenset({3, 4}), frozenset({3, 4}))
        curve = _curve(port, 3)
        assert (curve.kmin, curve.kmax, curve.pmax_percent) == (Threshold(2000000), Threshold(10000000), 5)
        assert port.queue(7) is None
        assert isinstance(port.tc_to_pg, tuple)
        assert port.tc_to_pg[7] == 7


def test_joined_keys_and_duplicates_of_centec(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("centec_es6428a_wred_drops_lossless_qos.json")
    assert [port.name for port in qos.ports] == [f"Ethernet{number}" for number in range(1, 55)]
    assert {reference.name.rpartition("|")[2] for reference in qos.duplicates} == {"0-2", "5-7"}
    assert {(reference.kind, reference.where) for reference in qos.duplicates} == {("duplicate", "QUEUE")}
    for port in qos.ports:
        assert port.pfc.priorities == frozenset({3, 4})
        assert port.watchdog is None
        assert (port.tc_to_queue, port.tc_to_pg, port.pfc_to_queue) == (None, None, None)
        for queue in (3, 4):
            curve = _curve(port, queue)
            assert (curve.kind, curve.kmin, curve.kmax) == (AqmKind.DROP, Threshold(4095), Threshold(32760))
            assert curve.pmax_percent == 100
        for queue in (0, 1, 2, 5, 6, 7):  # the last of the two rows won: its scheduler is lost
            found = port.queue(queue)
            assert found is not None
            assert found.scheduler is None
            assert isinstance(found.aqm, Aqm)


def test_old_references_resolve_and_headroom_is_read(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("dell_z9264f_old_reference_format_config_db.json")
    assert qos.undefined == ()
    assert qos.buffer_model is BufferModel.TRADITIONAL
    assert qos.headroom_pool_bytes == 7847424
    assert len(qos.ports) == 10
    for port in qos.ports:
        assert (port.pfc.priorities, port.watchdog, port.mtu_bytes) == (frozenset({3, 4}), None, 9100)
        assert (_curve(port, 3).kmin, _curve(port, 3).kmax) == (Threshold(1048576), Threshold(2097152))
        group = port.priority_group(3)
        assert group is not None
        assert group.lossless is True
        assert group.xoff_bytes == (37024 if port.speed_mbps == 10000 else 177632)
        assert (group.xon_bytes, group.xon_offset_bytes, group.size_bytes, group.alpha_log2) == (2288, 2288, 1248, -3)
        lossless, lossy = port.queue(3), port.queue(0)
        assert lossless is not None
        assert lossy is not None
        # one egress pool for both: what tells them apart is the threshold
        assert (lossless.lossless_buffer, lossy.lossless_buffer) == (True, False)


def test_maps_that_name_some_classes_leave_the_others_open(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("inventec_d7032_partial_maps_qos.json")
    assert len(qos.ports) == 32
    for port in qos.ports:
        assert port.tc_to_queue == (0, 1, None, 3, 4, None, None, None)
        curve = _curve(port, 3)
        assert (curve.kmin, curve.kmax, curve.pmax_percent) == (Threshold(104000), Threshold(312000), 100)
        assert (port.pfc.priorities, port.watchdog) == (frozenset({3, 4}), None)


def test_flat_dump_of_a_dynamic_buffer_switch(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("msn2700_dynamic_buffer_flat_config_db.json")
    assert qos.buffer_model is BufferModel.DYNAMIC
    first, last = qos.port("Ethernet0"), qos.port("Ethernet124")
    assert first is not None
    assert last is not None
    assert (first.cable_m, last.cable_m) == (5, 40)
    assert {port.pfc.mode for port in qos.ports} == {PfcMode.OFF}
    assert {port.dscp_to_tc for port in qos.ports} == {None}
    assert first.trust is Trust.NONE
    assert first.pfc.asymmetric is False
    for index in (3, 4):
        group = first.priority_group(index)
        assert group is not None
        assert (group.lossless, group.derived_by_nos, group.xoff_bytes) == (True, True, UNKNOWN)


def test_references_that_the_text_lacks_are_named_and_unknown(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("smartswitch_dynamic_buffer_qos.json")
    assert {(reference.kind, reference.name) for reference in qos.undefined} == {
        ("DSCP_TO_TC_MAP", "AZURE"),
        ("TC_TO_QUEUE_MAP", "AZURE"),
        ("TC_TO_PRIORITY_GROUP_MAP", "AZURE"),
        ("TC_TO_PRIORITY_GROUP_MAP", "AZURE_DPC"),
        ("MAP_PFC_PRIORITY_TO_QUEUE", "AZURE"),
        ("SCHEDULER", "scheduler.0"),
        ("SCHEDULER", "scheduler.1"),
        ("WRED_PROFILE", "AZURE_LOSSLESS"),
    }
    assert qos.buffer_model is BufferModel.DYNAMIC
    assert {pool.size_bytes for pool in qos.pools if pool.name == "ingress_lossless_pool"} == {UNKNOWN}
    lossless, dpu = qos.port("Ethernet216"), qos.port("Ethernet224")
    assert lossless is not None
    assert dpu is not None
    assert (lossless.pfc.priorities, dpu.pfc.priorities) == (frozenset({3, 4}), frozenset())
    assert (lossless.dscp_to_tc, lossless.trust) == (UNKNOWN, Trust.DSCP)
    queue, group = lossless.queue(3), lossless.priority_group(3)
    assert queue is not None
    assert group is not None
    assert (queue.scheduler, queue.aqm) == (UNKNOWN, UNKNOWN)
    assert (group.lossless, group.derived_by_nos) == (True, True)


def test_dot1p_maps_that_no_port_uses(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("storage_backend_dot1p_qos.json")
    assert (qos.ports, qos.global_dscp_to_tc, qos.undefined) == ((), None, ())


def test_a_switch_without_qos_has_the_defaults(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("tor_no_qos_config_db.json")
    assert [(port.name, port.mtu_bytes) for port in qos.ports] == [
        ("Ethernet0", 9100),
        ("Ethernet4", 9100),
        ("Ethernet8", 9100),
    ]
    for port in qos.ports:
        assert (port.trust, port.dscp_to_tc, port.pfc.mode, port.watchdog) == (Trust.NONE, None, PfcMode.OFF, None)
        assert (port.queues, port.priority_groups) == ((), ())
    assert qos.device == "sonic"


def test_voq_keys_name_the_port_last(sample: Callable[[str], DeviceQos]) -> None:
    qos = sample("voq_chassis_partial_qos.json")
    with_queues = [port for port in qos.ports if port.queues]
    assert len(with_queues) == 144
    assert [port.name for port in _bound(qos)] == ["Ethernet0"]
    assert all(port.name.count("|") == 2 for port in with_queues)
    assert {_curve(port, 3).kmin for port in with_queues} == {Threshold(2000000)}
    scheduled = [port for port in with_queues if any(queue.scheduler is not None for queue in port.queues)]
    assert [port.name for port in scheduled] == ["SONIC4|asic0|Ethernet0"]
    queues = [queue.index for queue in scheduled[0].queues if queue.scheduler is not None]
    assert queues == list(range(7))


def test_case_of_priority_groups_without_headroom(reference: Path) -> None:
    # cases/02: no profile for 2000 m, and a hand-made one of size 0; read with the case's own text
    case = (reference / "cases" / "02-sonic-pfc-without-headroom.yml").read_text()
    text = case[case.index("      {") : case.index("when:")]
    qos = SONIC.parse(text)
    found = {port.name: port.priority_group(3) for port in qos.ports}
    assert {name: (group.lossless, group.xoff_bytes) for name, group in found.items() if group is not None} == {
        "Ethernet0": (True, 47104),
        "Ethernet4": (False, 0),
        "Ethernet8": (False, 0),
    }


def test_strict_scheduler_has_no_weight(reference: Path) -> None:
    qos = SONIC.parse((reference / "sonic-yang" / "sample_config_db.json").read_text())
    port = qos.port("Ethernet0")
    assert port is not None
    cnp = port.queue(6)
    assert cnp is not None
    assert cnp.scheduler is not None
    assert cnp.scheduler is not UNKNOWN
    assert (cnp.scheduler.kind, cnp.scheduler.weight) == (SchedulerKind.STRICT, None)
    assert isinstance(port.watchdog, PortWatchdog)
    assert (port.watchdog.detection_ms, port.watchdog.polling_ms) == (200, 200)
