import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.lab.site.states import WarmStates
from fabric.lab.vm import Accelerator, Disk, DiskKind, Image, MachineSpec, Nic, qemu

IMAGE = Image("0" * 16, Path("/cache/0"))
SPEC = MachineSpec("host1", nics=(Nic("data0", "02:00:00:00:00:01", "/lab/a"),))
DAY_S = 86_400.0


def states(cache: Path, *, emulator: str = "7.2", now_s: float = 0.0) -> WarmStates:
    return WarmStates(cache, IMAGE, Accelerator.TCG, emulator, FakeClock(now_s))


def test_key_is_of_all_that_a_memory_depends_on_and_not_of_where_sockets_are(tmp_path: Path) -> None:
    key = states(tmp_path).key(SPEC)
    assert states(tmp_path).key(replace(SPEC, nics=(replace(SPEC.nics[0], socket="/lab/b"),))) == key
    assert states(tmp_path, emulator="8.0").key(SPEC) != key
    others = (
        replace(SPEC, cpus=2),
        replace(SPEC, disks=(Disk(DiskKind.RAM, "ram0", 8),)),
        replace(SPEC, nics=(replace(SPEC.nics[0], mac="02:00:00:00:00:02"),)),
    )
    assert len({key, *map(states(tmp_path).key, others)}) == 4


@pytest.mark.parametrize("name", ["_TCG_CPU", "_TCG_WORDS", "_KERNEL_WORDS"])
def test_a_memory_of_another_processor_or_kernel_command_line_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    key = states(tmp_path).key(SPEC)
    monkeypatch.setattr(qemu, name, f"{getattr(qemu, name)} other")
    assert states(tmp_path).key(SPEC) != key


def test_state_that_nobody_used_for_two_weeks_goes_and_one_in_use_stays(tmp_path: Path) -> None:
    other = replace(SPEC, name="host2")
    at_first = states(tmp_path, now_s=DAY_S)
    for spec in (SPEC, other):
        folder = tmp_path / "states" / at_first.key(spec)
        folder.mkdir(parents=True)
        os.utime(folder, (DAY_S, DAY_S))
    (tmp_path / "states" / "new-1").mkdir()
    os.utime(tmp_path / "states" / "new-1", (DAY_S, DAY_S))
    states(tmp_path, now_s=10 * DAY_S).find(SPEC)

    later = states(tmp_path, now_s=16 * DAY_S)
    later.prune()

    assert later.find(SPEC) is not None
    assert later.find(other) is None
    assert not (tmp_path / "states" / "new-1").exists()


def test_state_that_a_machine_runs_on_stays(tmp_path: Path) -> None:
    """Its disk lies below the machine's own: without it, the machine could not start again."""
    folder = tmp_path / "states" / states(tmp_path).key(SPEC)
    folder.mkdir(parents=True)
    (folder / "disk.qcow2").touch()
    os.utime(folder, (DAY_S, DAY_S))
    code = "import sys; file = open(sys.argv[1]); print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", code, str(folder / "disk.qcow2")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        states(tmp_path, now_s=30 * DAY_S).prune()
        assert folder.is_dir()
        process.communicate()
    states(tmp_path, now_s=30 * DAY_S).prune()
    assert not folder.exists()
