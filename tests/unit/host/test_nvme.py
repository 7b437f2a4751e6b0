"""NVMe: identity, which connections, their commands, what differs, and the kernel's target."""

import json
from dataclasses import replace

import pytest

from fabric.errors import HostError, PlanError, UnsupportedFeatureError
from fabric.host import names
from fabric.host.actions import (
    Action,
    ControllerAttribute,
    Link,
    MakeFolder,
    PutFile,
    RemoveFolder,
    RemoveLink,
    Run,
    Write,
)
from fabric.host.executor import RecordedExecutor
from fabric.host.nvme.compare import ConnectionDifference, connection_differences
from fabric.host.nvme.connect import (
    Connection,
    ConnectPolicy,
    NvmeCli,
    config_file,
    connect_actions,
    connect_argv,
    connections,
    disconnect_actions,
    read_connect,
    read_version,
)
from fabric.host.nvme.identity import HostIdentity, identity, identity_actions
from fabric.host.nvme.target import (
    ROOT,
    identified,
    planned_target,
    read_target,
    read_tree,
    removal_actions,
    standing_part,
    target_actions,
)
from fabric.host.parse.nvme import NvmeDevice, controller, read_devices
from fabric.intent.model import Host, Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.plan.model import HostPlan
from fabric.qos import UNKNOWN
from fabric.remote.ssh import ExecResult
from fabric.state.host import NvmePath, NvmeSubsystem, NvmetState
from tests.unit.host.nics import nic, said

UUID, OTHER = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
HOSTNQN = f"nqn.2014-08.org.nvmexpress:uuid:{UUID}"
WHO = HostIdentity(HOSTNQN, UUID)
KV1 = "nqn.2026-01.net.example:kv1"
V2, V29, V3 = NvmeCli(2, 3), NvmeCli(2, 9), NvmeCli(3, 0)
ONE = Connection(KV1, "192.0.2.11", 4420, "192.0.2.21", "ens1f0np0", 104)


# --- identity -------------------------------------------------------------------------------------------------------


def test_identity_is_made_when_there_is_none() -> None:
    assert identity(None, None, new_uuid=UUID) == WHO
    assert identity_actions(WHO, hostnqn=None, hostid=None) == (
        PutFile("/etc/nvme/hostnqn", f"{HOSTNQN}\n"),
        PutFile("/etc/nvme/hostid", f"{UUID}\n"),
    )


def test_half_an_identity_is_completed_from_the_other_half() -> None:
    assert identity(f"{HOSTNQN}\n", None, new_uuid=OTHER) == WHO
    assert identity(None, f"{UUID}\n", new_uuid=OTHER) == WHO
    assert identity_actions(WHO, hostnqn=HOSTNQN, hostid=None) == (PutFile("/etc/nvme/hostid", f"{UUID}\n"),)


def test_identity_that_stands_is_never_changed() -> None:
    found = identity(HOSTNQN, OTHER, new_uuid="ffffffff-0000-4000-8000-000000000009")
    assert (found.hostnqn, found.hostid) == (HOSTNQN, OTHER)
    assert "some targets refuse the pair" in found.warning
    assert identity_actions(found, hostnqn=HOSTNQN, hostid=OTHER) == ()


def test_identity_that_was_not_read_is_not_replaced() -> None:
    with pytest.raises(HostError, match="was not read"):
        identity(UNKNOWN, None, new_uuid=UUID)


# --- which connections ----------------------------------------------------------------------------------------------


def ways(*addresses: str, traddrs: tuple[str, ...]) -> list[tuple[str, str, str]]:
    nics = tuple(nic(netdev=f"ens{at}", addresses=(address,)) for at, address in enumerate(addresses))
    target = NvmeTarget("kv1", (), (Subsystem(KV1),), tuple(NvmePort(one) for one in traddrs))
    host = Host("gpu1", (), connect=(KV1,))
    found = connections(host, HostPlan("gpu1", "host", nics), (target,))
    assert {(one.nqn, one.tos, one.trsvcid) for one in found} == {(KV1, 104, 4420)}
    return [(one.netdev, one.host_traddr, one.traddr) for one in found]


