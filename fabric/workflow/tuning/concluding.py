"""The end of a study: its documents, figures, profile and diff into the run folder, the report, the summary.

| what was found | summary | exit code |
|---|---|---|
| a policy that may be deployed | OK | 0 |
| none, or a profile that no longer holds | FINDINGS | 1 |
| checks failed, so nothing was measured | FINDINGS | 1 |
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fabric.intent import Fabric
from fabric.policy import ShardProfile, profile_to_text
from fabric.report import Section
from fabric.state import Finding, Severity, Status, Where
from fabric.tune import Outcome, TuneReport, pareto_svg, scaling_svg, to_text
from fabric.workflow.concluding import not_managed
from fabric.workflow.outcomes import notes_of, roles_of
from fabric.workflow.publishing import publish
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.summary import Summary, Verdict
from fabric.workflow.tuning.study import Study
from fabric.workflow.tuning.writing import FileEdit, diff_text
from fabric.workflow.verifying.setting import Asked

__all__ = ("Checked", "Ending", "Tuned", "conclude_check", "conclude_refused", "conclude_study")

_CHOSEN, _HOLDS = "shard-profile-found", "shard-profile-holds"
_SHOWN: Final = 6
_UNJUDGED: Final = {"paused": "--pause-percent 100", "marked": "--marks-percent 100"}


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a study came to.

    Attributes:
        report: None where checks failed and nothing was measured.
        profile: what may be deployed, None when nothing may.
        diff: of the inventory, "" where it stands there already.
        is_written: the inventory has it now.
    """

    summary: Summary
    report: TuneReport | None = None
    profile: ShardProfile | None = None
    diff: str = ""
    is_written: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a deployed profile still holds.

    Attributes:
        why: it does not, one sentence each; () when it does.
        outcome: of the one trial; None where checks failed.
    """

    summary: Summary
    why: tuple[str, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What a study has to conclude with.

    Attributes:
        prechecks: what was found before it.
        profile: None when nothing may be deployed. edits: of the inventory. is_written: they have been made.
    """

    report: TuneReport
    prechecks: tuple[Finding, ...]
    profile: ShardProfile | None = None
    edits: tuple[FileEdit, ...] = ()
    is_written: bool = False


def conclude_study(asked: Asked, folder: RunFolder, study: Study, ending: Ending) -> Tuned:
    """Returns the end of a study, its documents and reports written."""
    report, profile = ending.report, ending.profile
    diff, text = diff_text(ending.edits), to_text(report)
    folder.write("tune", report)
    folder.write_text("tune.txt", text)
    folder.write_text("scaling.svg", scaling_svg(report))
    folder.write_text("pareto.svg", pareto_svg(report))
    if profile is not None:
        folder.write_text("shard-profile.json", profile_to_text(profile))
        folder.write_text("inventory.diff", diff)
    sections = [Section("Tuning", tuple(text.splitlines()))]
    if diff:
        title = "Inventory, written" if ending.is_written else "Inventory, not written yet"
        sections.append(Section(title, tuple(diff.splitlines())))
    chosen = report.chosen
    if chosen is None:
        wrong = sorted({flaw for row in report.rows for flaw in row.flaws})
        evidence = f"no setting was feasible in two trials at full fidelity: {', '.join(wrong[:_SHOWN])}"
        finding = _finding(_CHOSEN, Status.FAIL, evidence, "one that is", _remedy(wrong))
        said = f"tune of {study.fabric}: nothing may be deployed after {len(report.rows)} trials"
    else:
        evidence = (
            f"{chosen.outcome.bytes_per_s / 1e9:.3f} GB/s, p99 {chosen.outcome.p99_ns / 1e3:.0f} us; {chosen.why}"
        )
        finding = _finding(_CHOSEN, Status.PASS, evidence, "a setting that lost nothing")
        said = f"tune of {study.fabric}: {evidence}"
    summary = _summary(
        asked, folder, said, (*ending.prechecks, finding), limits=_limits(asked, study), sections=tuple(sections)
    )
    summary = replace(summary, changed=ending.is_written)
    return Tuned(publish(folder, summary, asked.environment), report, profile, diff, ending.is_written)


