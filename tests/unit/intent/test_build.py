"""From a raw inventory to a fabric: defaults, overrides, cables, and the rules between devices."""

from dataclasses import replace

import pytest

from fabric.intent import (
    ConnectPolicy,
    DcqcnSetting,
    EcnOverride,
    Endpoint,
    EtsShare,
    Link,
    NicPolicy,
    PortRole,
    RocePolicy,
    SwitchRole,
)
from fabric.intent.devices import FABRIC_WIDE
from fabric.intent.flaws import to_problems
from fabric.intent.places import Places
from fabric.policy import Conditions, ShardPolicy, ShardProfile
from fabric.remote.ansible import RawProblem
from fabric.serial import Json
from tests.unit.intent.inventories import built, complaints, raw, small

PORT: dict[str, Json] = {"ports": "Ethernet1", "speed": "100G", "role": "host"}


def _links(*entries: dict[str, Json]) -> list[Json]:
    return [*entries, {"a": "leaf1:Ethernet2", "b": "kv1:ens1"}]


def _complaints_of_links(*entries: dict[str, Json]) -> list[str]:
    devices = small()
    for _, variables in devices.values():
        variables["fabric_links"] = list(entries)
    return complaints(raw(devices))


def test_an_inventory_without_policy_has_the_defaults() -> None:
    assert built(small()).fabric.switches[0].policy == RocePolicy()


def test_every_policy_variable_reaches_the_policy() -> None:
    devices = small()
    devices["leaf1"][1].update(
        {
            "fabric_data_dscps": [24, 26],
            "fabric_data_priority": "4",
            "fabric_cnp_dscp": 46,
            "fabric_cnp_priority": 6,
            "fabric_ecn_enabled": False,
            "fabric_ecn_kmin": "128KiB",
            "fabric_ecn_kmax": "2MB",
            "fabric_ecn_pmax_percent": 20,
            "fabric_ecn_overrides": [
                {"kmin": 1, "kmax": "1KB", "pmax_percent": 5, "speed": "400G", "role": "spine"},
                {"kmin": 1, "kmax": "1MiB", "pmax_percent": 5, "role": "leaf"},
            ],
            "fabric_watchdog_enabled": "yes",
            "fabric_watchdog_detection_ms": 300,
            "fabric_watchdog_restoration_ms": 500,
            "fabric_watchdog_polling_ms": 100,
            "fabric_watchdog_action": "forward",
            "fabric_ets": {"0": 40, "4": 60},
            "fabric_mtu": 9214,
            "fabric_dcbx": "off",
            "fabric_alpha_log2": -3,
            "fabric_small_packet_percent": 50,
            "fabric_reassign_unlisted": "off",
            "fabric_nic_mlx5": {"rp_enabled": False, "cnp_dscp": 46, "dcqcn": {"rp_dce_tcp_g": 1019}},
            "fabric_nic_rxe": {"np_enabled": False, "cnp_priority": 5},
        }
    )

    assert built(devices).fabric.switches[0].policy == RocePolicy(
        data_dscps=(24, 26),
        data_priority=4,
        cnp_dscp=46,
        cnp_priority=6,
        ecn_enabled=False,
        ecn_kmin_bytes=131_072,
        ecn_kmax_bytes=2_000_000,
        ecn_pmax_percent=20,
        ecn_overrides=(
            EcnOverride(1, 1000, 5, 400_000, SwitchRole.SPINE),
            EcnOverride(1, 1_048_576, 5, None, SwitchRole.LEAF),
        ),
        watchdog_enabled=True,
        watchdog_detection_ms=300,
        watchdog_restoration_ms=500,
        watchdog_polling_ms=100,
        watchdog_action="forward",
        ets=(EtsShare(0, 40), EtsShare(4, 60)),
        mtu_bytes=9214,
        dcbx="off",
        alpha_log2=-3,
        small_packet_percent=50,
        reassign_unlisted=False,
        nics=(
            NicPolicy("mlx5", rp_enabled=False, cnp_dscp=46, dcqcn=(DcqcnSetting("rp_dce_tcp_g", 1019),)),
            NicPolicy("rxe", np_enabled=False, cnp_priority=5),
        ),
    )


def test_the_default_share_of_data_follows_its_priority() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_data_priority"] = 5
    devices["gpu1"][1]["fabric_data_priority"] = 0

    fabric = built(devices).fabric

    assert fabric.switches[0].policy.ets == (EtsShare(0, 50), EtsShare(5, 50))
    assert fabric.hosts[0].policy.ets == (EtsShare(0, 100),)


