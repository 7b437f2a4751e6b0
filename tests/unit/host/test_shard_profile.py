"""The engine's profile on a host: put, read back, judged, taken away."""

from dataclasses import replace

import pytest

from fabric.clock import FakeClock
from fabric.host import HostIntent, Part, RecordedExecutor, apply_part, design_part, read_host, revert_part
from fabric.host.judge import host_findings
from fabric.policy import PROFILE_PATH, ShardPolicy, ShardProfile, profile_to_text
from fabric.qos import UNKNOWN, Known
from fabric.remote.ssh import ExecResult
from fabric.state import Status
from tests.unit.host.intents import HOST, UUID, ready
from tests.unit.host.model import Model
from tests.unit.host.right import report

TEXT = profile_to_text(ShardProfile(ShardPolicy(queues=6)))
TUNED = replace(HOST, shard_profile=TEXT)


def connect(intent: HostIntent, model: Model) -> str:
    change = design_part(Part.CONNECT, intent, model, new_uuid=UUID)
    apply_part(
        change,
        model,
        redesign=lambda: design_part(Part.CONNECT, intent, model, new_uuid=UUID),
        clock=FakeClock(),
    )
    return change.diff


@pytest.mark.parametrize("intent", [TUNED, replace(TUNED, connections=())])
def test_a_profile_is_put_changed_and_taken_away(intent: HostIntent) -> None:
    model = ready(HOST)
    assert f"+++ {PROFILE_PATH}" in connect(intent, model)
    assert model.files[PROFILE_PATH] == (TEXT, 0o644)
    assert connect(intent, model) == ""
    other = profile_to_text(ShardProfile(ShardPolicy(queues=2)))
    change = design_part(Part.CONNECT, replace(intent, shard_profile=other), model, new_uuid=UUID)
    assert not change.disruptive
    apply_part(
        change,
        model,
        redesign=lambda: design_part(Part.CONNECT, replace(intent, shard_profile=other), model, new_uuid=UUID),
        clock=FakeClock(),
    )
    assert model.files[PROFILE_PATH] == (other, 0o644)
    revert_part(change, model)
    assert model.files[PROFILE_PATH] == (TEXT, 0o644)
    connect(replace(intent, shard_profile=""), model)
    assert PROFILE_PATH not in model.files


@pytest.mark.parametrize(
    ("wanted", "stands", "status"),
    [
        (TEXT, TEXT, Status.PASS),
        (TEXT, "", Status.FAIL),
        (TEXT, "{}", Status.FAIL),
        (TEXT, UNKNOWN, Status.UNKNOWN),
        ("", "{}", Status.FAIL),
        ("", "", None),
        ("", UNKNOWN, None),
    ],
)
def test_a_profile_that_differs_is_a_finding(wanted: str, stands: Known[str], status: Status | None) -> None:
    intent = replace(HOST, shard_profile=wanted)
    found = host_findings(intent, replace(report(intent), shard_profile=stands), {})
    own = [one.status for one in found if one.rule == "shard-profile-differs"]
    assert own == ([] if status is None else [status])


def test_what_stands_is_read_back() -> None:
    question = ("test", "-e", PROFILE_PATH)
    there = RecordedExecutor({question: ExecResult(0, "", "")}, {PROFILE_PATH: TEXT})
    assert read_host(HOST, there).shard_profile == TEXT
    assert read_host(HOST, RecordedExecutor({question: ExecResult(1, "", "")})).shard_profile == ""
    assert read_host(HOST, RecordedExecutor({question: ExecResult(0, "", "")})).shard_profile is UNKNOWN
    assert read_host(HOST, RecordedExecutor()).shard_profile is UNKNOWN
