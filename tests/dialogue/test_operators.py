"""Rollouts over real SSH when something or somebody comes between: budgets, locks, other operators, Ctrl-C, clocks."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.lab import Fault, FaultKind
from fabric.observe import Event
from fabric.push.lock import DeviceLock
from fabric.state import DeviceResult, Outcome
from fabric.workflow import FailureBudget, Summary, provision
from tests.faults.clock import JumpClock
from tests.faults.keys import few_host_keys
from tests.faults.subjects import BY_NAME, configs
from tests.faults.subjects import served as served_subject
from tests.kills import ROOT
from tests.strategies.site import Site, served_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with few_host_keys(), served_site(tmp_path) as served:
        yield served


def ends(summary: Summary) -> dict[str, Outcome]:
    return {one.device: one.outcome for one in summary.devices}


def result(summary: Summary, device: str) -> DeviceResult:
    return next(one for one in summary.devices if one.device == device)


def state(site: Site) -> dict[str, tuple[str, str]]:
    return {name: (front.running(), front.startup()) for name, front in site.fronts.items()}


# a failure budget


def test_a_device_that_was_committed_before_the_budget_was_exceeded_is_told_as_taken_back(site: Site) -> None:
    before = state(site)
    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, "commit timer", times=1))
    request = replace(site.request, failure_budget=FailureBudget(49, is_percent=True), workers=1)

    summary = provision(request, site.environment)

    taken = result(summary, "leaf1")
    assert taken.outcome is Outcome.ROLLED_BACK
    assert taken.error == (
        "the failure budget of 49% is exceeded (1 failed: leaf2): its change was confirmed, and taken back"
    )
    assert [json.loads(one) for one in state(site)["leaf1"]] == [json.loads(one) for one in before["leaf1"]]
    assert state(site)["leaf2"] == before["leaf2"]


def test_a_budget_that_is_kept_takes_nothing_back(site: Site) -> None:
    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, "commit timer", times=1))

    summary = provision(replace(site.request, failure_budget=FailureBudget(1)), site.environment)

    assert ends(summary) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.ROLLED_BACK}


def test_a_switch_that_cannot_be_read_counts_and_nothing_begins(site: Site) -> None:
    before = state(site)
    site.fronts["leaf2"].add_fault(Fault(FaultKind.DENY_AUTH))

    summary = provision(replace(site.request, failure_budget=FailureBudget(0)), site.environment)

    assert ends(summary) == {"leaf1": Outcome.REFUSED, "leaf2": Outcome.FAILED}
    assert "the failure budget of 0 is exceeded (1 failed: leaf2)" in result(summary, "leaf1").error
    assert state(site) == before


def test_what_cannot_be_taken_back_is_told_as_standing(site: Site) -> None:
    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, "commit timer", times=1))

    def lock_out(event: Event) -> None:
        if (event.device, event.name) == ("leaf2", "push.commit.failed"):
            site.fronts["leaf1"].add_fault(Fault(FaultKind.DENY_AUTH))

    request = replace(site.request, failure_budget=FailureBudget(0), workers=1)
    summary = provision(request, replace(site.environment, observer=lock_out))

    assert ends(summary) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.ROLLED_BACK}
    assert "its change stands, since it could not be taken back" in result(summary, "leaf1").error
    assert "fabricctl rollback" in result(summary, "leaf1").remedy


# other operators


@contextmanager
def running(site: Site, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Yields a real `fabricctl provision` of the site, as another operator runs it."""
    sources = [word for source in site.request.sources for word in ("-i", str(source))]
    command = [str(ROOT / ".venv/bin/fabricctl"), "provision", *sources, "--runs", str(site.request.runs), "--quiet"]
    environment = {**os.environ, "FABRICCTL_STATE": str(site.environment.state_dir)}
    with subprocess.Popen(
        [*command, "--switches-only", "--disruptive", "--json", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def until(found: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 120
    while not found():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def has_begun(site: Site, device: str, line: str) -> Callable[[], bool]:
    return lambda: any(
        f'"state": "{line}"' in path.read_text() for path in site.environment.state_dir.glob(f"*/{device}.jsonl")
    )


def test_of_two_operators_one_wins_and_the_other_is_told_who_holds_it(site: Site) -> None:
    site.fronts["leaf2"].add_fault(Fault(FaultKind.DELAY, "commit timer", seconds=15.0, times=1))
    with running(site) as first:
        until(has_begun(site, "leaf2", "committing"))
        second = provision(site.request, site.environment)
        said, _ = first.communicate(timeout=120)

    refused = result(second, "leaf2")
    assert refused.outcome is Outcome.FAILED
    assert f"process {first.pid} on {os.uname().nodename}, since 20" in refused.error
    assert f"kill {first.pid}" in refused.remedy
    assert {one["device"]: one["outcome"] for one in json.loads(said)["devices"]}["leaf2"] == "committed"


def test_a_stale_lock_is_taken_over_and_told(site: Site) -> None:
    with DeviceLock(
        site.environment.state_dir, "leaf1", owner="anna", run="r7", clock=site.environment.clock, expires_s=60.0
    ) as held:
        held.keep()

    summary = provision(site.request, site.environment)

    assert ends(summary) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.COMMITTED}
    told = [note.text for device, note in summary.notes if (device, note.code) == ("leaf1", "stale-lock")]
    assert len(told) == 1
    assert told[0].startswith(f"taken over from run r7 of anna, process {os.getpid()}")


# Ctrl-C


def test_one_ctrl_c_lets_what_has_begun_come_to_its_end(site: Site) -> None:
    site.fronts["leaf2"].add_fault(Fault(FaultKind.DELAY, "commit timer", seconds=3.0, times=1))
    with running(site) as process:
        until(has_begun(site, "leaf2", "committing"))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)

    assert process.returncode in {0, 1}
    assert {one["outcome"] for one in json.loads(said)["devices"] if one["device"] == "leaf2"} == {"committed"}
    assert site.fronts["leaf2"].startup().split("\n")[4:] == site.fronts["leaf2"].running().split("\n")[4:]


def test_a_second_ctrl_c_ends_the_process_and_the_timer_brings_the_switch_back(site: Site) -> None:
    before = state(site)["leaf2"]
    site.fronts["leaf2"].add_fault(Fault(FaultKind.DELAY, "commit timer", seconds=2.0, times=1))
    site.fronts["leaf2"].add_fault(Fault(FaultKind.DELAY, "show running-config", seconds=60.0, nth=3))
    with running(site, "--confirm-s", "10") as process:
        until(has_begun(site, "leaf2", "verifying"))
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        started_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert time.monotonic() - started_s < 10
    assert process.returncode == 130
    assert "goes back by its own timer" in said
    until(lambda: site.fronts["leaf2"].running() == before[0])


# clocks, boots, silence


class _Ahead(JumpClock):
    """A device whose wall clock is far from ours."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__()
        self._ahead_s = ahead_s

    def unix_s(self) -> float:
        return super().unix_s() + self._ahead_s


@pytest.mark.parametrize("ahead_s", [-400 * 86400.0, 400 * 86400.0], ids=["behind", "ahead"])
@pytest.mark.parametrize("name", ["eos", "sonic"])
def test_timers_of_a_device_are_relative_whatever_day_it_believes_to_be(
    name: str, ahead_s: float, tmp_path: Path
) -> None:
    subject, clock = BY_NAME[name], _Ahead(ahead_s)
    with few_host_keys(), served_subject(subject, tmp_path, clock) as (front, how):
        session = subject.session(how, JumpClock())
        session.open()
        session.stage(subject.change)
        session.commit(subject.change, confirm_s=60)
        clock.sleep_s(50)
        assert configs(subject, front)[0] == subject.intended
        clock.sleep_s(11)
        time.sleep(0.1)

        assert configs(subject, front) == (subject.before, subject.before)
        session.close()


@pytest.mark.parametrize("device", ["leaf1", "leaf2"])
def test_a_switch_that_boots_in_mid_commit_is_as_before_and_says_so(site: Site, device: str) -> None:
    before = state(site)[device]
    match = {"leaf1": "apply-patch /|config reload", "leaf2": "commit timer"}[device]
    site.fronts[device].add_fault(Fault(FaultKind.REBOOT_AFTER, match, times=1))

    summary = provision(replace(site.request, confirm_s=10), site.environment)

    assert result(summary, device).outcome is Outcome.ROLLED_BACK
    assert state(site)[device] == before
