"""Small trees, each with one thing that a rollback beside others must get right."""

from collections.abc import Collection

import pytest

from fabric.diff import Change, DiffRules, Flaw, Merge, Op, Unit, changes, exactly, future, matches, merge
from fabric.tree import EMPTY, Path, Tree

RULES = DiffRules(order=((".*", "**"),), unsaid=((("MAP", ".*", ".*"), " weight 0"),))


def rows(paths: Collection[Path]) -> tuple[Unit, ...]:
    """Returns each row as one unit, as SONiC has it."""
    places = dict.fromkeys(path[:2] for path in paths)
    return tuple(Unit(tuple(one for one in paths if one[:2] == place), rows=(place,)) for place in places)


def dangling(tree: Tree) -> tuple[Flaw, ...]:
    return tuple(
        Flaw(f"{path[1]} names {value}", (path[:2], ("MAP", str(value))))
        for path, value in tree.items()
        if path[0] == "PORT" and path[2:] == ("map",) and not tree.under("MAP", str(value))
    )


def merged(base: Tree, theirs: Tree, wanted: Tree, known: Collection[Flaw] = ()) -> Merge:
    return merge(base, theirs, wanted, RULES, units=rows, flaws=dangling, known=known)


def test_paths_that_stand_as_the_run_left_them_go_back_and_others_are_not_looked_at() -> None:
    base = Tree({("MAP", "a", "1"): "x", ("MAP", "b", "1"): "x"})
    theirs = base.with_changes({("NTP", "s", "f"): "1"})
    found = merged(base, theirs, Tree({("MAP", "b", "1"): "y"}))
    assert found == Merge(hold=Tree({("MAP", "b", "1"): "y"}), gone=(("MAP", "a", "1"),))


def test_path_that_others_changed_is_kept_and_told_with_its_three_values() -> None:
    found = merged(Tree({("MAP", "a", "1"): "x"}), Tree({("MAP", "a", "1"): "z"}), Tree({("MAP", "a", "1"): "w"}))
    assert found.hold == EMPTY
    (kept,) = found.kept
    assert (kept.base, kept.now, kept.wanted, kept.because) == (("x",), ("z",), ("w",), "")


def test_half_of_a_row_is_never_restored() -> None:
    base = Tree({("MAP", "a", "1"): "x", ("MAP", "a", "2"): "x"})
    theirs = base.with_changes({("MAP", "a", "2"): "z"})
    found = merged(base, theirs, EMPTY)
    assert (found.hold, found.gone) == (EMPTY, ())
    assert {one.path[-1]: one.because for one in found.kept} == {
        "1": "it belongs together with MAP / a / 2",
        "2": "",
    }


def test_what_others_put_into_a_row_that_the_run_made_keeps_the_row() -> None:
    base = Tree({("MAP", "a", "1"): "x"})
    theirs = base.with_changes({("MAP", "a", "9"): "z"})
    found = merged(base, theirs, EMPTY)
    assert found.gone == ()
    assert [(one.path[-1], one.now) for one in found.kept] == [("1", ("x",)), ("9", ("z",))]


def test_what_others_put_into_a_row_that_was_there_before_keeps_nothing_else() -> None:
    base = Tree({("MAP", "a", "1"): "x"})
    theirs = base.with_changes({("MAP", "a", "9"): "z"})
    found = merged(base, theirs, Tree({("MAP", "a", "1"): "y"}))
    assert (found.hold, found.kept) == (Tree({("MAP", "a", "1"): "y"}), ())


def test_row_that_others_brought_back_by_half_is_finished() -> None:
    wanted = Tree({("MAP", "a", "1"): "y", ("MAP", "a", "2"): "y"})
    base = Tree({("MAP", "a", "1"): "x", ("MAP", "a", "2"): "x"})
    found = merged(base, base.with_changes({("MAP", "a", "1"): "y"}), wanted)
    assert (found.hold, found.kept) == (Tree({("MAP", "a", "2"): "y"}), ())


def test_what_somebody_elses_row_names_is_kept_and_told_for_whom() -> None:
    base = Tree({("MAP", "ours", "1"): "x", ("MAP", "also", "1"): "x"})
    theirs = base.with_changes({("PORT", "e9", "map"): "ours"})
    found = merged(base, theirs, EMPTY)
    assert found.gone == (("MAP", "also", "1"),)
    assert [(one.path, one.because) for one in found.kept] == [(("MAP", "ours", "1"), "e9 names ours")]


