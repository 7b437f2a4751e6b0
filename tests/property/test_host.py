"""Properties of hosts: the target's changes are taken by the kernel's rules, shares sum up, words survive systemd."""

import re

from hypothesis import given
from hypothesis import strategies as st

from fabric.errors import HostError
from fabric.host import names
from fabric.host.families.common import found_classes, planned_classes
from fabric.host.nvme.target import planned_target, removal_actions, target_actions
from fabric.host.parse.lldp import with_tlv
from fabric.intent.model import Namespace, NvmePort, NvmeTarget, Subsystem
from fabric.state.host import DcbxState, NicState, NvmetState
from tests.unit.host.nics import nic
from tests.unit.host.test_nvme import Kernel, bare

NQNS = st.sampled_from([f"nqn.2026-01.net.example:{name}" for name in ("a", "b", "c")])
SPACES = st.lists(st.sampled_from([Namespace(n, f"/dev/ram{n % 2}") for n in range(1, 5)]), max_size=3, unique=True)
SUBSYSTEMS = st.builds(
    lambda nqn, spaces, hosts: Subsystem(nqn, tuple(sorted(spaces, key=lambda one: one.nsid)), tuple(hosts)),
    NQNS,
    SPACES,
    st.lists(NQNS, max_size=2, unique=True),
)
TARGETS = st.builds(
    lambda subsystems, ports: NvmeTarget("kv", (), tuple(subsystems), tuple(NvmePort(port) for port in ports)),
    st.lists(SUBSYSTEMS, min_size=3, max_size=3, unique_by=lambda one: one.nqn).map(
        lambda found: sorted(found, key=lambda one: one.nqn)
    ),
    st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]), min_size=1, max_size=3, unique=True),
)


@given(TARGETS, TARGETS)
def test_kernel_takes_every_change_of_a_target(first: NvmeTarget, second: NvmeTarget) -> None:
    kernel = Kernel()
    found = kernel.take(target_actions(planned_target(first)))
    assert found == planned_target(first)
    wanted = planned_target(second)
    found = kernel.take(target_actions(wanted, found))
    assert bare(found) == bare(wanted)
    assert target_actions(wanted, found) == ()
    kernel.take(removal_actions(found))
    assert kernel.state() == NvmetState()


@given(
    st.lists(st.integers(0, 7), min_size=8, max_size=8),
    st.lists(st.integers(0, 100), min_size=8, max_size=8),
    st.integers(0, 7),
)
def test_shares_of_a_plan_sum_to_a_hundred(prio_tc: list[int], shares: list[int], cnp: int) -> None:
    classes = planned_classes(nic(prio_tc=tuple(prio_tc), ets_percent=tuple(shares), cnp_priority=cnp))
    shared = [percent for _, kind, percent in classes if kind == "ets"]
    assert sum(shared) in ({100} if shared else {0})
    assert sorted(priority for members, _, _ in classes for priority in members) == list(range(8))
    assert [members for members, kind, _ in classes if kind == "strict" and cnp in members] != []


@given(
    st.lists(st.integers(0, 7), min_size=8, max_size=8),
    st.lists(st.integers(0, 100), min_size=8, max_size=8),
    st.lists(st.sampled_from(["ets", "strict"]), min_size=8, max_size=8),
)
def test_ets_tlv_says_what_was_packed(prio_tc: list[int], shares: list[int], tsa: list[str]) -> None:
    packed = bytes(high << 4 | low for high, low in zip(prio_tc[::2], prio_tc[1::2], strict=True))
    kinds = bytes({"ets": 2, "strict": 0}[kind] for kind in tsa)
    found = with_tlv(DcbxState(), 9, bytes([0]) + packed + bytes(shares) + kinds)
    assert (found.prio_tc, found.ets_percent, found.tsa) == (tuple(prio_tc), tuple(shares), tuple(tsa))
    classes = found_classes(NicState(prio_tc=tuple(prio_tc), ets_percent=tuple(shares), tsa=tuple(tsa)))
    assert isinstance(classes, tuple)
    assert sorted(priority for members, _, _ in classes for priority in members) == list(range(8))


@given(st.text())
def test_word_of_a_unit_is_read_back_by_systemds_rules(text: str) -> None:
    try:
        word = names.unit_word(text)
    except HostError:
        return
    assert "\n" not in word
    inner = re.sub(r"\\(.)", r"\1", word[1:-1], flags=re.DOTALL) if word.startswith('"') else word
    assert inner.replace("%%", "%").replace("$$", "$") == text


@given(st.text(max_size=40))
def test_checked_names_hold_nothing_that_separates(text: str) -> None:
    for check in (names.netdev, names.rdma_device, names.nqn, names.configfs_nqn, names.block_device, names.module):
        try:
            accepted = check(text)
        except HostError:
            continue
        assert not set(accepted) & set(" \t\n\r,;\"'`$\\|&<>()%")
        assert ".." not in accepted.split("/")
