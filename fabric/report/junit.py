"""A run as JUnit XML, for CI: one test suite a device, one test case a rule. Knows no template.

A failed rule of severity error is a failure, an unknown one is skipped with its reason, and a warning passes with
its text beside it, as in the verdict. A device that a push did not leave well is a failed case of its own.
"""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from fabric.report.model import RunDocument
from fabric.report.text import printable
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status
from fabric.units import natural_key

__all__ = ("to_junit",)

_GOOD = frozenset({Outcome.UNCHANGED, Outcome.COMMITTED})


def to_junit(run: RunDocument) -> str:
    """Returns the run as JUnit XML text."""
    root = ET.Element("testsuites", name=printable(f"fabricctl {run.fabric}"))
    names = {one.where.device for one in run.findings} | {one.device for one in run.devices if one.result is not None}
    results = {one.device: one.result for one in run.devices}
    for device in sorted(names, key=natural_key):
        findings = [one for one in run.findings if one.where.device == device]
        _suite(root, device, findings, results.get(device))
    for kind in ("tests", "failures", "skipped"):
        root.set(kind, str(sum(int(suite.get(kind, "0")) for suite in root)))
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, device: str, findings: Sequence[Finding], result: DeviceResult | None) -> None:
    suite = ET.SubElement(root, "testsuite", name=printable(device))
    for rule in sorted({one.rule for one in findings}):
        _case(suite, device, rule, [one for one in findings if one.rule == rule])
    if result is not None:
        case = ET.SubElement(suite, "testcase", classname=printable(device), name="push")
        if result.outcome not in _GOOD:
            failure = ET.SubElement(case, "failure", type=result.outcome.value, message=printable(result.error))
            failure.text = printable(result.remedy)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _case(suite: ET.Element, device: str, rule: str, findings: Sequence[Finding]) -> None:
    case = ET.SubElement(suite, "testcase", classname=printable(device), name=printable(rule))
    errors = [one for one in findings if one.severity is Severity.ERROR and one.status is Status.FAIL]
    warnings = [one for one in findings if one.severity is Severity.WARNING and one.status is Status.FAIL]
    unknown = [one for one in findings if one.status is Status.UNKNOWN]
    if errors:
        failure = ET.SubElement(case, "failure", type=Severity.ERROR.value, message=printable(errors[0].evidence))
        failure.text = _texts(errors)
    elif unknown and not warnings:
        ET.SubElement(case, "skipped", message=printable(f"UNKNOWN: {unknown[0].evidence}"))
    beside = [*warnings, *(unknown if errors or warnings else ())]
    if beside:
        ET.SubElement(case, "system-out").text = _texts(beside)


def _texts(findings: Iterable[Finding]) -> str:
    return printable("\n\n".join(_text(one) for one in findings))


def _text(finding: Finding) -> str:
    lines = [f"{finding.severity} {finding.status}: {', '.join(finding.where.ports) or finding.where.device}"]
    lines += [f"found: {finding.evidence}"]
    lines += [f"expected: {finding.expected}"] if finding.expected else []
    lines += [f"remedy: {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines)
