import sys
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError, HostError
from fabric.lab.vm.programs import BUILDING, RUNNING, find, need, run


def test_missing_programs_are_one_line_to_run() -> None:
    with pytest.raises(EnvironmentMissingError) as caught:
        need({**RUNNING, **BUILDING}, found=lambda name: None if name in {"depmod", "modprobe", "qemu-img"} else name)
    assert caught.value.remedy == "Run: sudo apt-get install -y --no-install-recommends kmod qemu-utils"


def test_programs_that_are_there_are_enough() -> None:
    need({"sh": "dash"})
    assert find("sh") is not None


def test_input_and_both_outputs_do_not_wait_for_each_other() -> None:
    lines: list[str] = []
    code = "import sys; data = sys.stdin.buffer.read(); sys.stderr.write('x\\n' * 50000); print(len(data)); print('y' * 200000)"
    printed = run([sys.executable, "-c", code], doing="a test", stdin=b"z" * 1_000_000, on_line=lines.append)
    assert printed.startswith("1000000\n")
    assert len(printed) > 200000
    assert len(lines) == 50000


def test_failed_command_says_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"unpacking failed: .* ended with 3") as caught:
        run([sys.executable, "-c", "import sys; sys.exit('why' and 3)"], doing="unpacking", cwd=tmp_path)
    assert caught.value.where == "lab image"
