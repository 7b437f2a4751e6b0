"""The verbs over real SSH: what is reviewed is applied, what is foreign stays, what fails goes back."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import FabricError, PlanError
from fabric.lab import Fault, FaultKind
from fabric.observe import Event
from fabric.push import StagedChange
from fabric.push.lock import DeviceLock
from fabric.state import Outcome, Status
from fabric.workflow import (
    PlanDocument,
    Summary,
    Verdict,
    check,
    plan,
    provision,
    read_document,
    rollback,
    sources_of_run,
    write_document,
)
from fabric.workflow.planning import load_intent, plan_of
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from tests.strategies.site import Site, served_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


def ends(summary: Summary) -> dict[str, Outcome]:
    return {one.device: one.outcome for one in summary.devices}


def running(site: Site) -> dict[str, str]:
    return {name: front.running() for name, front in site.fronts.items()}


def test_saved_plan_is_applied_read_again_and_taken_back_to_the_byte(site: Site, tmp_path: Path) -> None:
    before = running(site)
    reviewed, document = plan(site.request, site.environment)
    assert reviewed.changed
    assert running(site) == before
    saved = tmp_path / "plan.json"
    write_document(saved, document)

    done = provision(site.request, site.environment, saved=read_document(saved, PlanDocument))

    assert ends(done) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.COMMITTED}, done.devices
    assert done.verdict is Verdict.OK
    assert not [one for one in done.findings if one.status is Status.FAIL]
    assert _foreign(site.fronts["leaf1"].running()) == _foreign(before["leaf1"])
    assert check(site.request, site.environment, live=True).verdict is Verdict.OK
    again = provision(site.request, site.environment)
    assert ends(again) == {"leaf1": Outcome.UNCHANGED, "leaf2": Outcome.UNCHANGED}

    run = Path(done.run_folder)
    assert sources_of_run(run) == site.request.sources
    back = rollback(run, site.request, site.environment)

    assert ends(back) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.COMMITTED}, back.devices
    assert json.loads(site.fronts["leaf1"].running()) == json.loads(before["leaf1"])
    assert site.fronts["leaf2"].running() == before["leaf2"]
    with pytest.raises(FabricError, match="committed nothing"):
        rollback(Path(again.run_folder), site.request, site.environment)


def _foreign(text: str) -> object:
    """Returns what the intent does not own: whole tables, and the rows of the third port."""
    tables = json.loads(text)
    untouched = {name: tables[name] for name in ("STATIC_ROUTE", "NTP_SERVER", "BUFFER_POOL", "DEVICE_METADATA")}
    rows = {
        (table, key): row
        for table, entries in tables.items()
        for key, row in entries.items()
        if key.split("|", maxsplit=1)[0] == "Ethernet16"
    }
    return untouched, rows


def test_device_that_changed_since_the_plan_is_refused_and_left_alone(site: Site) -> None:
    _, document = plan(site.request, site.environment)
    first = provision(site.request, site.environment)
    assert first.verdict is Verdict.OK
    before = running(site)

    late = provision(site.request, site.environment, saved=document)

    assert set(ends(late).values()) <= {Outcome.REFUSED, Outcome.UNCHANGED}
    assert running(site) == before


def test_refused_line_leaves_its_device_as_before_and_the_other_committed(site: Site) -> None:
    before = site.fronts["leaf2"].running()
    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, match="random-detect ecn"))

    summary = provision(site.request, site.environment)

    assert summary.verdict is Verdict.FAILED
    assert ends(summary) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.FAILED}
    failed = next(one for one in summary.devices if one.device == "leaf2")
    assert "random-detect ecn" in failed.error
    assert site.fronts["leaf2"].running() == before


def test_install_is_by_reload_when_it_is_asked_for_and_only_where_there_is_that_way(site: Site) -> None:
    assert provision(site.request, site.environment).verdict is Verdict.OK
    request = replace(site.request, install=True, extra_vars={"fabric_ecn_kmax": "1400KB"})
    planned, document = plan(request, site.environment)
    reasons = {one.device: one.changes.disruptive for one in document.devices}
    assert reasons == {"leaf1": ("asked for: install by load and reload",), "leaf2": ()}
    assert ends(provision(replace(request, disruptive=False), site.environment))["leaf1"] is Outcome.REFUSED
    done = provision(request, site.environment, saved=document)
    assert ends(done)["leaf1"] is Outcome.COMMITTED, done.devices
    again, after = plan(request, site.environment)
    assert not again.changed
    assert [one.changes.disruptive for one in after.devices] == [(), ()]
    assert planned.changed


def test_dry_run_lets_the_devices_judge_and_applies_nothing(site: Site) -> None:
    before = running(site)
    summary = provision(replace(site.request, dry_run=True, disruptive=False), site.environment)
    assert ends(summary) == {"leaf1": Outcome.UNCHANGED, "leaf2": Outcome.UNCHANGED}
    assert all(one.changes and one.diff for one in summary.devices)

    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, match="random-detect ecn"))
    refused = provision(replace(site.request, dry_run=True), site.environment)
    assert ends(refused) == {"leaf1": Outcome.UNCHANGED, "leaf2": Outcome.FAILED}
    assert running(site) == before


def test_unadopted_device_wide_change_is_held_back_and_named(site: Site) -> None:
    request = replace(site.request, extra_vars={"fabric_adopt": False})
    summary, document = plan(request, site.environment)
    assert summary.verdict is Verdict.FINDINGS
    held = {one.device: one.changes for one in document.devices}
    assert held["leaf2"].held_back
    assert held["leaf2"].outside_ports == ("Ethernet3/1",)
    assert any(note.code == "device-wide-held-back" for _, note in summary.notes)


def test_failed_check_stops_the_run_before_any_device_is_touched(site: Site) -> None:
    before = running(site)
    request = replace(site.request, extra_vars={"fabric_adopt": False, "fabric_cnp_dscp": 26})
    with pytest.raises(FabricError, match="fabric_cnp_dscp"):
        provision(request, site.environment)
    assert running(site) == before


def test_unreachable_device_is_reported_and_does_not_stop_the_other(site: Site) -> None:
    site.fronts["leaf1"].add_fault(Fault(FaultKind.DENY_AUTH))
    summary = provision(site.request, site.environment)
    assert ends(summary) == {"leaf1": Outcome.FAILED, "leaf2": Outcome.COMMITTED}
    assert summary.verdict is Verdict.FAILED


def test_run_folder_and_events_hold_no_password_and_no_whole_configuration(site: Site) -> None:
    summary = provision(site.request, site.environment)
    secrets = [front.password for front in site.fronts.values()]
    texts = [path.read_text() for path in Path(summary.run_folder).rglob("*") if path.is_file()]
    texts += [repr(event) for event in site.recorder.events]
    assert texts
    assert not [text for text in texts for secret in secrets if secret in text]
    assert not [text for text in texts if "198.51.100.0/24" in text]  # a route of the seed: foreign
    names = {path.name for path in Path(summary.run_folder).iterdir()}
    assert {"fabric.json", "plan.json", "push.json", "summary.json", "report.json", "report.html"} <= names


def test_device_that_is_lost_before_it_is_read_again_is_no_pass(site: Site) -> None:
    def lose(event: Event) -> None:
        if (event.device, event.name) == ("leaf2", "push.save.done"):
            site.fronts["leaf2"].add_fault(Fault(FaultKind.DENY_AUTH))

    summary = provision(site.request, replace(site.environment, observer=lose))

    assert ends(summary) == {"leaf1": Outcome.COMMITTED, "leaf2": Outcome.COMMITTED}
    assert summary.verdict is Verdict.FINDINGS
    unknown = [one.where.device for one in summary.findings if one.status is Status.UNKNOWN]
    assert unknown == ["leaf2"]


def test_nothing_to_do_is_not_said_of_a_device_that_another_run_left_under_a_timer(site: Site) -> None:
    provision(site.request, site.environment)
    with DeviceLock(
        site.environment.state_dir, "leaf1", owner="anna", run="r7", clock=site.environment.clock, expires_s=60.0
    ) as held:
        busy = provision(site.request, site.environment)
        held.keep()
    site.recorder.events.clear()
    after = provision(site.request, site.environment)
    saved = [event.device for event in site.recorder.events if event.name == "push.check.done"]

    assert ends(busy) == {"leaf1": Outcome.FAILED, "leaf2": Outcome.UNCHANGED}
    assert "another run holds this device" in next(one.error for one in busy.devices if one.device == "leaf1")
    assert ends(after) == {"leaf1": Outcome.UNCHANGED, "leaf2": Outcome.UNCHANGED}
    assert saved == ["leaf1"]


def type_by_hand(site: Site, device: str, line: str) -> None:
    """Changes a device behind our back, as another operator would."""
    loaded = load_intent(site.request, site.environment, Stopwatch(site.environment.clock))
    switches = plan_of(loaded, site.request).switches
    session = session_factories(loaded, switches, site.environment)[device]()
    change = StagedChange("by-hand", line, f"no {line}")
    session.open()
    session.stage(change)
    session.commit(change, confirm_s=60)
    session.confirm(change)
    session.close()


def test_saved_plan_keeps_to_the_limit_and_what_others_changed_elsewhere(site: Site) -> None:
    _, document = plan(site.request, site.environment)
    site.fronts["leaf1"].add_fault(Fault(FaultKind.DENY_AUTH))
    type_by_hand(site, "leaf2", "ntp server 192.0.2.123")

    only = provision(replace(site.request, limit="leaf2"), site.environment, saved=document)

    assert ends(only) == {"leaf2": Outcome.COMMITTED}
    assert only.verdict is Verdict.OK
    assert "ntp server 192.0.2.123" in site.fronts["leaf2"].running()


def test_saved_plan_that_was_altered_is_not_applied(site: Site) -> None:
    before = running(site)
    _, document = plan(site.request, site.environment)
    wide_open = replace(document, devices=tuple(replace(one, rollback="hostname other\n") for one in document.devices))

    altered = provision(site.request, site.environment, saved=wide_open)

    assert ends(altered) == {"leaf1": Outcome.REFUSED, "leaf2": Outcome.REFUSED}
    assert altered.verdict is Verdict.FINDINGS
    assert running(site) == before
    for wrong, request in (
        (replace(document, fabric="other"), site.request),
        (document, replace(site.request, limit="gpu1")),
    ):
        with pytest.raises(PlanError):
            provision(request, site.environment, saved=wrong)
