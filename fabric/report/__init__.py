"""A run as JSON, HTML, JUnit and SARIF: `build` makes all of them from one `RunDocument`."""

from collections.abc import Mapping
from types import MappingProxyType

from fabric.report.document import from_json, to_json
from fabric.report.html import to_html
from fabric.report.junit import to_junit
from fabric.report.model import SCHEMA_VERSION, DeviceReport, RuleInfo, RunDocument, Section, Timing
from fabric.report.sarif import to_sarif

__all__ = (
    "SCHEMA_VERSION",
    "DeviceReport",
    "RuleInfo",
    "RunDocument",
    "Section",
    "Timing",
    "build",
    "from_json",
    "to_html",
    "to_json",
    "to_junit",
    "to_sarif",
)


def build(run: RunDocument) -> Mapping[str, str]:
    """Returns file name → text of every report; all but the first are made from the first one's text alone."""
    text = to_json(run)
    document = from_json(text)
    return MappingProxyType(
        {
            "report.json": text,
            "report.html": to_html(document),
            "report.junit.xml": to_junit(document),
            "report.sarif": to_sarif(document),
        }
    )
