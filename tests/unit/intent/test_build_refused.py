"""What is wrong in a raw inventory, by the rules between variables and devices: told once, and in its place."""

import pytest

from fabric.intent.devices import FABRIC_WIDE
from fabric.intent.flaws import to_problems
from fabric.intent.places import Places
from fabric.remote.ansible import RawProblem
from fabric.serial import Json
from tests.unit.intent.inventories import cabled, complaints, raw, small

PORT: dict[str, Json] = {"ports": "Ethernet1", "speed": "100G", "role": "host"}


def _complaints_of_links(*entries: dict[str, Json]) -> list[str]:
    devices = small()
    for _, variables in devices.values():
        variables["fabric_links"] = list(entries)
    return complaints(raw(devices))


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
        variables["fabric_links"] = [*cabled({"a": "leaf1:Ethernet1", "b": "gpu1:ens1"}), cable]
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
