"""Nothing that an inventory or a device says adds a line to a configuration, a unit or a rule, or a word to a command.

A value is refused with its place, or what is made of it has the statements that a harmless value makes, no more and no
other. The judges are not ours: the lab's grammar of EOS, JSON, a real POSIX shell, systemd's own rules of a line.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.clock import FakeClock
from fabric.errors import FabricError, HostError
from fabric.host.actions import PutFile, Run, actions_from_json, actions_to_json, agent_text
from fabric.host.nvme.connect import Connection, NvmeCli, connect_argv
from fabric.host.nvme.identity import HostIdentity
from fabric.host.nvme.target import planned_target, target_actions
from fabric.host.units import connection_files, nic_files
from fabric.intent.build import build
from fabric.intent.flaws import to_problems
from fabric.intent.model import Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.intent.places import Places
from fabric.lab.eos import EosDevice
from fabric.lab.spec import DeviceSpec
from fabric.lab.stock import StockPort, eos_config, sonic_config
from fabric.nos import catalog
from fabric.nos.base import RenderContext
from fabric.plan import make_plan
from fabric.plan.model import SwitchPlan
from fabric.push.words import plain, refused_control, safe
from fabric.remote.ansible import CONNECTION_VARIABLES
from fabric.remote.ssh import shell_line
from fabric.tree import Tree
from fabric.workflow.design import design
from fabric.workflow.subjects import capabilities_of
from tests.strategies.hostile import hostile_lines, hostile_text, spoilt
from tests.unit.host.nics import nic
from tests.unit.intent.inventories import Devices, raw, small

# --- the inventory ---------------------------------------------------------------------------------------------------


def everything() -> Devices:
    """Returns a fabric in which every variable that holds text is said."""
    devices = small()
    _, leaf = devices["leaf1"]
    leaf |= {
        "fabric_name": "lab",
        "fabric_version": "4.31.2F",
        "fabric_asic": "trident3",
        "fabric_hwsku": "DCS-7050CX3-32S",
        "fabric_watchdog_action": "drop",
        "fabric_dcbx": "off",
        "fabric_lags": [{"name": "Port-Channel1", "members": ["Ethernet3", "Ethernet4"]}],
        "fabric_known_hosts": "/etc/ssh/known_hosts",
        **dict.fromkeys(("ansible_host", "ansible_ssh_host"), "leaf1.example.net"),
        **dict.fromkeys(("ansible_user", "ansible_password", "ansible_become_password"), "word"),
        "ansible_private_key_file": "/home/anna/.ssh/key",
    }
    devices["gpu1"][1]["fabric_connect_policy"] = {"iopolicy": "round-robin"}
    devices["gpu1"][1]["fabric_nic_mlx5"] = {"dcqcn": {"rp_dce_tcp_g": 1019}}
    kept: dict[str, Any] = {"nqn": "nqn.2026-01.net.example:kv", "allowed_hosts": ["nqn.2014-08.org.example:gpu1"]}
    kept["namespaces"] = [{"nsid": 1, "device": "/dev/nvme0n1"}]
    devices["kv1"][1]["fabric_subsystems"] = [kept]
    return devices


Steps = tuple[str | int, ...]


def texts_of(node: Any, at: Steps = ()) -> list[tuple[Steps, str]]:
    """Returns each text below a node, keys of open mappings too, with the way to it."""
    if isinstance(node, str):
        return [(at, node)]
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, one in pairs for found in texts_of(one, (*at, key))]


def put(node: Any, at: Steps, value: str) -> Any:
    if not at:
        return value
    if isinstance(node, dict):
        return {key: put(one, at[1:], value) if key == at[0] else one for key, one in node.items()}
    return [put(one, at[1:], value) if index == at[0] else one for index, one in enumerate(node)]


SPOTS = [
    (device, variable, steps, text)
    for device, (_, variables) in everything().items()
    for variable, value in variables.items()
    if variable != "fabric_links" or device == "leaf1"
    for steps, text in texts_of(value)
]
SECRETS = frozenset(CONNECTION_VARIABLES["password"]) | frozenset(CONNECTION_VARIABLES["enable_secret"])


def made_of(devices: Devices) -> tuple[list[str], dict[str, str]]:
    """Returns what is wrong with an inventory; or nothing, and every file and configuration that is made of it."""
    inventory = raw(devices)
    outcome = build(inventory, ("eos", "sonic"))
    if outcome.flaws:
        return [str(one) for one in to_problems(outcome.flaws, inventory, Places((), inventory.hosts))], {}
    try:
        plan = make_plan(outcome.fabric, capabilities_of)
    except FabricError as error:
        return [str(error)], {}
    texts: dict[str, str] = {}
    for one in plan.switches:
        text = eos_config(one.device, "DCS-7050CX3-32S", [StockPort(port.name, 100_000) for port in one.qos.ports])
        texts[one.device] = design(one, text).payload
    for target in outcome.fabric.targets:
        texts[target.name] = agent_text(target_actions(planned_target(target)))
    return [], texts


HARMLESS = made_of(everything())


def told_plainly(error: FabricError) -> None:
    assert all(line.isprintable() for line in str(error).split("\n"))


def shape(text: str) -> list[str]:
    """Returns the statements of a text, their names taken out: how many lines, and the first word of each."""
    return [line.split()[0] if line.split() else "" for line in text.split("\n")]


@given(st.data())
def test_a_text_of_the_inventory_is_refused_with_its_place_or_changes_no_statement(data: st.DataObject) -> None:
    assert HARMLESS[0] == []
    device, variable, steps, text = data.draw(st.sampled_from(SPOTS))
    bad = data.draw(spoilt(text))
    devices = everything()
    devices[device][1][variable] = put(devices[device][1][variable], steps, bad)

    problems, texts = made_of(devices)

    for one in problems:
        assert all(line.isprintable() for line in one.split("\n")), "a message holds what a terminal obeys"
        assert re.search(r"(fabric|ansible)_[a-z]", one), "it names its variable; a good name may be wrong elsewhere"
        if variable in SECRETS and len(bad) > 6 and bad.isprintable():
            assert bad not in one
    if not problems:
        for name, made in texts.items():
            assert shape(made) == shape(HARMLESS[1][name]), name
            assert all(not refused_control(line) or name == "kv1" for line in made.split("\n"))


@given(spoilt("password"))
def test_a_secret_that_would_end_its_line_is_refused_and_not_shown(bad: str) -> None:
    devices = everything()
    devices["leaf1"][1]["ansible_become_password"] = bad
    problems, _ = made_of(devices)

    ends = any(one in bad for one in ("\n", "\r", "\x00", "\x1b", "\x85", "\u2028", "\x9b"))
    assert not ends or problems
    for one in problems:
        assert "a value that is not shown" in one
        assert len(bad) < 4 or bad not in one


# --- what devices say ------------------------------------------------------------------------------------------------


def planned(nos: str, names: tuple[str, ...]) -> SwitchPlan:
    devices = small()
    role, speed = "fabric", "100G"
    devices["leaf1"][1].update(fabric_nos=nos, fabric_links=[], fabric_adopt=True, fabric_asic="spectrum3")
    devices["leaf1"][1]["fabric_ports"] = [{"ports": list(names), "speed": speed, "role": role}]
    del devices["gpu1"], devices["kv1"]
    outcome = build(raw(devices))
    assert outcome.flaws == ()
    return make_plan(outcome.fabric, capabilities_of).switches[0]


EOS_PORTS, SONIC_PORTS = ("Ethernet1", "Ethernet2"), ("Ethernet0", "Ethernet8")
EOS, SONIC = planned("eos", EOS_PORTS), planned("sonic", SONIC_PORTS)
EOS_TEXT = eos_config("leaf1", "DCS-7050CX3-32S", [StockPort(name, 100_000) for name in (*EOS_PORTS, "Ethernet3")])
EOS_LINES = frozenset(design(EOS, EOS_TEXT).payload.split("\n"))
SONIC_TABLES = json.loads(
    sonic_config([StockPort(name, 100_000) for name in (*SONIC_PORTS, "Ethernet16")], hwsku="ACS-MSN4700", dynamic=True)
)


def typed(device: EosDevice, payload: str) -> list[str]:
    """Types the lines into a session; returns those that the device refused."""
    shell = device.dialogue("admin")
    lines = [line for line in ("enable", "configure session s", *payload.split("\n")) if line.strip()]
    return [line for line in lines if re.search(r"(?m)^\s*% ?\S", shell.feed(line).text)]


@given(hostile_lines, hostile_lines, st.sampled_from(("Ethernet1", "Ethernet3")))
def test_what_stands_on_an_eos_switch_adds_no_line_to_what_is_typed(words: str, name: str, port: str) -> None:
    text = EOS_TEXT.replace(f"interface {port}\n", f"interface {port}\n   description {words}\n")
    text = text.replace("hostname leaf1\n", f"hostname leaf1\n!\nbanner motd\n{words}\nEOF\n!\n")
    text += f"qos profile FABRICCTL-{(name.split(maxsplit=1) or ['x'])[0]}\n   qos trust dscp\n!\n"
    try:
        change = design(EOS, text)
    except FabricError:
        return
    lines = change.payload.split("\n")
    extra = [line for line in lines if line not in EOS_LINES]

    assert all(line.startswith("no qos profile FABRICCTL-") for line in extra), extra
    assert len([line for line in extra if line]) <= 1
    if any(refused_control(line) for line in lines):
        return  # such a line is never typed: the session refuses it
    device = EosDevice(DeviceSpec("leaf1", "eos", EOS_TEXT), FakeClock())
    assert set(typed(device, change.payload)) <= set(extra)  # a name that EOS would not have taken either


@given(st.dictionaries(st.sampled_from(("description", "alias", "x\ny", "mtu|x")), hostile_text), hostile_text)
def test_what_stands_on_a_sonic_switch_stays_and_adds_no_operation(fields: Mapping[str, str], key: str) -> None:
    assume("|" not in key)
    tables = json.loads(json.dumps(SONIC_TABLES))
    tables["PORT"]["Ethernet0"] |= fields
    tables.setdefault("ACL_TABLE", {})[key] = {"policy_desc": key}
    text = json.dumps(tables)
    try:
        change = design(SONIC, text)
    except FabricError:
        return
    nos = catalog.get("sonic")

    after = nos.tree(nos.apply(text, change.payload)) if change.payload else nos.tree(text)

    before = nos.tree(text)
    ours = {step.path[:2] for step in change.changes.forward}
    assert {path: value for path, value in after.items() if path[:2] not in ours} == {
        path: value for path, value in before.items() if path[:2] not in ours
    }
    for name, value in fields.items():
        assert after["PORT", "Ethernet0", name] == value


CLEAN = {
    plan.nos: catalog.get(plan.nos)
    .render(plan.qos, RenderContext(version="", asic=plan.asic, hwsku="", running=Tree({}), adopt=True))
    .text
    for plan in (EOS, SONIC)
}


@given(st.sampled_from(("eos", "sonic")), st.data())
def test_a_port_of_another_name_is_refused_by_the_renderer_too(nos: str, data: st.DataObject) -> None:
    plan = EOS if nos == "eos" else SONIC
    bad = data.draw(spoilt(plan.qos.ports[0].name))
    qos = replace(plan.qos, ports=(replace(plan.qos.ports[0], name=bad), plan.qos.ports[1]))
    context = RenderContext(version="", asic=plan.asic, hwsku="", running=Tree({}), adopt=True)
    try:
        text = catalog.get(nos).render(qos, context).text
    except FabricError as error:
        told_plainly(error)
        return
    clean = CLEAN[nos]
    if nos == "eos":
        assert shape(text) == shape(clean)
    else:
        assert json.loads(text).keys() == json.loads(clean).keys()


@given(hostile_text)
def test_what_a_device_says_reaches_a_message_without_what_a_terminal_obeys(text: str) -> None:
    for one in (plain(text), safe(text)):
        assert all(letter.isprintable() or letter == "\n" for letter in one)


# --- hosts -----------------------------------------------------------------------------------------------------------


@given(st.lists(hostile_text, min_size=1, max_size=4))
def test_the_words_of_a_command_arrive_in_a_real_shell_as_they_were(words: list[str]) -> None:
    argv = ["printf", "%s\\0", *words]
    try:
        line = shell_line(argv)
    except ValueError:
        assert "\0" in "".join(words) or any("\ud800" <= one <= "\udfff" for one in "".join(words))
        return
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True)

    assert done.stdout.decode().split("\0")[:-1] == words
    assert done.stderr == b""


WHO = HostIdentity("nqn.2014-08.org.example:gpu1", "00000000-0000-4000-8000-000000000001")
ONE = Connection("nqn.2026-01.net.example:kv", "192.0.2.2", 4420, "192.0.2.1", "ens1", 104)


def lines_of(files: tuple[PutFile, ...]) -> list[list[str]]:
    """Returns the section headers and keys of each unit, the rule's keys, and how many actions a list has."""
    found = []
    for one in files:
        if one.path.endswith(".json"):
            found.append([str(len(json.loads(one.text)["actions"]))])
        elif not one.path.endswith(".py"):
            # systemd and udev end a line at a line feed alone, unless a backslash stands before it
            joined = one.text.replace("\\\n", " ")
            found.append([re.split(r"=|\]", row)[0] for row in joined.split("\n")])
    return found


