"""The three parts of a host that is not bare: what drifted, and targets and connections that stand there already."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fabric.clock import FakeClock
from fabric.errors import HostError
from fabric.host import Part, PartChange, apply_part, revert_part
from fabric.host.executor import perform_all
from fabric.host.nvme.connect import Connection
from fabric.host.nvme.target import read_target, target_actions
from fabric.host.units import LINK_UNIT, connection_unit
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem
from tests.unit.host.intents import (
    HOST,
    KV1,
    KV2,
    ONE,
    PUBLISHED,
    TARGET,
    TWO,
    UUID,
    apply,
    connect_by_hand,
    design,
    ready,
)
from tests.unit.host.model import Model
from tests.unit.host.network import Netdev

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
