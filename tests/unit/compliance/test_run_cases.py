"""The judge of case folders: right cases pass, wrong and missing ones do not."""

import json
from pathlib import Path
from textwrap import indent

import pytest

from tests.run_cases import main, run

CONFIG = """\
{"DSCP_TO_TC_MAP": {"M": {"26": "1"}},
 "PORT": {"Ethernet0": {"mtu": "9100"}, "Ethernet4": {"mtu": "9100"}},
 "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "M", "pfc_enable": "3"}}}
"""
CASE = """\
id: "90"
title: DSCP 26 in class 1
area: {area}
given:
  facts: {{device: leaf1, nos: {nos}, policy: {{roce_dscp: 26, roce_priority: 3}}}}
  files:
    config_db.json: |
{config}
expect: {{verdict: {verdict}, rule: {rule}, where: {{device: leaf1, port: {port}, priority: 3, found_tc: {found_tc}}}}}
"""


def _case(folder: Path, **changes: str) -> Path:
    words = {
        "area": "switch",
        "nos": "sonic",
        "config": CONFIG,
        "verdict": "fail",
        "rule": "dscp-maps-to-lossy-tc",
        "port": "Ethernet0",
        "found_tc": "1",
        **changes,
    }
    words["config"] = indent(words["config"], " " * 6)
    (folder / "90.yml").write_text(CASE.format(**words), encoding="utf-8")
    return folder


def test_reference_cases_of_the_five_themes_are_judged_right(reference: Path) -> None:
    results = {one.id: one for one in run(reference / "cases")}

    assert {one.id for one in results.values() if one.match == "yes"} >= {"01", "02", "04", "05", "06", "07", "08"}
    assert not [one for one in results.values() if one.match == "no"]
    assert all(one.reason for one in results.values() if one.match == "not judged")


@pytest.mark.parametrize(
    ("number", "wrong", "right", "reason"),
    [
        ("05", 'NCCL_IB_GID_INDEX: "3"', 'NCCL_IB_GID_INDEX: "1"', "fail expected; the rule said pass"),
        ("05", "port: mlx5_0/2", "port: mlx5_0/1", "ports ['mlx5_0/1'], expected ['mlx5_0/2']"),
        ("06", "device: gpu01, port", "device: store01, port", "device store01, expected gpu01"),
        ("06", "wanted: 2048", "wanted: 4096", "wanted 4096, expected 2048"),
        ("07", "kv1 -w fe80::200:5eff:fe00:31%ens1f0np0", "kv1", "fail expected; the rule said pass"),
        ("08", 'ctrl_loss_tmo: "1800"', 'ctrl_loss_tmo: "600"', "warn expected; the rule said pass"),
        ("08", "found_s: 600, wanted_s: -1, more: 1", "found_s: 600, wanted_s: -1", "more is not named"),
    ],
)
def test_host_case_is_right_and_its_neighbour_is_not(
    reference: Path, tmp_path: Path, number: str, wrong: str, right: str, reason: str
) -> None:
    (path,) = (reference / "cases").glob(f"{number}-*.yml")
    text = path.read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "one.yml").write_text(text.replace(right, wrong), encoding="utf-8")

    (result,) = run(tmp_path)

    assert result.match == "no"
    assert reason in result.reason


def test_host_case_whose_files_are_missing_is_not_judged(reference: Path, tmp_path: Path) -> None:
    (path,) = (reference / "cases").glob("07-*.yml")
    text = path.read_text(encoding="utf-8").replace("command.txt", "other.txt")
    (tmp_path / "one.yml").write_text(text, encoding="utf-8")

    (result,) = run(tmp_path)

    assert (result.match, "cannot be read" in result.reason) == ("not judged", True)


def test_right_case_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(_case(tmp_path)), "--json"]) == 0

    (result,) = json.loads(capsys.readouterr().out)
    assert result["match"] == "yes"
    assert result["where"] == "leaf1 Ethernet0 priority 3 dscp 26 found_tc 1"


def test_other_name_of_the_rule_is_understood(tmp_path: Path) -> None:
    assert main([str(_case(tmp_path, rule="dscp-not-classified"))]) == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"verdict": "unknown"}, "unknown expected; the rule said fail at leaf1 Ethernet0"),
        ({"port": "[Ethernet0, Ethernet4]"}, "ports ['Ethernet0'], expected ['Ethernet0', 'Ethernet4']"),
        ({"found_tc": "0"}, "found_tc 1, expected 0"),
        ({"rule": "pfc-not-on-data-priority"}, "fail expected; the rule said pass at leaf1 Ethernet0"),
    ],
)
def test_case_that_does_not_match_fails(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    folder = _case(tmp_path, **changes)

    assert main([str(folder)]) == 1
    assert reason in run(folder)[0].reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"area": "host"}, "area host"),
        ({"nos": "nonesuch"}, "no nos/nonesuch"),
        ({"rule": "some-rule-of-yours"}, "no rule some-rule-of-yours"),
        ({"config": "no json"}, "cannot be read"),
    ],
)
def test_case_beyond_the_rules_is_not_judged_and_alone_is_no_success(
    tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    folder = _case(tmp_path, **changes)

    assert main([str(folder)]) == 1
    assert run(folder)[0].match == "not judged"
    assert reason in run(folder)[0].reason


def test_empty_folder_is_no_success(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1
