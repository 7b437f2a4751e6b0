"""The model, against the numbers of the simulation study."""

from dataclasses import replace

import pytest

from fabric.errors import IntentError
from fabric.tune import INFEASIBLE, Buffer, PathModel, ScalingLaw, Space, advise, fan_in, needed_bytes
from fabric.tune.model import distinct_uplinks, io_size_bounds, p99_ns, queue_bytes, spread

KIB, MIB = 1 << 10, 1 << 20
HUNDRED = 12.5e9
LOSSLESS_WIRE = ((4096, 1.0),)
SPACE = Space.between(queues=16, depth=128, mdts_bytes=MIB)


def path(rtt_us: int = 10, service_us: int = 90, **more: object) -> PathModel:
    given = {"efficiency": LOSSLESS_WIRE, "service_p99_ns": 5 * service_us * 1000, **more}
    return PathModel(HUNDRED, rtt_us * 1000, max(1, service_us * 1000), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rate", "us", "wanted"), [(12.5e9, 10, 125e3), (12.5e9, 100, 1.25e6), (50e9, 120, 6e6)])
def test_littles_law_gives_the_numbers_of_the_study(rate: float, us: int, wanted: float) -> None:
    model = PathModel(rate, us * 500, us * 500, us * 500, efficiency=LOSSLESS_WIRE)
    assert needed_bytes(model) == pytest.approx(wanted)


def test_a_slow_device_needs_less_in_flight() -> None:
    assert needed_bytes(path(device_bytes_per_s=1.25e9)) == pytest.approx(125e3)


def test_the_efficiency_is_that_of_the_mtu() -> None:
    table = ((1024, 0.9), (4096, 0.97))
    shares = [path(efficiency=table, mtu_bytes=mtu).wire_efficiency for mtu in (512, 1024, 2048, 4096, 9000)]
    assert shares == [0.9, 0.9, 0.9, 0.97, 0.97]


def test_cpu_bounds_the_command_from_below_and_pipelining_from_above() -> None:
    least, most = io_size_bounds(path(command_cpu_ns=40_000, cores=8))
    assert least == pytest.approx(62_500)  # 40 us x 12.5 GB/s over 8 cores
    assert most == pytest.approx(1.25e6 / 4)


STUDY = Buffer(4 * MIB, headroom_sum_bytes=33 * 37_500, reserved_sum_bytes=33 * 4096, reserved_bytes=4096)


@pytest.mark.parametrize(("senders", "wanted_kb"), [(4, 165), (8, 383), (16, 819), (32, 1691)])
def test_the_queue_of_a_window_limited_incast_is_that_of_the_study(senders: int, wanted_kb: int) -> None:
    """O4: Q = (N W - RTT / t_ser) S with W = 52 packets, RTT / t_ser = 50.3 and 1,048 B on the wire."""
    packet = 1048
    model = PathModel(HUNDRED, round(50.3 * packet / HUNDRED * 1e9), 1, 1)
    assert queue_bytes(model, senders * 52 * packet) / 1000 == pytest.approx(wanted_kb, abs=packet / 1000)


def test_the_fan_in_bound_is_that_of_the_study() -> None:
    """32 to 1 on 4 MiB is foreseen to be safe, and was measured to cause no pause."""
    model = path(rtt_us=4, service_us=1, fan_in=32, buffer=STUDY)
    bounds = fan_in(model)
    assert bounds.unpaused_bytes is not None
    assert 1_691_000 < bounds.unpaused_bytes - model.bdp_bytes == pytest.approx(2_388_000, rel=0.02)
    assert bounds.unmarked_bytes is None
    assert bounds.safe_bytes == pytest.approx(model.bdp_bytes + (bounds.unpaused_bytes - model.bdp_bytes) / 2)


def test_marking_bounds_the_fan_in_too() -> None:
    model = path(fan_in=8, buffer=replace(STUDY, kmin_bytes=100_000))
    bounds = fan_in(model)
    assert bounds.unmarked_bytes == model.bdp_bytes + 100_000 == bounds.tightest_bytes()
    assert bounds.tightest_bytes(marks=True) == bounds.safe_bytes


def test_a_path_without_a_switch_is_bounded_by_little_alone() -> None:
    advice = advise(path(), SPACE)
    assert advice.feasible
    assert advice.bounds.tightest_bytes() is None
    assert advice.notes == ()
    assert advice.knobs.queues * advice.knobs.depth * advice.knobs.transfer_bytes >= 1.25e6
    assert advice.knobs.transfer_bytes == 256 * KIB


def test_depth_then_size_are_reduced_when_the_bound_is_below_what_fills_the_path() -> None:
    space = replace(SPACE, receiver_bytes=(64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB))
    advice = advise(path(fan_in=4, buffer=replace(STUDY, kmin_bytes=200_000)), space)
    assert advice.feasible
    assert advice.knobs.transfer_bytes == 64 * KIB
    assert advice.knobs.receiver_bytes == 256 * KIB
    assert "depth reduced" in advice.notes[0]
    assert "transfers reduced" in advice.notes[1]


def test_more_sources_than_the_bound_admits_need_the_receivers_window() -> None:
    advice = advise(path(fan_in=32, buffer=replace(STUDY, kmin_bytes=200_000)), SPACE)
    assert advice.feasible
    assert "the receiver's window is the credit" in advice.notes[-1]


def test_no_room_for_one_command_is_said_to_be_infeasible() -> None:
    advice = advise(path(rtt_us=1, fan_in=8, buffer=Buffer(64 * KIB, pfc=False)), SPACE)
    assert not advice.feasible
    assert advice.notes[-1].startswith(INFEASIBLE)


def test_the_law_chooses_the_queues() -> None:
    law = ScalingLaw(4e9, 0.0, 0.0, 0.0)  # four queues fill 12.5 GB/s to 97 %
    assert advise(path(), SPACE, law).knobs.queues == 4
    assert advise(path(cores=2), SPACE, law).knobs.queues == 2


def test_latency_grows_with_what_waits_at_the_egress() -> None:
    model = path()
    assert p99_ns(model, model.bdp_bytes) == pytest.approx(460_000)
    assert p99_ns(model, model.bdp_bytes + 1.25e6) == pytest.approx(560_000)


def test_placement_formulas() -> None:
    assert spread(100, 1) == 1.0
    assert spread(200 * 8 * 2, 8) == pytest.approx(1.1, abs=0.01)
    assert distinct_uplinks(1, 5) == 1.0
    assert distinct_uplinks(4, 1) == pytest.approx(1.0)
    assert distinct_uplinks(4, 16) == pytest.approx(4 * (1 - 0.75**16))


def test_a_path_without_a_link_is_refused() -> None:
    with pytest.raises(IntentError) as caught:
        PathModel(0, 0, 1, 1, efficiency=())
    assert [one.field for one in caught.value.problems] == ["link_bytes_per_s", "base_rtt_ns", "efficiency"]
