import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabric.lab.vm import Accelerator, Image, processes
from fabric.lab.vm.accelerator import boots

PROBE = """
import sys
from pathlib import Path
from fabric.lab.vm import Accelerator, Image
from fabric.lab.vm.accelerator import boots
boots(Image("0" * 16, Path(sys.argv[1])), Accelerator.KVM, limit_s=float(sys.argv[2]))
"""


def emulator(folder: Path, script: str) -> Mapping[str, str]:
    """Returns the environment in which a script stands for QEMU."""
    path = folder / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def left(folder: Path) -> list[int]:
    return [one.pid for one in processes.with_token(f"{folder}/vmlinuz")]


@pytest.mark.parametrize(
    ("script", "limit_s", "does"),
    [("echo fabric-lab: probe", 10, True), ("echo panic", 10, False), ("exec sleep 60", 0.2, False)],
)
def test_probe_says_whether_the_kernel_came_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, limit_s: float, *, does: bool
) -> None:
    monkeypatch.setenv("PATH", emulator(tmp_path, script)["PATH"])
    assert boots(Image("0" * 16, tmp_path), Accelerator.KVM, limit_s=limit_s) is does
    assert left(tmp_path) == []


def test_probe_whose_caller_was_killed_ends_by_itself(tmp_path: Path) -> None:
    """A kernel that hangs, as it does under a useless KVM, would else hang for ever."""
    environment = emulator(tmp_path, f'echo > {tmp_path}/begun; while :; do sleep 0.1; done # "$@"')
    argv = [sys.executable, "-c", PROBE, str(tmp_path), "1.5"]
    with subprocess.Popen(argv, env=environment, cwd=Path(__file__).parents[4]) as caller:
        while not (tmp_path / "begun").exists():
            assert caller.poll() is None
        there = [os.pidfd_open(pid) for pid in left(tmp_path) if pid != caller.pid]
        caller.kill()
    assert there
    for one in there:
        ended, _, _ = select.select([one], [], [], 10)
        os.close(one)
        assert ended
