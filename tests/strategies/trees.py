"""Trees as a configuration has them: a container has a path of its own only while nothing is below it."""

from hypothesis import strategies as st

from fabric.diff import Pattern
from fabric.tree import Path, Tree, Value

_PARTS = st.sampled_from(["A", "B", "C", "D"])
_VALUES: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.text("01", min_size=1, max_size=2), st.tuples(st.sampled_from(["x", "y"]))
)
_PATHS: st.SearchStrategy[Path] = st.lists(_PARTS, min_size=1, max_size=3).map(tuple)


def _consistent(items: dict[Path, Value]) -> Tree:
    inner = {path[:depth] for path in items for depth in range(1, len(path))}
    return Tree({path: value for path, value in items.items() if path not in inner})


trees: st.SearchStrategy[Tree] = st.dictionaries(_PATHS, _VALUES, max_size=12).map(_consistent)
patterns: st.SearchStrategy[tuple[Pattern, ...]] = st.lists(
    st.lists(st.sampled_from(["A", "B", "[AB]", ".*"]), min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from([tuple(parts), (*parts, "**")])
    ),
    max_size=4,
).map(tuple)
