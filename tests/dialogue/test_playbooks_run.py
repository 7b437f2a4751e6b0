"""`run_playbook` with real playbooks: why each host failed, what Ansible complains of, an orderly end on Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError
from fabric.observe import Recorder
from fabric.remote import _running
from fabric.remote.ansible import PlaybookRun, run_playbook

ROOT = Path(__file__).resolve().parent.parent.parent
LOCAL = f"ansible_connection: local, ansible_python_interpreter: {sys.executable}"
INVENTORY = (
    f"all: {{hosts: {{good: {{{LOCAL}}}, bad: {{{LOCAL}}}, gone: {{ansible_host: 127.0.0.1, ansible_port: 1}}}}}}\n"
)
SHELL = "- {hosts: all, gather_facts: false, tasks: [{name: Work, raw: %s}]}\n"


def play(
    folder: Path, text: str, *, limit: str = "", check: bool = False, observer: Recorder | None = None
) -> PlaybookRun:
    (folder / "hosts.yml").write_text(INVENTORY, encoding="utf-8")
    (folder / "play.yml").write_text(text, encoding="utf-8")
    heard = observer or Recorder()
    return run_playbook(folder / "play.yml", sources=[folder / "hosts.yml"], limit=limit, check=check, observer=heard)


def test_each_host_that_failed_has_its_reason_and_the_unreachable_are_told_apart(tmp_path: Path) -> None:
    fail = "- {hosts: all, gather_facts: false, tasks: [{raw: 'true'}, {fail: {msg: refused}, when: inventory_hostname == 'bad'}]}"
    run = play(tmp_path, fail)
    assert (run.status, run.failed_hosts, run.unreachable) == ("failed", ("bad", "gone"), ("gone",))
    assert run.reasons["bad"] == "refused"
    assert "Connection refused" in run.reasons["gone"]


@pytest.mark.parametrize(
    ("text", "limit", "said"),
    [
        ("- {hosts: all, gather_facts: false, tasks: [{no_such_action: ''}]}", "", "no_such_action"),
        (SHELL % "'true'", "nobody", "no hosts to target"),
    ],
    ids=["syntax", "limit"],
)
def test_what_ansible_says_of_the_whole_is_kept(text: str, limit: str, said: str, tmp_path: Path) -> None:
    run = play(tmp_path, text, limit=limit)
    assert (run.is_ok, run.failed_hosts) == (False, ())
    assert said in run.said


def test_check_mode_reaches_the_tasks(tmp_path: Path) -> None:
    copy = f"- {{hosts: good, gather_facts: false, tasks: [{{copy: {{content: x, dest: {tmp_path / 'made'}}}}}]}}"
    assert play(tmp_path, copy, check=True).is_changed
    assert not (tmp_path / "made").exists()
    assert play(tmp_path, copy).is_changed
    assert (tmp_path / "made").exists()


def test_signals_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    play(tmp_path, SHELL % "'true'", limit="good")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_host_keys_are_checked_nothing_is_retried_and_sockets_have_a_short_path(tmp_path: Path) -> None:
    names = "'host_key_checking', 'reconnection_retries', 'control_path_dir'"
    config = f"{{{{ query('config', {names}, plugin_type='connection', plugin_name='ssh') | join(' ') }}}}"
    text = f'- {{hosts: good, gather_facts: false, tasks: [{{fail: {{msg: "{config}"}}}}]}}\n'
    checking, retries, folder = play(tmp_path, text).reasons["good"].split()
    assert (checking, retries) == ("True", "0")
    assert len(folder) <= 79
    assert not Path(folder).exists()  # it is gone with its sockets


def test_no_folder_with_a_short_path_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_running, "_LONGEST", 10)
    with pytest.raises(EnvironmentMissingError, match="control sockets"):
        play(tmp_path, SHELL % "'true'")


CALL = """
import sys
from pathlib import Path
from fabric.remote.ansible import run_playbook
folder = Path(sys.argv[1])
run = run_playbook(folder / "play.yml", sources=[folder / "hosts.yml"], limit="good")
print(run.status, flush=True)
"""


def started(folder: Path, command: str) -> subprocess.Popen[str]:
    """Returns a program that runs a playbook whose task has begun."""
    (folder / "hosts.yml").write_text(INVENTORY, encoding="utf-8")
    (folder / "play.yml").write_text(SHELL % f"'touch {folder / 'begun'}; {command}'", encoding="utf-8")
    program = subprocess.Popen(
        [sys.executable, "-c", CALL, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    for _ in range(600):
        if (folder / "begun").exists():
            return program
        time.sleep(0.05)
    program.kill()
    raise AssertionError("the task did not begin")


def test_ctrl_c_ends_the_playbook_and_is_reported(tmp_path: Path) -> None:
    program = started(tmp_path, f"sleep 20; touch {tmp_path / 'ended'}")
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=15)
    assert out.split() == ["canceled"]
    assert program.returncode == 0
    assert not (tmp_path / "ended").exists()
