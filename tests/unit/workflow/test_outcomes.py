"""Verdicts, previews and wording, from results and findings alone."""

from dataclasses import replace

import pytest

from fabric.diff import Change, ChangeSet, IntendedConfig, Op
from fabric.errors import ConnectError, DriftError
from fabric.intent import Fabric
from fabric.plan import FabricPlan, Note, SwitchPlan
from fabric.qos import DeviceQos
from fabric.report import to_junit
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status, Where
from fabric.tree import EMPTY
from fabric.workflow.design import DeviceChange
from fabric.workflow.difftext import shown, told
from fabric.workflow.outcomes import gate_refusal, notes_of, preview, unread, verdict_of
from fabric.workflow.provisioning import base_drift
from fabric.workflow.publishing import document_of, sentence
from fabric.workflow.subjects import running_findings
from fabric.workflow.summary import Summary, Verdict

STEPS = (
    Change(Op.ADD, ("MAP", "a"), after="1"),
    Change(Op.REPLACE, ("MAP", "b"), before="1", after="2"),
    Change(Op.REMOVE, ("MAP", "c"), before=("x", "y")),
    Change(Op.ADD, ("line",)),
)


def changed(
    steps: tuple[Change, ...] = STEPS, *, digest: str = "1", held_back: tuple[Change, ...] = ()
) -> DeviceChange:
    change_set = ChangeSet("leaf1", "eos", forward=steps, base_digest=digest, held_back=held_back)
    intended = IntendedConfig("leaf1", "eos", EMPTY, ())
    return DeviceChange("leaf1", "eos", intended, change_set, EMPTY, payload="p", rollback="r")


