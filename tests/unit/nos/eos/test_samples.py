"""Facts of SOURCES.md about configurations that nobody here wrote."""

from pathlib import Path

import pytest

from fabric.nos.eos import EOS
from fabric.nos.eos.lines import read, write
from fabric.qos import (
    UNKNOWN,
    Aqm,
    AqmKind,
    DeviceQos,
    LinkPause,
    PfcMode,
    PortQos,
    QueueQos,
    Reference,
    Scheduler,
    SchedulerKind,
    Threshold,
    ThresholdUnit,
    Trust,
)

NAMES = (
    "amd_7388_dcqcn_example",
    "avd_interfaces_pfc",
    "avd_qos_profiles",
    "spine_no_qos",
    "spine_service_profile_undefined",
)


def text_of(reference: Path, name: str) -> str:
    return (reference / "samples" / "eos" / "configs" / f"{name}.cfg").read_text()


def device(reference: Path, name: str) -> DeviceQos:
    return EOS.parse(text_of(reference, name))


def port_of(qos: DeviceQos, name: str) -> PortQos:
    port = qos.port(name)
    assert port is not None
    return port


def queue_of(port: PortQos, index: int) -> QueueQos:
    queue = port.queue(index)
    assert queue is not None
    return queue


def bound_to(text: str, profile: str) -> PortQos:
    """Returns a port bound to one profile of a configuration that binds it to none."""
    return port_of(EOS.parse(f"{text}!\ninterface Ethernet50\n   service-profile {profile}\n"), "Ethernet50")


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_a_sample_is_in_the_tree_and_in_the_text(reference: Path, name: str) -> None:
    text = text_of(reference, name)

    words = {word for path, value in EOS.tree(text).items() for word in " ".join((*path, str(value))).split()}

    assert [row.strip() for row in write(read(text)).splitlines()] == [row.strip() for row in text.splitlines()]
    for row in text.splitlines():
        if row.strip().startswith(("description", "neighbor", "ip ", "username", "10 permit")):
            assert set(row.split()) <= words


def test_amd_ports_trust_dscp_and_pause_priority_3(reference: Path) -> None:
    qos = device(reference, "amd_7388_dcqcn_example")

    assert [port.name for port in qos.ports] == ["Ethernet2/5/1", "Ethernet2/5/5"]
    for port in qos.ports:
        assert port.trust is Trust.DSCP
        assert port.pfc.active == frozenset({3})
        assert port.mtu_bytes == 9214
        assert port.speed_mbps == 200_000
        assert port.fec == "rs"
        assert port.watchdog is None


def test_amd_curve_is_in_segments_and_never_bytes(reference: Path) -> None:
    queue = queue_of(port_of(device(reference, "amd_7388_dcqcn_example"), "Ethernet2/5/1"), 3)

    segments = ThresholdUnit.SEGMENTS
    assert queue.aqm == Aqm(
        AqmKind.MARK, Threshold(2000, segments), Threshold(10_000, segments), 20, weight=0, counted=True
    )
    assert isinstance(queue.aqm, Aqm)
    assert isinstance(queue.aqm.kmin, Threshold)
    assert queue.aqm.kmin.size_bytes is UNKNOWN


def test_amd_rewrite_maps_classify_nothing_and_rewrite_nothing(reference: Path) -> None:
    qos = device(reference, "amd_7388_dcqcn_example")
    port = port_of(qos, "Ethernet2/5/1")

    assert isinstance(qos.global_dscp_to_tc, tuple)
    assert (qos.global_dscp_to_tc[26], qos.global_dscp_to_tc[48]) == (3, 6)
    assert port.rewrite is None
    assert queue_of(port, 6).scheduler == Scheduler(SchedulerKind.STRICT)


def test_interface_pfc_is_read_with_its_drop_and_no_drop_priorities(reference: Path) -> None:
    qos = device(reference, "avd_interfaces_pfc")

    found = {name: (port_of(qos, name).pfc.mode, port_of(qos, name).pfc.priorities) for name in _ETHERNETS}

    assert found == {
        "Ethernet1": (PfcMode.ON, frozenset()),
        "Ethernet2": (PfcMode.ON, frozenset({5})),
        "Ethernet3": (PfcMode.OFF, frozenset()),
        "Ethernet4": (PfcMode.ON, frozenset()),
    }


_ETHERNETS = ("Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4")


def test_an_undefined_profile_leaves_unknown_what_no_line_of_the_port_says(reference: Path) -> None:
    qos = device(reference, "avd_interfaces_pfc")
    port = port_of(qos, "Ethernet7")

    assert qos.undefined == (Reference("profile", "QoS", "Ethernet7"),)
    assert port.trust is Trust.PCP
    assert port.mtu_bytes == 7000
    assert port.pfc.active is UNKNOWN
    assert queue_of(port, 3).aqm is UNKNOWN
    assert port.watchdog is UNKNOWN


def test_a_comment_block_is_kept_out_of_the_port(reference: Path) -> None:
    tree = EOS.tree(text_of(reference, "avd_interfaces_pfc"))

    assert tree["interface Ethernet1", "comment"] == (
        "Comment created from eos_cli under ethernet_interfaces.Ethernet1",
        "EOF",
    )


