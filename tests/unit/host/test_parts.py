"""The three parts of a host on a model that keeps state: there, again, back, through faults and boots."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabric.clock import FakeClock
from fabric.errors import HostError, RollbackFailedError
from fabric.host import HostIntent, Part, apply_part, revert_part
from fabric.host.change import change_from_json, change_to_json
from fabric.host.units import LINK_UNIT, QOS_UNIT, TARGET_UNIT, connection_unit
from fabric.plan.model import HostPlan
from tests.unit.host.intents import (
    HOST,
    KV1,
    NIC,
    ONE,
    TARGET,
    apply,
    bare,
    connect_by_hand,
    design,
    parts,
    ready,
)
from tests.unit.host.model import Model
from tests.unit.host.network import Netdev

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


# --- round trips ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "intent", "most"), [(Part.NIC, HOST, 6), (Part.TARGET, TARGET, 7), (Part.CONNECT, HOST, 9)]
)
def test_design_asks_in_few_round_trips(part: Part, intent: HostIntent, most: int) -> None:
    model = ready(intent)
    model.calls = []
    design(part, intent, model)
    assert len(model.calls) <= most, model.calls
