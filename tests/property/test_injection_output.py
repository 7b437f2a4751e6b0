"""What devices and inventories say reaches a terminal, a page, XML and metrics as text: nothing obeys it."""

import functools
import json
import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from io import StringIO
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from fabric.cli.console import Printer, clean
from fabric.cli.wording import summary_lines
from fabric.errors import FabricError, Problem
from fabric.observe import Event
from fabric.plan.model import Note
from fabric.report import DeviceReport, RunDocument, Section, to_html, to_json, to_junit
from fabric.report.sarif import to_sarif
from fabric.state import DeviceResult, Finding, Outcome, Severity, Status, StepRecord, Where
from fabric.workflow import Summary, Verdict
from fabric.workflow.verifying.watchmetrics import WatchMetrics
from tests.strategies.hostile import hostile_text

TEXTS = st.lists(hostile_text.filter(bool), min_size=14, max_size=14)  # an empty text is none, and has no element
HARMLESS = [f"word{number}" for number in range(14)]


def findings(texts: Sequence[str]) -> tuple[Finding, ...]:
    where = Where(texts[0], (texts[1],), 3, ((texts[2], texts[3]),))
    kinds = ((Status.FAIL, Severity.ERROR), (Status.FAIL, Severity.WARNING), (Status.UNKNOWN, Severity.WARNING))
    return tuple(Finding("rule-a", status, severity, where, texts[4], texts[5], texts[6]) for status, severity in kinds)


def result(texts: Sequence[str]) -> DeviceResult:
    steps = (StepRecord("stage", 0.1, ok=False, message=texts[9]),)
    return DeviceResult(
        texts[0],
        "eos",
        Outcome.FAILED,
        2,
        texts[7],
        error=texts[8],
        remedy=texts[9],
        steps=steps,
        notes=(("a", texts[10]),),
    )


def document(texts: Sequence[str]) -> RunDocument:
    note = Note("code", texts[10], (texts[1],), blocks_lossless=True)
    device = DeviceReport(texts[0], "eos", "leaf", (note,), texts[7], (texts[11],), result(texts))
    return RunDocument(
        "1", texts[12], texts[13], texts[2], 1.0, 2.0, Status.FAIL, texts[3],
        devices=(device,), findings=findings(texts), notes=(note,), sections=(Section(texts[4], (texts[5],)),),
    )  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and what stands in scripts and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[tuple[str, ...]] = Counter()
        self.links: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[(tag, *(name for name, _ in attrs))] += 1
        self.links |= {value or "" for name, value in attrs if name in {"href", "src"}}


@functools.cache
def harmless_tags() -> Tags:
    return Tags(to_html(document(HARMLESS)))


def test_the_harmless_run_has_every_text_on_its_page() -> None:
    page = to_html(document(HARMLESS))
    assert [text for text in HARMLESS if text not in page] == []


@given(TEXTS)
def test_a_page_has_the_tags_of_a_harmless_run_and_no_script(texts: list[str]) -> None:
    page, clean_page = Tags(to_html(document(texts))), harmless_tags()

    lines = ("span", "class")  # of a diff: as many as it has lines
    assert {tag for tag in page.tags if tag != lines} == {tag for tag in clean_page.tags if tag != lines}
    assert {tag: n for tag, n in page.tags.items() if tag != lines} == {
        tag: n for tag, n in clean_page.tags.items() if tag != lines
    }
    assert all(link.startswith("#") for link in page.links)
    assert not any(name.startswith("on") for tag in page.tags for name in tag[1:])


@given(TEXTS)
def test_xml_and_json_of_a_run_are_well_formed_and_have_the_same_elements(texts: list[str]) -> None:
    run = document(texts)
    root = ET.fromstring(to_junit(run).encode())  # noqa: S314  # our own text
    clean_root = ET.fromstring(to_junit(document(HARMLESS)).encode())  # noqa: S314

    assert [one.tag for one in root.iter()] == [one.tag for one in clean_root.iter()]
    assert json.loads(to_json(run))["devices"][0]["device"] == texts[0]
    sarif = json.loads(to_sarif(run))
    assert len(sarif["runs"][0]["results"]) == 3


def printed(lines: Sequence[tuple[str, str]]) -> str:
    out = StringIO()
    printer = Printer()
    printer.console().file = out
    for text, style in lines:
        printer.line(text, style=style)
    return out.getvalue()


def summary(texts: Sequence[str]) -> Summary:
    note = Note("code", texts[10], (), blocks_lossless=True)
    return Summary("plan", "lab", Verdict.FAILED, (result(texts),), findings=findings(texts), notes=((texts[0], note),))


@given(TEXTS)
def test_a_terminal_gets_no_sequence_and_no_line_that_passes_for_ours(texts: list[str]) -> None:
    shown = printed(list(summary_lines(summary(texts), full=True)))

    assert all(one.isprintable() or one in "\n\t" for one in shown)
    # a verdict stands at the margin; what others say follows a name of ours, or is set in
    verdicts = [line for line in shown.split("\n") if line.startswith("plan lab: ")]
    assert len(verdicts) == 1
    assert verdicts[0].startswith("plan lab: FAILED")


@given(hostile_text, hostile_text)
def test_progress_and_errors_are_one_line_each(what: str, found: str) -> None:
    problem = Problem(what, place=found, device=what, field=found, found=what, expected=found)
    assert str(problem).isprintable()
    error = FabricError(what, where=found, expected=what, found=found)
    assert clean(str(error)).count("\n") == 0


@given(hostile_text)
def test_a_progress_line_is_one_line(text: str) -> None:
    import contextlib

    out = StringIO()
    with contextlib.redirect_stderr(out):
        Printer().progress(Event("push.done", device=text, message=text))

    assert out.getvalue().count("\n") == 1
    assert out.getvalue()[:-1].isprintable() or "\t" in out.getvalue()


def test_an_ipv6_address_is_printed_as_it_is() -> None:
    address = "2001:db8:1234:b:100::1 nqn.2026-01.net.example:kv:fire:"
    assert printed([(f"at {address}", "")]) == f"at {address}\n"


@given(hostile_text, hostile_text)
def test_a_metric_has_its_labels_and_no_other_line(device: str, place: str) -> None:
    from prometheus_client import generate_latest
    from prometheus_client.parser import text_string_to_metric_families

    metrics = WatchMetrics()
    by_name: dict[str, Any] = metrics._by_name
    by_name["pause_share"].labels(device, place, "3", "rx").set(0.5)
    by_name["read_errors"].labels(device, place, device).inc(1)
    try:
        text = generate_latest(metrics.registry).decode()
    except UnicodeEncodeError:  # half a character: refused as a whole, and no name or counter of ours holds one
        assert any("\ud800" <= one <= "\udfff" for one in device + place)
        return
    families = {one.name: one for one in text_string_to_metric_families(text)}

    (sample,) = families["fabricctl_watch_pause_share"].samples
    assert sample.labels == {"device": device, "place": place, "priority": "3", "way": "rx"}
    rows = [row for row in text.split("\n") if row and not row.startswith("#")]
    assert all(re.match(r"fabricctl_watch_[a-z_]+(\{| )", row) for row in rows)
