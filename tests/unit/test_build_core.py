"""The compiled core is made where there is a compiler, and an install goes on where there is none."""

import ctypes
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def hook() -> ModuleType:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sources(tmp_path: Path, hook: ModuleType) -> Path:
    folder = tmp_path / hook.FOLDER
    folder.mkdir(parents=True)
    for path in (ROOT / hook.FOLDER).glob("*.[ch]"):
        shutil.copy(path, folder)
    return tmp_path


def test_the_core_is_compiled_with_what_the_engine_calls(hook: ModuleType, sources: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    assert hook.compile_core(sources) == ""
    library = ctypes.CDLL(str(sources / hook.FOLDER / "_core.so"))
    for name in ("open", "register", "put", "ended", "cancel", "close", "in_memory"):
        assert hasattr(library, f"block_{name}")
    assert sorted(path.suffix for path in (sources / hook.FOLDER).iterdir()) == [".c", ".c", ".h", ".so"]


@pytest.mark.parametrize(
    ("compiler", "why"), [("no-such-compiler", "there is no"), ("cc -Dtake=/", "does not compile")]
)
def test_without_a_working_compiler_the_install_goes_on(
    hook: ModuleType, sources: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, why: str
) -> None:
    if shutil.which("cc") is None and compiler.startswith("cc"):
        pytest.skip("no compiler")
    monkeypatch.setenv("CC", compiler)
    assert why in hook.compile_core(sources)
    assert not (sources / hook.FOLDER / "_core.so").exists()