def test_a_null_is_the_same_as_nothing() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_dcbx"] = None

    assert built(devices).fabric.switches[0].policy.dcbx == RocePolicy().dcbx


def test_what_a_link_says_wins_over_the_port_profile() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = [
        {"ports": "Ethernet1", "speed": "100G", "cable": "1m", "fec": "fc", "mtu": 9000},
        {"ports": "Ethernet2", "speed": "100G", "cable": "2m", "fec": "fc", "mtu": 9100},
    ]
    links = _links({"a": "leaf1:Ethernet1", "b": "gpu1:ens1", "cable": 5, "fec": "rs", "mtu": 9214, "speed": "100G"})
    for _, variables in devices.values():
        variables["fabric_links"] = links

    fabric = built(devices).fabric
    told, plain = fabric.switches[0].ports

    assert (told.cable_m, told.fec, told.mtu_bytes, told.role) == (5, "rs", 9214, PortRole.HOST)
    assert (plain.cable_m, plain.fec, plain.mtu_bytes, plain.role) == (2, "fc", 9100, PortRole.TARGET)
    assert [(link.cable_m, link.fec, link.mtu_bytes) for link in fabric.links] == [(5, "rs", 9214), (2, "fc", 9100)]


def test_peers_are_known_at_both_ends() -> None:
    fabric = built(small()).fabric

    assert fabric.switches[0].ports[0].peer == Endpoint("gpu1", "ens1")
    assert fabric.hosts[0].nics[0].peer == Endpoint("leaf1", "Ethernet1")


def test_breakouts_and_port_channels_are_shared_out_evenly() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = [
        {"ports": "Ethernet[1:2]/[1:2]", "speed": "100G", "role": "host", "breakout_of": "Ethernet[1:2]", "lanes": 2},
        {"ports": "Ethernet[1:2]", "speed": "100G", "role": "host", "vlan": 120},
    ]
    devices["leaf1"][1]["fabric_lags"] = [{"name": "Port-Channel[1:2]", "members": "Ethernet[1:2]/[1:2]", "mlag": True}]
    devices["leaf1"][1]["fabric_links"] = devices["gpu1"][1]["fabric_links"] = [
        {"a": "leaf1:Ethernet1", "b": "gpu1:ens1"}
    ]
    devices["kv1"][1]["fabric_links"] = devices["gpu1"][1]["fabric_links"]

    ports = built(devices).fabric.switches[0].ports

    assert [(port.name, port.breakout_of, port.lag, port.mlag, port.vlan, port.routed) for port in ports] == [
        ("Ethernet1", None, None, False, 120, False),
        ("Ethernet1/1", "Ethernet1", "Port-Channel1", True, None, True),
        ("Ethernet1/2", "Ethernet1", "Port-Channel1", True, None, True),
        ("Ethernet2", None, None, False, 120, False),
        ("Ethernet2/1", "Ethernet2", "Port-Channel2", True, None, True),
        ("Ethernet2/2", "Ethernet2", "Port-Channel2", True, None, True),
    ]


def test_an_array_that_nobody_manages_needs_no_block_devices() -> None:
    devices = small()
    devices["kv1"][1]["fabric_managed"] = False
    devices["kv1"][1]["fabric_subsystems"] = [
        {
            "nqn": "nqn.2026-01.net.example:kv",
            "namespaces": [{"nsid": "[1:2]"}],
            "allowed_hosts": "nqn.2026-01.net.example:gpu1",
        }
    ]

    target = built(devices).fabric.targets[0]

    assert not target.managed
    assert [(one.nsid, one.device) for one in target.subsystems[0].namespaces] == [(1, ""), (2, "")]
    assert target.subsystems[0].allowed_hosts == ("nqn.2026-01.net.example:gpu1",)


