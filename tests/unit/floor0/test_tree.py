"""Trees hold configurations without loss."""

import pytest
from hypothesis import given

from fabric.serial import from_json, to_json
from fabric.tree import Tree
from tests.strategies.trees import trees


def test_nested_mapping_comes_back_as_it_was() -> None:
    data = {"PORT": {"Ethernet0": {"mtu": "9100", "lanes": ["0", "1"]}}, "MEMBER": {"PortChannel1|Ethernet0": {}}}
    assert Tree.from_nested(data).to_nested() == data


def test_numbers_and_booleans_become_their_json_text() -> None:
    assert dict(Tree.from_nested({"a": {"n": 1, "b": True, "l": [2]}})) == {
        ("a", "n"): "1",
        ("a", "b"): "true",
        ("a", "l"): ("2",),
    }


def test_value_that_is_also_a_container_is_refused() -> None:
    with pytest.raises(ValueError, match="a is both a value and a container"):
        Tree({("a",): "1", ("a", "b"): "2"}).to_nested()


def test_children_are_distinct_and_in_order() -> None:
    tree = Tree({("a", "z", "1"): "x", ("a", "b"): "x", ("a", "z", "2"): "x", ("c",): "x"})
    assert tree.children("a") == ("z", "b")
    assert tree.children() == ("a", "c")
    assert list(tree.under("a", "z")) == [("a", "z", "1"), ("a", "z", "2")]


def test_equality_and_hash_ignore_order() -> None:
    one, other = Tree([(("a",), "1"), (("b",), None)]), Tree([(("b",), None), (("a",), "1")])
    assert one == other
    assert hash(one) == hash(other)
    assert one != {("a",): "1"}
    assert repr(Tree({("a",): "1"})) == "Tree({('a',): '1'})"


@given(trees)
def test_json_form_round_trips(tree: Tree) -> None:
    assert from_json(Tree, to_json(tree)) == tree
