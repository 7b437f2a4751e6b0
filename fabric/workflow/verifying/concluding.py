"""The end of a verification: documents into the run folder, the verdict as findings, the report, the summary.

| verdict | summary | exit code | who acts |
|---|---|---|---|
| PASS | OK | 0 | nobody |
| FAIL | FINDINGS | 1 | whoever reads the report |
| INVALID | FAILED | 4 | the operator: something was not as a proof needs it |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fabric.qos import UNKNOWN
from fabric.report import Section
from fabric.state import Finding, Severity, Status, Where
from fabric.verify import Evidence, LossFinding, VerdictStatus, verdict_text
from fabric.verify import Verdict as LossVerdict
from fabric.workflow.concluding import not_managed
from fabric.workflow.outcomes import notes_of, roles_of
from fabric.workflow.publishing import publish
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.verifying.loading import RoundResult
from fabric.workflow.verifying.setting import Setting

__all__ = ("Proof", "Rounds", "Verified", "conclude_verdict", "findings_of", "limits_of", "reason_of")

_ENDS: Final = {
    VerdictStatus.PASS: Verdict.OK,
    VerdictStatus.FAIL: Verdict.FINDINGS,
    VerdictStatus.INVALID: Verdict.FAILED,
}


@dataclass(frozen=True, slots=True)
class Rounds:
    """The jobs of a load and what they came to, as the run folder keeps them."""

    rounds: tuple[RoundResult, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A negative control: what was lost on purpose, and what was found of it.

    Attributes:
        place: where a packet was dropped. dropped: how many were.
        is_found: the verdict is FAIL. is_located: a finding names the place. is_counted: exactly so many are missing.
    """

    place: str
    dropped: int
    is_found: bool
    is_located: bool
    is_counted: bool


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification came to."""

    summary: Summary
    verdict: LossVerdict
    proof: Proof | None = None


def conclude_verdict(
    setting: Setting,
    evidence: Evidence,
    verdict: LossVerdict,
    rounds: tuple[RoundResult, ...],
    *,
    proof: Proof | None = None,
    verb: str = "verify",
) -> Verified:
    """Returns the end of a run, its documents and reports written."""
    asked, folder = setting.asked, setting.folder
    folder.write("evidence", evidence)
    folder.write("rounds", Rounds(rounds))
    folder.write("verdict", verdict)
    text = verdict_text(verdict)
    folder.write_text("verdict.txt", text)
    fabric = asked.loaded.fabric
    machines = [one.name for one in asked.machines if not one.why_not]
    targets = {one.name: "target" for one in fabric.targets}
    summary = Summary(
        verb=verb,
        fabric=fabric.name,
        verdict=_ENDS[verdict.status] if proof is None else _end_of(proof),
        findings=(*evidence.prechecks, *(_proof_findings(proof) if proof else findings_of(verdict))),
        notes=(*notes_of(asked.plan), *not_managed(fabric, asked.loaded.selected)),
        lossless=asked.plan.lossless,
        roles={**roles_of(fabric), **{one.name: "host" for one in fabric.hosts}, **targets},
        run_folder=str(folder.path),
        contacted=tuple(machines),
        counted=True,
        timings=asked.watch.timings,
        said=_sentence(verb, fabric.name, verdict, proof),
        limits=limits_of(setting, verdict),
        sections=(Section("Loss", tuple(text.splitlines())),),
    )
    return Verified(publish(folder, summary, asked.environment), verdict, proof)


def findings_of(verdict: LossVerdict) -> tuple[Finding, ...]:
    """Returns the verdict as findings, so that every report format has it: one that passed where nothing was lost."""
    found = [_finding(one) for one in verdict.findings if one.cause != "precheck-failed"]
    if verdict.status is VerdictStatus.INVALID:
        found += [
            Finding(
                "loss-is-proven-or-not", Status.UNKNOWN, Severity.ERROR, Where(""), one, "a run that proves something"
            )
            for one in verdict.invalid
        ]
    if verdict.status is VerdictStatus.PASS:
        found.append(Finding("nothing-was-lost", Status.PASS, Severity.ERROR, Where(""), _claim(verdict)))
    return tuple(found)


def _finding(one: LossFinding) -> Finding:
    status = Status.FAIL if one.status is VerdictStatus.FAIL else Status.UNKNOWN
    ports = (one.place,) if one.place and one.place != one.device else ()
    where = Where(one.device, ports, details=(("cause", one.cause),))
    return Finding(one.rule, status, Severity.ERROR, where, one.evidence, "no packet lost", one.remedy)


def _proof_findings(proof: Proof) -> Iterator[Finding]:
    rows = (
        ("control-drop-happened", proof.dropped == 1, f"{proof.dropped} packets dropped at {proof.place}", "1 packet"),
        ("control-drop-is-found", proof.is_found, "the verdict on this run", "FAIL"),
        (
            "control-drop-is-located",
            proof.is_located,
            f"the places named, {proof.place} among them or not",
            proof.place,
        ),
    )
    for rule, is_right, evidence, expected in rows:
        status = Status.PASS if is_right else Status.FAIL
        yield Finding(rule, status, Severity.ERROR, Where(""), evidence, expected)


def _end_of(proof: Proof) -> Verdict:
    if proof.dropped != 1:
        return Verdict.FAILED
    return Verdict.OK if proof.is_found and proof.is_located else Verdict.FINDINGS


def _claim(verdict: LossVerdict) -> str:
    packets = "unknown" if verdict.packets is UNKNOWN else f"{verdict.packets:,}"
    bound = "" if verdict.bound_95 is UNKNOWN else f"; loss rate <= {verdict.bound_95:.3g} at {verdict.confidence:.0%}"
    return f"no loss seen in {packets} packets of the lossless classes{bound}; grade {verdict.grade.value}"


def _sentence(verb: str, fabric: str, verdict: LossVerdict, proof: Proof | None) -> str:
    if proof is not None:
        word = "was found" if proof.is_found and proof.is_located else "was not found where it was"
        dropped = f"{proof.dropped} packet{'s' if proof.dropped != 1 else ''} dropped on purpose at {proof.place}"
        return f"control of {fabric}: {dropped} {word if proof.dropped else 'never came to be'}"
    if verdict.status is VerdictStatus.PASS:
        return f"{verb} of {fabric}: PASS, {_claim(verdict)}"
    return f"{verb} of {fabric}: {verdict.status.value.upper()}, {reason_of(verdict)}"


def reason_of(verdict: LossVerdict) -> str:
    """Returns why a verdict is no PASS, in one clause; "" for one that is."""
    if verdict.status is VerdictStatus.PASS:
        return ""
    if not verdict.findings:
        return (verdict.invalid or ("",))[0]
    first = verdict.findings[0]
    return f"{first.cause} at {first.place or first.device}"


def limits_of(setting: Setting, verdict: LossVerdict) -> tuple[str, ...]:
    """Returns what the verdict is no evidence for, one sentence each."""
    asked = setting.asked
    found = [f"It holds for this configuration and this load, {asked.profile.name}, and for no other."]
    nics = [nic for one in asked.machines for nic in one.nics]
    if any(nic.family == "rxe" for nic in nics):
        found.append("Soft-RoCE ignores congestion marks: it is no evidence of how NICs react to them.")
    if not asked.options.scratch:
        found.append("Payload was not compared: nothing was named that may be overwritten (--scratch).")
    if verdict.unobservable:
        found.append(f"Not observable: {'; '.join(verdict.unobservable)}.")
    return tuple(found)
