"""Marking curves: scaled, overridden, never rounded in silence, and where they lie against PFC."""

import pytest

from fabric.errors import PlanError
from fabric.intent.model import EcnOverride, RocePolicy, SwitchRole
from fabric.plan.ecn import choose_override
from fabric.qos import Aqm, AqmKind, Fact, PortQos, Threshold
from tests.unit.plan.intents import eos, notes, plan_one, port, switch


def curve(planned: PortQos) -> tuple[int, int, int]:
    queue = planned.queue(3)
    assert queue is not None
    assert isinstance(queue.aqm, Aqm)
    assert isinstance(queue.aqm.kmin, Threshold)
    assert isinstance(queue.aqm.kmax, Threshold)
    assert isinstance(queue.aqm.pmax_percent, int)
    return queue.aqm.kmin.value, queue.aqm.kmax.value, queue.aqm.pmax_percent


@pytest.mark.parametrize(
    ("speed", "kmin", "kmax"), [(100_000, 150_000, 1_500_000), (25_000, 37_500, 375_000), (400_000, 600_000, 6_000_000)]
)
def test_curve_scales_with_the_line_rate(speed: int, kmin: int, kmax: int) -> None:
    planned = plan_one(switch("leaf1", port(speed_mbps=speed)))
    assert curve(planned.qos.ports[0]) == (kmin, kmax, 10)
    assert not notes(planned, "threshold-rounded")


def test_only_the_data_queue_marks() -> None:
    planned = plan_one(switch()).qos.ports[0]
    assert [queue.index for queue in planned.queues if queue.aqm is not None] == [3]
    queue = planned.queue(3)
    assert queue is not None
    assert isinstance(queue.aqm, Aqm)
    assert (queue.aqm.kind, queue.aqm.weight, queue.aqm.counted) == (AqmKind.MARK, 0, True)


def test_override_is_absolute_and_the_most_precise_wins() -> None:
    overrides = (
        EcnOverride(1, 2, 1, role=SwitchRole.LEAF),
        EcnOverride(3, 4, 2, speed_mbps=25_000),
        EcnOverride(5, 6, 3, speed_mbps=25_000, role=SwitchRole.LEAF),
        EcnOverride(7, 8, 4, speed_mbps=25_000, role=SwitchRole.SPINE),
    )

    def chosen(speed: int, role: SwitchRole) -> int | None:
        found = choose_override(overrides, speed_mbps=speed, role=role)
        return None if found is None else found.pmax_percent

    assert chosen(25_000, SwitchRole.LEAF) == 3
    assert chosen(25_000, SwitchRole.SUPERSPINE) == 2
    assert chosen(100_000, SwitchRole.LEAF) == 1
    assert chosen(100_000, SwitchRole.SPINE) is None
    policy = RocePolicy(ecn_overrides=(EcnOverride(50_000, 60_000, 7, speed_mbps=25_000),))
    assert curve(plan_one(switch("leaf1", port(speed_mbps=25_000), policy=policy)).qos.ports[0]) == (50_000, 60_000, 7)


def test_last_of_equal_overrides_wins() -> None:
    overrides = (EcnOverride(1, 2, 1), EcnOverride(3, 4, 2))
    found = choose_override(overrides, speed_mbps=25_000, role=SwitchRole.LEAF)
    assert found is overrides[1]


def test_threshold_between_two_steps_goes_down_with_a_note() -> None:
    planned = plan_one(switch(), threshold_quantum_bytes=Fact(1024, "test"))
    assert curve(planned.qos.ports[0]) == (149_504, 1_499_136, 10)
    kmin, kmax = notes(planned, "threshold-rounded")
    assert kmin.text == "100G: Kmin 150000 B becomes 149504 B, a multiple of 1024 B"
    assert kmin.ports == ("Ethernet0",)
    assert kmax.text == "100G: Kmax 1500000 B becomes 1499136 B, a multiple of 1024 B"


def test_fraction_of_a_byte_is_noted_too() -> None:
    planned = plan_one(switch("leaf1", port(speed_mbps=25_000), policy=RocePolicy(ecn_kmin_bytes=150_001)))
    assert [note.text for note in notes(planned, "threshold-rounded")] == [
        "25G: Kmin 37500.25 B becomes 37500 B, a multiple of 1 B"
    ]


def test_threshold_below_one_step_becomes_one_step() -> None:
    planned = plan_one(switch(policy=RocePolicy(ecn_kmin_bytes=100)), threshold_quantum_bytes=Fact(1000, "test"))
    assert curve(planned.qos.ports[0])[0] == 1000


def test_reversed_curve_is_refused() -> None:
    with pytest.raises(PlanError, match="Kmin is above Kmax at 100G"):
        plan_one(switch(policy=RocePolicy(ecn_kmin_bytes=200, ecn_kmax_bytes=100)))


def test_ecn_off_leaves_no_curve_and_says_so() -> None:
    planned = plan_one(switch(policy=RocePolicy(ecn_enabled=False)))
    assert all(queue.aqm is None for queue in planned.qos.ports[0].queues)
    assert notes(planned, "ecn-off")
    assert planned.lossless


def test_order_against_pfc_reports_both_crossings() -> None:
    (note,) = notes(plan_one(switch()), "ecn-before-pfc")
    assert "before Kmin 150000 B from 176 congested" in note.text
    assert "before Kmax 1500000 B from 17 on; the plan has 1 of them" in note.text
    assert note.ports == ("Ethernet0",)


@pytest.mark.parametrize(
    ("count", "code"), [(16, "ecn-before-pfc"), (17, "ecn-kmax-after-pfc"), (176, "ecn-after-pfc")]
)
def test_order_against_pfc_depends_on_the_number_of_lossless_groups(count: int, code: str) -> None:
    ports = [port(f"Ethernet{n}") for n in range(count)]
    planned = plan_one(switch("leaf1", *ports))
    assert notes(planned, code)
    assert planned.lossless


def test_policys_alpha_counts_before_the_boards() -> None:
    (note,) = notes(plan_one(switch(policy=RocePolicy(alpha_log2=-3))), "ecn-before-pfc")
    assert note.text.startswith("100G: with alpha 2^-3 of a 26451968 B pool, PFC pauses before Kmin 150000 B from 169 ")


def test_unknown_pool_is_said_once() -> None:
    planned = plan_one(eos("leaf1", port(), port("Ethernet1", speed_mbps=25_000), asic="jericho2c+"))
    assert len(notes(planned, "ecn-before-pfc-unknown")) == 1
