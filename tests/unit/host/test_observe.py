"""A whole host, read from a recording of a Soft-RoCE machine, and from one that answers nothing."""

from fabric.host.actions import command
from fabric.host.executor import RecordedExecutor
from fabric.host.families.catalog import driver
from fabric.host.observe import discover, observe_host, read_controllers, read_gid_files
from fabric.host.settings import NicFacts
from fabric.plan.model import HostPlan
from fabric.qos import UNKNOWN
from fabric.remote.ssh import ExecResult
from fabric.serial import from_json, to_json
from fabric.state.host import HostState, NvmetState
from tests.unit.host.nics import nic, said

PLAN = HostPlan("gpu1", "host", (nic(netdev="eth0", family="rxe", tos=106),))
KV1 = "nqn.2026-01.net.example:kv1"
PORTS = "/sys/class/infiniband/rxe0/ports/"
GIDS = f"""\
{PORTS}1/gids/0:fe80:0000:0000:0000:5054:00ff:fe00:0001
{PORTS}1/gids/1:0000:0000:0000:0000:0000:ffff:c000:0215
{PORTS}1/gids/2:0000:0000:0000:0000:0000:0000:0000:0000
{PORTS}1/gid_attrs/types/0:RoCE v2
{PORTS}1/gid_attrs/types/1:RoCE v2
{PORTS}1/gid_attrs/ndevs/0:eth0
{PORTS}1/gid_attrs/ndevs/1:eth0
{PORTS}1/state:4: ACTIVE
"""
SYSFS = "/sys/class/nvme"
ATTRIBUTES = {
    "transport": "rdma",
    "address": "traddr=192.0.2.11,trsvcid=4420,host_traddr=192.0.2.21",
    "subsysnqn": KV1,
    "state": "live",
    "ctrl_loss_tmo": "off",
    "reconnect_delay": "2",
    "fast_io_fail_tmo": "15",
    "kato": "5",
    "queue_count": "3",
    "sqsize": "127",
}
LISTED = f"""[{{"HostNQN":"h","Subsystems":[{{"Name":"nvme-subsys0","NQN":"{KV1}","IOPolicy":"round-robin","Paths":[
 {{"Name":"nvme0","Transport":"rdma","Address":"traddr=192.0.2.11,trsvcid=4420","State":"live","ANAState":"optimized"}}
]}}]}}]"""
NAMES = (*ATTRIBUTES, "hostnqn", "hostid")


def test_vlan_is_served_by_the_port_below() -> None:
    executor = RecordedExecutor(
        {
            ("rdma", "-j", "link", "show"): said('[{"ifname":"mlx5_0","port":1,"state":"ACTIVE","netdev":"eth0"}]'),
            ("ip", "-j", "address", "show"): said('[{"ifname":"eth0"},{"ifname":"eth0.100","link":"eth0"}]'),
            ("grep", "-qsx", "DEVTYPE=vlan", "/sys/class/net/eth0.100/uevent"): said(""),
            ("readlink", "-f", "/sys/class/net/eth0/device"): said("/sys/devices/pci0000:00/0000:3b:00.0\n"),
            ("test", "-d", "/sys/class/net/eth0/ecn"): said(""),
        }
    )
    facts = discover("eth0.100", executor)
    assert facts == NicFacts("eth0.100", "mlx5_0", 1, "0000:3b:00.0", "ofed", parent="eth0", is_vlan=True)
    plan = nic(family="mlx5", netdev="eth0.100")
    for flavour, tool in (("inbox", "dcb"), ("ofed", "mlnx_qos")):
        steps = driver("mlx5", flavour).steps(plan, facts)
        lines = [command(step.action) for step in steps]
        assert [line for line in lines if line.startswith(tool)]
        assert not [line for line in lines if line.startswith(tool) and "eth0.100" in line]


def test_one_end_of_a_pair_is_no_vlan() -> None:
    executor = RecordedExecutor({("ip", "-j", "address", "show"): said('[{"ifname":"veth0","link":"veth1"}]')})
    assert discover("veth0", executor).port == "veth0"