def test_each_nic_takes_the_address_of_its_subnet() -> None:
    found = ways("192.0.2.21/26", "192.0.2.85/26", traddrs=("192.0.2.75", "192.0.2.11"))
    assert found == [("ens0", "192.0.2.21", "192.0.2.11"), ("ens1", "192.0.2.85", "192.0.2.75")]


def test_routed_addresses_are_dealt_out() -> None:
    assert ways("192.0.2.1/31", "192.0.2.3/31", traddrs=("198.51.100.1", "198.51.100.2")) == [
        ("ens0", "192.0.2.1", "198.51.100.1"),
        ("ens1", "192.0.2.3", "198.51.100.2"),
    ]
    assert ways("192.0.2.1/31", "192.0.2.3/31", traddrs=("198.51.100.1",)) == [
        ("ens0", "192.0.2.1", "198.51.100.1"),
        ("ens1", "192.0.2.3", "198.51.100.1"),
    ]
    assert [traddr for *_, traddr in ways("192.0.2.1/31", traddrs=("198.51.100.1", "198.51.100.2"))] == [
        "198.51.100.1",
        "198.51.100.2",
    ]


def test_families_do_not_mix_and_link_local_sources_have_their_scope() -> None:
    assert ways("fe80::31/64", "192.0.2.1/31", traddrs=("fe80::99%ens0", "198.51.100.1")) == [
        ("ens0", "fe80::31%ens0", "fe80::99%ens0"),
        ("ens1", "192.0.2.1", "198.51.100.1"),
    ]


def test_subsystem_that_cannot_be_reached_is_refused() -> None:
    with pytest.raises(PlanError, match="no NIC of this host"):
        ways("192.0.2.1/31", traddrs=("2001:db8::1",))
    with pytest.raises(PlanError, match="no target publishes"):
        connections(Host("gpu1", (), connect=(KV1,)), HostPlan("gpu1", "host", ()), ())


# --- commands -------------------------------------------------------------------------------------------------------


def test_connect_names_everything_and_no_interface() -> None:
    assert connect_argv(ONE, WHO, V2) == (
        "nvme", "connect", "--transport=rdma", "--traddr=192.0.2.11", "--trsvcid=4420", f"--nqn={KV1}",
        "--host-traddr=192.0.2.21", f"--hostnqn={HOSTNQN}", f"--hostid={UUID}", "--nr-io-queues=8",
        "--queue-size=128", "--keep-alive-tmo=5", "--reconnect-delay=2", "--ctrl-loss-tmo=-1", "--tos=104",
    )  # fmt: skip


def test_versions_differ_in_how_fast_io_fail_is_set() -> None:
    run, after = connect_actions(ONE, WHO, V2)
    assert isinstance(run, Run)
    assert run.accepted_words == "already connected"
    assert after == ControllerAttribute(KV1, "192.0.2.11", "fast_io_fail_tmo", "15", "192.0.2.21")
    (newer,) = connect_actions(ONE, WHO, V29)
    assert isinstance(newer, Run)
    assert newer.argv[-1] == "--fast_io_fail_tmo=15"
    assert connect_argv(ONE, WHO, V3)[-2:] == ("--owner=fabric", "--idempotent")


def test_version_is_read() -> None:
    assert read_version("nvme version 2.3 (git 2.3)\nlibnvme version 1.3 (git 1.3)\n") == V2
    assert V2 < V29 < NvmeCli(2, 11) < V3
    with pytest.raises(HostError, match="no version"):
        read_version("command not found")


@pytest.mark.parametrize(
    "change",
    [
        {"nqn": "nqn.2026-01.net.example:kv1,hostid=x"},
        {"nqn": "nqn.2026-01.net.example:kv1 --tos=0"},
        {"nqn": "nqn.2026-01.net.example:" + "a" * 220},
        {"traddr": "192.0.2.11,tos=0"},
        {"traddr": "192.0.2.11%eth0"},
        {"host_traddr": "fe80::1%eth0;reboot"},
    ],
)
def test_names_that_smuggle_are_refused(change: dict[str, str]) -> None:
    with pytest.raises(HostError):
        connect_argv(replace(ONE, **change), WHO, V2)  # type: ignore[arg-type]


