"""Whether a device is as before: by what the change owns, whatever others did elsewhere meanwhile."""

import json

from fabric.diff import ChangeSet, IntendedConfig
from fabric.tree import Tree
from fabric.workflow.design import DeviceChange
from fabric.workflow.provisioning import not_back

BEFORE = {"PORT": {"Ethernet0": {"mtu": "9100"}, "Ethernet4": {"mtu": "9100"}}}


def change() -> DeviceChange:
    owned = Tree({("PORT", "Ethernet0", "mtu"): "9100"})
    intended = IntendedConfig("leaf1", "sonic", Tree({("PORT", "Ethernet0", "mtu"): "9216"}), owned=())
    return DeviceChange("leaf1", "sonic", intended, ChangeSet("leaf1", "sonic"), owned, payload="", rollback="")


def test_owned_part_as_before_is_back_although_others_added_a_port() -> None:
    assert not_back(change(), json.dumps(BEFORE)) == ""
    more = {"PORT": {**BEFORE["PORT"], "Ethernet8": {"mtu": "9216"}}}
    assert not_back(change(), json.dumps(more)) == ""


def test_what_is_not_as_before_is_named() -> None:
    late = {"PORT": {**BEFORE["PORT"], "Ethernet0": {"mtu": "9216"}}}
    assert (
        not_back(change(), json.dumps(late))
        == "not as before: 1 of the paths that this run owns, PORT / Ethernet0 / mtu"
    )
    gone: dict[str, dict[str, dict[str, str]]] = {"PORT": {"Ethernet0": {}}}
    assert (
        not_back(change(), json.dumps(gone))
        == "not as before: 1 of the paths that this run owns, PORT / Ethernet0 / mtu"
    )
