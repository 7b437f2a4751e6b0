"""What must hold for any sequence of typed lines and any pair of databases."""

from hypothesis import given
from hypothesis import strategies as st

from fabric.clock import FakeClock
from fabric.lab.eos import EosDevice
from fabric.lab.eos.config import Config
from fabric.lab.eos.grammar import grammar
from fabric.lab.sonic.configdb import Database
from fabric.lab.sonic.patch import apply_patch, difference, pointer, split_pointer
from fabric.lab.spec import DeviceSpec

SEED = "hostname leaf1\ninterface Ethernet1\n   description x\ninterface Ethernet2\nip prefix-list A\n   seq 10 permit any\n"

interface_lines = st.sampled_from(
    [
        "mtu 9214",
        "mtu 1500",
        "no switchport",
        "service-profile P",
        "qos trust dscp",
        "no qos trust",
        "priority-flow-control on",
        "priority-flow-control priority 3 no-drop",
        "shutdown",
        "dcbx mode ieee",
        "tx-queue 3",
        "exit",
    ]
)
queue_lines = st.sampled_from(
    [
        "bandwidth percent 50",
        "bandwidth guaranteed 100",
        "priority strict",
        "no priority",
        "random-detect ecn count",
        "random-detect ecn minimum-threshold 1 kbytes maximum-threshold 2 kbytes",
    ]
)
map_lines = st.builds(
    "qos map dscp {} to traffic-class {}".format,
    st.lists(st.integers(0, 63), min_size=1, max_size=5).map(lambda numbers: " ".join(map(str, numbers))),
    st.integers(0, 7),
)
contexts = st.sampled_from(["interface Ethernet1", "interface Ethernet1-2", "qos profile P", "uc-tx-queue 3"])
undoing = st.sampled_from(
    ["no mtu", "no qos profile P", "default interface Ethernet1", "no qos map dscp 26", "no tx-queue 3"]
)
typed = st.lists(st.one_of(interface_lines, queue_lines, map_lines, contexts, undoing), max_size=30)


def device() -> EosDevice:
    return EosDevice(DeviceSpec("leaf1", "eos", SEED), FakeClock())


@given(typed)
def test_what_is_shown_reads_back_as_what_is_shown(lines: list[str]) -> None:
    one = device()
    shell = one.dialogue("admin")
    for line in ("enable", "configure", *lines):
        shell.feed(line)
    shown = one.config.text()
    assert Config(shown).text() == shown
    assert "ip prefix-list A\n   seq 10 permit any\n" in shown, "foreign lines stay"


@given(typed)
def test_session_shows_in_its_diff_exactly_what_its_commit_changes(lines: list[str]) -> None:
    one = device()
    before = one.config.text()
    shell = one.dialogue("admin")
    for line in ("enable", "configure session s", *lines):
        shell.feed(line)
    if shell.prompt() == "leaf1#":  # `exit` at the top left the session; it waits
        shell.feed("configure session s")
    diff = shell.feed("show session-config diffs").text.splitlines()[2:]
    shell.feed("commit")
    after = one.config.text()
    changed = [line for line in diff if line[0] in "+-"]
    assert bool(changed) is (before != after)
    for line in changed:
        assert line[1:] in (after if line[0] == "+" else before).splitlines()


@given(typed)
def test_expired_timer_restores_the_configuration(lines: list[str]) -> None:
    clock = FakeClock()
    one = EosDevice(DeviceSpec("leaf1", "eos", SEED), clock)
    before = one.running()
    shell = one.dialogue("admin")
    for line in ("enable", "configure session s", *lines, "end", "configure session s", "commit timer 00:01:00"):
        shell.feed(line)
    clock.sleep_s(60)
    assert one.running() == before


words = st.sampled_from(
    ["qos", "map", "dscp", "26", "64", "to", "traffic-class", "interface", "Et1", "1-", "9-2", "no", "mtu"]
)


@given(st.one_of(st.text(max_size=30), st.lists(words, max_size=8).map(" ".join)))
def test_no_text_breaks_the_grammar(text: str) -> None:
    for context in ("global", "interface", "qos-profile", "tx-queue", "vlan", "vrf"):
        grammar().read(text, context)
        grammar().read(f"no {text}", context)


names = st.text("ab/~|", min_size=1, max_size=3)
databases = st.dictionaries(
    names, st.dictionaries(names, st.dictionaries(names, names, max_size=2), max_size=3), max_size=3
)


@given(databases, databases)
def test_difference_applied_gives_the_other_database(old: Database, new: Database) -> None:
    assert apply_patch(old, difference(old, new)) == new
    assert list(difference(new, new)) == []


@given(st.lists(st.text("a/~", min_size=1), max_size=4))
def test_pointer_reads_back(parts: list[str]) -> None:
    assert split_pointer(pointer(parts)) == tuple(parts)