def test_secrets_stand_in_a_private_file_alone() -> None:
    secret = "DHHC-1:00:c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=:"
    file = config_file((ONE,), WHO, V2, path="/etc/fabricctl/nvme.json", secrets={KV1: secret})
    assert file.mode == 0o600
    assert "DHHC" not in repr(file)
    (root,) = json.loads(file.text)
    (port,) = root["subsystems"][0]["ports"]
    assert (port["dhchap_key"], port["tos"], port["host_traddr"]) == (secret, 104, "192.0.2.21")
    assert "DHHC" not in " ".join(connect_argv(ONE, WHO, V2))
    with pytest.raises(HostError, match="form DHHC-1"):
        config_file((ONE,), WHO, V2, path="/x", secrets={KV1: "password"})
    with pytest.raises(UnsupportedFeatureError, match="nvme-cli 2"):
        config_file((ONE,), WHO, V3, path="/x")


def test_own_command_is_read_back() -> None:
    found = read_connect(" ".join(connect_argv(ONE, WHO, V29)))
    assert (found["traddr"], found["tos"], found["fast_io_fail_tmo"]) == ("192.0.2.11", "104", "15")
    assert read_connect("nvme connect -t rdma -a192.0.2.1 --nqn x") == {
        "transport": "rdma",
        "traddr": "192.0.2.1",
        "nqn": "x",
    }
    with pytest.raises(HostError, match="no nvme connect"):
        read_connect("nvme list")


# --- what differs ---------------------------------------------------------------------------------------------------

LIVE = NvmePath(
    "nvme1",
    transport="rdma",
    traddr="192.0.2.11",
    trsvcid=4420,
    host_traddr="192.0.2.21",
    state="live",
    ctrl_loss_tmo_s=-1,
    reconnect_delay_s=2,
    fast_io_fail_tmo_s=15,
    keep_alive_s=5,
)


def difference_of(path: NvmePath) -> list[ConnectionDifference]:
    return list(connection_differences((ONE,), (NvmeSubsystem(KV1, paths=(path,)),), WHO, V2))


def test_connection_as_planned_differs_in_nothing() -> None:
    assert difference_of(LIVE) == []


@pytest.mark.parametrize(
    ("change", "what", "found", "disruptive"),
    [
        ({"ctrl_loss_tmo_s": 600}, "ctrl_loss_tmo", "600 s", False),
        ({"ctrl_loss_tmo_s": UNKNOWN}, "ctrl_loss_tmo", "UNKNOWN", False),
        ({"fast_io_fail_tmo_s": -1}, "fast_io_fail_tmo", "-1 s", False),
        ({"keep_alive_s": 30}, "keep_alive_tmo", "30 s", True),
        ({"state": "connecting"}, "state", "connecting", False),
        ({"host_traddr": UNKNOWN}, "host_traddr", "chosen by routing", True),
        ({"host_traddr": "192.0.2.99"}, "missing", "no controller", False),
        ({"traddr": "192.0.2.12"}, "missing", "no controller", False),
    ],
)
def test_each_deviation_of_a_connection(change: dict[str, object], what: str, found: str, disruptive: bool) -> None:
    (one,) = difference_of(replace(LIVE, **change))  # type: ignore[arg-type]
    assert (one.what, one.found, one.disruptive) == (what, found, disruptive)


def test_connections_that_were_not_read_are_made() -> None:
    (one,) = connection_differences((ONE,), UNKNOWN, WHO, V2)
    assert (one.found, one.actions) == ("UNKNOWN", connect_actions(ONE, WHO, V2))


def test_disconnect_removes_this_controller_only() -> None:
    (action,) = disconnect_actions((ONE,))
    assert action == ControllerAttribute(KV1, "192.0.2.11", "delete_controller", "1", "192.0.2.21")


