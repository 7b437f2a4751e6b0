"""Lines to paths and back: what is kept, what is hidden, what is undone how."""

import pytest

from fabric.diff import Change, Op
from fabric.errors import FabricError
from fabric.nos.eos import EOS
from fabric.nos.eos.keys import undo_of
from fabric.tree import EMPTY, Path, Tree, Value


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("interface Ethernet1\n   mtu 9214\n", ("interface Ethernet1", "mtu"), "9214"),
        ("qos map dscp 26 to traffic-class 4\n", ("qos map dscp", "26"), "4"),
        ("qos map dscp 8-10, 12 to traffic-class 3\n", ("qos map dscp", "9"), "3"),
        (
            "qos profile X\n   uc-tx-queue 3\n      bandwidth percent 50\n",
            ("qos profile X", "uc-tx-queue 3", "bandwidth percent"),
            "50",
        ),
        ("qos profile X\n   tx-queue 3\n      no priority\n", ("qos profile X", "tx-queue 3", "priority"), "no"),
        (
            "interface Ethernet1\n   tx-queue 3\n      bandwidth guaranteed 100 kbps\n",
            ("interface Ethernet1", "tx-queue 3", "bandwidth guaranteed"),
            "100",
        ),
        (
            "priority-flow-control pause watchdog default timeout 0.20\n",
            ("priority-flow-control pause watchdog default timeout",),
            "0.2",
        ),
        (
            "priority-flow-control pause watchdog default timeout 2.00\n",
            ("priority-flow-control pause watchdog default timeout",),
            "2",
        ),
        ("interface Ethernet1\n", ("interface Ethernet1",), None),
        ("router bgp 65001\n   neighbor 192.0.2.1 bfd\n", ("router bgp 65001", "neighbor 192.0.2.1 bfd"), None),
        ("qos profile X\n   uc-tx-queue 3\n", ("qos profile X",), None),
    ],
)
def test_a_line_has_a_path_and_a_value(text: str, path: Path, value: Value) -> None:
    assert dict(EOS.tree(text)) | {path: value} == dict(EOS.tree(text))


@pytest.mark.parametrize(
    "text",
    [
        "qos map dscp 48 to traffic-class 6\n",
        "qos map traffic-class 3 to tx-queue 3\n",
        "qos map cos 0 to traffic-class 1\n",
        "! a comment\n\n",
    ],
)
def test_what_equals_the_default_has_no_path(text: str) -> None:
    assert EOS.tree(text) == EMPTY


def test_strict_is_the_default_of_a_profile_and_a_word_on_a_port() -> None:
    lines = "   uc-tx-queue 3\n      priority strict\n      bandwidth percent 5\n"

    assert ("qos profile X", "uc-tx-queue 3", "priority") not in EOS.tree(f"qos profile X\n{lines}")
    assert EOS.tree(f"interface Ethernet1\n{lines}")["interface Ethernet1", "uc-tx-queue 3", "priority"] == "strict"


def test_a_default_undoes_an_earlier_line() -> None:
    assert EOS.tree("qos map cos 1 3 to traffic-class 2\nqos map cos 3 to traffic-class 3\n") == Tree(
        {("qos map cos", "1"): "2"}
    )


def test_a_curve_without_its_defaults_is_the_same_curve() -> None:
    short = (
        "qos profile X\n   tx-queue 3\n      random-detect ecn minimum-threshold 1 kbytes maximum-threshold 2 kbytes"
    )

    full = f"{short} max-mark-probability 100 weight 0"

    assert _only_value_is_same(short, full)
    assert not _only_value_is_same(short, f"{short} weight 1")
    assert not _only_value_is_same(short, f"{short} max-mark-probability 10")
    assert EOS.parse(f"{short}\ninterface Ethernet1\n   service-profile X") == EOS.parse(
        f"{full}\ninterface Ethernet1\n   service-profile X"
    )


def _only_value_is_same(one: str, other: str) -> bool:
    ((path, value),) = EOS.tree(one).items()
    ((_, changed),) = EOS.tree(other).items()
    return EOS.rules.same(path, value, changed)


def test_ranges_are_spelled_out() -> None:
    tree = EOS.tree("interface Ethernet1-2,5\n   mtu 9214\ninterface Ethernet3/1-2\n   mtu 1500\n")

    assert [path[0] for path in tree] == [f"interface Ethernet{name}" for name in ("1", "2", "5", "3/1", "3/2")]


def test_a_range_of_unknown_form_stays_one_line() -> None:
    assert EOS.tree("interface Ethernet1/1-2/4\n   mtu 9214\n").children() == ("interface Ethernet1/1-2/4",)


