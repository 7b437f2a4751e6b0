"""From a raw inventory to a fabric: defaults, overrides, cables, and what devices have of each other."""

from dataclasses import replace

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
from fabric.policy import Conditions, ShardPolicy, ShardProfile
from fabric.serial import Json
from tests.unit.intent.inventories import built, cabled, complaints, raw, small


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
    links = cabled({"a": "leaf1:Ethernet1", "b": "gpu1:ens1", "cable": 5, "fec": "rs", "mtu": 9214, "speed": "100G"})
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


def test_a_shard_profile_is_read_whole_and_judged() -> None:
    devices = small()
    devices["gpu1"][1]["fabric_shard_profile"] = {"policy": {"queues": 6}, "conditions": {"trials": 60}}

    assert built(devices).fabric.hosts[0].shard_profile == ShardProfile(ShardPolicy(queues=6), Conditions(trials=60))
    assert built(small()).fabric.hosts[0].shard_profile is None