def test_row_that_would_name_what_others_removed_stays_and_so_does_what_it_names() -> None:
    wanted = Tree({("PORT", "e1", "map"): "stock"})
    base = Tree({("PORT", "e1", "map"): "ours", ("MAP", "ours", "1"): "x"})
    found = merged(base, base, wanted)  # MAP|stock is foreign and has gone
    assert (found.hold, found.gone) == (EMPTY, ())
    assert {one.because for one in found.kept} == {"e1 names stock", "e1 names ours"}


def test_flaw_that_was_there_before_the_run_may_come_back() -> None:
    wanted = Tree({("PORT", "e1", "map"): "stock"})
    base = Tree({("PORT", "e1", "map"): "ours", ("MAP", "ours", "1"): "x"})
    found = merged(base, base, wanted, known=dangling(wanted))
    assert found.hold == wanted
    assert found.kept == ()


def test_flaw_that_names_nothing_of_the_run_keeps_all_of_it() -> None:
    def always(tree: Tree) -> tuple[Flaw, ...]:
        return () if ("MAP", "a", "1") in tree else (Flaw("the sky falls", (("SKY",),)),)

    base = Tree({("MAP", "a", "1"): "x"})
    found = merge(base, base, EMPTY, RULES, units=rows, flaws=always)
    assert [one.because for one in found.kept] == ["the sky falls"]


def test_row_in_which_others_removed_everything_is_not_brought_back() -> None:
    base = Tree({("MAP", "a", "1"): "x"})
    found = merged(base, EMPTY, Tree({("MAP", "a", "1"): "x", ("MAP", "a", "2"): "y"}))
    assert found.hold == EMPTY
    assert [(one.path[-1], one.now) for one in found.kept] == [("2", ())]


def test_part_of_a_row_that_others_removed_is_not_brought_back_alone() -> None:
    base = Tree({("MAP", "a", "1"): "x", ("MAP", "a", "q", "2"): "y"})
    wanted = Tree({("MAP", "a", "1"): "x", ("MAP", "a", "r", "3"): "z"})
    found = merged(base, EMPTY, wanted)
    assert found.hold == EMPTY
    assert [one.path[2] for one in found.kept] == ["r"]


def test_row_that_stood_empty_stands_empty_again() -> None:
    base, wanted = Tree({("MAP", "a", "1"): "x"}), Tree({("MAP", "a"): None})
    found = merged(base, base, wanted)
    steps = changes(base, found.intended("d", "n"), RULES).forward
    assert [(one.op, one.path) for one in steps] == [(Op.REMOVE, ("MAP", "a", "1")), (Op.ADD, ("MAP", "a"))]
    assert future(base, steps) == wanted


def test_empty_row_of_the_run_that_others_filled_is_kept() -> None:
    found = merged(Tree({("MAP", "a"): None}), Tree({("MAP", "a", "1"): "x"}), EMPTY)
    assert found.gone == ()
    assert [one.path for one in found.kept] == [("MAP", "a"), ("MAP", "a", "1")]


def test_values_that_say_the_same_are_as_the_run_left_them() -> None:
    found = merged(Tree({("MAP", "a", "1"): "x"}), Tree({("MAP", "a", "1"): "x weight 0"}), EMPTY)
    assert (found.gone, found.kept) == ((("MAP", "a", "1"),), ())


@pytest.mark.parametrize(
    "paths",
    [
        [("line (1)",)],
        [("MAP", "a.b", "1"), ("MAP", "a.b", "2"), ("MAP", "c|d", "1"), ("MAP", "c|d", "2"), ("MAP", "e", "1")],
        [("MAP", "a"), ("MAP", "a", "**"), ("x",)],
    ],
)
def test_exact_patterns_match_their_paths_and_no_other(paths: list[Path]) -> None:
    patterns = exactly(paths)
    near = [("MAP", "e", "2"), ("MAP", "axb", "1"), ("MAP", "c", "1"), ("MAP",), ("line 1",), ("MAP", "a", "z")]
    assert all(any(matches(one, path) for one in patterns) for path in paths)
    assert not [path for path in near if path not in paths and any(matches(one, path) for one in patterns)]


def test_rows_with_the_same_fields_share_a_pattern() -> None:
    assert len(exactly([("MAP", row, field) for row in "abc" for field in "123"])) == 1


def test_change_of_an_emptied_row_has_its_exact_way_back() -> None:
    running = Tree({("MAP", "a", "1"): "x"})
    found = merged(running, running, Tree({("MAP", "a"): None}))
    plan = changes(running, found.intended("d", "n"), RULES)
    assert future(future(running, plan.forward), plan.backward) == running
    assert Change(Op.REMOVE, ("MAP", "a")) not in plan.backward  # on EOS that would be `no interface`