def test_ansibles_connection_variables_become_the_access_and_the_last_alias_wins() -> None:
    devices = small()
    devices["leaf1"][1].update(
        {
            "ansible_host": "2001:db8::1",
            "ansible_port": "2222",
            "ansible_user": "admin",
            "ansible_password": "old",
            "ansible_ssh_pass": "s3cret",
            "ansible_become_password": "en4ble",
            "ansible_become": "yes",
            "ansible_ssh_private_key_file": "keys/id_ed25519",
            "fabric_known_hosts": "run/known_hosts",
        }
    )

    access = built(devices).access

    leaf = access["leaf1"]
    assert (leaf.host, leaf.port, leaf.username) == ("2001:db8::1", 2222, "admin")
    assert (leaf.password, leaf.enable_secret) == ("s3cret", "en4ble")
    assert (str(leaf.private_key), str(leaf.known_hosts)) == ("keys/id_ed25519", "run/known_hosts")
    assert (leaf.become, access["gpu1"].become) == (True, False)
    assert (access["gpu1"].host, access["gpu1"].port, access["gpu1"].password) == ("gpu1", 22, None)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"a": ["leaf1:Ethernet1", "leaf1:Ethernet1"], "b": ["gpu1:ens1", "kv1:ens1"]},
            "is used by fabric_links[0] already",
        ),
        ({"a": "leaf1:Ethernet3", "b": "gpu1:ens1"}, "the port's role does not fit"),
        ({"a": "leaf1:Ethernet9", "b": "gpu1:ens1"}, "the device has no such port"),
        ({"a": "leaf1:Ethernet1", "b": "gpu2:ens1"}, "no such device (found gpu2). Did you mean gpu1?"),
        ({"a": "leaf1:Ethernet1", "b": "nowhere:ens1"}, "no such device (found nowhere)"),
        ({"a": "leaf1:Ethernet1", "b": "gpu1:ens1", "speed": "25G"}, "at another speed than the link"),
    ],
)
def test_a_wrong_cable_is_one_problem(entry: dict[str, Json], message: str) -> None:
    found = _complaints_of_links(entry)

    assert len(found) == 1
    assert message in found[0]


def test_a_host_may_be_cabled_to_a_target_and_not_to_a_host() -> None:
    devices = small()
    del devices["leaf1"]
    devices["gpu2"] = ("hosts", dict(devices["gpu1"][1]))
    devices["gpu2"][1]["fabric_nics"] = [{"netdev": "ens1", "family": "rxe", "speed": "100G"}]
    links: Json = [{"a": "gpu1:ens1", "b": "kv1:ens1", "cable": "2m"}]
    for _, variables in devices.values():
        variables["fabric_links"] = links

    fabric = built(devices).fabric

    assert fabric.links == (Link(Endpoint("gpu1", "ens1"), Endpoint("kv1", "ens1"), 100_000, 2, None, 9000),)
    assert fabric.hosts[0].nics[0].peer == Endpoint("kv1", "ens1")
    for _, variables in devices.values():
        variables["fabric_links"] = [{"a": "gpu1:ens1", "b": "gpu2:ens1"}]
    (found,) = complaints(raw(devices))
    assert "a cable without a switch connects a host with a target (found gpu1:ens1, gpu2:ens1)" in found


def test_how_a_host_connects_is_said_part_by_part_and_the_rest_stays_usual() -> None:
    devices = small()
    devices["gpu1"][1]["fabric_connect_policy"] = {"io_queues": 2, "ctrl_loss_tmo": "-1", "iopolicy": "numa"}
    devices["gpu1"][1]["fabric_managed"] = False

    host = built(devices).fabric.hosts[0]

    assert host.connect_policy == ConnectPolicy(nr_io_queues=2, iopolicy="numa")
    assert (host.connect_policy.keep_alive_s, host.connect_policy.ctrl_loss_tmo_s) == (5, -1)
    assert not host.managed
    assert built(small()).fabric.hosts[0] == replace(host, connect_policy=ConnectPolicy(), managed=True)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"queue_size": 8}, "out of range (found 8, expected a whole number from 16 to 1024"),
        ({"iopolicy": "fastest"}, "numa, round-robin, queue-depth"),
        ({"ioqueues": 2}, "ioqueues"),
    ],
)
def test_a_wrong_connect_policy_is_one_problem(policy: dict[str, Json], message: str) -> None:
    devices = small()
    devices["gpu1"][1]["fabric_connect_policy"] = policy

    (found,) = complaints(raw(devices))

    assert message in found


def test_a_connect_policy_on_a_switch_is_refused() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_connect_policy"] = {"io_queues": 2}

    (found,) = complaints(raw(devices))

    assert "the variable belongs to hosts" in found


def test_a_shard_profile_is_read_whole_and_judged() -> None:
    devices = small()
    devices["gpu1"][1]["fabric_shard_profile"] = {"policy": {"queues": 6}, "conditions": {"trials": 60}}

    assert built(devices).fabric.hosts[0].shard_profile == ShardProfile(ShardPolicy(queues=6), Conditions(trials=60))
    assert built(small()).fabric.hosts[0].shard_profile is None


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"policy": {"queue": 6}}, "queue"),
        ({"policy": {"queues": 0}}, "policy.queues is 0"),
        ("fast", "no shard profile"),
    ],
)
def test_a_wrong_shard_profile_is_one_problem(profile: Json, message: str) -> None:
    devices = small()
    devices["gpu1"][1]["fabric_shard_profile"] = profile

    (found,) = complaints(raw(devices))

    assert message in found


