"""Hosts stand beside switches in every report, and the limits of a run say what it did."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fabric.host.change import Part
from fabric.workflow import Summary, Verdict, check, provision
from fabric.workflow.publishing import document_of, limits_of
from tests.unit.intent.inventories import small
from tests.unit.workflow.hostfleet import Fleet, direct, environment, request_for, serve_inventory

SUMMARY = Summary("provision", "f", Verdict.OK, roles={"leaf1": "leaf", "gpu1": "host", "kv1": "target"})


def test_limits_say_who_was_contacted_and_what_was_counted() -> None:
    nobody = limits_of(SUMMARY)
    assert nobody == (
        "Switches were judged by their configuration; no traffic was sent and no counter was judged.",
        "Host plans are computed and compared; hosts and targets were not contacted.",
    )
    some = limits_of(replace(SUMMARY, contacted=("gpu1",), counted=True))
    assert some[0].endswith("and by what they have counted, since they were started or cleared; no traffic was sent.")
    assert some[1:] == ("Hosts and targets were judged by what they say of themselves; not contacted: kv1.",)
    assert "not contacted" not in limits_of(replace(SUMMARY, contacted=("gpu1", "kv1")))[1]


def test_every_report_has_the_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve_inventory(monkeypatch, direct())
    fleet = Fleet(refusing={("gpu1", Part.CONNECT)})

    run = Path(provision(request_for(tmp_path), environment(fleet, tmp_path)).run_folder)

    devices = {one["device"]: one for one in json.loads((run / "report.json").read_text())["devices"]}
    assert {name: (one["nos"], one["role"]) for name, one in devices.items()} == {
        "gpu1": ("linux", "host"),
        "kv1": ("linux", "target"),
    }
    html = (run / "report.html").read_text()
    assert "rolled back" in html
    assert "+ connect of gpu1" in html
    suites = ET.fromstring((run / "report.junit.xml").read_text())  # noqa: S314 - our own file
    pushes = suites.findall("testsuite/testcase[@name='push']")
    assert {one.get("classname"): one.find("failure") is not None for one in pushes} == {"gpu1": True, "kv1": False}
    sarif = json.loads((run / "report.sarif").read_text())["runs"][0]
    places = {one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for one in sarif["results"]}
    assert {place.partition("/")[0] for place in places} == {"gpu1", "kv1"}
    rules = {one["id"]: one["shortDescription"]["text"] for one in sarif["tool"]["driver"]["rules"]}
    assert rules["host-pfc-priorities"] == "Host pfc priorities."
    assert "mtu-below-policy" not in rules, "no switch was judged"


def test_hosts_that_were_only_read_are_devices_of_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serve_inventory(monkeypatch, small())
    fleet = Fleet()

    summary = check(request_for(tmp_path), environment(fleet, tmp_path), live=True)

    found = document_of(summary, ended_unix_s=0, run="r")
    assert {one.device: (one.nos, one.role) for one in found.devices} == {
        "leaf1": ("eos", "leaf"),
        "gpu1": ("linux", "host"),
        "kv1": ("linux", "target"),
    }
    assert "mtu-below-policy" not in {one.rule for one in summary.findings}
