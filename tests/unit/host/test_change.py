"""Changes of a host as data: they come back from JSON equal, whatever the actions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.host.actions import (
    Action,
    ControllerAttribute,
    Link,
    MakeFolder,
    PutFile,
    RemoveFolder,
    RemoveLink,
    Run,
    Write,
    actions_from_json,
    actions_to_json,
)
from fabric.host.change import HostIntent, Part, PartChange, change_from_json, change_to_json, intent_from_json
from fabric.host.nvme.connect import Connection
from fabric.plan.model import HostPlan
from fabric.serial import Json, SerialError, to_json
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem
from tests.unit.host.nics import nic

KINDS = (Run, Write, PutFile, MakeFolder, RemoveFolder, Link, RemoveLink, ControllerAttribute)
ACTIONS: st.SearchStrategy[Action] = st.one_of(*(st.from_type(kind) for kind in KINDS))
CHANGES = st.builds(
    PartChange,
    st.text(),
    st.sampled_from(Part),
    st.lists(ACTIONS, max_size=4).map(tuple),
    st.lists(ACTIONS, max_size=4).map(tuple),
    st.text(),
    *(st.lists(st.text(), max_size=2).map(tuple) for _ in range(3)),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_action_comes_back_equal(kind: type[Action]) -> None:
    @given(st.from_type(kind))
    def check(action: Action) -> None:
        text = json.dumps(actions_to_json([action]))
        (found,) = actions_from_json(json.loads(text))
        assert found == action
        assert type(found) is kind

    check()


@given(CHANGES)
def test_change_comes_back_equal(change: PartChange) -> None:
    assert change_from_json(json.loads(json.dumps(change_to_json(change)))) == change


def test_intent_comes_back_equal() -> None:
    target = NvmetState(
        (NvmetSubsystem("nqn.2026-01.net.example:kv1", True, (), ((1, "/dev/ram0", True),)),),
        (NvmetPort(1, "rdma", "192.0.2.11", "4420", ("nqn.2026-01.net.example:kv1",)),),
    )
    one = Connection("nqn.2026-01.net.example:kv1", "192.0.2.11", 4420, "192.0.2.21", "ens1f0np0", 104)
    intent = HostIntent("gpu1", "host", HostPlan("gpu1", "host", (nic(),)), (one,), target)
    assert intent_from_json(json.loads(json.dumps(to_json(intent)))) == intent


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (None, r"\$: found NoneType"),
        ({}, r"\$.forward|missing"),
        ({"forward": [{"do": "format-disk"}]}, "missing|no kind of action"),
        ({"host": "a", "part": "nic", "forward": [{"do": "format-disk"}], "backward": [], "diff": ""}, "no kind"),
        ({"host": "a", "part": "nic", "forward": [3], "backward": [], "diff": ""}, r"forward\[0\]: found int"),
        ({"host": "a", "part": "nic", "forward": {}, "backward": [], "diff": ""}, "expected a list"),
        ({"host": "a", "part": "nic", "forward": [{"do": "write"}], "backward": [], "diff": ""}, r"forward\[0\]"),
    ],
)
def test_what_is_no_change_is_refused_with_its_place(data: Json, where: str) -> None:
    with pytest.raises(SerialError, match=where):
        change_from_json(data)