def test_controller_of_sysfs() -> None:
    found = controller(
        "nvme1",
        {
            "address": "traddr=192.0.2.11,trsvcid=4420,host_traddr=192.0.2.21\n",
            "transport": "rdma\n",
            "state": "live\n",
            "ctrl_loss_tmo": "off\n",
            "reconnect_delay": "2\n",
            "fast_io_fail_tmo": "15\n",
            "kato": "5\n",
        },
    )
    assert found == LIVE
    assert controller("nvme1", {"sqsize": "127\n"}).queue_size == 128


def test_flat_and_nested_lists_name_their_disks() -> None:
    flat = '{"Devices":[{"NameSpace":1,"DevicePath":"/dev/nvme1n1","ModelNumber":"Linux","SerialNumber":"x"}]}'
    assert read_devices(flat) == (NvmeDevice("/dev/nvme1n1", 1, "Linux", "x"),)
    nested = '{"Devices":[{"Subsystems":[{"Namespaces":[{"NameSpace":"nvme1n1","NSID":1}]}]}]}'
    assert read_devices(nested) == (NvmeDevice("/dev/nvme1n1", 1),)
    with pytest.raises(HostError, match="no JSON"):
        read_devices("Failed to scan topology: No such file or directory")


# --- the kernel's target --------------------------------------------------------------------------------------------


def target(*hosts: str, device: str = "/dev/ram0", traddr: str = "192.0.2.11") -> NvmeTarget:
    subsystem = Subsystem(KV1, (Namespace(1, device),), hosts)
    return NvmeTarget("kv1", (), (subsystem,), (NvmePort(traddr),))


SUB, PORT = f"{ROOT}/subsystems/{KV1}", f"{ROOT}/ports/1"
MODULES = Run(("modprobe", "-a", "nvmet", "nvmet-rdma"))


def test_target_is_written_in_the_kernels_order() -> None:
    assert target_actions(planned_target(target(HOSTNQN))) == (
        MODULES,
        Run(("mount", "-t", "configfs", "none", "/sys/kernel/config"), unless_exists=ROOT),
        MakeFolder(SUB),
        Write(f"{SUB}/attr_serial", "da3789a7221a1a0c5975"),
        Write(f"{SUB}/attr_allow_any_host", "0"),
        MakeFolder(f"{ROOT}/hosts/{HOSTNQN}"),
        Link(f"{SUB}/allowed_hosts/{HOSTNQN}", f"{ROOT}/hosts/{HOSTNQN}"),
        MakeFolder(f"{SUB}/namespaces/1"),
        Write(f"{SUB}/namespaces/1/device_uuid", "d3a15bf0-bdf0-56bf-af05-1a5d577f33d4"),
        Write(f"{SUB}/namespaces/1/device_path", "/dev/ram0"),
        Write(f"{SUB}/namespaces/1/enable", "1"),
        MakeFolder(PORT),
        Write(f"{PORT}/addr_trtype", "rdma"),
        Write(f"{PORT}/addr_adrfam", "ipv4"),
        Write(f"{PORT}/addr_traddr", "192.0.2.11"),
        Write(f"{PORT}/addr_trsvcid", "4420"),
        Link(f"{PORT}/subsystems/{KV1}", SUB),
    )


def test_removal_undoes_in_the_reverse_order() -> None:
    assert removal_actions(planned_target(target(HOSTNQN))) == (
        RemoveLink(f"{PORT}/subsystems/{KV1}"),
        RemoveFolder(PORT),
        Write(f"{SUB}/namespaces/1/enable", "0", optional=True),
        RemoveFolder(f"{SUB}/namespaces/1"),
        RemoveLink(f"{SUB}/allowed_hosts/{HOSTNQN}"),
        RemoveFolder(SUB),
        RemoveFolder(f"{ROOT}/hosts/{HOSTNQN}"),
    )