def finding(status: Status, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("mtu", status, severity, Where("leaf1"), "MTU 1500")


def result(outcome: Outcome) -> DeviceResult:
    return DeviceResult("leaf1", "eos", outcome)


def test_steps_read_as_signs_paths_and_values() -> None:
    assert shown(STEPS) == "+ MAP / a = 1\n~ MAP / b = 1 → 2\n- MAP / c = x,y\n+ line"
    assert told(STEPS) == "+ MAP / a = 1; ~ MAP / b = 1 → 2; - MAP / c = x,y; and 1 more"
    assert told(()) == ""


@pytest.mark.parametrize(
    ("outcomes", "statuses", "notes", "verdict"),
    [
        ([Outcome.COMMITTED, Outcome.UNCHANGED], [Status.PASS], [], Verdict.OK),
        ([Outcome.COMMITTED], [Status.FAIL], [], Verdict.FINDINGS),
        ([Outcome.COMMITTED], [Status.UNKNOWN], [], Verdict.FINDINGS),
        ([Outcome.REFUSED], [], [], Verdict.FINDINGS),
        ([Outcome.COMMITTED], [], [Note("x", "y", blocks_lossless=True)], Verdict.FINDINGS),
        ([Outcome.COMMITTED], [], [Note("x", "y")], Verdict.OK),
        ([Outcome.ROLLED_BACK, Outcome.COMMITTED], [], [], Verdict.FAILED),
        ([Outcome.UNCERTAIN], [Status.FAIL], [], Verdict.FAILED),
    ],
)
def test_verdict_is_the_worst_that_happened(
    outcomes: list[Outcome], statuses: list[Status], notes: list[Note], verdict: Verdict
) -> None:
    told_notes = [("leaf1", note) for note in notes]
    assert verdict_of(list(map(result, outcomes)), list(map(finding, statuses)), told_notes) is verdict


def test_preview_is_unchanged_with_the_diff() -> None:
    one = preview(changed())
    assert (one.outcome, one.changes, one.disruptive) == (Outcome.UNCHANGED, 4, False)
    assert one.diff == shown(STEPS)


def test_held_back_changes_become_a_note_that_blocks_lossless() -> None:
    plan = FabricPlan("f", (SwitchPlan("leaf1", "eos", DeviceQos("leaf1", "eos"), notes=(Note("n", "t"),)),))
    notes = notes_of(plan, [changed((), held_back=STEPS[:1])])
    assert [(device, note.code, note.blocks_lossless) for device, note in notes] == [
        ("leaf1", "n", False),
        ("leaf1", "device-wide-held-back", True),
    ]
    assert "no port outside the intent would feel it" in notes[-1][1].text
    assert "+ MAP / a = 1" in notes[-1][1].text


def test_unread_device_is_failed_with_its_reason() -> None:
    plan = FabricPlan("f", (SwitchPlan("leaf1", "eos", DeviceQos("leaf1", "eos")),))
    (one,) = unread(plan, {"leaf1": ConnectError("no route", where="leaf1", found="timeout", remedy="Look.")})
    assert (one.outcome, one.error, one.remedy, one.nos) == (Outcome.FAILED, "no route (found timeout)", "Look.", "eos")
    (drifted,) = unread(plan, {"leaf1": DriftError("it has changed", where="leaf1")})
    assert drifted.outcome is Outcome.REFUSED


def test_a_device_that_failed_a_mere_look_is_in_the_report_and_one_that_was_only_shown_is_not_pushed() -> None:
    gone, seen = DeviceResult("leaf1", "eos", Outcome.FAILED, error="no route"), preview(changed())
    for verb in ("check", "plan", "rehearse"):
        summary = Summary(verb=verb, fabric="f", verdict=Verdict.FAILED, devices=(gone, replace(seen, device="leaf2")))
        leaf1, leaf2 = document_of(summary, ended_unix_s=1.0, run="r").devices
        assert (leaf1.result, leaf2.result) == (gone, None)
        assert 'type="failed" message="no route"' in to_junit(document_of(summary, ended_unix_s=1.0, run="r"))
    assert "1 to change" in sentence(replace(summary, verb="plan"))


def test_a_configuration_that_cannot_be_read_is_unknown_and_stops_no_other() -> None:
    switches = tuple(SwitchPlan(name, "sonic", DeviceQos(name, "sonic")) for name in ("leaf1", "leaf2", "leaf3"))
    found = running_findings(
        Fabric("f", ()), FabricPlan("f", switches), {"leaf1": "! eos", "leaf2": "{}"}, {"leaf3": ConnectError("gone")}
    )
    assert {one.where.device for one in found if one.status is Status.UNKNOWN} == {"leaf1", "leaf3"}
    assert verdict_of((), found, ()) is Verdict.FINDINGS


def test_gate_names_the_rules_that_failed() -> None:
    one = gate_refusal(changed(), [finding(Status.FAIL), finding(Status.FAIL, Severity.WARNING)])
    assert one.outcome is Outcome.REFUSED
    assert "(mtu)" in one.error


def test_drift_is_told_by_what_would_be_done_otherwise() -> None:
    assert base_drift(changed(), changed()) == ""
    assert base_drift(changed(), changed((), digest="2")) == "the device holds the intent already"
    more = (*STEPS, Change(Op.ADD, ("MAP", "z"), after="9"))
    assert "+ MAP / z = 9" in base_drift(changed(), changed(more, digest="2"))
    assert "otherwise than in the plan" in base_drift(changed(), changed(STEPS[:1], digest="2"))


def test_whatever_differs_from_the_reviewed_change_is_drift() -> None:
    one = changed()
    felt = replace(one, changes=replace(one.changes, outside_ports=("Ethernet9",)))
    assert "Ethernet9" in base_drift(one, felt)
    tampered = [
        replace(one, payload="q"),
        replace(one, rollback="s"),
        replace(one, changes=replace(one.changes, disruptive=("reload",))),
        replace(one, intended=replace(one.intended, owned=(("x",),))),
    ]
    assert all(base_drift(other, one) for other in tampered)


@pytest.mark.parametrize(
    ("verdict", "statuses", "status"),
    [
        (Verdict.OK, [Status.PASS], Status.PASS),
        (Verdict.FAILED, [Status.PASS], Status.FAIL),
        (Verdict.FINDINGS, [Status.FAIL], Status.FAIL),
        (Verdict.FINDINGS, [Status.UNKNOWN], Status.UNKNOWN),
        (Verdict.FINDINGS, [Status.PASS], Status.FAIL),  # refused, or held back
    ],
)
def test_report_has_the_verdict_and_one_sentence(verdict: Verdict, statuses: list[Status], status: Status) -> None:
    summary = Summary(
        verb="provision",
        fabric="f",
        verdict=verdict,
        devices=(result(Outcome.COMMITTED),),
        findings=tuple(map(finding, statuses)),
        notes=(("", Note("a", "fabric")), ("leaf1", Note("b", "device")), ("leaf9", Note("c", "other"))),
    )
    document = document_of(summary, ended_unix_s=10.0, run="r")
    assert document.verdict is status
    assert "1 committed" in sentence(summary)
    assert [(one.device, len(one.notes)) for one in document.devices] == [("leaf1", 1), ("leaf9", 1)]
    assert [note.code for note in document.notes] == ["a"]
    assert document.rules
