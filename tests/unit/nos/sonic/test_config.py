"""CONFIG_DB texts: forms, duplicates, and what is refused."""

import json

import pytest

from fabric.errors import FabricError, UnsupportedFeatureError
from fabric.nos.sonic import SONIC
from fabric.nos.sonic.config import Tables, load
from fabric.nos.sonic.rows import by_port, indices_of, slot_of, slots
from fabric.qos import Reference
from fabric.tree import Tree


def test_nested_and_flat_texts_give_the_same_tree() -> None:
    nested = '{"PORT": {"Ethernet0": {"mtu": "9100"}}, "VLAN": {"Vlan10": {"members": ["Ethernet0"]}}}'
    flat = '{"PORT|Ethernet0": {"mtu": "9100"}, "VLAN|Vlan10": {"members": ["Ethernet0"]}}'
    assert SONIC.tree(nested) == SONIC.tree(flat)
    assert SONIC.tree(nested)["VLAN", "Vlan10", "members"] == ("Ethernet0",)


def test_rows_without_fields_stay_and_tables_without_rows_do_not() -> None:
    tree = SONIC.tree('{"LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback1": {"NULL": "NULL"}}, "QUEUE": {}}')
    assert tree == Tree({("LOOPBACK_INTERFACE", "Loopback0"): None, ("LOOPBACK_INTERFACE", "Loopback1"): None})


def test_numbers_and_booleans_become_their_text() -> None:
    tree = SONIC.tree('{"PORT": {"Ethernet0": {"mtu": 9100, "up": true, "l": [1]}}}')
    assert list(tree.values()) == ["9100", "true", ("1",)]


def test_duplicates_are_found_at_every_depth_and_the_last_wins() -> None:
    text = (
        '{"A": {"x": {"f": "1"}}, "B": {"y": {"f": "1", "f": "2"}, "z": {}, "z": {"g": "3"}}, "A": {"w": {"f": "4"}}}'
    )
    tree, duplicates = load(text)
    assert tree == Tree({("B", "y", "f"): "2", ("B", "z", "g"): "3", ("A", "w", "f"): "4"})
    assert set(duplicates) == {
        Reference("duplicate", "A", "CONFIG_DB"),
        Reference("duplicate", "z", "B"),
        Reference("duplicate", "f", "B|y"),
    }
    assert SONIC.parse(text).duplicates == duplicates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hostname leaf1", "not JSON"),
        ("[]", "no CONFIG_DB"),
        ('{"PORT": "x"}', "no object of rows"),
        ('{"PORT": {"Ethernet0": "x"}}', "no object of fields"),
        ('{"PORT": {"Ethernet0": {"a": {"b": "c"}}}}', "a field is an object"),
    ],
)
def test_other_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(FabricError, match=words):
        SONIC.tree(text)


def test_multi_asic_configurations_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="multi-ASIC"):
        SONIC.parse(json.dumps({"localhost": {}, "asic0": {}}))


def test_keys_of_queues() -> None:
    assert slot_of("Ethernet0|3") == (("Ethernet0",), (3,))
    assert slot_of("Ethernet0, Ethernet4|3-5") == (("Ethernet0", "Ethernet4"), (3, 4, 5))
    assert slot_of("host|asic0|Ethernet0|3") == (("host|asic0|Ethernet0",), (3,))
    assert slot_of("host|asic0|Ethernet0|3", "host|asic0|") == (("Ethernet0",), (3,))
    assert indices_of("x") == ()


def test_local_voq_ports_lose_the_prefix_and_others_keep_it() -> None:
    tables: Tables = {
        "DEVICE_METADATA": {"localhost": {"hostname": "lc1", "asic_name": "asic0"}},
        "QUEUE": {"lc1|asic0|Ethernet0|3": {"scheduler": "s"}, "lc2|asic0|Ethernet0|3": {"scheduler": "t"}},
    }
    assert slots(tables, "QUEUE") == {
        "Ethernet0": {3: {"scheduler": "s"}},
        "lc2|asic0|Ethernet0": {3: {"scheduler": "t"}},
    }


def test_of_two_rows_for_a_port_the_later_field_wins() -> None:
    tables: Tables = {"PFC_WD": {"Ethernet0,Ethernet4": {"action": "drop", "x": "1"}, "Ethernet4": {"action": "alert"}}}
    assert by_port(tables, "PFC_WD") == {
        "Ethernet0": {"action": "drop", "x": "1"},
        "Ethernet4": {"action": "alert", "x": "1"},
    }
