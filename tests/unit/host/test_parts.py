"""The three parts of a host on a model that keeps state: there, again, back, through faults and boots."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fabric.clock import FakeClock
from fabric.errors import HostError, RollbackFailedError
from fabric.host import HostIntent, Part, PartChange, apply_part, design_part, revert_part
from fabric.host.change import change_from_json, change_to_json
from fabric.host.executor import perform_all
from fabric.host.nvme.connect import Connection
from fabric.host.nvme.target import read_target, target_actions
from fabric.host.units import LINK_UNIT, QOS_UNIT, TARGET_UNIT, connection_unit
from fabric.plan.model import HostPlan
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem
from tests.unit.host.model import Model
from tests.unit.host.network import Netdev
from tests.unit.host.nics import nic

UUID = "00000000-0000-4000-8000-000000000001"
KV1, KV2 = "nqn.2026-01.net.example:kv1", "nqn.2026-01.net.example:kv2"
NIC = nic(family="rxe", netdev="data0", mtu_bytes=4200, tos=106, addresses=("10.10.0.2/24",))
TARGET_NIC = replace(NIC, addresses=("10.10.0.1/24",))
ONE = Connection(KV1, "10.10.0.1", 4420, "10.10.0.2", "data0", 106)
TWO = replace(ONE, nqn=KV2)
HOST = HostIntent("host1", "host", HostPlan("host1", "host", (NIC,)), (ONE,))
PUBLISHED = NvmetState(
    (NvmetSubsystem(KV1, True, (), ((1, "/dev/ram0", True),)),), (NvmetPort(1, "rdma", "10.10.0.1", "4420", (KV1,)),)
)
TARGET = HostIntent("target1", "target", HostPlan("target1", "target", (TARGET_NIC,)), target=PUBLISHED)


def bare() -> Model:
    return Model(reachable={(KV1, "10.10.0.1"), (KV2, "10.10.0.1")})


def design(part: Part, intent: HostIntent, model: Model) -> PartChange:
    return design_part(part, intent, model, new_uuid=UUID)


def apply(part: Part, intent: HostIntent, model: Model) -> PartChange:
    change = design(part, intent, model)
    apply_part(change, model, redesign=lambda: design(part, intent, model), clock=FakeClock())
    return change


def ready(intent: HostIntent) -> Model:
    """Returns a host or target with its NICs as planned."""
    model = bare()
    apply(Part.NIC, intent, model)
    return model


def parts(intent: HostIntent) -> tuple[Part, Part]:
    return (Part.NIC, Part.TARGET if intent.role == "target" else Part.CONNECT)


# --- there and again ------------------------------------------------------------------------------------------------


def test_bare_host_is_brought_up_and_connected() -> None:
    model = bare()
    change = apply(Part.NIC, HOST, model)
    assert change.disruptive == change.cannot_restore == ()
    data0 = model.netdevs["data0"]
    assert (data0.mtu, data0.up, data0.addresses) == (4200, True, ["10.10.0.2/24"])
    assert model.rdma == {"rxe_data0": "data0"}
    assert model.active_mtu["rxe_data0"] == 4096
    assert model.cm["rxe_data0"] == ["RoCE v2", "106"]
    assert {"rdma_rxe", "nvme_rdma"} <= model.modules
    apply(Part.CONNECT, HOST, model)
    (found,) = model.controllers.values()
    assert (found["subsysnqn"], found["tos"], found["fast_io_fail_tmo"]) == (KV1, "106", "15")
    assert model.policies == {KV1: "round-robin"}
    assert model.active == model.enabled == {QOS_UNIT, LINK_UNIT, connection_unit(ONE)}


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_second_design_is_empty_and_a_boot_brings_all_back(intent: HostIntent) -> None:
    model = bare()
    for part in parts(intent):
        apply(part, intent, model)
    for part in Part:
        change = design(part, intent, model)
        assert (change.forward, change.backward, change.diff) == ((), (), "")
    before = model.snapshot()
    model.boot()
    assert model.snapshot() == before
    for part in Part:
        assert design(part, intent, model).is_empty


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_nic_that_comes_late_at_boot_holds_nothing_up_for_good(intent: HostIntent) -> None:
    model = bare()
    for part in parts(intent):
        apply(part, intent, model)
    before = model.snapshot()
    model.boot(late="data0")
    assert model.snapshot() == before


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_way_back_is_exact_and_may_be_taken_twice(intent: HostIntent) -> None:
    model = bare()
    states = [model.snapshot()]
    changes = []
    for part in parts(intent):
        changes.append(apply(part, intent, model))
        states.append(model.snapshot())
    for change in reversed(changes):
        states.pop()
        again = change_from_json(change_to_json(change))
        revert_part(again, model)
        assert model.snapshot() == states[-1]
        revert_part(again, model)
        assert model.snapshot() == states[-1]


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["host", "target"])
def test_way_back_that_was_taken_already_changes_nothing_and_says_so(intent: HostIntent) -> None:
    model = bare()
    changes = [apply(part, intent, model) for part in parts(intent)]
    for is_changed in (True, False):
        for one in reversed(changes):
            said = revert_part(one, model, redesign=lambda one=one: design(one.part, intent, model))  # type: ignore[misc]  # bound now
            assert said is is_changed


def test_connection_that_others_made_is_not_made_again_by_a_repeated_way_back() -> None:
    model = ready(HOST)
    connect_by_hand(model, "--host-traddr=10.10.0.2")
    change = apply(Part.CONNECT, HOST, model)
    assert revert_part(change, model, redesign=lambda: design(Part.CONNECT, HOST, model)) is True
    model.changes = 0
    assert revert_part(change, model, redesign=lambda: design(Part.CONNECT, HOST, model)) is False
    assert model.changes == 0


def test_half_a_file_that_a_killed_run_left_is_taken_away() -> None:
    model = ready(HOST)
    change = design(Part.CONNECT, HOST, model)
    model.files["/etc/nvme/hostnqn.fabricctl"] = ("nqn", 0o600)
    assert revert_part(change, model, redesign=lambda: change) is False
    assert "/etc/nvme/hostnqn.fabricctl" not in model.files


def test_target_publishes_with_its_unit() -> None:
    model = ready(TARGET)
    change = apply(Part.TARGET, TARGET, model)
    assert "+subsystem nqn.2026-01.net.example:kv1: any host; 1=/dev/ram0" in change.diff.splitlines()
    assert model.nvmet.values["/sys/kernel/config/nvmet/ports/1/addr_traddr"] == "10.10.0.1"
    assert TARGET_UNIT in model.active & model.enabled


def test_what_the_os_gave_already_stays_after_the_way_back() -> None:
    model = bare()
    model.netdevs["data0"] = Netdev(9000, up=True, addresses=["10.10.0.2/24", "192.0.2.9/26"])
    before = model.snapshot()
    change = apply(Part.NIC, HOST, model)
    assert model.netdevs["data0"].addresses == ["10.10.0.2/24", "192.0.2.9/26"]
    revert_part(change, model)
    assert model.snapshot() == before


def test_device_that_others_made_keeps_its_name_and_gets_its_defaults_back() -> None:
    model = bare()
    model.netdevs["data0"] = Netdev(4200, up=True, addresses=["10.10.0.2/24"])
    model.rdma, model.active_mtu, model.cm = {"rxe0": "data0"}, {"rxe0": 4096}, {"rxe0": ["IB/RoCE v1", "8"]}
    before = model.snapshot()
    change = apply(Part.NIC, HOST, model)
    assert (change.cannot_restore, model.rdma, model.cm["rxe0"]) == ((), {"rxe0": "data0"}, ["RoCE v2", "106"])
    assert "-data0 default-tos: 8" in change.diff.splitlines()
    revert_part(change, model)
    assert model.snapshot() == before


def test_host_without_what_a_part_needs_is_refused() -> None:
    model = ready(HOST)
    model.missing = {"nvme"}
    with pytest.raises(HostError, match="nvme-cli does not run"):
        design(Part.CONNECT, HOST, model)
    model.missing = {"systemctl"}
    with pytest.raises(HostError, match="systemd does not answer"):
        design(Part.NIC, HOST, model)
    model.missing = {"modprobe"}
    with pytest.raises(HostError, match="a kernel module is not there"):
        design(Part.NIC, HOST, model)


def test_vlan_raises_what_is_below_and_lowers_it_again() -> None:
    model = bare()
    model.netdevs = {"eth0": Netdev(), "data0": Netdev(parent="eth0")}
    before = model.snapshot()
    change = apply(Part.NIC, HOST, model)
    assert (model.netdevs["eth0"].mtu, model.netdevs["eth0"].up) == (4200, True)
    assert model.rdma == {"rxe_eth0": "eth0"}  # the kernel makes none on a VLAN
    assert design(Part.NIC, HOST, model).is_empty
    apply(Part.CONNECT, HOST, model)
    assert len(model.controllers) == 1
    model.boot()
    assert len(model.controllers) == 1
    apply(Part.CONNECT, replace(HOST, connections=()), model)
    revert_part(change, model)
    left = {path for path in model.files if path.startswith("/etc/nvme/")}  # the host stays who it is
    assert {path: text for path, text in model.files.items() if path not in left} == before["files"]
    assert (model.snapshot()["netdevs"], model.rdma) == (before["netdevs"], {})


def test_several_nics_get_sysctls_and_give_them_back() -> None:
    model = bare()
    model.netdevs["data1"] = Netdev()
    model.sysctls = {
        f"/proc/sys/net/ipv4/conf/{netdev}/{name}": "0"
        for netdev in model.netdevs
        for name in ("arp_announce", "arp_ignore", "rp_filter")
    }
    other = replace(NIC, netdev="data1", addresses=("10.10.0.3/24",))
    intent = replace(HOST, plan=HostPlan("host1", "host", (NIC, other)))
    before = model.snapshot()
    change = apply(Part.NIC, intent, model)
    assert set(model.sysctls.values()) == {"1", "2"}
    fewer = design(Part.NIC, HOST, model)
    assert "+++ /dev/null" in fewer.diff.splitlines()
    apply(Part.NIC, HOST, model)
    assert "/etc/sysctl.d/90-fabricctl.conf" not in model.files
    revert_part(fewer, model)
    revert_part(change, model)
    assert model.snapshot() == before


# --- faults ---------------------------------------------------------------------------------------------------------


def count(part: Part, intent: HostIntent, start: Callable[[], Model]) -> int:
    model = start()
    model.changes = 0
    apply(part, intent, model)
    return model.changes


STARTS: dict[str, tuple[Part, HostIntent, Callable[[], Model]]] = {
    "nic": (Part.NIC, HOST, bare),
    "target": (Part.TARGET, TARGET, lambda: ready(TARGET)),
    "connect": (Part.CONNECT, HOST, lambda: ready(HOST)),
}


@pytest.mark.parametrize("name", STARTS)
def test_failure_at_any_command_leaves_the_host_as_before(name: str) -> None:
    part, intent, start = STARTS[name]
    for at in range(1, count(part, intent, start) + 1):
        model = start()
        model.changes = 0
        before = model.snapshot()
        refused: list[str] = []

        def refuse(number: int, line: str, at: int = at, refused: list[str] = refused) -> bool:
            refused += [line] if number == at else []
            return number == at

        model.hook = refuse
        try:
            apply(part, intent, model)
        except HostError:
            assert model.snapshot() == before, at
            continue
        model.hook = lambda _, __: False
        assert design(part, intent, model).is_empty
        # the kernel refuses what stands there already; what is tidied up afterwards decides nothing
        assert refused[0].endswith("/default_roce_mode") or refused[0].startswith(("rm -f -- ", "python3 -c"))


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("name", STARTS)
def test_kill_at_any_command_is_taken_back_by_another_process(name: str) -> None:
    part, intent, start = STARTS[name]
    for at in range(1, count(part, intent, start) + 1):
        model = start()
        before = model.snapshot()
        change = design(part, intent, model)
        model.changes = 0

        def kill(number: int, _: str, at: int = at) -> bool:
            if number == at:
                raise Killed
            return False

        model.hook = kill
        with pytest.raises(Killed):
            apply_part(change, model, redesign=lambda change=change: change, clock=FakeClock())  # type: ignore[misc]  # bound now
        model.hook = lambda _, __: False
        revert_part(change, model)
        assert model.snapshot() == before, at


def test_way_back_that_fails_names_the_commands_that_are_left() -> None:
    model = bare()
    change = apply(Part.NIC, HOST, model)
    model.hook = lambda _, line: line.startswith("rdma link delete")
    with pytest.raises(RollbackFailedError) as error:
        revert_part(change, model)
    assert error.value.remedy == "These commands are left:\n  rdma link delete rxe_data0"
    assert model.netdevs["data0"].mtu == 1500  # the rest was done
    model.hook = lambda _, __: False
    revert_part(change, model)
    assert model.rdma == {}


def test_host_that_is_gone_is_not_asked_for_the_rest() -> None:
    model = bare()
    change = apply(Part.NIC, HOST, model)

    def lost(_: int, line: str) -> bool:
        raise HostError("the session was lost", where="host1", found=line)

    model.hook = lost
    model.is_lost = True
    with pytest.raises(RollbackFailedError, match="the session was lost") as error:
        revert_part(change, model)
    assert error.value.remedy.count("\n") == len(change.backward)


def test_host_that_is_not_as_planned_afterwards_is_taken_back() -> None:
    model = ready(HOST)
    before = model.snapshot()
    change = design(Part.CONNECT, HOST, model)
    clock = FakeClock()
    with pytest.raises(HostError, match="not as planned"):
        apply_part(change, model, redesign=lambda: change, clock=clock)
    assert model.snapshot() == before
    assert clock.now_ns() == 10 * 10**9  # a connection may take its time


@pytest.mark.parametrize("intent", [HOST, TARGET], ids=["nic", "target"])
def test_what_can_change_no_more_is_looked_at_twice(intent: HostIntent) -> None:
    model = ready(intent) if intent is TARGET else bare()
    change = design(Part.TARGET if intent is TARGET else Part.NIC, intent, model)
    clock = FakeClock()
    with pytest.raises(HostError, match="not as planned"):
        apply_part(change, model, redesign=lambda: change, clock=clock)
    assert clock.now_ns() == 10**9


def test_why_a_unit_did_not_start_is_told_in_the_programs_own_words() -> None:
    model = ready(HOST)
    model.reachable = set()
    with pytest.raises(HostError, match="failed to connect") as error:
        apply(Part.CONNECT, HOST, model)
    assert f"{connection_unit(ONE)}: could not add new controller: failed to connect" in error.value.found


# --- drift ----------------------------------------------------------------------------------------------------------


def test_path_mtu_that_did_not_follow_is_mended_by_a_new_device() -> None:
    model = ready(HOST)
    model.active_mtu["rxe_data0"] = 1024
    change = apply(Part.NIC, HOST, model)
    assert model.active_mtu["rxe_data0"] == 4096
    assert change.disruptive == ("data0 rdma-mtu: the link stops for a moment",)


def test_unit_that_somebody_disabled_is_enabled_again() -> None:
    model = ready(HOST)
    model.enabled.discard(LINK_UNIT)
    before = model.snapshot()
    change = apply(Part.NIC, HOST, model)
    assert f"-{LINK_UNIT}: disabled, active" in change.diff.splitlines()
    assert LINK_UNIT in model.enabled
    revert_part(change, model)
    assert model.snapshot() == before


def test_namespace_without_a_device_is_refused_before_anything_is_changed() -> None:
    model = ready(TARGET)
    model.devices.discard("/dev/ram0")
    changes = model.changes
    with pytest.raises(HostError, match="a namespace has no device on this target") as error:
        design(Part.TARGET, TARGET, model)
    assert error.value.found == "/dev/ram0"
    assert model.changes == changes


def test_netdev_that_is_not_there_is_refused_before_anything_is_changed() -> None:
    model = Model(netdevs={"eth0": Netdev()})
    with pytest.raises(HostError, match="no such netdev"):
        design(Part.NIC, HOST, model)
    assert model.changes == 0


# --- targets that stand ---------------------------------------------------------------------------------------------


HOSTNQN = f"nqn.2014-08.org.nvmexpress:uuid:{UUID}"
OTHER = NvmetSubsystem("nqn.2026-01.net.example:other", False, (HOSTNQN,), ((1, "/dev/ram1", True),))
SPACES = st.sampled_from([(), ((1, "/dev/ram0", True),), ((1, "/dev/ram1", True),), ((2, "/dev/ram0", True),)])
SUBSYSTEMS = st.lists(
    st.builds(
        lambda nqn, hosts, spaces: NvmetSubsystem(nqn, not hosts, tuple(sorted(hosts)), spaces),
        st.sampled_from([KV1, KV2]),
        st.lists(st.sampled_from([HOSTNQN, KV1]), max_size=2, unique=True),
        SPACES,
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda one: one.nqn,
).map(lambda found: tuple(sorted(found, key=lambda one: one.nqn)))
STATES = st.builds(
    lambda subsystems, ports: NvmetState(
        subsystems,
        tuple(
            NvmetPort(at, "rdma", "10.10.0.1", str(port), tuple(one.nqn for one in subsystems))
            for at, port in enumerate(ports, start=1)
        ),
    ),
    SUBSYSTEMS,
    st.lists(st.sampled_from([4420, 4421]), min_size=1, max_size=2, unique=True),
)


@pytest.mark.no_cover  # long and alike
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # a step is 100 calls: shrinking takes minutes
@given(STATES, STATES, st.integers(1, 60), st.sampled_from(["unit", "hand", "unit, shared", "hand, shared"]))
def test_any_target_becomes_any_other_and_comes_back_from_any_failure(
    first: NvmetState, second: NvmetState, at: int, how: str
) -> None:
    model = ready(TARGET)
    if "shared" in how:
        port = NvmetPort(1, "rdma", "10.10.0.1", "4420", (OTHER.nqn,))
        perform_all(model, target_actions(NvmetState((OTHER,), (port,))), host="target1")
    if "hand" in how:
        found = read_target(model)
        assert isinstance(found, NvmetState)
        perform_all(model, target_actions(first, found), host="target1")
    else:
        apply(Part.TARGET, replace(TARGET, target=first), model)
    before = model.snapshot()
    intent = replace(TARGET, target=second)
    model.changes = 0
    model.hook = lambda number, _: number == at
    try:
        change = apply(Part.TARGET, intent, model)
    except HostError:
        assert model.snapshot() == before
        return
    assert design(Part.TARGET, intent, model).is_empty
    model.hook = lambda _, __: False
    revert_part(change, model)
    assert model.snapshot() == before
    revert_part(change, model)
    assert model.snapshot() == before


def test_subsystem_that_the_intent_has_no_more_goes_and_others_stay() -> None:
    model = ready(TARGET)
    both = NvmetState(
        (*PUBLISHED.subsystems, NvmetSubsystem(KV2, True, (), ((1, "/dev/ram1", True),))),
        (NvmetPort(1, "rdma", "10.10.0.1", "4420", (KV1, KV2)),),
    )
    apply(Part.TARGET, replace(TARGET, target=both), model)
    change = apply(Part.TARGET, TARGET, model)
    assert change.disruptive[0] == f"{KV2}: no longer published on port 1"
    assert not [path for path in model.nvmet.paths if KV2 in path]
    assert [path for path in model.nvmet.links if KV1 in path]


# --- connections that stand -----------------------------------------------------------------------------------------


def connect_by_hand(model: Model, *more: str) -> None:
    place = ("--transport=rdma", "--traddr=10.10.0.1", "--trsvcid=4420", f"--nqn={KV1}")
    rest = ("--nr-io-queues=8", "--queue-size=128", "--keep-alive-tmo=5", "--reconnect-delay=10", "--ctrl-loss-tmo=600")
    assert model.run(["nvme", "connect", *place, *rest, *more]).ok


def test_connection_that_others_made_is_made_anew_with_the_type_of_service() -> None:
    model = ready(HOST)
    connect_by_hand(model, "--host-traddr=10.10.0.2")
    before = model.snapshot()
    change = apply(Part.CONNECT, HOST, model)
    assert [one["tos"] for one in model.controllers.values()] == ["106"]
    assert len(change.disruptive) == 1
    assert "cannot be told" in change.disruptive[0]
    assert change.cannot_restore == (f"{KV1} at 10.10.0.1 from 10.10.0.2: type of service",)
    revert_part(change, model)
    assert model.snapshot() == before


def test_connection_that_nvme_clis_own_file_makes_right_is_taken_over_as_it_is() -> None:
    model = ready(HOST)
    connect_by_hand(model, "--host-traddr=10.10.0.2", "--tos=106")
    port = {"transport": "rdma", "traddr": "10.10.0.1", "host_traddr": "10.10.0.2", "tos": 106}
    text = f'[{{"subsystems": [{{"nqn": "{KV1}", "ports": [{str(port).replace(chr(39), chr(34))}]}}]}}]'
    model.files["/etc/nvme/config.json"] = (text, 0o644)
    before = model.snapshot()
    change = apply(Part.CONNECT, HOST, model)
    assert change.disruptive == ()
    assert list(model.controllers) == ["nvme0"]
    assert model.controllers["nvme0"]["ctrl_loss_tmo"] == "off"
    revert_part(change, model)
    assert [one["ctrl_loss_tmo"] for one in model.controllers.values()] == ["600"]
    assert model.snapshot() == before


def test_another_type_of_service_makes_the_connection_anew_and_back() -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    before = model.snapshot()
    intent = replace(HOST, connections=(replace(ONE, tos=138),))
    change = apply(Part.CONNECT, intent, model)
    assert "tos 106, not 138" in change.disruptive[0]
    assert [one["tos"] for one in model.controllers.values()] == ["138"]
    revert_part(change, model)
    assert model.snapshot() == before


def test_subsystem_that_is_wanted_no_more_is_disconnected_and_its_unit_goes() -> None:
    model = ready(HOST)
    apply(Part.CONNECT, replace(HOST, connections=(ONE, TWO)), model)
    before = model.snapshot()
    change = apply(Part.CONNECT, HOST, model)
    assert change.disruptive == (f"{KV2} at 10.10.0.1 from 10.10.0.2: disconnected: its disks go",)
    assert [one["subsysnqn"] for one in model.controllers.values()] == [KV1]
    assert connection_unit(TWO) not in model.active | model.enabled
    revert_part(change, model)
    assert model.snapshot() == before


def test_all_is_disconnected_when_nothing_is_wanted() -> None:
    model = ready(HOST)
    files = set(model.files)
    apply(Part.CONNECT, HOST, model)
    none = replace(HOST, connections=())
    apply(Part.CONNECT, none, model)
    assert model.controllers == {}
    assert set(model.files) - files == {"/etc/nvme/hostnqn", "/etc/nvme/hostid"}  # the host stays who it is
    assert design(Part.CONNECT, none, model).is_empty


def test_connection_whose_unit_does_not_run_is_disconnected_too() -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    model.active.discard(connection_unit(ONE))
    change = apply(Part.CONNECT, replace(HOST, connections=()), model)
    assert model.controllers == {}
    assert change.diff.splitlines()[0] == f"-{KV1} at 10.10.0.1 from 10.10.0.2: connected"
    assert len(change.disruptive) == len(change.cannot_restore) == 1


def test_target_that_admits_listed_hosts_only_from_now_on_waits_for_a_consent() -> None:
    model = ready(TARGET)
    apply(Part.TARGET, TARGET, model)
    listed = replace(PUBLISHED, subsystems=(NvmetSubsystem(KV1, False, (HOSTNQN,), ((1, "/dev/ram0", True),)),))
    change = design(Part.TARGET, replace(TARGET, target=listed), model)
    assert change.disruptive == (f"{KV1}: hosts that are not listed are no longer admitted",)


@pytest.mark.parametrize("connections", [(ONE,), ()], ids=["wanted", "gone"])
def test_unit_that_somebody_damaged_is_put_right(connections: tuple[Connection, ...]) -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    path = f"/etc/systemd/system/{connection_unit(ONE)}"
    text, mode = model.files[path]
    model.files[path] = (text.replace("--traddr=", "--traddr='"), mode)
    intent = replace(HOST, connections=connections)
    apply(Part.CONNECT, intent, model)
    assert model.files.get(path) == ((text, mode) if connections else None)
    assert len(model.controllers) == len(connections)


def test_connection_that_somebody_took_away_comes_back() -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    model.controllers = {}
    change = apply(Part.CONNECT, HOST, model)
    assert change.disruptive == ()
    assert len(model.controllers) == 1


def test_sibling_path_stays_when_one_without_a_source_is_made_anew() -> None:
    model = ready(HOST)
    sibling = {"subsysnqn": KV1, "address": "traddr=10.10.0.1,trsvcid=4420,host_traddr=10.10.0.3", "state": "live"}
    unpinned = {**sibling, "address": "traddr=10.10.0.1,trsvcid=4420"}
    model.controllers = {"nvme0": sibling, "nvme1": unpinned}
    apply(Part.CONNECT, HOST, model)
    assert model.controllers["nvme0"] is sibling
    addresses = sorted(one["address"].partition("host_traddr=")[2] for one in model.controllers.values())
    assert addresses == ["10.10.0.2", "10.10.0.3"]


def test_target_that_does_not_answer_leaves_the_host_as_before() -> None:
    model = ready(HOST)
    model.reachable = set()
    before = model.snapshot()
    with pytest.raises(HostError, match="was not changed"):
        apply(Part.CONNECT, HOST, model)
    assert model.snapshot() == before


@pytest.mark.parametrize("connections", [(ONE,), (ONE, TWO), ()], ids=["same", "more", "none"])
def test_connection_that_waits_for_its_target_waits_on_after_a_way_back(connections: tuple[Connection, ...]) -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    there, model.reachable = model.reachable, set()
    model.boot()
    before = model.snapshot()
    intent = replace(HOST, connections=connections)
    change = design(Part.CONNECT, intent, model)
    assert f"-{connection_unit(ONE)}: enabled, tried again and again" in change.diff.splitlines()
    if connections:
        with pytest.raises(HostError, match="was not changed"):
            apply(Part.CONNECT, intent, model)
    else:
        revert_part(apply(Part.CONNECT, intent, model), model)
    assert model.snapshot() == before
    model.reachable = there
    model.retry(connection_unit(ONE))
    assert len(model.controllers) == 1


def test_controller_that_reconnects_is_waited_for() -> None:
    model = ready(HOST)
    apply(Part.CONNECT, HOST, model)
    (controller,) = model.controllers.values()
    controller["state"] = "connecting"
    change = design(Part.CONNECT, HOST, model)
    assert (change.forward, change.is_empty) == ((), False)

    clock = FakeClock()

    def later() -> PartChange:
        if clock.now_ns() == 3 * 10**9:
            controller["state"] = "live"
        return design(Part.CONNECT, HOST, model)

    apply_part(change, model, redesign=later, clock=clock)
    assert clock.now_ns() == 3 * 10**9


# --- round trips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "intent", "most"), [(Part.NIC, HOST, 6), (Part.TARGET, TARGET, 7), (Part.CONNECT, HOST, 9)]
)
def test_design_asks_in_few_round_trips(part: Part, intent: HostIntent, most: int) -> None:
    model = ready(intent)
    model.calls = []
    design(part, intent, model)
    assert len(model.calls) <= most, model.calls
