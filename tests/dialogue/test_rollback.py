"""The verb rollback over real SSH, after others were at the devices, after newer runs, and after runs that were killed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import pytest

from fabric.lab import Front
from fabric.push import StagedChange, journal_of
from fabric.push.journal import Journal
from fabric.push.lock import DeviceLock
from fabric.push.session import DeviceSession
from fabric.state import Outcome
from fabric.workflow import PlanDocument, Summary, Verdict, plan, provision, read_document, rollback
from fabric.workflow.planning import load_intent, plan_of
from fabric.workflow.publishing import sentence
from fabric.workflow.sessions import session_factories
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import how_it_ended
from tests.strategies.site import Site, served_site

FOREIGN_PORT: Final = "Ethernet16"
TIMER_S: Final = 12  # longer than a busy machine takes from the commit to the look behind it


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


def ends(summary: Summary) -> dict[str, str]:
    return {one.device: how_it_ended(summary, one) for one in summary.devices}


def notes(summary: Summary, device: str) -> list[tuple[str, str]]:
    return [(note.code, note.text) for name, note in summary.notes if name == device]


def canonical(front: Front) -> object:
    text = front.running()
    return json.loads(text) if front.nos == "sonic" else text


def running(site: Site) -> dict[str, object]:
    return {name: canonical(front) for name, front in site.fronts.items()}


def tables(site: Site) -> dict[str, dict[str, dict[str, str]]]:
    return cast("dict[str, dict[str, dict[str, str]]]", json.loads(site.fronts["leaf1"].running()))


def session(site: Site, device: str) -> DeviceSession:
    loaded = load_intent(site.request, site.environment, Stopwatch(site.environment.clock))
    switches = plan_of(loaded, site.request).switches
    opened = session_factories(loaded, switches, site.environment)[device]()
    opened.open()
    return opened


def by_hand(site: Site, device: str, payload: str) -> None:
    """Changes a device behind our back, as another operator would."""
    change = StagedChange("by-hand", payload, rollback="")
    opened = session(site, device)
    opened.stage(change)
    opened.commit(change, confirm_s=60)
    opened.confirm(change)
    opened.close()


def patch(*operations: tuple[str, str, object]) -> str:
    return json.dumps([{"op": op, "path": path, "value": value} for op, path, value in operations])


def test_what_others_changed_is_kept_and_told_and_the_rest_goes_back(site: Site) -> None:
    before = running(site)
    run = Path(provision(site.request, site.environment).run_folder)
    curve = next(name for name in tables(site)["WRED_PROFILE"] if name.startswith("FABRICCTL"))
    by_hand(
        site,
        "leaf1",
        patch(
            ("replace", "/PORT/Ethernet0/mtu", "8000"),
            ("add", f"/QUEUE/{FOREIGN_PORT}|3/wred_profile", curve),
            ("add", f"/PORT/{FOREIGN_PORT}/description", "to rack 7"),
        ),
    )
    by_hand(site, "leaf2", "interface Ethernet1/1\n   mtu 8000\nexit\nntp server 192.0.2.123\n")
    theirs = running(site)

    seen = rollback(run, replace(site.request, dry_run=True, disruptive=False), site.environment)
    assert ends(seen) == {"leaf1": "to restore in part", "leaf2": "to restore in part"}, seen.devices
    strict = rollback(run, replace(site.request, strict=True), site.environment)
    assert {one.outcome for one in strict.devices} == {Outcome.REFUSED}
    assert running(site) == theirs

    done = rollback(run, site.request, site.environment)

    assert ends(done) == {"leaf1": "partly restored", "leaf2": "partly restored"}, done.devices
    assert done.verdict is Verdict.FINDINGS
    assert "2 partly restored" in sentence(done)
    assert notes(done, "leaf1") == notes(seen, "leaf1")
    assert ("kept-theirs", "PORT / Ethernet0: mtu: the run left 9216, now 8000, before the run 9100") in notes(
        done, "leaf1"
    )
    (needed,) = {text.partition("; kept, since ")[2] for code, text in notes(done, "leaf1") if code == "kept-needed"}
    assert needed == f"QUEUE|{FOREIGN_PORT}|3 names WRED_PROFILE|{curve}"
    assert [code for code, _ in notes(done, "leaf2")] == ["kept-theirs"]
    now = tables(site)
    assert now["PORT"]["Ethernet0"]["mtu"] == "8000"
    assert now["PORT"][FOREIGN_PORT]["description"] == "to rack 7"
    assert list(now["WRED_PROFILE"]) == [*cast("dict[str, dict[str, object]]", before["leaf1"])["WRED_PROFILE"], curve]
    assert "ntp server 192.0.2.123" in site.fronts["leaf2"].running()

    again = rollback(run, site.request, site.environment)
    assert ends(again) == {"leaf1": "kept", "leaf2": "kept"}
    assert notes(again, "leaf1") == notes(done, "leaf1")

    by_hand(
        site,
        "leaf1",
        json.dumps(
            [
                {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"},
                {"op": "replace", "path": f"/QUEUE/{FOREIGN_PORT}|3/wred_profile", "value": "AZURE_LOSSLESS"},
                {"op": "remove", "path": f"/PORT/{FOREIGN_PORT}/description"},
            ]
        ),
    )
    rest = rollback(run, site.request, site.environment)
    assert ends(rest)["leaf1"] == "restored"
    assert running(site)["leaf1"] == before["leaf1"]


def test_an_older_run_can_go_before_a_newer_one_and_both_arrive_at_the_start(site: Site) -> None:
    before = running(site)
    older = Path(provision(site.request, site.environment).run_folder)
    between = running(site)
    request = replace(site.request, extra_vars={"fabric_ecn_kmax": "1600KB"})
    newer = Path(provision(request, site.environment).run_folder)

    first = rollback(older, site.request, site.environment)
    assert first.verdict is Verdict.FINDINGS
    assert set(ends(first).values()) == {"partly restored"}
    assert all(newer.name in text for code, text in notes(first, "leaf2") if code == "kept-theirs")
    assert ends(rollback(newer, request, site.environment)) == {"leaf1": "restored", "leaf2": "restored"}
    last = rollback(older, site.request, site.environment)
    assert last.verdict is Verdict.OK, last.notes
    assert running(site) == before

    twice = rollback(older, site.request, site.environment)
    assert ends(twice) == {"leaf1": "nothing to do", "leaf2": "nothing to do"}
    assert ends(rollback(Path(last.run_folder), site.request, site.environment))["leaf2"] == "restored"
    assert running(site) != before
    assert between != before


def test_run_that_was_killed_behind_its_confirmation_is_taken_back_by_its_journal(site: Site) -> None:
    before = running(site)
    run = Path(provision(site.request, site.environment).run_folder)
    (run / "push.json").unlink()
    for device in ("leaf1", "leaf2"):
        (path,) = site.environment.state_dir.glob(f"{run.name}/{device}.jsonl")
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:-2]))  # it died while it saved
        assert journal_of(site.environment.state_dir, run.name, device)[-1].step == "save"

    back = rollback(run, site.request, site.environment)

    assert ends(back) == {"leaf1": "restored", "leaf2": "restored"}
    assert running(site) == before


def test_run_that_was_killed_under_its_timer_is_waited_for(site: Site) -> None:
    before = running(site)
    summary, document = plan(site.request, site.environment)
    run, state_dir, clock = Path(summary.run_folder), site.environment.state_dir, site.environment.clock
    change = next(one for one in document.devices if one.device == "leaf2")
    staged = StagedChange("killed", change.payload, change.rollback)
    lock = DeviceLock(state_dir, "leaf2", owner="anna", run=run.name, clock=clock, expires_s=60.0)
    journal = Journal(state_dir, run=run.name, device="leaf2", nos="eos", transaction="killed")
    opened = session(site, "leaf2")
    with lock:
        opened.stage(staged)
        journal.write(state="committing", step="commit", phase="begin", unix_s=clock.unix_s())
        lock.arm(clock.unix_s() + TIMER_S + 3)
        opened.commit(staged, confirm_s=TIMER_S)
        lock.keep()
    opened.close()
    assert running(site)["leaf2"] != before["leaf2"]

    back = rollback(run, site.request, site.environment)

    assert ends(back) == {"leaf2": "nothing to do"}, back.devices
    assert running(site) == before
    assert read_document(Path(back.run_folder) / "plan.json", PlanDocument).devices[0].undoes == run.name
