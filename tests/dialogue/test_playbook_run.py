"""The playbooks for real: ansible-playbook, our action plug-in, the workflow, SSH, and what stays unchanged."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strategies.site import Site, served_site

ROOT = Path(__file__).resolve().parent.parent.parent
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


def play(site: Site, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "FABRICCTL_STATE": str(site.folder / "state"),
        "PYTHONPATH": str(ROOT),
    }
    sources = [word for source in site.request.sources for word in ("-i", str(source))]
    command = [str(ANSIBLE), str(ROOT / "playbooks" / name), *sources, "-e", "disruptive=true", *args]
    return subprocess.run(command, cwd=site.folder, env=env, capture_output=True, text=True, check=False)


def test_playbook_provisions_says_so_once_and_rolls_back(site: Site) -> None:
    before = {name: front.running() for name, front in site.fronts.items()}

    rehearsed = play(site, "provision.yml", "--check", "--diff")
    assert rehearsed.returncode == 0, rehearsed.stdout
    assert "changed=1" in rehearsed.stdout
    assert "qos profile FABRICCTL" in rehearsed.stdout
    assert {name: front.running() for name, front in site.fronts.items()} == before

    first = play(site, "provision.yml")
    assert first.returncode == 0, first.stdout
    assert "changed=1" in first.stdout
    second = play(site, "provision.yml")
    assert second.returncode == 0, second.stdout
    assert "changed=0" in second.stdout

    runs = sorted((site.folder / "runs").glob("*-provision"))
    back = play(site, "rollback.yml", "-e", f"run={runs[0]}")
    assert back.returncode == 0, back.stdout
    assert site.fronts["leaf2"].running() == before["leaf2"]
    passwords = [front.password for front in site.fronts.values()]
    texts = [run.stdout + run.stderr for run in (rehearsed, first, second, back)]
    assert not [text for text in texts for password in passwords if password in text]


def test_playbook_fails_where_a_switch_failed(site: Site) -> None:
    stopped = play(site, "provision.yml", "-e", "fabric_ecn_kmin=2000KB")
    assert stopped.returncode != 0
    assert "fabric_ecn_kmin" in stopped.stdout
    checked = play(site, "check.yml", "-e", "live=true")
    assert checked.returncode != 0  # stock switches: nothing is lossless yet
    assert "findings failed" in checked.stdout