def test_all_off_overrides_every_port(reference: Path) -> None:
    text = text_of(reference, "avd_qos_profiles")
    qos = EOS.parse(text)

    assert qos.pfc_disabled_globally is True
    assert {port.pfc.mode for port in qos.ports} == {PfcMode.OFF}
    port = bound_to(text, "test_with_pfc")
    assert port.pfc.priorities == frozenset({0})
    assert port.pfc.active == frozenset()


def test_profile_watchdog_is_in_milliseconds_and_watches_guaranteed_queues_only(reference: Path) -> None:
    watchdog = bound_to(text_of(reference, "avd_qos_profiles"), "test_with_pfc").watchdog

    assert watchdog is not None
    assert watchdog is not UNKNOWN
    assert (watchdog.detection_ms, watchdog.restoration_ms, watchdog.polling_ms) == (50, 1110, UNKNOWN)
    assert watchdog.action == "drop"
    assert watchdog.priorities == frozenset()  # priority 0 has no `bandwidth guaranteed`


def test_device_watchdog_polls_slower_than_it_may_and_has_no_known_action(reference: Path) -> None:
    qos = device(reference, "avd_qos_profiles")
    watchdog = port_of(qos, "Ethernet6").watchdog

    assert qos.watchdog_polling_ms == 10_001
    assert watchdog is not None
    assert watchdog is not UNKNOWN
    assert (watchdog.detection_ms, watchdog.restoration_ms) == (50, 1220)
    assert watchdog.polling_ms is UNKNOWN
    assert watchdog.action is UNKNOWN


def test_curves_keep_their_units(reference: Path) -> None:
    text = text_of(reference, "avd_qos_profiles")
    profiles, milliseconds = bound_to(text, "test"), bound_to(text, "uc_mc_queues_test")
    segments, nanoseconds = ThresholdUnit.SEGMENTS, ThresholdUnit.NANOSECONDS

    assert queue_of(profiles, 2).aqm == Aqm(
        AqmKind.MARK, Threshold(320_000), Threshold(320_000), 90, weight=0, counted=False
    )
    assert queue_of(profiles, 4).aqm == Aqm(
        AqmKind.MARK, Threshold(320, segments), Threshold(320, segments), 100, weight=10, counted=False
    )
    assert queue_of(milliseconds, 1).aqm == Aqm(
        AqmKind.MARK, Threshold(3_000_000, nanoseconds), Threshold(9_000_000, nanoseconds), 90, weight=0, counted=False
    )


def test_random_detect_drop_is_no_ecn(reference: Path) -> None:
    text = text_of(reference, "avd_qos_profiles")
    for name, marked in (("wred_queues_test", {3}), ("wred_uc_queues_test", set())):
        port = bound_to(text, name)
        kinds = {queue.index: queue.aqm.kind for queue in port.queues if isinstance(queue.aqm, Aqm)}
        assert {index for index, kind in kinds.items() if kind is AqmKind.MARK} == marked
        assert {index for index, kind in kinds.items() if kind is AqmKind.DROP} == {1, 2, 4}


def test_dscp_map_is_read_with_its_drop_precedence(reference: Path) -> None:
    classes = device(reference, "avd_qos_profiles").global_dscp_to_tc

    assert isinstance(classes, tuple)
    assert {dscp: classes[dscp] for dscp in (26, 46, 48, 0, 8)} == {26: 4, 46: 5, 48: 6, 0: 1, 8: 1}


def test_trust_comes_from_the_port_its_profile_its_channel_or_the_default(reference: Path) -> None:
    qos = device(reference, "avd_qos_profiles")

    found = {port.name: port.trust for port in qos.ports}

    assert found["Ethernet1"] is Trust.DSCP
    assert found["Ethernet6"] is Trust.PCP
    assert found["Ethernet7"] is Trust.PCP  # no trust line, switched
    assert found["Ethernet3"] is found["Ethernet4"] is Trust.PCP  # members of Port-Channel3
    assert [port.lag for port in qos.ports if port.name in {"Ethernet3", "Ethernet4"}] == ["Port-Channel3"] * 2


def test_rewrite_is_seen_where_it_is_switched_on(reference: Path) -> None:
    rewrite = port_of(device(reference, "avd_qos_profiles"), "Ethernet6").rewrite

    assert rewrite is not None
    assert rewrite is not UNKNOWN
    assert rewrite.tc_to_dscp[1] == 56


def test_a_policy_map_may_classify_otherwise(reference: Path) -> None:
    qos = device(reference, "avd_qos_profiles")

    assert port_of(qos, "Ethernet1").dscp_to_tc is UNKNOWN
    assert Reference("policy", "test_qos_policy_v1", "Ethernet6") not in qos.undefined


def test_spine_without_qos_trusts_dscp_and_pauses_nothing(reference: Path) -> None:
    qos = device(reference, "spine_no_qos")

    assert qos.device == "DC1-SPINE1"
    assert len(qos.ports) == 7
    for port in qos.ports:
        assert port.trust is Trust.DSCP
        assert port.pfc.active == frozenset()
        assert all(queue.aqm is None for queue in port.queues)
        assert port.link_pause == LinkPause(rx=False, tx=False)
        assert port.watchdog is None


def test_spine_with_an_undefined_profile_on_every_port(reference: Path) -> None:
    qos = device(reference, "spine_service_profile_undefined")

    assert qos.undefined == tuple(Reference("profile", "QOS-PROFILE", f"Ethernet{n}") for n in range(1, 9))
    for port in qos.ports:
        assert port.pfc.active is UNKNOWN
        assert port.mtu_bytes == 1500
        assert port.priority_groups == ()
