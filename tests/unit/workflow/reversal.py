"""Runs and their way back on a text: what the tests of rollbacks share."""

from fabric.diff import IntendedConfig, changes, future, owned_part
from fabric.nos import Nos
from fabric.tree import Path, Tree, Value
from fabric.workflow.design import DeviceChange
from fabric.workflow.reversing import reverse, undone

__all__ = ("assert_all_goes_back", "assert_three_ways", "back_of", "run_of", "touched_by")


def run_of(nos: Nos, intended: IntendedConfig, base: str, *, adopt: bool = True) -> tuple[DeviceChange, str]:
    """Returns a run that brings `base` to `intended`, and the text after it."""
    running = nos.tree(base)
    found = changes(running, intended, nos.rules, adopt=adopt)
    payload = nos.payload(found.forward, running) if found.forward else ""
    change = DeviceChange(
        device="leaf1",
        nos=nos.name,
        intended=intended,
        changes=found,
        owned_now=owned_part(running, intended),
        payload=payload,
        rollback="",
        flaws=nos.flaws(running),
    )
    return change, nos.apply(base, payload) if payload else base


def back_of(nos: Nos, run: DeviceChange, text: str, *newer: DeviceChange) -> tuple[DeviceChange, str]:
    """Returns the way back of a run from `text` past newer runs, and the text after it."""
    back = reverse(run, text, newer={f"run {number}": one for number, one in enumerate(newer)})
    after = nos.apply(text, back.payload) if back.payload else text
    assert undone(back, after) == ()
    return back, after


def touched_by(run: DeviceChange) -> list[Path]:
    """Returns the paths that the run changed."""
    return [one.path for one in run.changes.forward]


def assert_all_goes_back(nos: Nos, run: DeviceChange, before: Tree, text: str) -> None:
    """Checks that a device that nobody touched since is as before to the last path."""
    back, after = back_of(nos, run, text)
    assert back.kept == ()
    assert nos.tree(after) == before


def assert_three_ways(nos: Nos, run: DeviceChange, before: Tree, left: Tree, theirs: str) -> str:
    """Checks a rollback from `theirs` against all that it promises, and returns the text after it.

    Args:
        nos: the dialect.
        run: what is taken back.
        before: the device before the run.
        left: the device as the run left it.
        theirs: the device now.
    """
    now = nos.tree(theirs)
    back, text = back_of(nos, run, theirs)
    after = nos.tree(text)
    found, was, meant, start = (_states(tree) for tree in (after, now, left, before))
    kept = {one.path: one for one in back.kept}
    touched = set(touched_by(run))
    for path in {**before, **left, **now, **after}:
        if was.get(path) != meant.get(path) or path in kept or path not in touched:
            assert found.get(path) == was.get(path) or was.get(path) == start.get(path), path
        elif not (path in now.containers() or path in before.containers()):
            assert _same(nos, path, found.get(path), start.get(path)), path
    for one in back.kept:
        assert one.now != one.wanted
        assert bool(one.because) is (one.now == one.base)
    broken = set(nos.flaws(after)) - set(nos.flaws(now)) - set(nos.flaws(before))
    assert not broken

    again, _ = back_of(nos, run, text)
    assert again.changes.forward == ()
    assert {one.path for one in again.kept} == set(kept)
    assert nos.tree(nos.apply(text, back.rollback) if back.rollback else text) == now
    assert future(now, back.changes.forward) == after
    return text


def _same(nos: Nos, path: Path, one: Value | bool, other: Value | bool) -> bool:
    plain = isinstance(one, str) and isinstance(other, str)
    return one == other or (plain and nos.rules.same(path, str(one), str(other)))


def _states(tree: Tree) -> dict[Path, Value | bool]:
    """Returns what stands at each path; True where something stands below it, or nothing more than itself."""
    valued = {path: True if value is None else value for path, value in tree.items()}
    return {**dict.fromkeys(tree.containers(), True), **valued}
