"""`fabricctl tune`: what is refused before anybody is contacted."""

import pytest
from typer.testing import CliRunner

from fabric.cli import tune as tune_module
from fabric.cli.app import app
from fabric.observe import Event, Recorder
from fabric.workflow import Environment

RUNNER = CliRunner()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--goal", "speed"), "last-byte"),
        (("--check", "--write"), "neither searches nor writes"),
        (("--check", "--resume", "runs/one"), "neither searches nor writes"),
        (("--trials", "3"), "--trials"),
        (("--pause-percent", "101"), "--pause-percent"),
    ],
)
def test_wrong_words_are_usage(words: tuple[str, ...], said: str) -> None:
    done = RUNNER.invoke(app, ["tune", "-i", "nowhere", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_a_run_without_a_study_cannot_be_gone_on_with() -> None:
    done = RUNNER.invoke(app, ["tune", "-i", "inventory/demo", "--resume", "nowhere"])
    assert done.exit_code != 0
    assert "no study to go on with" in done.output


def test_an_inventory_without_hosts_is_the_inventory_owners() -> None:
    done = RUNNER.invoke(app, ["tune", "-i", "inventory/demo", "--limit", "leaf1"])
    assert done.exit_code == 3, done.output
    assert "no managed host is left" in done.output


def test_what_is_the_same_in_every_trial_is_not_told() -> None:
    heard = Recorder()
    observe = tune_module._calm(Environment(observer=heard)).observer
    for name in (
        "tune.trial.done",
        "verify.load.started",
        "push.fetch.done",
        "tune.loss.failed",
        "verify.idle.started",
    ):
        observe(Event(name))
    assert [one.name for one in heard.events] == ["tune.trial.done", "tune.loss.failed", "verify.idle.started"]
