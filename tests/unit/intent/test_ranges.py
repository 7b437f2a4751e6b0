"""Ranges in names."""

import pytest

from fabric.intent.ranges import RangeError, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ethernet4", ("Ethernet4",)),
        ("Ethernet[0:12:4]", ("Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12")),
        ("Ethernet[0:10:4]", ("Ethernet0", "Ethernet4", "Ethernet8")),
        ("Ethernet1/[1:4]", ("Ethernet1/1", "Ethernet1/2", "Ethernet1/3", "Ethernet1/4")),
        ("E[1:2]/[1:2]", ("E1/1", "E1/2", "E2/1", "E2/2")),
        ("leaf[08:10]", ("leaf08", "leaf09", "leaf10")),
        ("leaf[0:1]", ("leaf0", "leaf1")),
        ("leaf[7:7]", ("leaf7",)),
    ],
)
def test_a_range_includes_both_ends(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ethernet[0:12:0]", "the step is 0"),
        ("Ethernet[4:0]", "runs backward, from 4 to 0"),
        ("Ethernet[0:4", "a bracket is no range"),
        ("Ethernet[a:b]", "a bracket is no range"),
        ("Ethernet]0[", "a bracket is no range"),
        ("E[1:300]/[1:300]", "make 90000 names, more than 65536"),
        ("E[0:999999999]", "more than 65536"),
        ("E[0:99999999999999999999]", "a bracket is no range"),
    ],
)
def test_what_is_no_range_is_refused(text: str, message: str) -> None:
    with pytest.raises(RangeError, match=message):
        expand(text)
