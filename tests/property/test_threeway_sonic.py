"""A run on SONiC taken back after others were there: theirs stays, the rest is as before, and YANG has nothing new."""

import json
from dataclasses import replace
from typing import cast

from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.diff import Change, Op
from fabric.errors import PlanError
from fabric.lab.sonic.configdb import Database
from fabric.lab.sonic.schema import schema
from fabric.nos.base import RenderContext
from fabric.nos.sonic import SONIC
from fabric.tree import Tree
from fabric.workflow.design import DeviceChange
from tests.strategies.sonic import Case, cases
from tests.strategies.threeway import SEEDS, edits
from tests.unit.workflow.reversal import assert_all_goes_back, assert_three_ways, back_of, run_of, touched_by

BESIDE = [
    Change(Op.ADD, ("NTP_SERVER", "192.0.2.1"), after=None),
    Change(Op.ADD, ("PORT", "Ethernet0", "description"), after="to rack 7"),
]


def _run(case: Case, base: str | None = None) -> tuple[DeviceChange, str]:
    text = case.base if base is None else base
    context = replace(case.context, running=SONIC.tree(text))
    return run_of(SONIC, SONIC.render(case.qos, context), text)


def _problems(text: str) -> set[str]:
    return set(schema().problems(cast("Database", json.loads(text))))


def _users(left: Tree) -> list[Change]:
    """Returns edits by which a port outside the intent begins to use what the run put there."""
    ours = [path[1] for path in left if path[0] == "WRED_PROFILE" and path[1].startswith("FABRICCTL")]
    maps = [path[1] for path in left if path[0] == "TC_TO_QUEUE_MAP" and path[1].startswith("FABRICCTL")]
    port = left.children("PORT")[-1]
    rows = [(("QUEUE", f"{port}|6", "wred_profile"), name) for name in ours[:1]]
    rows += [(("PORT_QOS_MAP", port, "tc_to_queue_map"), name) for name in maps[:1]]
    return [Change(Op.ADD if path not in left else Op.REPLACE, path, left.get(path), name) for path, name in rows]


@given(case=st.booleans().flatmap(lambda joined: cases(for_yang=not joined)), seed=SEEDS)
def test_what_others_changed_stays_and_the_rest_goes_back(case: Case, seed: int) -> None:
    run, text = _run(case)
    left, before = SONIC.tree(text), SONIC.tree(case.base)
    assert_all_goes_back(SONIC, run, before, text)
    beside = [one for one in (*BESIDE, *_users(left)) if one.path not in touched_by(run)]
    steps = edits(seed, left, before, touched_by(run), beside)
    theirs = SONIC.apply(text, SONIC.payload(_ordered(steps), left))
    assume(_problems(theirs) <= _problems(case.base))  # else the device had not taken it

    after = assert_three_ways(SONIC, run, before, left, theirs)

    assert _problems(after) <= _problems(theirs) | _problems(case.base)


@given(first=cases(), second=cases())
def test_an_older_run_then_the_newer_then_the_rest_of_the_older_arrive_at_the_start(first: Case, second: Case) -> None:
    ports = set(SONIC.tree(first.base).children("PORT"))
    assume({port.name for port in second.qos.ports} <= ports)
    older, text = _run(first)
    qos = replace(second.qos, buffer_model=first.qos.buffer_model)
    context = RenderContext(version=first.context.version, running=SONIC.tree(text), adopt=second.context.adopt)
    try:
        intended = SONIC.render(qos, context)
    except PlanError:  # its polling interval is too long for what the older run gave to other ports
        assume(False)
    newer, text = run_of(SONIC, intended, text)

    _, text = back_of(SONIC, older, text, newer)
    _, text = back_of(SONIC, newer, text)
    last, text = back_of(SONIC, older, text)

    assert last.kept == ()
    assert SONIC.tree(text) == SONIC.tree(first.base)


def _ordered(steps: list[Change]) -> list[Change]:
    puts = [one for one in steps if one.op is not Op.REMOVE]
    return [*sorted(puts, key=lambda one: one.path), *sorted(set(steps) - set(puts), key=lambda one: one.path)]
