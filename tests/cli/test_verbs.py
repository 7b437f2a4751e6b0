"""The command line as a shell sees it: exit codes, one JSON document, errors with their place."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fabric.cli.app import app
from fabric.cli.failures import reported
from fabric.lab import Fault, FaultKind
from tests.strategies.site import Site, write_site

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("own_state")


def sources(site: Site) -> list[str]:
    return [word for source in site.request.sources for word in ("-i", str(source))]


def test_help_has_examples_and_exit_codes() -> None:
    result = RUNNER.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "fabricctl check -i site" in result.output
    assert "Exit codes: 0 ok, 1 findings" in result.output
    assert RUNNER.invoke(app, ["--version"]).output.startswith("fabricctl ")
    for verb in ("init", "show", "render", "check", "plan", "provision", "rollback", "demo"):
        assert f"fabricctl {verb}" in RUNNER.invoke(app, [verb, "--help"]).output


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["provision"], 2),
        (["check"], 2),
        (["check", "-i", "/nonexistent"], 3),
        (["provision", "/nonexistent/plan.json"], 2),
        (["rollback", "/nonexistent"], 2),
        (["check", "-i", "SITE", "-e", "words"], 2),
        (["check", "-i", "SITE", "-e", "{broken"], 2),
        (["check", "-i", "SITE", "-e", "fabric_ecn_kmin=2000KB"], 3),
        (["plan", "-i", "SITE", "--limit", "gpu1"], 3),
    ],
)
def test_wrong_input_has_its_exit_code(argv: list[str], code: int, tmp_path: Path) -> None:
    site = str(write_site(tmp_path))
    runs = ["--runs", str(tmp_path / "runs")]
    result = RUNNER.invoke(app, [site if word == "SITE" else word for word in argv] + runs)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


def test_errors_are_one_json_document_with_json(tmp_path: Path) -> None:
    argv = ["check", "-i", str(write_site(tmp_path)), "-e", "fabric_ecn_kmim=1KB", "--json"]
    result = RUNNER.invoke(app, argv)
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["error"] == "IntentError"
    assert any("fabric_ecn_kmin" in problem["remedy"] + problem["expected"] for problem in document["problems"])


def test_init_writes_an_inventory_that_passes_its_check(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert RUNNER.invoke(app, ["init", str(folder)]).exit_code == 0
    assert RUNNER.invoke(app, ["init", str(folder)]).exit_code == 3
    shown = RUNNER.invoke(app, ["show", "-i", str(folder)])
    assert shown.exit_code == 0, shown.output
    checked = RUNNER.invoke(app, ["check", "-i", str(folder), "--runs", str(tmp_path / "runs"), "--json"])
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["verdict"] == "ok"


def test_show_and_render_contact_nobody(tmp_path: Path) -> None:
    site = str(write_site(tmp_path))
    shown = RUNNER.invoke(app, ["show", "-i", site])
    assert "fabric small: 2 switches, 2 hosts, 0 targets, 3 links" in shown.output
    assert "ECN queue 3: 150000 bytes … 1500000 bytes, 10 %" in shown.output
    document = json.loads(RUNNER.invoke(app, ["show", "-i", site, "--json"]).stdout)
    assert [switch["device"] for switch in document["plan"]["switches"]] == ["leaf1", "leaf2"]
    printed = RUNNER.invoke(app, ["render", "-i", site, "--limit", "leaf2"])
    assert "qos profile FABRICCTL" in printed.output
    assert "DSCP_TO_TC_MAP" not in printed.output
    written = RUNNER.invoke(app, ["render", "-i", site, "-o", str(tmp_path / "out")])
    assert written.exit_code == 0
    assert json.loads((tmp_path / "out" / "leaf1.sonic").read_text())["PORT_QOS_MAP"]
    blocked = RUNNER.invoke(app, ["render", "-i", site, "-o", f"{site}/below"])
    assert blocked.exit_code == 5


def test_plan_saves_and_provision_applies_and_exit_codes_say_so(site: Site, tmp_path: Path) -> None:
    runs = ["--runs", str(tmp_path / "runs"), "-q"]
    saved = tmp_path / "plan.json"
    planned = RUNNER.invoke(app, ["plan", *sources(site), "-o", str(saved), "--detailed-exitcode", *runs])
    assert planned.exit_code == 10, planned.output
    assert "2 to change" in planned.output
    refused = RUNNER.invoke(app, ["provision", str(saved), *runs])
    assert refused.exit_code == 1, refused.output
    assert "--disruptive" in refused.output
    done = RUNNER.invoke(app, ["provision", *sources(site), "--disruptive", "--confirm-s", "30", *runs])
    assert done.exit_code == 0, done.output
    again = RUNNER.invoke(app, ["plan", *sources(site), "--detailed-exitcode", *runs])
    assert again.exit_code == 0, again.output
    assert "nothing to do" in again.output
    live = RUNNER.invoke(app, ["check", *sources(site), "--live", "--json", *runs])
    assert live.exit_code == 0, live.output
    assert json.loads(live.stdout)["verdict"] == "ok"


def test_failed_device_is_exit_4_with_its_own_words(site: Site, tmp_path: Path) -> None:
    site.fronts["leaf2"].add_fault(Fault(FaultKind.REFUSE, match="random-detect", text="% Resource exhausted"))
    argv = ["provision", *sources(site), "-e", "fabric_ecn_kmax=1300KB", "--runs", str(tmp_path / "runs")]
    result = RUNNER.invoke(app, argv)
    site.fronts["leaf2"].clear_faults()
    assert result.exit_code == 4, result.output
    assert "% Resource exhausted" in result.output


def test_doctor_finds_this_environment_whole() -> None:
    result = RUNNER.invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    found = {one["name"]: one for one in json.loads(result.stdout)}
    assert found["import name"]["ok"]
    assert not [one for one in found.values() if not one["ok"] and not one["remedy"]]


def test_what_a_terminal_would_obey_is_neither_printed_nor_hidden(tmp_path: Path) -> None:
    path = write_site(tmp_path)
    path.write_text(path.read_text().replace("fabric_name: small", 'fabric_name: "sm\\e]0;owned\\aall\\u202e"'))

    for argv in (["show"], ["check", "--runs", str(tmp_path / "runs")]):
        result = RUNNER.invoke(app, [*argv, "-i", str(path)])
        assert "sm\ufffd]0;owned\ufffdall\ufffd" in result.output or result.exit_code == 3, result.output
        assert not {"\x1b", "\a", "\u202e"} & set(result.output)


def test_words_of_extra_vars_are_not_repeated_they_may_be_a_password(tmp_path: Path) -> None:
    for words in ("canary-4711", '{"ansible_password": "canary-4711"'):
        result = RUNNER.invoke(app, ["check", "-i", str(write_site(tmp_path)), "-e", words])
        assert result.exit_code == 2
        assert "canary-4711" not in result.output


def test_asking_for_the_vault_password_leaves_standard_output_to_the_document(tmp_path: Path) -> None:
    argv = ["show", "-i", str(write_site(tmp_path)), "--ask-vault-pass", "--json"]
    result = RUNNER.invoke(app, argv, input="canary-4711\n")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["fabric"]["name"] == "small"


def test_missing_place_for_runs_or_state_is_exit_5_and_nothing_is_pushed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    before = {name: front.running() for name, front in site.fronts.items()}
    argv = ["provision", *sources(site), "-e", "fabric_ecn_kmax=1400KB", "--disruptive", "-q"]
    no_runs = RUNNER.invoke(app, [*argv, "--runs", str(tmp_path / "file" / "runs")])
    monkeypatch.setenv("FABRICCTL_STATE", str(tmp_path / "file" / "state"))
    no_state = RUNNER.invoke(app, [*argv, "--runs", str(tmp_path / "runs")])

    assert (no_runs.exit_code, no_state.exit_code) == (5, 5), no_runs.output + no_state.output
    assert "FABRICCTL_STATE" in no_state.output
    assert {name: front.running() for name, front in site.fronts.items()} == before


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_is_neither_findings_nor_a_failure(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    @reported
    def verb(*, as_json: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        verb(as_json=as_json)

    assert ended.value.exit_code == 130
    told = capsys.readouterr()
    assert "stopped by Ctrl-C" in (json.loads(told.out)["what"] if as_json else told.err)


def test_unreachable_device_says_why(tmp_path: Path) -> None:
    (tmp_path / "nobody.yml").write_text(
        "switches: {vars: {ansible_host: 127.0.0.1, ansible_port: 1, ansible_password: x}}"
    )
    argv = ["check", "--live", "-i", str(write_site(tmp_path)), "-i", str(tmp_path / "nobody.yml")]
    result = RUNNER.invoke(app, [*argv, "--runs", str(tmp_path / "runs"), "-q", "--json"])
    assert result.exit_code == 4, result.output
    document = json.loads(result.stdout)
    assert [one["device"] for one in document["devices"]] == ["leaf1", "leaf2"]
    assert all("Connection refused" in one["error"] for one in document["devices"])
    assert {one["status"] for one in document["findings"]} == {"unknown"}
