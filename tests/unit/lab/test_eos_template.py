"""Line templates: what fits, what does not, and where it stops fitting."""

import pytest

from fabric.lab.eos.template import Match, Miss, Template, expand_ints, interface_names

TYPES = {
    "n": "int 1 9",
    "ns": "ints 0 63",
    "t": "decimal 0.01 60",
    "rest": "text",
    "u": "choice bytes kbytes",
    "p": "interface",
    "w": "word",
}


def values(template: str, line: str) -> dict[str, str] | int:
    found = Template(template, TYPES).match(line)
    return dict(found.values) if isinstance(found, Match) else found.at


@pytest.mark.parametrize(
    ("template", "line", "expected"),
    [
        ("mtu {n}", "mtu 5", {"n": "5"}),
        ("mtu {n}", "mtu 10", 1),
        ("mtu {n}", "mtu", 1),
        ("mtu {n}", "mtu 5 6", 2),
        ("mtu {n}", "speed 5", 0),
        ("map {ns} to {n}", "map 1 2 5-7 to 3", {"ns": "1 2 5-7", "n": "3"}),
        ("map {ns} to {n}", "map 64 to 3", 1),
        ("map {ns} to {n}", "map 7-5 to 3", 1),
        ("map {ns} to {n}", "map 1-999999999999 to 3", 1),
        ("a [b {n}] [c]", "a b 3 c", {"n": "3", "[b {n}]": "[b {n}]", "[c]": "[c]"}),
        ("a [b {n}] [c]", "a c", {"[c]": "[c]"}),
        ("a [b {n}] [c]", "a b x", 2),
        ("mode on|off", "mode off", {"on|off": "off"}),
        ("mode on|off", "mode no", 1),
        ("time {t}", "time 0.2", {"t": "0.2"}),
        ("time {t}", "time 0.001", 1),
        ("description {rest}", "description two  words", {"rest": "two words"}),
        ("{n} {u}", "3 mbytes", 1),
        ("interface {p}", "interface Et1", {"p": "Et1"}),
        ("interface {p}", "interface Serial1", 1),
        ("x {w}", "x -y", {"w": "-y"}),
    ],
)
def test_line_fits_or_says_where_it_stops(template: str, line: str, expected: dict[str, str] | int) -> None:
    assert values(template, line) == expected


@pytest.mark.parametrize("line", ["a", "a c", "a b 3", "a b 3 c"])
def test_writing_gives_back_the_line_that_was_read(line: str) -> None:
    template = Template("a [b {n}] [c]", TYPES)
    found = template.match(line)
    assert isinstance(found, Match)
    assert template.write(found.values) == line


@pytest.mark.parametrize("text", ["a [b", "a b]", "a {unknown}"])
def test_malformed_template_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Template(text, TYPES)


def test_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown type"):
        Template("a {x}", {"x": "colour"}).match("a 1")


def test_miss_is_a_value() -> None:
    assert Template("a", TYPES).match("b") == Miss(0)


def test_numbers_are_expanded_in_the_order_written() -> None:
    assert expand_ints("9 1-3,7") == (9, 1, 2, 3, 7)
    with pytest.raises(ValueError):
        expand_ints(" ")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Et1", ("Ethernet1",)),
        ("Ethernet1-3", ("Ethernet1", "Ethernet2", "Ethernet3")),
        ("Ethernet1/1,3/2", ("Ethernet1/1", "Ethernet3/2")),
        ("po5", ("Port-Channel5",)),
        ("Ethernet1.100", ("Ethernet1.100",)),
        ("E1", ()),
        ("Ethernet4-1", ()),
        ("Ethernet1-999999999", ()),
        ("V1", ()),
        ("Et1/", ()),
        ("1", ()),
    ],
)
def test_interface_names_are_completed_and_ranges_expanded(text: str, names: tuple[str, ...]) -> None:
    assert interface_names(text) == names
