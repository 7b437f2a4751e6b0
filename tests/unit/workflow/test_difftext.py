"""A long change reads short, and says the same."""

from difflib import unified_diff

from fabric.diff import Change, Op
from fabric.workflow.difftext import inverted, shown, told


def test_fields_of_one_row_stand_in_one_line_by_value() -> None:
    steps = [Change(Op.ADD, ("DSCP", "OWN", str(code)), after="3" if code == 26 else "0") for code in range(64)]
    assert shown(steps) == "+ DSCP / OWN: 0-25,27-63 = 0; 26 = 3"


def test_names_that_are_no_numbers_are_listed() -> None:
    steps = [
        Change(Op.REPLACE, ("PORT", "e1", "mtu"), before="9100", after="9216"),
        Change(Op.REPLACE, ("PORT", "e1", "fec"), before="none", after="rs"),
        Change(Op.ADD, ("PORT", "e2", "mtu"), after="9216"),
    ]
    assert shown(steps) == "~ PORT / e1: mtu = 9100 → 9216; fec = none → rs\n+ PORT / e2 / mtu = 9216"


def test_bare_lines_and_top_level_paths_stay_apart() -> None:
    steps = [
        Change(Op.ADD, ("qos profile A", "priority-flow-control on")),
        Change(Op.ADD, ("qos profile A", "qos trust"), after="dscp"),
        Change(Op.REMOVE, ("hostname",), before="a"),
        Change(Op.REMOVE, ("banner",), before="b"),
    ]
    assert shown(steps).splitlines() == [
        "+ qos profile A / priority-flow-control on",
        "+ qos profile A / qos trust = dscp",
        "- hostname = a",
        "- banner = b",
    ]


def test_one_line_names_three_rows_and_counts_the_rest() -> None:
    steps = [Change(Op.ADD, ("T", f"row{number}", "f"), after="1") for number in range(5)]
    assert told(steps) == "+ T / row0 / f = 1; + T / row1 / f = 1; + T / row2 / f = 1; and 2 more"


def test_diff_of_the_way_back_swaps_what_comes_and_what_goes() -> None:
    before, after = ["a", "b", "c"], ["a", "x", "c", "--- d"]
    diff = "\n".join(unified_diff(before, after, "/etc/one", "/etc/one", lineterm="", n=1))
    back = "\n".join(unified_diff(after, before, "/etc/one", "/etc/one", lineterm="", n=1))
    new = "\n".join(unified_diff([], ["one"], "/dev/null", "/etc/two", lineterm=""))
    gone = "\n".join(unified_diff(["one"], [], "/etc/two", "/dev/null", lineterm=""))
    settings = "-data0 mtu: 1500\n+data0 mtu: 4200\n-data0 link-up: False\n+data0 link-up: True"
    settings_back = "-data0 mtu: 4200\n+data0 mtu: 1500\n-data0 link-up: True\n+data0 link-up: False"
    assert inverted(f"{gone}\n{diff}") == f"{new}\n{back}"
    assert inverted(f"{settings}\n{diff}\n{new}") == f"{settings_back}\n{back}\n{gone}"
    assert inverted(inverted(f"{settings}\n{diff}\n{new}")) == f"{settings}\n{diff}\n{new}"
