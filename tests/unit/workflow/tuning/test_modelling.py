"""The path before the first trial: the space that targets grant, and the buffer that the plan has."""

from dataclasses import replace

import pytest

from fabric.engine.client import Description
from fabric.engine.load import Job
from fabric.intent.model import Endpoint, Fabric, Host, HostNic
from fabric.plan import FabricPlan
from fabric.plan.model import SwitchPlan
from fabric.qos import UNKNOWN
from fabric.qos.device import BufferPool, DeviceQos, PortQos
from fabric.qos.queue import Aqm, AqmKind, QueueQos, Threshold, ThresholdUnit
from fabric.workflow.loads import Pattern
from fabric.workflow.tuning.measuring import _in_bursts, bulk_free
from fabric.workflow.tuning.modelling import _open_requests, buffer_at, space_of
from tests.unit.workflow.test_expanding import expanded, phase, profile

KIB, MIB = 1 << 10, 1 << 20
GRANT = Description("nqn", 1, 512, 1 << 20, 1 << 29, queues=32, depth=127, transfer_bytes=MIB, mdts_bytes=512 * KIB)
NIC = HostNic("ens1", "mlx5", 100_000, 9000, peer=Endpoint("leaf1", "Ethernet0"))
FABRIC = Fabric("f", (), (Host("gpu1", (NIC,)),))


def test_no_transfer_is_longer_than_the_tightest_target_takes_or_a_request_is() -> None:
    small = replace(GRANT, queues=8, depth=63, mdts_bytes=None)
    space = space_of((GRANT, small), 2 * MIB)
    assert (space.queues[-1], space.depth[-1], space.transfer_bytes[-1]) == (8, 63, 512 * KIB)
    assert space_of((small,), 48 * KIB).transfer_bytes == (64 * KIB,)
    assert space_of((small,), 4096).transfer_bytes == (4096,)


def test_a_gentle_space_is_small() -> None:
    space = space_of((GRANT,), MIB, is_gentle=True)
    assert (space.queues[-1], space.depth[-1]) == (4, 16)


def plan_with(pool: BufferPool, kmin: Threshold | None) -> FabricPlan:
    aqm = None if kmin is None else Aqm(AqmKind.MARK, kmin, UNKNOWN, 10)
    port = PortQos("Ethernet0", queues=(QueueQos(3, aqm=aqm),))
    return FabricPlan("f", (SwitchPlan("leaf1", "sonic", DeviceQos("leaf1", "sonic", (port,), pools=(pool,))),))


def test_the_buffer_is_that_of_the_switch_before_the_host() -> None:
    pool = BufferPool("ingress_lossless_pool", "ingress", 32 * MIB)
    buffer = buffer_at(FABRIC, plan_with(pool, Threshold(150_000)), "gpu1")
    assert buffer is not None
    assert (buffer.total_bytes, buffer.kmin_bytes, buffer.threshold_shift) == (32 * MIB, 150_000, 3)


@pytest.mark.parametrize(
    ("pool", "host"),
    [
        (BufferPool("p", "ingress"), "gpu1"),
        (BufferPool("p", "egress", MIB), "gpu1"),
        (BufferPool("p", "ingress", MIB), "gpu2"),
    ],
)
def test_a_buffer_of_unknown_size_bounds_nothing(pool: BufferPool, host: str) -> None:
    assert buffer_at(FABRIC, plan_with(pool, None), host) is None


def test_a_threshold_that_is_not_in_bytes_bounds_no_marks() -> None:
    pool = BufferPool("p", "both", MIB)
    buffer = buffer_at(FABRIC, plan_with(pool, Threshold(10, ThresholdUnit.PERCENT)), "gpu1")
    assert buffer is not None
    assert buffer.kmin_bytes is None


def job() -> Job:
    (one,) = expanded(profile(phase(Pattern.INCAST))).rounds
    return next(iter(one.jobs.values()))


def test_a_burst_rests_until_all_that_was_asked_for_is_there() -> None:
    found = _in_bursts(job(), 100_000)
    wire_ns = len(found.streams) * found.readers * found.size_bytes * 8 * 1000 // 100_000
    assert found.off_ns >= 10 * wire_ns > 0
    assert found.seconds * 1e9 >= 3 * (found.on_ns + found.off_ns)


def test_lossy_traffic_is_left_out_of_light_reads() -> None:
    one = job()
    bulk = replace(one.streams[0], name="to-gpu2", url="tcp-send://192.0.2.2:47100")
    assert bulk_free(replace(one, streams=(*one.streams, bulk))) == one


def test_requests_are_counted_by_the_target_that_has_the_most_of_them() -> None:
    one = job()
    stream = one.streams[0]
    names = ("t1/a", "t1/b", "t2/a")
    several = replace(one, readers=3, streams=tuple(replace(stream, name=name) for name in names))
    assert _open_requests(several) == 3 * 2 * 2