class Kernel:
    """The kernel's rules on nvmet's configfs, small: what it refuses, and what then stands there."""

    def __init__(self) -> None:
        self.paths: set[str] = {ROOT, f"{ROOT}/subsystems", f"{ROOT}/ports", f"{ROOT}/hosts"}
        self.values: dict[str, str] = {}

    def take(self, actions: tuple[Action, ...]) -> NvmetState:
        for action in actions:
            self._one(action)
        return self.state()

    def state(self) -> NvmetState:
        return read_tree(sorted(self.paths - {ROOT}), self.values)

    def _below(self, path: str) -> set[str]:
        return {one for one in self.paths if one.startswith(f"{path}/")}

    def _one(self, action: Action) -> None:
        match action:
            case MakeFolder(path):
                parent = path.rpartition("/")[0]
                assert parent in self.paths, parent
                self.paths.add(path)
                children = {"subsystems": ("namespaces", "allowed_hosts"), "ports": ("subsystems",)}
                self.paths |= {f"{path}/{child}" for child in children.get(parent.rpartition("/")[2], ())}
            case Write(path, text):
                assert path.rpartition("/")[0] in self.paths, path
                if path.endswith("attr_allow_any_host") and text == "1":
                    assert not self._below(path.replace("attr_allow_any_host", "allowed_hosts"))
                if path.endswith("device_path"):
                    assert self.values.get(path.replace("device_path", "enable"), "0") == "0"
                if "/addr_" in path:
                    assert not self._below(path.rpartition("/")[0] + "/subsystems")
                self.values[path] = text
            case Link(path, to):
                assert to in self.paths, to
                if "/allowed_hosts/" in path:
                    assert self.values[path.partition("/allowed_hosts")[0] + "/attr_allow_any_host"] == "0"
                self.paths.add(path)
            case RemoveLink(path):
                self.paths.discard(path)
            case RemoveFolder(path):
                assert not {one for one in self._below(path) if one.count("/") > path.count("/") + 1}
                gone = self._below(path) | {path}
                self.paths -= gone
                self.values = {key: text for key, text in self.values.items() if key.rpartition("/")[0] not in gone}
            case Run():
                pass
            case _:
                raise AssertionError(action)


@pytest.mark.parametrize(
    "change",
    [target(), target(HOSTNQN), target(HOSTNQN, device="/dev/ram1"), target(HOSTNQN, traddr="192.0.2.12"), target(KV1)],
)
def test_kernel_takes_every_change_and_the_second_time_there_is_none(change: NvmeTarget) -> None:
    for first in (target(HOSTNQN), target()):
        kernel = Kernel()
        found = kernel.take(target_actions(planned_target(first)))
        assert found == planned_target(first)
        wanted = planned_target(change)
        found = kernel.take(target_actions(wanted, found))
        assert bare(found) == bare(wanted)
        assert target_actions(wanted, found) == ()
        assert kernel.take(removal_actions(found)) == NvmetState()


def bare(state: NvmetState) -> tuple[object, ...]:
    """Returns the state without the numbers of ports."""
    ports = {(port.transport, port.traddr, port.trsvcid, frozenset(port.subsystems)) for port in state.ports}
    return frozenset(state.subsystems), ports


OTHER_NQN = "nqn.2026-01.net.example:other"


@pytest.mark.parametrize("traddr", ["192.0.2.11", "192.0.2.12"])
def test_other_users_of_the_target_keep_subsystem_port_and_number(traddr: str) -> None:
    kernel = Kernel()
    other = replace(
        target(HOSTNQN, traddr=traddr), subsystems=(Subsystem(OTHER_NQN, (Namespace(7, "/dev/sdz"),), (HOSTNQN,)),)
    )
    theirs = kernel.take(target_actions(planned_target(other)))
    wanted = planned_target(target(HOSTNQN))
    found = kernel.take(target_actions(wanted, kernel.state()))
    assert {one.nqn for one in found.subsystems} == {KV1, OTHER_NQN}
    assert OTHER_NQN in found.ports[0].subsystems
    assert target_actions(wanted, found) == ()
    ours = standing_part(wanted, found)
    assert bare(ours) == bare(wanted)
    assert kernel.take(removal_actions(ours, found)) == theirs


