"""What typed lines make of a text, where a line and its `no` form both may stand in it."""

from fabric.nos.eos.typed import apply

BOTH = ("priority-flow-control pause watchdog", "no priority-flow-control pause watchdog")


def _typed(stands: str, line: str) -> str:
    return apply(f"qos profile P\n   {stands}\n   qos trust dscp\n!\n", f"qos profile P\n   {line}\nexit\n")


def test_line_and_its_no_form_take_each_others_place() -> None:
    for stands, line in (BOTH, BOTH[::-1]):
        assert _typed(stands, line) == f"qos profile P\n   {line}\n   qos trust dscp\n!\n"


def test_no_form_of_a_line_that_has_none_of_its_own_takes_it_away() -> None:
    assert _typed("random words", "no random words") == "qos profile P\n   qos trust dscp\n!\n"
