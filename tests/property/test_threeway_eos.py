"""A run on EOS taken back after others were there: theirs stays, the rest is as before, and the lab's grammar takes it."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.clock import FakeClock
from fabric.diff import Change, Op
from fabric.errors import UnsupportedFeatureError
from fabric.lab.eos import EosDevice
from fabric.lab.spec import DeviceSpec
from fabric.nos.base import RenderContext
from fabric.nos.eos import EOS
from fabric.nos.eos.keys import NO
from fabric.qos import DeviceQos
from fabric.tree import Path, Tree
from fabric.workflow.design import DeviceChange
from fabric.workflow.reversing import reverse
from tests.strategies.eos import bases, contexts, device_qos
from tests.strategies.threeway import SEEDS, edits
from tests.unit.workflow.reversal import assert_all_goes_back, assert_three_ways, back_of, run_of, touched_by

BESIDE = [
    Change(Op.ADD, ("ntp server 192.0.2.1",)),
    Change(Op.ADD, ("interface Ethernet1", "description to rack 7")),
    Change(Op.ADD, ("interface Ethernet44", "mtu"), after="8000"),
]


def _run(qos: DeviceQos, base: str, context: RenderContext) -> tuple[DeviceChange, str]:
    try:
        intended = EOS.render(qos, replace(context, running=EOS.tree(base)))
    except UnsupportedFeatureError:  # two members of one port channel that shall differ
        assume(False)
    return run_of(EOS, intended, base)


def _users(left: Tree) -> list[Change]:
    """Returns the edit by which a port outside the intent begins to use a profile of ours."""
    ours = [name for name in left.children() if name.startswith("qos profile FABRICCTL")]
    names = [name.removeprefix("qos profile ") for name in ours[:1]]
    return [Change(Op.ADD, ("interface Ethernet44", "service-profile"), after=name) for name in names]


@given(qos=device_qos(), base=bases(), data=st.data(), seed=SEEDS)
def test_what_others_changed_stays_and_the_rest_goes_back(
    qos: DeviceQos, base: str, data: st.DataObject, seed: int
) -> None:
    run, text = _run(qos, base, data.draw(contexts(base)))
    left, before = EOS.tree(text), EOS.tree(base)
    assert_all_goes_back(EOS, run, before, text)
    beside = [one for one in (*BESIDE, *_users(left)) if one.path not in left]
    steps = edits(seed, left, before, touched_by(run), beside)
    theirs = EOS.apply(text, EOS.payload(steps, left))

    after = assert_three_ways(EOS, run, before, left, theirs)

    shown, typed = EOS.tree(after), EOS.tree(_in_the_lab(theirs, reverse(run, theirs).payload))
    own_ways = _differences(EOS.tree(_in_the_lab(theirs, "")), EOS.tree(theirs))
    assert _differences(typed, shown) <= own_ways


@given(first=device_qos(), second=device_qos(), base=bases(), data=st.data())
def test_an_older_run_then_the_newer_then_the_rest_of_the_older_arrive_at_the_start(
    first: DeviceQos, second: DeviceQos, base: str, data: st.DataObject
) -> None:
    context = data.draw(contexts(base))
    older, text = _run(first, base, context)
    newer, text = _run(second, text, context)

    _, text = back_of(EOS, older, text, newer)
    _, text = back_of(EOS, newer, text)
    last, text = back_of(EOS, older, text)

    assert last.kept == ()
    found, start = EOS.tree(text), EOS.tree(base)
    differs = {path for path in {**found, **start} if found.get(path, ...) != start.get(path, ...)}
    assert not {path for path in differs if not _is_bare_port(path)}


def _differences(lab: Tree, meant: Tree) -> set[Path]:
    """Returns where a switch of the lab shows otherwise than by its own ways.

    It never shows a setting as switched off, nor the MTU that a routed port has anyhow, and never loses a port.
    """
    paths = {path for path in {**lab, **meant} if lab.get(path, ...) != meant.get(path, ...)}
    off = {path for path in paths if meant.get(path) == NO or path[-1].startswith("no ")}
    plain = {path for path in paths if path[-1] == "mtu" and meant.get(path) == "1500" and path not in lab}
    return {path for path in paths - off - plain if not _is_bare_port(path)}


def _is_bare_port(path: Path) -> bool:
    """Returns whether the path is a port without a line: a switch has it whatever its configuration says."""
    return len(path) == 1 and path[0].startswith("interface ")


def _in_the_lab(text: str, typed: str) -> str:
    """Returns what an emulated switch with `text` shows after these lines; it takes every one of them."""
    device = EosDevice(DeviceSpec("leaf1", "eos", text), FakeClock())
    shell = device.dialogue("admin")
    for line in ("enable", "configure session s", *typed.splitlines(), "commit"):
        assert "%" not in (said := shell.feed(line).text), (line, said)
    return device.running()
