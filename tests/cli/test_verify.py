"""`fabricctl verify`: what is refused before anybody is contacted, progress in words, and the end of a watch."""

import os
import signal

import pytest
from typer.testing import CliRunner

from fabric.cli import verify as verify_module
from fabric.cli.app import app
from fabric.cli.console import Printer
from fabric.observe import Event, Recorder
from fabric.workflow import Environment
from fabric.workflow.verifying import Watched

RUNNER = CliRunner()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prove", "--watch"), "one of them"),
        (("--listen", "127.0.0.1:1"), "--watch"),
        (("--watch", "--listen", "nowhere"), "ADDRESS:PORT"),
        (("--watch", "--listen", "127.0.0.1:99999"), "ADDRESS:PORT"),
        (("--seconds", "0"), "--seconds"),
    ],
)
def test_wrong_words_are_usage(words: tuple[str, ...], said: str) -> None:
    done = RUNNER.invoke(app, ["verify", "-i", "nowhere", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_an_inventory_without_hosts_is_the_inventory_owners() -> None:
    done = RUNNER.invoke(app, ["verify", "-i", "inventory/demo", "--limit", "leaf1"])
    assert done.exit_code == 3, done.output
    assert "no managed host is left" in done.output


def test_an_ipv6_address_may_be_listened_on() -> None:
    assert verify_module._address("[::1]:9475") == ("::1", 9475)


def test_progress_adds_up_what_hosts_say_and_tells_the_time_that_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "_EVERY_S", 0.0)
    heard = Recorder()
    environment = verify_module._with_progress(Environment(observer=heard), Printer())
    observe = environment.observer
    observe(Event("verify.load.started", data={"seconds": 30.0}))
    for host, moved in (("gpu1", 1 << 20), ("gpu2", 3 << 20)):
        observe(Event("load.progress", device=host, data={"second": 10, "bytes": moved, "errors": 1, "flaw_count": 0}))
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "  load: second 10 of 30, 4.0 MiB, 2 errors, 0 wrong sectors; 20 s left"
    assert len(heard.events) == 3
    quiet = verify_module._with_progress(Environment(), Printer(quiet=True)).observer
    quiet(Event("load.progress", device="gpu1", data={"second": 1}))
    assert capsys.readouterr().err == ""


def test_sigterm_ends_a_watch_as_ctrl_c_does() -> None:
    with pytest.raises(KeyboardInterrupt), verify_module._terminated_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_watch_says_how_much_it_has_seen() -> None:
    assert verify_module._watched(Watched((("pass", 3),), 9000, 0.00033, None)) == (
        "watched: 3 pass; n = 9,000 packets; loss rate <= 0.00033 at 95%"
    )
    assert verify_module._watched(Watched((), 0, None, None)).startswith("watched: no window came to its end")