@given(st.sampled_from(("nqn", "traddr", "host_traddr", "hostnqn", "hostid")), st.data())
def test_a_name_in_a_unit_is_refused_or_adds_no_line_to_it(field: str, data: st.DataObject) -> None:
    of_host = field in ("hostnqn", "hostid")
    bad = data.draw(spoilt(str(getattr(WHO if of_host else ONE, field))))
    changed: dict[str, Any] = {field: bad}
    who, one = (replace(WHO, **changed), ONE) if of_host else (WHO, replace(ONE, **changed))
    cli = NvmeCli(2, 9)
    try:
        files = connection_files((one,), who, cli)
        argv = connect_argv(one, who, cli)
    except HostError as error:
        told_plainly(error)
        return
    assert lines_of(files) == lines_of(connection_files((ONE,), WHO, cli)) or not one.host_traddr
    assert all(word.isprintable() for word in argv)
    assert [word.partition("=")[0] for word in argv][:5] == [w.partition("=")[0] for w in connect_argv(ONE, WHO, cli)][
        :5
    ]


@given(spoilt("ens1f0np0"))
def test_a_network_device_in_a_sysctl_file_is_refused_or_adds_no_line(bad: str) -> None:
    plans = (nic(netdev=bad), nic(netdev="ens2"))
    try:
        files = nic_files((), plans)
    except HostError as error:
        told_plainly(error)
        return
    assert lines_of(files) == [[re.sub("ens1f0np0", bad.replace(".", "/"), row) for row in rows] for rows in lines_of(
        nic_files((), (nic(), nic(netdev="ens2")))
    )]  # fmt: skip