def test_a_peer_link_goes_to_a_switch_and_both_ends_agree_on_fec_and_vlan() -> None:
    devices = small()
    devices["leaf2"] = ("switches", dict(devices["leaf1"][1]))
    devices["leaf1"][1]["fabric_ports"] = [{**PORT, "role": "peer-link", "fec": "rs", "vlan": 5}]
    devices["leaf2"][1]["fabric_ports"] = [{**PORT, "role": "peer-link", "fec": "fc", "vlan": 6}]
    links: Json = [{"a": "leaf1:Ethernet1", "b": "leaf2:Ethernet1"}]
    for _, variables in devices.values():
        variables["fabric_links"] = links

    found = complaints(raw(devices))

    assert [text.split(": ")[-1] for text in found] == [
        "the two ends use different FEC (found leaf1:Ethernet1 rs, leaf2:Ethernet1 fc)",
        "the two ends use different VLAN tags (found leaf1:Ethernet1 5, leaf2:Ethernet1 6)",
    ]


@pytest.mark.parametrize(
    ("device", "variable", "value", "message"),
    [
        (
            "leaf1",
            "fabric_lags",
            [{"name": "P1", "members": "Ethernet1"}, {"name": "P1", "members": "Ethernet2"}],
            "here once",
        ),
        ("leaf1", "fabric_ports", [], "a switch needs fabric_ports, and it is not set"),
        ("kv1", "fabric_nvme_ports", [{"traddr": "192.0.2.9"}], "no NIC of the target has this address"),
        ("gpu1", "fabric_connect", "nqn.2026-01.org.other:x", "no target has this subsystem"),
        ("gpu1", "fabric_subsystems", [], "the variable belongs to targets"),
        ("leaf1", "fabric_qwertyuiop", 1, "fabric_qwertyuiop: there is no such variable"),
    ],
)
def test_rules_between_variables_and_devices(device: str, variable: str, value: Json, message: str) -> None:
    devices = small()
    devices[device][1][variable] = value
    if variable == "fabric_ports":
        for _, variables in devices.values():
            variables["fabric_links"] = []

    found = complaints(raw(devices))

    assert len(found) == 1
    assert message in found[0]


def test_members_of_a_port_channel_run_at_one_speed() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = [PORT, {**PORT, "ports": "Ethernet[2:3]", "speed": "400G", "role": None}]
    devices["leaf1"][1]["fabric_lags"] = [{"name": "P1", "members": "Ethernet[1:2]"}]
    devices["kv1"][1]["fabric_nics"] = [{"netdev": "ens1", "family": "mlx5", "speed": "400G"}]

    found = complaints(raw(devices))

    assert len(found) == 2
    assert "at one speed (found 100G, 400G)" in "".join(found)
    assert "a port without a cable needs a role (found Ethernet3" in "".join(found)


def test_a_network_os_that_is_like_no_other_is_refused_without_a_guess() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_nos"] = "xyz"

    found = complaints(raw(devices), known_nos=("eos", "sonic"))

    assert found[0].endswith('(found "xyz", expected eos, sonic)')


def test_a_value_from_a_vault_is_in_no_message() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_dcbx"] = "s3cret"

    found = complaints(raw(devices, hidden=[("leaf1", "fabric_dcbx")]))

    assert "s3cret" not in "".join(found)
    assert "not shown" in found[0]


def test_a_problem_of_a_group_is_one_problem_however_many_devices_have_it() -> None:
    devices = small()
    for number in range(2, 40):
        devices[f"leaf{number}"] = ("switches", {**devices["leaf1"][1]})
    for _, variables in devices.values():
        variables["fabric_mtu"] = 99

    found = complaints(raw(devices))

    assert len(found) == 1
    assert "leaf1 and 40 more" in found[0]


def test_devices_outside_the_three_groups_are_left_alone_unless_they_describe_ports() -> None:
    devices = small()
    devices["monitor"] = ("monitoring", {"fabric_mtu": 9000})
    devices["leaf9"] = ("network", {"fabric_ports": []})

    found = complaints(raw(devices))

    assert found == ["leaf9: the device is in none of the groups switches, hosts, targets (found all, network)"]


