"""JSON Patch as RFC 6902 has it; cases after its appendix A, with own data."""

import json

import pytest

from fabric.lab.sonic.configdb import Database
from fabric.lab.sonic.patch import PatchError, apply_patch, difference, read_patch, split_pointer

BASE: Database = {"PORT": {"Ethernet0": {"mtu": "9100"}}, "QUEUE": {"Ethernet0|3": {"scheduler": "s"}}}


def patched(base: object, *operations: dict[str, object]) -> object:
    return apply_patch(base, read_patch(json.dumps(operations)))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a", "value": 1}, {"a": 1, "l": [1, 2]}),
        ({"op": "add", "path": "/l/1", "value": 9}, {"a": 0, "l": [1, 9, 2]}),
        ({"op": "add", "path": "/l/-", "value": 9}, {"a": 0, "l": [1, 2, 9]}),
        ({"op": "add", "path": "", "value": {}}, {}),
        ({"op": "remove", "path": "/a"}, {"l": [1, 2]}),
        ({"op": "remove", "path": "/l/0"}, {"a": 0, "l": [2]}),
        ({"op": "replace", "path": "/a", "value": None}, {"a": None, "l": [1, 2]}),
        ({"op": "replace", "path": "/l/0", "value": 5}, {"a": 0, "l": [5, 2]}),
        ({"op": "replace", "path": "", "value": 5}, 5),
        ({"op": "move", "from": "/a", "path": "/b"}, {"b": 0, "l": [1, 2]}),
        ({"op": "copy", "from": "/l", "path": "/a"}, {"a": [1, 2], "l": [1, 2]}),
        ({"op": "test", "path": "/l", "value": [1, 2]}, {"a": 0, "l": [1, 2]}),
    ],
)
def test_operation(operation: dict[str, object], expected: object) -> None:
    assert patched({"a": 0, "l": [1, 2]}, operation) == expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "add", "path": "/NONE/x", "value": 1}, "member 'NONE' not found"),
        ({"op": "add", "path": "/PORT/Ethernet0/mtu/x", "value": 1}, "below a value"),
        ({"op": "add", "path": "/l/9", "value": 1}, "out of range"),
        ({"op": "remove", "path": "/PORT/Ethernet9"}, "can't remove a non-existent object 'Ethernet9'"),
        ({"op": "remove", "path": ""}, "cannot be removed"),
        ({"op": "replace", "path": "/PORT/Ethernet0/fec", "value": "rs"}, "can't replace a non-existent object 'fec'"),
        ({"op": "test", "path": "/PORT/Ethernet0/mtu", "value": "1"}, "not equal"),
        ({"op": "move", "from": "/PORT", "path": "/PORT/x"}, "own children"),
        ({"op": "add", "path": "PORT", "value": 1}, "must start with /"),
        ({"op": "add", "path": "/a~2b", "value": 1}, "invalid escape"),
    ],
)
def test_operation_that_does_not_apply_is_refused(operation: dict[str, object], message: str) -> None:
    with pytest.raises(PatchError, match=message):
        patched({**BASE, "l": []}, operation)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        "[1]",
        '[{"op": "add", "path": "/a"}]',
        '[{"op": "frob", "path": "/a"}]',
        '[{"op": "remove"}]',
        '[{"op": "move", "path": "/a"}]',
    ],
)
def test_malformed_patch_is_refused(text: str) -> None:
    with pytest.raises(PatchError):
        read_patch(text)


def test_pointer_is_unescaped() -> None:
    assert split_pointer("/QUEUE/Ethernet1~11|3/a~0b") == ("QUEUE", "Ethernet1/1|3", "a~b")


def test_failed_patch_leaves_the_document() -> None:
    base = {"a": {"b": "1"}}
    with pytest.raises(PatchError):
        patched(base, {"op": "remove", "path": "/a/b"}, {"op": "remove", "path": "/a/b"})
    assert base == {"a": {"b": "1"}}


def test_difference_names_the_highest_level_that_changed() -> None:
    new: Database = {"PORT": {"Ethernet0": {"mtu": "9216", "fec": "rs"}, "Ethernet4/1": {}}, "X": {"y": {}}}
    assert list(difference(BASE, new)) == [
        {"op": "remove", "path": "/QUEUE"},
        {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"},
        {"op": "add", "path": "/PORT/Ethernet0/fec", "value": "rs"},
        {"op": "add", "path": "/PORT/Ethernet4~11", "value": {}},
        {"op": "add", "path": "/X", "value": {"y": {}}},
    ]
    assert apply_patch(BASE, difference(BASE, new)) == new
