"""The canonical form of an EOS configuration: nothing of a seed is lost but what EOS does not show."""

from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.lab.eos import EosDevice
from fabric.lab.eos.config import Config
from fabric.lab.eos.grammar import grammar
from fabric.lab.eos.template import Miss, expand_ints
from fabric.lab.spec import DeviceSpec

SAMPLES = (
    "amd_7388_dcqcn_example.cfg",
    "avd_interfaces_pfc.cfg",
    "avd_qos_profiles.cfg",
    "spine_no_qos.cfg",
    "spine_service_profile_undefined.cfg",
)


def flat(text: str) -> list[tuple[str, ...]]:
    """Returns every line with the lines above it, `qos map` lists taken apart; separators left out."""
    found: list[tuple[str, ...]] = []
    stack: list[tuple[int, str]] = []
    in_block = False
    for raw in text.splitlines():
        line = raw.strip()
        if in_block:
            found.append((*(one for _, one in stack), raw))
            in_block = line != "EOF"
            continue
        if not line or (line.startswith("!") and not line.startswith("!!")) or raw.rstrip() == "end":
            continue
        indent = len(raw) - len(raw.lstrip())
        stack = [one for one in stack if one[0] < indent]
        above = tuple(one for _, one in stack)
        found += [(*above, one) for one in _apart(line)]
        stack.append((indent, line))
        in_block = line == "comment"
    return found


def _apart(line: str) -> list[str]:
    words = line.split()
    if words[:2] == ["qos", "map"] and "to" in words:
        at = words.index("to")
        return [" ".join([*words[:3], str(one), *words[at:]]) for one in expand_ints(" ".join(words[3:at]))]
    return [line]


def is_hidden(line: tuple[str, ...]) -> bool:
    """Returns whether the grammar calls the line a default."""
    context = "global" if len(line) == 1 else "interface" if line[-2].startswith("interface") else "other"
    found = grammar().read(line[-1], context)
    return not isinstance(found, Miss) and all(one.line is None for one in found)


def is_replaced(line: tuple[str, ...], text: str) -> bool:
    """Returns whether a later line of the text sets the same thing."""
    lines = flat(text)
    later = lines[lines.index(line) + 1 :]
    own = grammar().read(line[-1], "global")
    if isinstance(own, Miss):
        return False
    others = [grammar().read(one[0], "global") for one in later if len(one) == 1]
    return any(one.key == own[0].key for found in others if not isinstance(found, Miss) for one in found)


@pytest.mark.parametrize("name", SAMPLES)
def test_seed_is_shown_back_without_losing_a_line(name: str, reference: Path) -> None:
    text = (reference / "samples" / "eos" / "configs" / name).read_text()
    shown = Config(text).text()
    lost = [line for line in flat(text) if line not in flat(shown)]
    added = [line for line in flat(shown) if line not in flat(text)]
    assert [line for line in lost if not is_hidden(line) and not is_replaced(line, text)] == []
    assert added == []


@pytest.mark.parametrize("name", SAMPLES)
def test_shown_text_is_its_own_canonical_form(name: str, reference: Path) -> None:
    shown = Config((reference / "samples" / "eos" / "configs" / name).read_text()).text()
    assert Config(shown).text() == shown


def test_lines_are_ordered_indented_and_set_apart() -> None:
    text = """
interface Ethernet2
  mtu 9214
  description b
interface Ethernet10
interface Port-Channel1
hostname leaf
qos profile P
  uc-tx-queue 3
    bandwidth percent 50
  qos trust dscp
"""
    assert (
        Config(text).text()
        == """!
hostname leaf
!
qos profile P
   qos trust dscp
   !
   uc-tx-queue 3
      bandwidth percent 50
!
interface Port-Channel1
!
interface Ethernet2
   description b
   mtu 9214
!
interface Ethernet10
!
end
"""
    )


def test_defaults_are_hidden() -> None:
    text = "interface Ethernet1\n   no shutdown\n   mtu 1500\n   switchport\nqos map dscp 26 to traffic-class 3\n"
    assert flat(Config(text).text()) == [("interface Ethernet1",)]


def test_dscp_map_entries_with_one_target_are_shown_on_one_line() -> None:
    text = (
        "qos map dscp 30 to traffic-class 1\nqos map dscp 9-11 to traffic-class 1\nqos map dscp 4 to traffic-class 5\n"
    )
    assert [line[0] for line in flat_lines(Config(text))] == [
        "qos map dscp 4 to traffic-class 5",
        "qos map dscp 9 10 11 30 to traffic-class 1",
    ]


def flat_lines(config: Config) -> list[tuple[str, ...]]:
    return [(line,) for line in config.text().splitlines() if line not in {"!", "end"}]


def test_later_line_of_the_same_setting_replaces_the_earlier() -> None:
    text = "interface Ethernet1\n   mtu 9000\n   mtu 9214\n"
    assert flat(Config(text).text()) == [("interface Ethernet1",), ("interface Ethernet1", "mtu 9214")]


def test_foreign_lines_keep_place_order_and_repetition() -> None:
    text = "route-map A permit 10\n   match as 1\n   match as 1\nroute-map A permit 5\n   set x\n"
    assert flat(Config(text).text()) == flat(text)


def test_foreign_line_keeps_its_place_when_the_line_above_it_goes_and_comes() -> None:
    text = "hostname a\ninterface Ethernet1\n   qos trust cos\n   foreign\n   priority-flow-control on\n"
    device = EosDevice(DeviceSpec("a", "eos", text), FakeClock())
    before = device.config.text()
    shell = device.dialogue("admin")
    for line in ("enable", "configure", "interface Ethernet1", "default qos trust", "qos trust cos"):
        shell.feed(line)
    assert device.config.text() == before


def test_line_that_the_grammar_refuses_is_kept_when_a_seed_has_it() -> None:
    text = "priority-flow-control pause watchdog action no-drop\ninterface Ethernet1\n   mtu 9300\n"
    assert sorted(flat(Config(text).text())) == sorted(flat(text))


def test_multi_line_text_is_kept_as_written() -> None:
    text = "interface Ethernet1\n   comment\n   !not a separator\n  odd indent\n   EOF\n   mtu 9214\n"
    shown = Config(text).text()
    assert "   comment\n   !not a separator\n  odd indent\n   EOF\n" in shown
    assert "   mtu 9214\n" in shown


def test_range_in_a_seed_sets_every_interface() -> None:
    assert flat(Config("interface Ethernet1-2\n   mtu 9214\n").text()) == [
        ("interface Ethernet1",),
        ("interface Ethernet1", "mtu 9214"),
        ("interface Ethernet2",),
        ("interface Ethernet2", "mtu 9214"),
    ]


def test_queue_without_lines_is_hidden() -> None:
    assert flat(Config("qos profile P\n   uc-tx-queue 3\n").text()) == [("qos profile P",)]


def test_copy_is_independent() -> None:
    config = Config("hostname a\n")
    twin = config.copy()
    twin.root.children.clear()
    assert config.hostname() == "a"
    assert twin.hostname() == "localhost"


def test_section_shows_whole_sections() -> None:
    config = Config("hostname a\ninterface Ethernet1\n   mtu 9214\ninterface Ethernet2\n")
    assert config.section("9214") == "interface Ethernet1\n   mtu 9214\n"


def test_every_kind_has_a_source() -> None:
    assert all(kind.source for kind in grammar().kinds)
