"""The program in the how-to does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(("word", "said"), [("hello", "[65536, 65536] b'hello'\n"), ("WriteZeroes", "[4096, 8192]\n")])
def test_the_written_programs_run(word: str, said: str) -> None:
    page = (ROOT / "docs" / "how-to" / "engine.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (program,) = [one for one in programs if word in one]
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_the_protocol_alone_brings_no_transport() -> None:
    program = (
        "import sys, fabric.engine.nvmeof.host, fabric.engine.queues; print('fabric.engine.transport' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