def soft_roce() -> RecordedExecutor:
    cm = "/sys/kernel/config/rdma_cm/rxe0/ports/1"
    rows = "".join(f"{SYSFS}/nvme0/{name}:{text}\n" for name, text in ATTRIBUTES.items())
    return RecordedExecutor(
        {
            ("rdma", "-j", "link", "show"): said('[{"ifname":"rxe0","port":1,"state":"ACTIVE","netdev":"eth0"}]'),
            ("readlink", "-f", "/sys/class/net/eth0/device"): said("/sys/devices/pci0000:00/0000:00:03.0/virtio1\n"),
            ("ls", "-1A", "--", "/sys/class/infiniband"): said("rxe0\n"),
            ("grep", "-rs", "", PORTS): ExecResult(2, GIDS, ""),
            ("ls", "-1A", "--", SYSFS): said("nvme0\n"),
            ("grep", "-Hs", "", *(f"{SYSFS}/nvme0/{name}" for name in NAMES)): ExecResult(2, rows, ""),
            ("nvme", "list-subsys", "-o", "json"): said(LISTED),
            ("lldpcli", "-f", "json", "show", "neighbors", "details"): said('{"lldp":{}}'),
        },
        {
            "/sys/class/net/eth0/mtu": "9000\n",
            f"{cm}/default_roce_tos": "106\n",
            f"{cm}/default_roce_mode": "RoCE v2\n",
            "/etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:x\n",
        },
    )


def test_soft_roce_host_is_read() -> None:
    reading = observe_host(PLAN, soft_roce())
    assert reading.facts == (NicFacts("eth0", "rxe0"),)
    state = reading.state
    (found,) = state.nics
    assert (found.mtu_bytes, found.rdma_device, found.default_tos, found.default_mode) == (9000, "rxe0", 106, "RoCE v2")
    assert state.nic("eth0") == found
    assert state.nic("eth9").mtu_bytes is UNKNOWN
    assert state.neighbours == ()
    assert (state.hostnqn, state.hostid) == ("nqn.2014-08.org.nvmexpress:uuid:x", UNKNOWN)
    assert reading.unread == (
        "ip -j address show: exit 127: ip: not recorded",
        "ibv_devinfo -d rxe0: exit 127: ibv_devinfo: not recorded",
        "ibv_devinfo: exit 127: ibv_devinfo: not recorded",
    )
    assert state.unconfirmed == ()


def test_gids_without_a_type_are_empty_slots() -> None:
    first, second = read_gid_files(GIDS)
    assert (first.index, first.kind, first.is_link_local, first.ipv4, first.netdev) == (0, "v2", True, "", "eth0")
    assert (second.index, second.is_link_local, second.ipv4) == (1, False, "192.0.2.21")


def test_sysfs_is_the_truth_and_the_tool_adds_ana() -> None:
    subsystems = observe_host(PLAN, soft_roce()).state.subsystems
    assert subsystems is not UNKNOWN
    (one,) = subsystems
    assert (one.nqn, one.iopolicy, one.name) == (KV1, "round-robin", "nvme-subsys0")
    path = one.path("nvme0")
    assert path is not None
    assert (path.host_traddr, path.ctrl_loss_tmo_s, path.queue_count, path.queue_size) == ("192.0.2.21", -1, 3, 128)
    assert path.ana == (("nvme0", "optimized"),)
    assert one.path("nvme1") is None


def test_without_the_tool_sysfs_is_enough() -> None:
    executor = soft_roce()
    outputs = {argv: done for argv, done in executor.outputs.items() if argv[0] != "nvme"}
    subsystems = observe_host(PLAN, RecordedExecutor(outputs, executor.files)).state.subsystems
    assert subsystems is not UNKNOWN
    assert [(one.nqn, one.iopolicy) for one in subsystems] == [(KV1, UNKNOWN)]


def test_host_without_controllers_has_measured_none() -> None:
    executor = RecordedExecutor({("ls", "-1A", "--", SYSFS): said("")})
    assert read_controllers(executor) == {}
    assert observe_host(PLAN, executor).state.subsystems == ()


def test_host_that_answers_nothing_is_unknown_throughout() -> None:
    reading = observe_host(PLAN, RecordedExecutor())
    state = reading.state
    assert (state.rdma_ports, state.gids, state.subsystems, state.neighbours, state.target) == (UNKNOWN,) * 5
    assert state.nics[0].rdma_device is UNKNOWN
    assert len(reading.unread) >= 5


def test_target_is_read_on_targets() -> None:
    root = "/sys/kernel/config/nvmet"
    executor = RecordedExecutor({("test", "-e", root): ExecResult(1, "", "")})
    assert observe_host(HostPlan("kv1", "target", ()), executor).state.target == NvmetState()


def test_ofed_and_pci_are_discovered() -> None:
    executor = RecordedExecutor(
        {
            ("readlink", "-f", "/sys/class/net/ens1f0np0/device"): said("/sys/devices/pci0000:3a/0000:3b:00.0\n"),
            ("test", "-d", "/sys/class/net/ens1f0np0/ecn"): said(""),
        }
    )
    assert discover("ens1f0np0", executor) == NicFacts("ens1f0np0", pci="0000:3b:00.0", flavour="ofed")


def test_state_survives_the_run_folder() -> None:
    state = observe_host(PLAN, soft_roce()).state
    assert from_json(HostState, to_json(state)) == state
