"""JSON is the truth; HTML, JUnit and SARIF are made from its text, escaped, and say the same."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fabric.errors import FabricError
from fabric.report import RunDocument, build, from_json, to_html, to_json, to_junit, to_sarif
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status, Where
from tests.unit.report.runs import EMPTY, FULL, HOSTILE

VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})


class _Page(HTMLParser):
    """Collects the elements and text of a page, and checks that they nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.stack: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.text += data


@pytest.mark.parametrize("run", [EMPTY, FULL], ids=["empty", "full"])
def test_json_gives_back_the_run(run: RunDocument) -> None:
    assert from_json(to_json(run)) == run


@pytest.mark.parametrize("run", [EMPTY, FULL], ids=["empty", "full"])
def test_html_is_made_from_the_json_alone(run: RunDocument) -> None:
    assert to_html(from_json(to_json(run))) == to_html(run)
    assert build(run)["report.html"] == to_html(run)


def test_build_names_every_report() -> None:
    assert set(build(FULL)) == {"report.json", "report.html", "report.junit.xml", "report.sarif"}


@pytest.mark.parametrize("run", [EMPTY, FULL], ids=["empty", "full"])
def test_page_nests_and_has_one_heading_and_unique_anchors(run: RunDocument) -> None:
    page = _Page(to_html(run))

    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    labels = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert page.stack == []
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert len(ids) == len(set(ids))
    assert {link for link in links if link} <= {f"#{one}" for one in ids}
    assert set(labels) <= set(ids)


@pytest.mark.parametrize("run", [EMPTY, FULL], ids=["empty", "full"])
def test_page_needs_nothing_else(run: RunDocument) -> None:
    page = to_html(run)

    assert not re.search(r"https?://|<script|<link|<img|<iframe|@import|url\(", page, re.IGNORECASE)


def test_device_words_are_text_and_never_markup() -> None:
    page = to_html(FULL)

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert HOSTILE.replace("\x1b", "\ufffd") in _Page(page).text
    assert "\x1b" not in page


def test_page_puts_the_verdict_and_the_counts_first() -> None:
    text = " ".join(_Page(to_html(FULL)).text.split())

    assert text.index("Failed") < text.index("Devices3") < text.index("Errors1") < text.index("Warnings1")
    assert text.index("Passed2") < text.index("dscp-maps-to-lossy-tc")
    assert "2026-11-29 17:11:22 UTC · 43.2 s" in text


def test_page_groups_findings_by_rule_and_puts_errors_before_warnings_before_unknowns() -> None:
    page = _Page(to_html(FULL))

    kinds = [attrs["class"] for tag, attrs in page.tags if tag == "article" and str(attrs["class"]).startswith("rule")]

    assert kinds == ["rule fail", "rule warn", "rule unknown"]


def test_page_shows_each_devices_diff_outcome_and_notes() -> None:
    page = to_html(FULL)
    text = _Page(page).text

    assert '<span class="line added">+   mtu 9214</span>' in page
    assert '<span class="line removed">-   mtu 1500</span>' in page
    for words in (
        "rolled back",
        "interrupted traffic",
        "not lossless",
        "did not end",
        "PORT_QOS_MAP|global",
        "not pushed",
    ):
        assert words in text
    assert "1 error, 1 passed" in text


def test_page_of_a_run_without_findings_says_that_nothing_was_asked() -> None:
    text = _Page(to_html(EMPTY)).text

    assert "No rule was asked." in text
    assert "No device was part of this run." in text


def test_page_of_a_run_that_passed_says_so() -> None:
    passed = replace(EMPTY, findings=tuple(one for one in FULL.findings if one.status is Status.PASS))

    assert "Every rule that was asked passed." in _Page(to_html(passed)).text


def test_json_of_another_schema_is_refused() -> None:
    text = to_json(EMPTY).replace('"schema": 1', '"schema": 99')

    with pytest.raises(FabricError, match=r"found 99, expected 1.*Read it with"):
        from_json(text)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}'])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(FabricError):
        from_json(text)


def _parse(junit: str) -> ET.Element:
    return ET.fromstring(junit)  # noqa: S314  our own text of a moment ago


def _case(junit: str, suite: str, name: str) -> ET.Element:
    root = _parse(junit)
    found = root.find(f"testsuite[@name='{suite}']/testcase[@name='{name}']")
    assert found is not None
    return found


def test_junit_has_one_suite_a_device_in_natural_order_and_counts_that_add_up() -> None:
    root = _parse(to_junit(FULL))

    assert [suite.get("name") for suite in root] == ["leaf1", "leaf2", "leaf10"]
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "2", "1")


def test_junit_failure_says_where_and_what_to_do() -> None:
    failure = _case(to_junit(FULL), "leaf1", "dscp-maps-to-lossy-tc").find("failure")

    assert failure is not None
    assert failure.get("message") == "DSCP 26 maps to traffic class 1, which is lossy"
    assert "Ethernet0, Ethernet4" in str(failure.text)
    assert "remedy: map DSCP 26" in str(failure.text)


def test_junit_unknown_is_skipped_with_its_reason_and_a_warning_passes_with_its_text() -> None:
    junit = to_junit(FULL)
    skipped = _case(junit, "leaf2", "lossless-pg-without-headroom").find("skipped")
    warning = _case(junit, "leaf10", "pfc-without-watchdog")

    assert skipped is not None
    assert str(skipped.get("message")).startswith("UNKNOWN: ")
    assert [child.tag for child in warning] == ["system-out"]


def test_junit_device_that_was_rolled_back_is_a_failure_without_control_characters() -> None:
    failure = _case(to_junit(FULL), "leaf2", "push").find("failure")

    assert failure is not None
    assert failure.get("type") == "rolled-back"
    assert "\ufffd[31m" in str(failure.get("message"))
    assert _case(to_junit(FULL), "leaf1", "push").find("failure") is None


def test_junit_of_a_rule_that_failed_and_is_unknown_elsewhere_fails_and_says_both() -> None:
    unknown = Finding(
        "dscp-maps-to-lossy-tc", Status.UNKNOWN, Severity.ERROR, Where("leaf1", ("Ethernet12",)), "no map"
    )
    case = _case(to_junit(replace(FULL, findings=(*FULL.findings, unknown))), "leaf1", "dscp-maps-to-lossy-tc")

    assert [child.tag for child in case] == ["failure", "system-out"]


def test_junit_of_a_pushed_device_without_findings_has_its_suite() -> None:
    device = replace(FULL.devices[2], result=DeviceResult("leaf10", "sonic", Outcome.UNCHANGED))
    root = _parse(to_junit(replace(EMPTY, devices=(device,))))

    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("leaf10", "1")]


def test_sarif_levels_follow_status_and_severity() -> None:
    document = json.loads(to_sarif(FULL))
    (run,) = document["runs"]

    assert document["version"] == "2.1.0"
    assert [(r["kind"], r["level"]) for r in run["results"]] == [
        ("fail", "error"),
        ("pass", "none"),
        ("open", "none"),
        ("pass", "none"),
        ("fail", "warning"),
    ]
    places = [place["logicalLocations"][0]["fullyQualifiedName"] for place in run["results"][0]["locations"]]
    assert places == ["leaf1/Ethernet0", "leaf1/Ethernet4"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {r["ruleId"] for r in run["results"]}


def test_page_of_a_small_run_is_small(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text(to_html(FULL), encoding="utf-8")

    assert target.stat().st_size < 60_000