def conclude_refused(asked: Asked, folder: RunFolder, prechecks: tuple[Finding, ...]) -> Summary:
    """Returns the end of a run that measured nothing, since checks failed."""
    said = f"tune of {asked.loaded.fabric.name}: checks failed, nothing was measured; --force measures all the same"
    summary = _summary(asked, folder, said, prechecks, limits=("No load was sent.",))
    return publish(folder, summary, asked.environment)


def conclude_check(
    asked: Asked,
    folder: RunFolder,
    outcome: Outcome,
    why: tuple[str, ...],
    prechecks: tuple[Finding, ...],
) -> Checked:
    """Returns whether the profile still holds, its documents and reports written."""
    folder.write("outcome", outcome)
    measured = f"{outcome.bytes_per_s / 1e9:.3f} GB/s, p99 {outcome.p99_ns / 1e3:.0f} us"
    remedy = "Tune again: fabricctl tune."
    found = [_finding(_HOLDS, Status.FAIL, one, "as it was tuned", remedy) for one in why]
    found = found or [_finding(_HOLDS, Status.PASS, measured, "as it was tuned")]
    holds = "no longer holds: " + "; ".join(why) if why else "still holds"
    said = f"tune check of {asked.loaded.fabric.name}: the profile {holds} ({measured})"
    summary = _summary(asked, folder, said, (*prechecks, *found), limits=("One trial was measured.",))
    return Checked(publish(folder, summary, asked.environment), why, outcome)


def _summary(
    asked: Asked,
    folder: RunFolder,
    said: str,
    found: tuple[Finding, ...],
    *,
    limits: tuple[str, ...],
    sections: tuple[Section, ...] = (),
) -> Summary:
    fabric = asked.loaded.fabric
    is_wrong = any(one.status is Status.FAIL and one.severity is Severity.ERROR for one in found)
    return Summary(
        verb="tune",
        fabric=fabric.name,
        verdict=Verdict.FINDINGS if is_wrong else Verdict.OK,
        findings=found,
        notes=(*notes_of(asked.plan), *not_managed(fabric, asked.loaded.selected)),
        lossless=asked.plan.lossless,
        roles=_roles(fabric),
        run_folder=str(folder.path),
        contacted=tuple(one.name for one in asked.machines if not one.why_not),
        counted=True,
        timings=asked.watch.timings,
        said=said,
        limits=limits,
        sections=sections,
    )


def _remedy(flaws: Sequence[str]) -> str:
    """What nobody counts has to be counted, or said not to matter."""
    blind = [word for word in _UNJUDGED if f"share {word} unknown" in flaws]
    if blind:
        options = " ".join(_UNJUDGED[word] for word in blind)
        return f"Let switches count it (`check` names what is off), or do not judge it: {options}."
    return "See trials/ for what each lost and where; widen the limits, or lower the load."


def _roles(fabric: Fabric) -> dict[str, str]:
    hosts = {one.name: "host" for one in fabric.hosts}
    return {**roles_of(fabric), **hosts, **{one.name: "target" for one in fabric.targets}}


def _finding(rule: str, status: Status, evidence: str, expected: str, remedy: str = "") -> Finding:
    return Finding(rule, status, Severity.ERROR, Where(""), evidence, expected, remedy)


def _limits(asked: Asked, study: Study) -> tuple[str, ...]:
    found = [f"It holds for this plan and this load, {study.profile}, and for no other.", *study.notes]
    if any(nic.family == "rxe" for one in asked.machines for nic in one.nics):
        found.append("Soft-RoCE ignores congestion marks: it is no evidence of how NICs react to them.")
    if study.gentle:
        found.append("The load was gentle: it says nothing of what more load would do.")
    if not study.scratch:
        found.append("Payload was not compared: nothing was named that may be overwritten (--scratch).")
    return tuple(found)