@given(st.data())
def test_the_kernels_target_is_written_below_its_own_folder_alone(data: st.DataObject) -> None:
    nqn = data.draw(spoilt("nqn.2026-01.net.example:kv"))
    device = data.draw(spoilt("/dev/nvme0n1"))
    address = data.draw(spoilt("192.0.2.2"))
    target = NvmeTarget("kv1", (), (Subsystem(nqn, (Namespace(1, device),), (nqn,)),), (NvmePort(address),))
    try:
        actions = target_actions(planned_target(target))
    except FabricError as error:
        told_plainly(error)
        return
    for one in actions:
        path = getattr(one, "path", "/sys/kernel/config/nvmet/")
        assert path.startswith("/sys/kernel/config/nvmet/")
        assert ".." not in path.split("/")
        assert isinstance(one, Run) or str(getattr(one, "text", "")).isprintable()
    assert actions_from_json(json.loads(json.dumps(actions_to_json(actions)))) == actions


@pytest.mark.parametrize("character", ["\n", "\x00", "\x1b", "\x85", "\u2028", "\u202e", "?"])
def test_a_line_with_such_a_character_is_never_typed(character: str) -> None:
    assert refused_control(f"description a{character}b")


def test_every_text_of_the_inventory_is_tried() -> None:
    assert len(SPOTS) > 35
    assert {"fabric_name", "fabric_subsystems", "ansible_password", "fabric_links"} <= {spot[1] for spot in SPOTS}