def test_what_ansible_could_not_render_is_not_told_again_as_missing() -> None:
    devices = small()
    del devices["leaf1"][1]["fabric_nos"]
    for _, variables in devices.values():
        del variables["fabric_links"]
    devices["leaf1"][1]["fabric_ports"] = [{"ports": "Ethernet1", "speed": "100G"}]
    problems = (RawProblem("undefined", "leaf1", "fabric_nos"), RawProblem("undefined", "leaf1", "fabric_links"))

    assert complaints(raw(devices, problems=problems)) == []


def test_links_to_a_device_whose_ports_could_not_be_read_are_not_told() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = "Ethernet1"
    devices["kv1"][1]["fabric_subsystems"] = "nqn"

    found = complaints(raw(devices))

    assert ["fabric_ports" in text or "fabric_subsystems" in text for text in found] == [True, True]


def test_a_flaw_of_the_whole_fabric_names_no_device() -> None:
    devices = small()
    inventory = raw(devices)
    devices["leaf1"][1]["fabric_links"] = [{"a": "leaf1:Ethernet1"}]
    for _, variables in devices.values():
        variables["fabric_links"] = [{"a": "leaf1:Ethernet1"}]
    inventory = raw(devices)
    from fabric.intent.build import build

    problems = to_problems(build(inventory).flaws, inventory, Places((), inventory.hosts), FABRIC_WIDE)

    assert [problem.device for problem in problems if problem.field.startswith("fabric_links")] == [""]


def test_a_port_that_could_not_be_read_is_the_only_complaint_about_its_cables() -> None:
    devices = small()
    spine: dict[str, Json] = {
        "fabric_nos": "eos",
        "fabric_role": "spine",
        "fabric_ports": [{"ports": "Ethernet[1:2]", "speed": "100G"}],
    }
    devices["spine1"] = ("switches", spine)
    cable: Json = {"a": "leaf1:Ethernet[3:4]", "b": "spine1:Ethernet[1:2]"}
    for _, variables in devices.values():
        variables["fabric_links"] = [*_links({"a": "leaf1:Ethernet1", "b": "gpu1:ens1"}), cable]
    devices["leaf1"][1]["fabric_ports"] = [{"ports": "Ethernet[1:4]", "speed": "56G"}]

    (found,) = complaints(raw(devices))

    assert "no Ethernet port has this speed" in found


def test_ports_without_a_role_are_one_complaint() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_ports"] = [PORT, {"ports": "Ethernet[2:9]", "speed": "100G"}]

    (found,) = complaints(raw(devices))

    assert "needs a role (found Ethernet3, Ethernet4, Ethernet5 and 4 more, expected" in found


def test_a_variable_of_a_switch_that_is_set_to_nothing_has_its_place() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_nos"] = None

    (found,) = complaints(raw(devices))

    assert found.startswith("host leaf1, variable fabric_nos: leaf1: fabric_nos: a switch needs fabric_nos")


def test_a_tagged_nic_needs_a_tagged_port() -> None:
    devices = small()
    devices["gpu1"][1]["fabric_nics"] = [{"netdev": "ens1", "family": "mlx5", "speed": "100G", "vlan": 120}]

    (found,) = complaints(raw(devices))

    assert "the NIC sends tagged frames, and the port has no vlan (found gpu1:ens1 120, leaf1:Ethernet1)" in found


def test_device_that_is_named_like_a_group_is_refused() -> None:
    devices = small()
    group, variables = devices["gpu1"]
    devices["gpu1"] = (f"{group} kv1", variables)
    (found,) = complaints(raw(devices))
    assert found.startswith("kv1: the device is named like a group: Ansible takes the name for the group")


def test_a_mistyped_asic_is_refused_with_the_name_that_was_meant_and_a_new_one_is_not() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_asic"] = "spectrm3"

    (told,) = complaints(raw(devices))
    assert "fabric_asic: no line of ASICs has this name" in told
    assert told.endswith('(found "spectrm3"). Did you mean spectrum3?')
    for name in ("trident9", "Spectrum-4", "TH5", "teralynx8", "silicon-one-q200"):
        devices["leaf1"][1]["fabric_asic"] = name
        assert complaints(raw(devices)) == []


def test_a_path_in_the_home_of_nobody_is_refused_with_its_place() -> None:
    devices = small()
    devices["leaf1"][1]["fabric_known_hosts"] = "~no-such-user/.ssh/known_hosts"

    (told,) = complaints(raw(devices))

    assert "fabric_known_hosts: nobody here has this home folder" in told
