"""References in the form that the device wants: releases that keep `[TABLE|name]` take no plain name."""

import re

import pytest

from fabric.diff import changes, future
from fabric.nos.base import RenderContext
from fabric.nos.sonic import SONIC
from fabric.nos.sonic.config import tables
from fabric.nos.sonic.references import as_device_writes, has_brackets, target_of
from fabric.tree import Tree, Value
from tests.oracle.sonic_base import BasePort, base_text
from tests.unit.nos.sonic.devices import device, port

STOCK = SONIC.tree(base_text((BasePort("Ethernet0"), BasePort("Ethernet4"), BasePort("Ethernet8"))))


def _in_brackets(tree: Tree) -> Tree:
    def old(path: tuple[str, ...], value: Value) -> Value:
        target = target_of(path, value)
        return value if target is None else f"[{target[0]}|{target[1]}]"

    return Tree({path: old(path, value) for path, value in tree.items()})


OLD = _in_brackets(STOCK)


def test_every_reference_of_a_plan_has_the_brackets_that_the_device_has() -> None:
    plain = SONIC.render(device(port("Ethernet0")), RenderContext(running=STOCK)).tree
    old = SONIC.render(device(port("Ethernet0")), RenderContext(running=OLD)).tree
    assert old == _in_brackets(plain)
    assert old["PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map"] == (
        f"[DSCP_TO_TC_MAP|{plain['PORT_QOS_MAP', 'Ethernet0', 'dscp_to_tc_map']}]"
    )
    assert re.fullmatch(r"\[WRED_PROFILE\|FABRICCTL_\w+\]", str(old["QUEUE", "Ethernet0|3", "wred_profile"]))


def test_what_was_put_in_brackets_is_read_back_and_changes_nothing_a_second_time() -> None:
    qos = device(port("Ethernet0"), port("Ethernet8"))
    first = changes(OLD, SONIC.render(qos, RenderContext(running=OLD)), SONIC.rules)
    after = future(OLD, first.forward)
    assert changes(after, SONIC.render(qos, RenderContext(running=after)), SONIC.rules).forward == ()
    assert future(after, first.backward) == OLD


def test_an_object_of_ours_that_a_port_outside_still_refers_to_in_brackets_stays() -> None:
    both = device(port("Ethernet0"), port("Ethernet8"))
    after = future(OLD, changes(OLD, SONIC.render(both, RenderContext(running=OLD)), SONIC.rules).forward)
    alone = changes(after, SONIC.render(device(port("Ethernet0")), RenderContext(running=after)), SONIC.rules)
    assert alone.forward == ()


@pytest.mark.parametrize(("running", "expected"), [(STOCK, False), (OLD, True), (Tree(), False)])
def test_the_form_is_that_of_the_device(running: Tree, *, expected: bool) -> None:
    assert has_brackets(tables(running)) is expected
    path = ("QUEUE", "Ethernet0|3", "scheduler")
    assert as_device_writes(tables(running), {path: "x"}) == {path: "[SCHEDULER|x]" if expected else "x"}


def test_what_refers_to_nothing_gets_no_brackets() -> None:
    paths: dict[tuple[str, ...], Value] = {
        ("BUFFER_PG", "Ethernet0|3", "profile"): "NULL",
        ("PORT", "Ethernet0", "mtu"): "9216",
        ("PORT_QOS_MAP", "Ethernet0", "pfc_enable"): "3",
        ("QUEUE", "Ethernet0|3"): None,
    }
    assert as_device_writes(tables(OLD), paths) == paths
