"""Counters of switches over real SSH: both network OSes answer, and one that is down stops nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.workflow.evidence import port_evidence, read_counters, switch_counter_findings
from fabric.workflow.planning import load_intent, plan_of
from fabric.workflow.stopwatch import Stopwatch
from tests.strategies.site import Site, served_site


@pytest.fixture(name="found")
def _found(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


def test_counters_of_every_switch_are_read_and_judged(found: Site) -> None:
    watch = Stopwatch(found.environment.clock)
    loaded = load_intent(found.request, found.environment, watch)
    plan = plan_of(loaded, found.request)
    read = read_counters(loaded, plan, found.environment, watch)
    assert (set(read.by_device), dict(read.errors)) == ({"leaf1", "leaf2"}, {})
    judged = switch_counter_findings(loaded.fabric, plan, {}, read)
    assert {one.where.device for one in judged} == {"leaf1", "leaf2"}
    port_evidence(loaded.fabric, plan, {}, read)

    gone = {**loaded.access, "leaf2": replace(loaded.access["leaf2"], port=1)}
    half = read_counters(replace(loaded, access=gone), plan, found.environment, watch)
    assert (set(half.by_device), set(half.errors)) == ({"leaf1"}, {"leaf2"})
