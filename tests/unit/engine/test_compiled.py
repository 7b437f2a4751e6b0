"""The compiled engine (`make compiled`) does what the sources do. Skipped where nobody has compiled these sources."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMPILED = ROOT / "build" / "compiled"


def is_compiled() -> bool:
    names = [path.relative_to(ROOT) for path in (ROOT / "fabric" / "engine").rglob("*.py")]
    same = all(
        (COMPILED / name).is_file() and (COMPILED / name).read_bytes() == (ROOT / name).read_bytes() for name in names
    )
    return same and any(COMPILED.glob("fabric_engine*.so"))


def measured(path: Path) -> dict[str, object]:
    command = [sys.executable, str(ROOT / "benchmarks" / "engine.py"), "--commands", "64", "--repeats", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(path)}, cwd=ROOT
    )
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_the_same_run_posts_the_same_capsules_twice() -> None:
    assert measured(ROOT)["posted"] == measured(ROOT)["posted"]


@pytest.mark.skipif(not is_compiled(), reason="build/compiled is missing, or of other sources: make compiled")
def test_the_compiled_engine_posts_what_the_sources_post() -> None:
    compiled, pure = measured(COMPILED), measured(ROOT)

    assert (compiled["compiled"], pure["compiled"]) == (True, False)
    assert compiled["posted"] == pure["posted"]