def test_port_that_is_no_longer_wanted_stops_publishing() -> None:
    kernel = Kernel()
    two = replace(target(), ports=(NvmePort("192.0.2.11"), NvmePort("192.0.2.12")))
    kernel.take(target_actions(planned_target(two)))
    found = kernel.take(target_actions(planned_target(target()), kernel.state()))
    assert [port.traddr for port in found.ports] == ["192.0.2.11"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (replace(target(), managed=False), "not managed"),
        (target(device=""), "no block device"),
        (target(device="/dev/../etc/shadow"), "climbs"),
        (target(device="/dev/ram0\n1"), "block device"),
        (target("nqn.2026-01.net.example:a/../b"), "no slash"),
        (replace(target(), subsystems=(Subsystem("../../x"),)), "no slash"),
    ],
)
def test_targets_that_cannot_be_are_refused(wrong: NvmeTarget, words: str) -> None:
    with pytest.raises((HostError, PlanError), match=words):
        planned_target(wrong)


def test_target_is_read_with_two_commands() -> None:
    paths = [ROOT, SUB, f"{SUB}/namespaces", f"{SUB}/namespaces/1", f"{SUB}/allowed_hosts"]
    paths += [PORT, f"{PORT}/subsystems", f"{PORT}/subsystems/{KV1}", f"{ROOT}/subsystems", f"{ROOT}/ports"]
    values = [f"{SUB}/attr_allow_any_host:1", f"{SUB}/namespaces/1/device_path:/dev/ram0"]
    values += [f"{SUB}/namespaces/1/enable:1", f"{PORT}/addr_trtype:rdma", f"{PORT}/addr_traddr:192.0.2.11"]
    values += [f"{PORT}/addr_trsvcid:4420", f"{SUB}/attr_serial:0123"]
    executor = RecordedExecutor(
        {
            ("find", ROOT, "-maxdepth", "5"): said("\n".join(paths)),
            ("grep", "-rs", "", ROOT): ExecResult(2, "\n".join(values), ""),
        }
    )
    assert read_target(executor) == planned_target(target())


def test_target_without_its_module_holds_nothing() -> None:
    find = ("find", ROOT, "-maxdepth", "5")
    absent = RecordedExecutor({find: ExecResult(1, "", "No such file"), ("test", "-e", ROOT): ExecResult(1, "", "")})
    assert read_target(absent) == NvmetState()
    assert read_target(RecordedExecutor({find: ExecResult(1, "", "Permission denied")})) is UNKNOWN


def test_policy_reaches_the_command() -> None:
    one = replace(ONE, policy=ConnectPolicy(nr_io_queues=2, ctrl_loss_tmo_s=1800))
    assert {"--nr-io-queues=2", "--ctrl-loss-tmo=1800"} <= set(connect_argv(one, WHO, V2))


def test_what_is_made_anew_has_the_identity_that_it_had() -> None:
    """A host that was connected drops a disk whose UUID is another after the target's reboot."""
    first, again = (target_actions(planned_target(target(HOSTNQN))) for _ in range(2))
    assert first == again
    stood = replace(planned_target(target(HOSTNQN)).subsystems[0], serial="0123", uuids=((1, "their-own"),))
    kept = identified(planned_target(target(HOSTNQN)), NvmetState((stood,)))
    assert (kept.subsystems[0].serial, kept.subsystems[0].uuids) == ("0123", ((1, "their-own"),))
    assert Write(f"{SUB}/namespaces/1/device_uuid", "their-own") in target_actions(kept)


@pytest.mark.parametrize(
    "text", ["\ud800nqn.2026-01.net.example:kv", "nqn.٢٠٢٦-01.net.example:kv", f"nqn.2026-01.a:{'ä' * 300}"]
)
def test_a_name_in_half_characters_or_other_digits_is_no_nqn(text: str) -> None:
    with pytest.raises(HostError):
        names.nqn(text)
