"""`fabricctl import` as a shell sees it: what it writes is an inventory, and what it cannot is told with its place."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabric.cli.app import app
from tests.strategies.site import Site

RUNNER = CliRunner()
pytestmark = pytest.mark.usefixtures("own_state")


def test_files_become_an_inventory_that_the_other_verbs_read(site: Site, tmp_path: Path) -> None:
    text = tmp_path / "leaf1.json"
    text.write_text(site.fronts["leaf1"].running(), encoding="utf-8")
    into = tmp_path / "imported"

    done = RUNNER.invoke(app, ["import", str(into), f"leaf1={text}", "--nos", "sonic", "--json"])

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)
    shown = RUNNER.invoke(app, ["show", "-i", str(into), "--json"])
    assert shown.exit_code == 0, shown.output
    assert "leaf1" in shown.stdout

    again = RUNNER.invoke(app, ["import", str(into), f"leaf1={text}", "--nos", "sonic"])
    assert again.exit_code == 3, "what is there is not replaced unasked"
    assert "--force" in again.output
    assert RUNNER.invoke(app, ["import", str(into), f"leaf1={text}", "--nos", "sonic", "--force"]).exit_code == 0


def test_switches_that_run_are_read_over_ssh(site: Site, tmp_path: Path) -> None:
    words = [word for source in site.request.sources for word in ("-i", str(source))]
    done = RUNNER.invoke(app, ["import", str(tmp_path / "imported"), *words, "--json"])
    assert done.exit_code == 0, done.output
    password = ("-e", "vault_switch_password=unused")  # what is written has no secret, and names the vault's variable
    shown = RUNNER.invoke(app, ["show", "-i", str(tmp_path / "imported"), *password, "--json"])
    assert shown.exit_code == 0, shown.output
    assert {"leaf1", "leaf2"} <= set(shown.stdout.replace('"', " ").split())


@pytest.mark.parametrize(
    ("words", "code"),
    [([], 3), (["absent.json"], 3), (["bad.json", "--nos", "sonic"], 3), (["bad.json", "--nos", "x"], 2)],
)
def test_what_is_no_configuration_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{", encoding="utf-8")
    done = RUNNER.invoke(app, ["import", "imported", *words])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    assert not Path("imported").exists()
