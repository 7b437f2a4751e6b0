"""The multipath policy that the inventory asks for: set on what stands, written for the next boot, and taken back."""

from dataclasses import replace

from fabric.clock import FakeClock
from fabric.host import HostIntent, Part, apply_part, design_part, revert_part
from fabric.host.units import IOPOLICY_RULES
from tests.unit.host.intents import HOST, KV1, UUID, ready
from tests.unit.host.model import Model


def wanting(policy: str) -> HostIntent:
    (one,) = HOST.connections
    return replace(HOST, connections=(replace(one, policy=replace(one.policy, iopolicy=policy)),))


def apply(intent: HostIntent, model: Model) -> str:
    change = design_part(Part.CONNECT, intent, model, new_uuid=UUID)
    apply_part(
        change, model, redesign=lambda: design_part(Part.CONNECT, intent, model, new_uuid=UUID), clock=FakeClock()
    )
    return change.diff


def test_other_policy_is_set_without_connecting_anew_and_taken_back() -> None:
    model = ready(HOST)
    apply(HOST, model)
    before, controllers = model.snapshot(), dict(model.controllers)

    change = design_part(Part.CONNECT, wanting("numa"), model, new_uuid=UUID)
    assert f"{KV1} iopolicy" in change.diff
    assert not change.disruptive
    apply(wanting("numa"), model)

    assert model.policies == {KV1: "numa"}
    assert model.controllers == controllers
    assert 'ATTR{iopolicy}="numa"' in model.files[IOPOLICY_RULES][0]
    assert design_part(Part.CONNECT, wanting("numa"), model, new_uuid=UUID).is_empty
    revert_part(change, model)
    assert model.snapshot() == before
