"""What a target reports by itself: namespaces that come and go, and the discovery log."""

import pytest

from fabric.engine.nvmeof.errors import NotReadyError
from fabric.engine.nvmeof.host import (
    Completed,
    ControllerState,
    DiscoveryLog,
    EventSeen,
    Failed,
    NamespacesChanged,
    Read,
    Ready,
    Reconnecting,
)
from fabric.engine.nvmeof.target import NVMET, Subsystem, TargetProfile
from fabric.engine.nvmeof.wire.events import EventKind
from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.errors import TransportError
from tests.unit.engine.nvmeof.rig import NAMESPACE, NQN, SECOND, Message, Rig, arrive, rig
from tests.unit.engine.nvmeof.test_pair import PROFILES


@PROFILES
def test_an_added_namespace_is_found_and_usable(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()

    pair.target.add_namespace(NQN, 7, NAMESPACE)
    pair.settle()

    assert pair.of(NamespacesChanged) == [NamespacesChanged(added=(7,))]
    request = pair.host.submit(1, Read(7, 0, 1, pair.region(0, 512)), pair.now_ns)
    pair.settle()
    assert isinstance(pair.end_of(request), Completed)


@PROFILES
def test_namespaces_that_change_one_after_another_are_all_reported(profile: TargetProfile) -> None:
    pair = rig(profile)
    pair.bring_up()

    for step in range(10):
        pair.target.add_namespace(NQN, 2, IdentifyNamespace(1000 + step, 12))
        pair.settle()
    pair.target.remove_namespace(NQN, 1)
    pair.settle()

    assert pair.of(NamespacesChanged) == [
        NamespacesChanged(added=(2,)),
        *[NamespacesChanged(changed=(2,))] * 9,
        NamespacesChanged(removed=(1,)),
    ]
    assert {nsid: one.blocks for nsid, one in pair.host.namespaces.items()} == {2: 1009}


def test_a_change_during_a_scan_is_not_lost() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    pair.target.add_namespace(NQN, 2, NAMESPACE)
    for _ in range(4):
        pair.step()
    pair.target.add_namespace(NQN, 3, NAMESPACE)
    pair.settle()

    assert tuple(pair.host.namespaces) == (1, 2, 3)


def test_a_change_while_the_controller_was_away_is_reported_when_it_is_back() -> None:
    pair = rig(NVMET)
    pair.bring_up()

    pair.break_connection(0)
    pair.target.add_namespace(NQN, 5, NAMESPACE)
    pair.advance(SECOND)

    assert pair.of(NamespacesChanged) == [NamespacesChanged(added=(5,))]
    assert len(pair.of(Ready)) == 2


def test_a_namespace_with_metadata_is_left_out() -> None:
    pair = rig(NVMET)
    pair.target.add_namespace(NQN, 2, IdentifyNamespace(100, 12, metadata_bytes=8))

    pair.bring_up()

    assert tuple(pair.host.namespaces) == (1,)


def test_more_namespaces_than_a_page_lists() -> None:
    pair = rig(NVMET)
    for nsid in range(2, 1100):
        pair.target._subsystems[NQN].namespaces[nsid] = NAMESPACE

    pair.bring_up()

    assert tuple(pair.host.namespaces) == tuple(range(1, 1100))


def discovery(profile: TargetProfile, subsystems: int) -> Rig:
    """A host of the discovery service of a target with so many subsystems."""
    pair = rig(profile, subnqn=DISCOVERY_NQN, kato_ms=0)
    for index in range(1, subsystems):
        pair.target.add_subsystem(Subsystem(f"{NQN}{index}"))
    pair.bring_up()
    return pair


@PROFILES
@pytest.mark.parametrize("count", [1, 4, 5, 11])
def test_a_discovery_log_is_read_whole(profile: TargetProfile, count: int) -> None:
    pair = discovery(profile, count)

    pair.host.read_discovery_log(pair.now_ns)
    pair.settle()

    (log,) = pair.of(DiscoveryLog)
    assert isinstance(log, DiscoveryLog)
    assert [one.subnqn for one in log.entries] == [NQN, *(f"{NQN}{index}" for index in range(1, count))]
    assert {(one.address, one.service) for one in log.entries} == {("10.0.0.1", "4420")}


def test_a_discovery_log_that_changes_while_it_is_read_is_read_again() -> None:
    pair = discovery(NVMET, 9)
    pair.host.read_discovery_log(pair.now_ns)
    while len([one for one in pair.sent if one.capsule[0] == 0x02]) < 2:
        pair.step()

    pair.target.add_subsystem(Subsystem(f"{NQN}-late"))
    pair.settle()

    (log,) = pair.of(DiscoveryLog)
    assert isinstance(log, DiscoveryLog)
    assert len(log.entries) == 10


def test_a_discovery_log_that_never_rests_is_given_up() -> None:
    pair = discovery(NVMET, 3)

    def restless(message: Message) -> list[int]:
        if message.kind == "capsule":
            pair.target._discovery.changed()
        return [0]

    pair.fate = restless
    request = pair.host.read_discovery_log(pair.now_ns)
    pair.settle()

    end = pair.end_of(request)
    assert isinstance(end, Failed)
    assert "changed each time" in str(end.error)
    pair.fate = arrive
    pair.host.read_discovery_log(pair.now_ns)
    pair.settle()
    assert len(pair.of(DiscoveryLog)) == 1


def test_only_one_discovery_log_is_read_at_a_time() -> None:
    pair = discovery(NVMET, 1)
    first = pair.host.read_discovery_log(pair.now_ns)

    with pytest.raises(NotReadyError):
        pair.host.read_discovery_log(pair.now_ns)
    pair.break_connection(0, TransportError("gone"))
    pair.advance(SECOND)

    assert isinstance(pair.end_of(first), Failed)
    assert pair.of(Reconnecting)
    assert pair.host.state is ControllerState.LIVE


def test_a_host_sees_only_the_subsystems_that_it_may_use() -> None:
    pair = rig(NVMET, subnqn=DISCOVERY_NQN, kato_ms=0)
    pair.target.add_subsystem(Subsystem(f"{NQN}-closed", allowed_hosts=frozenset()))
    pair.bring_up()
    pair.host.read_discovery_log(pair.now_ns)
    pair.settle()

    (log,) = pair.of(DiscoveryLog)
    assert isinstance(log, DiscoveryLog)
    assert [one.subnqn for one in log.entries] == [NQN]


def test_a_new_subsystem_is_announced_to_hosts_of_the_discovery_service() -> None:
    pair = discovery(NVMET, 1)

    pair.target.add_subsystem(Subsystem(f"{NQN}-new"))
    pair.settle()

    (seen,) = pair.of(EventSeen)
    assert isinstance(seen, EventSeen)
    assert seen.event.kind is EventKind.DISCOVERY_CHANGED
