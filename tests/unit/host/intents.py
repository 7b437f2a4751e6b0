"""A host and a target as the inventory has them, and the steps of a part on the model of one."""

from dataclasses import replace

from fabric.clock import FakeClock
from fabric.host import HostIntent, Part, PartChange, apply_part, design_part
from fabric.host.nvme.connect import Connection
from fabric.plan.model import HostPlan
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem
from tests.unit.host.model import Model
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


def connect_by_hand(model: Model, *more: str) -> None:
    place = ("--transport=rdma", "--traddr=10.10.0.1", "--trsvcid=4420", f"--nqn={KV1}")
    rest = ("--nr-io-queues=8", "--queue-size=128", "--keep-alive-tmo=5", "--reconnect-delay=10", "--ctrl-loss-tmo=600")
    assert model.run(["nvme", "connect", *place, *rest, *more]).ok