def test_free_text_configures_nothing() -> None:
    text = (
        "banner motd\ninterface Ethernet1\n   mtu 1\nEOF\n"
        "management security\n   ssl profile X\n      -----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    )

    tree = EOS.tree(text)

    assert tree["banner motd",] == ("interface Ethernet1", "mtu 1", "EOF")
    assert tree["management security", "ssl profile X", "-----BEGIN CERTIFICATE-----"] == (
        "MIIB",
        "-----END CERTIFICATE-----",
    )


def test_free_text_without_an_end_swallows_nothing() -> None:
    assert ("interface Ethernet1", "mtu") in EOS.tree("banner motd\ninterface Ethernet1\n   mtu 1500\n")


@pytest.mark.parametrize("text", ['{"PORT": {}}', "[1]", "<html>"])
def test_another_language_is_refused(text: str) -> None:
    with pytest.raises(FabricError, match="no EOS configuration"):
        EOS.tree(text)


@pytest.mark.parametrize(
    ("path", "value", "typed"),
    [
        (("interface Ethernet1", "mtu"), "9214", "no mtu"),
        (("interface Ethernet1", "qos trust"), "cos", "default qos trust"),
        (("interface Ethernet1", "qos trust"), "no", "default qos trust"),
        (("qos profile X", "uc-tx-queue 3", "priority"), "no", "default priority"),
        (("interface Ethernet1", "uc-tx-queue 3", "priority"), "strict", "default priority"),
        (("qos map dscp", "26"), "4", "no qos map dscp 26"),
        (("qos map traffic-class to tx-queue", "6"), "5", "no qos map traffic-class 6 to tx-queue"),
        (("ip routing",), None, "no ip routing"),
        (("no ip routing",), None, "default ip routing"),
        (("qos profile X",), None, "no qos profile X"),
    ],
)
def test_each_kind_of_line_has_its_own_way_to_undo_it(path: Path, value: Value, typed: str) -> None:
    assert undo_of(path, value) == typed


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        ("ip routing\n", "no ip routing\n", ""),
        ("", "no ip routing\n", "no ip routing\n"),
        (
            "qos map dscp 8 9 to traffic-class 3\n",
            "qos map dscp 9 to traffic-class 0\n",
            "qos map dscp 8 to traffic-class 3\n",
        ),
        (
            "qos map dscp 8 9 to traffic-class 3\n",
            "qos map dscp 9 to traffic-class 4\n",
            "qos map dscp 8 to traffic-class 3\nqos map dscp 9 to traffic-class 4\n",
        ),
        (
            "qos map dscp 8 9 to traffic-class 3\n",
            "no qos map dscp 8\nno qos map dscp 9\n",
            "",
        ),
        (
            "interface Ethernet1\n   mtu 9214\n!\nend\n",
            "interface Ethernet1\n   mtu 1500\nexit\n",
            "interface Ethernet1\n   mtu 1500\n!\nend\n",
        ),
        (
            "interface Ethernet1\n   mtu 9214\n!\nend\n",
            "interface Ethernet1\n   no mtu\nexit\n",
            "end\n",
        ),
        ("end\n", "interface Ethernet1\nexit\n", "interface Ethernet1\n!\nend\n"),
        (
            "qos profile X\n   qos trust dscp\n!\ninterface Ethernet1\n   mtu 9214\n",
            "qos profile Y\n   qos trust cos\nexit\n",
            "qos profile X\n   qos trust dscp\n!\nqos profile Y\n   qos trust cos\n!\ninterface Ethernet1\n   mtu 9214\n",
        ),
        (
            "qos profile X\n   qos trust dscp\n!\ninterface Ethernet1\n   mtu 9214\n",
            "no qos profile X\n",
            "interface Ethernet1\n   mtu 9214\n",
        ),
        (
            "interface Ethernet1\n   !\n   tx-queue 3\n      bandwidth percent 5\n",
            "interface Ethernet1\n   mtu 9214\n   tx-queue 3\n      no bandwidth percent\n   exit\nexit\n",
            "interface Ethernet1\n   mtu 9214\n",
        ),
        ("hostname a\n", "hostname b\n", "hostname b\n"),
        ("hostname a\n", "no hostname a\n", ""),
        ("qos profile X\n   qos trust dscp\nend\n", "no qos profile X\n", "end\n"),
        ("hostname a\n", "hostname a\n", "hostname a\n"),
        ("", "banner motd\nhello\nEOF\n", "banner motd\nhello\nEOF\n"),
    ],
)
def test_typed_lines_change_what_is_shown(text: str, typed: str, shown: str) -> None:
    assert EOS.apply(text, typed) == shown


def test_a_multi_line_text_is_typed_with_its_end() -> None:
    step = Change(Op.ADD, ("banner motd",), after=("hello", "EOF"))

    assert EOS.payload([step], EMPTY) == "banner motd\nhello\nEOF\n"


def test_a_context_that_stays_empty_is_left_again() -> None:
    step = Change(Op.ADD, ("interface Ethernet1",))

    assert EOS.payload([step], EMPTY) == "interface Ethernet1\nexit\n"


def test_nothing_to_change_is_nothing_to_type() -> None:
    assert EOS.payload([], EMPTY) == ""
