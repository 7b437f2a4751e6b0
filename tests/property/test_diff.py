"""The circle: running → intended → running, for any tree, any intent, any order."""

from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.diff import DiffRules, IntendedConfig, Op, Pattern, changes, future, matches, owned_part
from fabric.tree import Path, Tree
from tests.strategies.trees import patterns, trees


def _compatible(running: Tree, wanted: Tree) -> bool:
    """Returns whether no path is a value in one tree and a container in the other."""
    valued = {p for tree in (running, wanted) for p, v in tree.items() if v is not None}
    inner = running.containers() | wanted.containers()
    empties = {p for p, v in wanted.items() if v is None}
    return not (valued & inner) and not (empties & running.containers())


@given(trees, trees, patterns, patterns, st.booleans())
def test_forward_holds_the_intent_and_backward_restores_everything(
    running: Tree, wanted: Tree, owned: tuple[Pattern, ...], order: tuple[Pattern, ...], adopt: bool
) -> None:
    assume(_compatible(running, wanted))
    intended = IntendedConfig(device="d", nos="n", tree=wanted, owned=owned)
    plan = changes(running, intended, DiffRules(order=order), adopt=adopt)

    after = future(running, plan.forward)

    assert {path: after[path] for path in wanted if path not in wanted.containers()} == dict(wanted)
    assert owned_part(after, intended) == owned_part(wanted, intended)
    assert future(after, plan.backward) == running
    assert changes(after, intended, DiffRules(order=order)).empty


@given(trees, trees, patterns)
def test_what_is_neither_intended_nor_owned_stays(running: Tree, wanted: Tree, owned: tuple[Pattern, ...]) -> None:
    assume(_compatible(running, wanted))
    intended = IntendedConfig(device="d", nos="n", tree=wanted, owned=owned)
    after = future(running, changes(running, intended, DiffRules(order=())).forward)
    filled = wanted.containers()

    def foreign(path: Path) -> bool:
        return path not in wanted and path not in filled and not any(matches(one, path) for one in owned)

    assert {p: v for p, v in running.items() if foreign(p)} == {p: v for p, v in after.items() if foreign(p)}


@given(trees, trees, patterns)
def test_device_wide_changes_are_held_back_until_adopted(
    running: Tree, wanted: Tree, wide: tuple[Pattern, ...]
) -> None:
    assume(_compatible(running, wanted))
    intended = IntendedConfig(device="d", nos="n", tree=wanted, owned=(("**",),), device_wide=wide)
    rules = DiffRules(order=())
    careful = changes(running, intended, rules)
    adopted = changes(running, intended, rules, adopt=True)

    assert all(any(matches(one, step.path) for one in wide) for step in careful.held_back)
    assert not any(matches(one, step.path) for one in wide for step in careful.forward)
    assert adopted.held_back == ()
    assert set(adopted.forward) == set(careful.forward) | set(careful.held_back)


@given(trees, trees, patterns)
def test_removals_come_last_and_mirror_the_order_of_additions(
    running: Tree, wanted: Tree, order: tuple[Pattern, ...]
) -> None:
    intended = IntendedConfig(device="d", nos="n", tree=wanted, owned=(("**",),))
    steps = changes(running, intended, DiffRules(order=order)).forward
    full = running.containers()
    left_empty = [step for step in steps if step.op is Op.ADD and step.after is None and step.path in full]
    assert list(steps[len(steps) - len(left_empty) :]) == left_empty
    steps = steps[: len(steps) - len(left_empty)]
    removing = [step.op is Op.REMOVE for step in steps]
    assert removing == sorted(removing)

    def rank(path: Path) -> int:
        return next((index for index, one in enumerate(order) if matches(one, path)), len(order))

    puts = [rank(step.path) for step in steps if step.op is not Op.REMOVE]
    removals = [rank(step.path) for step in steps if step.op is Op.REMOVE]
    assert puts == sorted(puts)
    assert removals == sorted(removals, reverse=True)
