"""What the environment scripts promise: one line that says what is missing, exit 5; pins that any index serves."""

import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fabric

ROOT = Path(__file__).resolve().parent.parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*command: str, path: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, **env}
    if path is not None:
        merged["PATH"] = f"{path}:{merged['PATH']}"
    return subprocess.run(command, cwd=ROOT, env=merged, capture_output=True, text=True, check=False)


def fake_python(folder: Path, body: str) -> str:
    script = folder / "python3-stand-in"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    return tmp_path


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            'case "$*" in *version_info*) exit 1;; esac; echo "Python 3.9.2"',
            "Python 3.11 or newer (Python 3.9.2 found)",
        ),
        ('case "$*" in *ensurepip*) exit 1;; esac', "apt-get install -y python3-venv"),
    ],
)
def test_unfit_python_is_one_line_and_exit_5(checkout: Path, body: str, words: str) -> None:
    done = run(str(checkout / ".ci" / "venv"), PYTHON=fake_python(checkout, body))
    assert done.returncode == 5
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (checkout / ".venv").exists()


def test_absent_python_is_one_line_and_exit_5(checkout: Path) -> None:
    done = run(str(checkout / ".ci" / "venv"), PYTHON="python-that-is-not-there")
    assert done.returncode == 5
    assert "apt-get install -y python3 python3-venv" in done.stderr


def test_absent_programs_are_named_by_their_packages() -> None:
    done = run(".ci/need", "sh=dash", "no-such-program-1=package-one", "no-such-program-2=package-two")
    assert done.returncode == 5
    assert done.stderr == "missing programs; run: sudo apt-get install -y package-one package-two\n"
    assert run(".ci/need", "sh=dash").returncode == 0


def test_only_ci_installs_system_packages() -> None:
    # Elsewhere the words may stand in a message to the user, never at the start of a command.
    files = [
        ROOT / "Makefile",
        *(ROOT / ".ci").iterdir(),
        *(ROOT / "tests" / "bars").iterdir(),
        ROOT / "tests" / "soak",
    ]
    installing = [
        path.name for path in files if re.search(r"^\s*(sudo )?apt-get", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert installing == ["run"]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").count("apt-get install") == 1


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def test_constraints_name_no_place_and_pin_every_requirement() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert "--hash" not in text
    project = PYPROJECT["project"]
    pins = constraints()
    for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)]), line


def test_nothing_requires_the_other_fabric() -> None:
    assert "fabric" not in constraints()
    requirers = [
        dist.name for dist in metadata.distributions() for line in dist.requires or () if re.match(r"fabric\b", line)
    ]
    assert requirers == []
    assert Path(fabric.__file__).parent == ROOT / "fabric"


def test_data_folders_of_the_wheel_exist_in_the_checkout() -> None:
    included = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {f"fabric/_data/{folder}" for folder in included} == set(included.values())
    assert all((ROOT / folder).is_dir() for folder in included)
