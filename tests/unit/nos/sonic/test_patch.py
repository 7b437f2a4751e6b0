"""JSON patches: what they look like, and what applying one does."""

import json

import pytest

from fabric.diff import Change, Op
from fabric.errors import FabricError
from fabric.nos.sonic import SONIC

RUNNING = '{"PORT": {"Ethernet0": {"mtu": "9100", "fec": "rs"}}, "VLAN": {"Vlan10": {}}}'


def _patch(*changes: Change) -> list[dict[str, object]]:
    out: list[dict[str, object]] = json.loads(SONIC.payload(changes, SONIC.tree(RUNNING)))
    return out


def test_first_row_of_a_table_adds_the_table() -> None:
    steps = [
        Change(Op.ADD, ("QUEUE", "Ethernet0|3", "scheduler"), after="s"),
        Change(Op.ADD, ("QUEUE", "Ethernet0|3", "wred_profile"), after="w"),
        Change(Op.ADD, ("QUEUE", "Ethernet0|4", "scheduler"), after="s"),
    ]
    value = {"Ethernet0|3": {"scheduler": "s", "wred_profile": "w"}, "Ethernet0|4": {"scheduler": "s"}}
    assert _patch(*steps) == [{"op": "add", "path": "/QUEUE", "value": value}]


def test_new_rows_fields_and_values_each_have_their_operation() -> None:
    assert _patch(
        Change(Op.ADD, ("PORT", "Ethernet4", "mtu"), after="9216"),
        Change(Op.ADD, ("PORT", "Ethernet0", "pfc_asym"), after="off"),
        Change(Op.REPLACE, ("PORT", "Ethernet0", "mtu"), before="9100", after="9216"),
    ) == [
        {"op": "add", "path": "/PORT/Ethernet4", "value": {"mtu": "9216"}},
        {"op": "add", "path": "/PORT/Ethernet0/pfc_asym", "value": "off"},
        {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"},
    ]


def test_removing_one_field_leaves_the_row() -> None:
    assert _patch(Change(Op.REMOVE, ("PORT", "Ethernet0", "fec"), before="rs")) == [
        {"op": "remove", "path": "/PORT/Ethernet0/fec"}
    ]


def test_removing_the_last_field_removes_row_and_table() -> None:
    assert _patch(
        Change(Op.REMOVE, ("PORT", "Ethernet0", "fec"), before="rs"),
        Change(Op.REMOVE, ("PORT", "Ethernet0", "mtu"), before="9100"),
    ) == [{"op": "remove", "path": "/PORT"}]


def test_removing_the_last_row_keeps_other_tables() -> None:
    assert _patch(
        Change(Op.ADD, ("PORT", "Ethernet4", "mtu"), after="1"),
        Change(Op.REMOVE, ("PORT", "Ethernet0", "fec"), before="rs"),
        Change(Op.REMOVE, ("PORT", "Ethernet0", "mtu"), before="9100"),
    )[1:] == [{"op": "remove", "path": "/PORT/Ethernet0"}]


def test_rows_without_fields_come_and_go() -> None:
    assert _patch(Change(Op.ADD, ("VLAN", "Vlan11")), Change(Op.REMOVE, ("VLAN", "Vlan10"))) == [
        {"op": "add", "path": "/VLAN/Vlan11", "value": {}},
        {"op": "remove", "path": "/VLAN/Vlan10"},
    ]


def test_a_row_that_is_to_stay_empty_stays() -> None:
    steps = [
        Change(Op.REMOVE, ("PORT", "Ethernet0", "fec"), before="rs"),
        Change(Op.REMOVE, ("PORT", "Ethernet0", "mtu"), before="9100"),
        Change(Op.ADD, ("PORT", "Ethernet0")),
    ]
    text = SONIC.apply(RUNNING, SONIC.payload(steps, SONIC.tree(RUNNING)))
    assert json.loads(text)["PORT"] == {"Ethernet0": {}}


def test_lists_and_slashes_and_tildes_are_escaped_and_read_back() -> None:
    steps = [
        Change(Op.ADD, ("INTERFACE", "Ethernet0|10.0.0.1/31", "a~b"), after=("1", "2")),
        Change(Op.REPLACE, ("PORT", "Ethernet0", "mtu"), before="9100", after="9216"),
    ]
    payload = SONIC.payload(steps, SONIC.tree(RUNNING))
    more = SONIC.payload(
        [Change(Op.ADD, ("INTERFACE", "Ethernet0|10.0.0.1/31", "c/d"), after="3")],
        SONIC.tree(SONIC.apply(RUNNING, payload)),
    )
    assert json.loads(more)[0]["path"] == "/INTERFACE/Ethernet0|10.0.0.1~131/c~1d"
    data = json.loads(SONIC.apply(SONIC.apply(RUNNING, payload), more))
    assert data["INTERFACE"] == {"Ethernet0|10.0.0.1/31": {"a~b": ["1", "2"], "c/d": "3"}}


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("{", "not JSON"),
        ("{}", "no list"),
        ('["x"]', "has no path"),
        ('[{"op": "add", "path": "", "value": {}}]', "below something that is not there"),
        ('[{"op": "add", "path": "/QUEUE/x/y", "value": "1"}]', "below something that is not there"),
        ('[{"op": "remove", "path": "/QUEUE"}]', "cannot remove what is not there"),
        ('[{"op": "replace", "path": "/PORT/Ethernet4", "value": {}}]', "cannot replace what is not there"),
        ('[{"op": "move", "path": "/PORT", "from": "/VLAN"}]', "an operation that nothing here makes"),
    ],
)
def test_patches_that_do_not_fit_are_refused(payload: str, words: str) -> None:
    with pytest.raises(FabricError, match=words):
        SONIC.apply(RUNNING, payload)
