"""Patterns prepared for many paths say what each pattern says alone."""

from hypothesis import given
from hypothesis import strategies as st

from fabric.diff import Pattern, matcher, matches
from fabric.tree import Path

PARTS = st.sampled_from(("PORT", "QUEUE", "Ethernet0|3", "Ethernet4|3", "mtu", "x"))
EXPRESSIONS = st.sampled_from(("PORT", "PORT|QUEUE", ".*", "Ethernet0.*", "(?!mtu$).*", "x"))
PATTERNS = st.builds(
    lambda head, rest: (*head, "**") if rest else tuple(head), st.lists(EXPRESSIONS, max_size=3), st.booleans()
)
PATHS = st.lists(PARTS, max_size=3).map(tuple)


@given(st.lists(PATTERNS, max_size=5), st.lists(PATHS, max_size=8))
def test_a_path_is_of_the_patterns_if_it_is_of_one(patterns: list[Pattern], paths: list[Path]) -> None:
    is_of_any = matcher(patterns)
    for path in (*paths, *paths):  # the second time from what was remembered
        assert is_of_any(path) is any(matches(pattern, path) for pattern in patterns)
