"""What a change set says beyond its steps: reasons, digests, held-back changes, empty containers."""

from fabric.diff import Change, DiffRules, IntendedConfig, Op, changes, digest, future, matches, rollback_of
from fabric.tree import EMPTY, Tree, Value

RULES = DiffRules(order=(("MAP", "**"), ("PORT", "**")), disruptive=((("PORT", ".*", "pfc"), "the port stops"),))


def intended(tree: Tree, **more: tuple[tuple[str, ...], ...]) -> IntendedConfig:
    return IntendedConfig(
        device="leaf1", nos="n", tree=tree, owned=more.get("owned", ()), device_wide=more.get("device_wide", ())
    )


def test_pattern_matches_whole_elements_only() -> None:
    assert matches(("PORT", "Ethernet4"), ("PORT", "Ethernet4"))
    assert not matches(("PORT", "Ethernet4"), ("PORT", "Ethernet48"))
    assert not matches(("PORT",), ("PORT", "Ethernet4"))
    assert matches(("PORT", "**"), ("PORT",))
    assert not matches(("PORT", ".*", "**"), ("PORT",))


def test_map_is_added_before_its_binding_and_removed_after_it() -> None:
    running = Tree({("PORT", "e1", "map"): "old", ("MAP", "old"): "1"})
    wanted = Tree({("PORT", "e1", "map"): "new", ("MAP", "new"): "2"})
    steps = changes(running, intended(wanted, owned=(("MAP", ".*"),)), RULES).forward
    assert [(step.op, step.path) for step in steps] == [
        (Op.ADD, ("MAP", "new")),
        (Op.REPLACE, ("PORT", "e1", "map")),
        (Op.REMOVE, ("MAP", "old")),
    ]


def test_what_a_value_need_not_say_is_no_difference_and_comes_back_as_it_stood() -> None:
    rules = DiffRules(order=(), unsaid=((("Q", "curve"), " weight 0$"),))
    held: dict[tuple[str, ...], Value] = {("Q", "curve"): "1 2", ("Q", "name"): "1 2", ("Q", "list"): ("x",)}
    running = Tree(held)
    same = running.with_changes({("Q", "curve"): "1 2 weight 0"})
    assert changes(running, intended(same), rules).empty
    moved: dict[tuple[str, ...], Value] = {("Q", "curve"): "1 3 weight 0", ("Q", "name"): "1 2 weight 0"}
    other = running.with_changes({**moved, ("Q", "list"): ("y",)})
    plan = changes(running, intended(other), rules)
    assert [step.path[1] for step in plan.forward] == ["curve", "name", "list"]
    assert future(future(running, plan.forward), plan.backward) == running


def test_rollback_undoes_in_reverse_order() -> None:
    running = Tree({("MAP", "old"): "1"})
    steps = changes(running, intended(Tree({("MAP", "new"): "2"}), owned=(("MAP", ".*"),)), RULES)
    assert [(step.op, step.path, step.after) for step in steps.backward] == [
        (Op.ADD, ("MAP", "old"), "1"),
        (Op.REMOVE, ("MAP", "new"), None),
    ]


def test_empty_row_that_gets_a_field_comes_back_on_rollback() -> None:
    running = Tree({("PORT", "e1"): None})
    forward = [Change(op=Op.ADD, path=("PORT", "e1", "mtu"), after="9216")]
    after = future(running, forward)
    assert after == Tree({("PORT", "e1", "mtu"): "9216"})
    assert future(after, rollback_of(running, forward)) == running


def test_empty_row_that_is_owned_and_about_to_be_filled_is_not_removed() -> None:
    running = Tree({("PORT", "e1"): None})
    wanted = intended(Tree({("PORT", "e1", "mtu"): "9216"}), owned=(("PORT", "**"),))
    assert [step.op for step in changes(running, wanted, RULES).forward] == [Op.ADD]


def test_reason_of_a_disruptive_change_is_given_once() -> None:
    wanted = intended(Tree({("PORT", "e1", "pfc"): "3", ("PORT", "e2", "pfc"): "3"}))
    assert changes(EMPTY, wanted, RULES).disruptive == ("the port stops",)
    assert changes(wanted.tree, wanted, RULES).disruptive == ()


def test_ports_outside_are_named_only_when_a_device_wide_path_changes() -> None:
    wanted = intended(Tree({("MAP", "global"): "1"}), device_wide=(("MAP", "global"),))
    held = changes(EMPTY, wanted, RULES, outside_ports=("e9",))
    assert held.outside_ports == ("e9",)
    assert [step.path for step in held.held_back] == [("MAP", "global")]
    assert not held.empty
    assert changes(wanted.tree, wanted, RULES, outside_ports=("e9",)).outside_ports == ()


def test_digest_ignores_order_and_sees_values_and_foreign_paths_do_not_count() -> None:
    wanted = intended(Tree({("MAP", "a"): "1"}), owned=(("MAP", ".*"),))
    several: Value = ("x",)
    one = Tree({("MAP", "a"): "1"}).with_changes({("MAP", "b"): several})
    other = Tree({("MAP", "b"): several}).with_changes({("MAP", "a"): "1"})
    assert digest(one) == digest(other)
    assert digest(one) != digest(Tree({("MAP", "a"): "1", ("MAP", "b"): "x"}))
    foreign = one.with_changes({("X",): "y"})
    assert changes(one, wanted, RULES).base_digest == changes(foreign, wanted, RULES).base_digest


def test_removed_then_put_again_is_put() -> None:
    steps = [
        Change(op=Op.ADD, path=("MAP", "a"), after="1"),
        Change(op=Op.REMOVE, path=("MAP", "a"), before="1"),
    ]
    assert future(EMPTY, steps) == EMPTY
