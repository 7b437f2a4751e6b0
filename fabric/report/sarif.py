"""A run as SARIF 2.1.0, for code-scanning pages: the findings alone. Knows no template.

Source: OASIS SARIF 2.1.0, sections 3.27 (result), 3.33 (logicalLocation).
"""

import json

from fabric.report.model import RunDocument
from fabric.serial import Json
from fabric.state import Finding, Severity, Status

__all__ = ("to_sarif",)

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(run: RunDocument) -> str:
    """Returns the findings as SARIF text; a pass is a result of kind `pass`, an unknown one of kind `open`."""
    rules: list[Json] = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        }
        for rule in run.rules
    ]
    driver: Json = {"name": "fabricctl", "version": run.tool_version, "rules": rules}
    results: list[Json] = [_result(one) for one in run.findings]
    document: Json = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_KIND = {Status.FAIL: "fail", Status.UNKNOWN: "open", Status.PASS: "pass"}


def _result(finding: Finding) -> Json:
    places = finding.where.ports or ("",)
    locations: list[Json] = [{"logicalLocations": [_place(finding.where.device, port)]} for port in places]
    text = " ".join(
        part.rstrip(".") + "."
        for part in (finding.evidence, finding.expected and f"Expected: {finding.expected}", finding.remedy)
        if part
    )
    return {
        "ruleId": finding.rule,
        "kind": _KIND[finding.status],
        # section 3.27.10: a result that is no failure has level none
        "level": _LEVEL[finding.severity] if finding.status is Status.FAIL else "none",
        "message": {"text": text},
        "locations": locations,
    }


def _place(device: str, port: str) -> Json:
    return {"fullyQualifiedName": f"{device}/{port}" if port else device, "kind": "resource"}
