"""The protocol does no I/O, knows no time and draws no random number: by what its modules import."""

import ast
from pathlib import Path

import fabric.engine.nvmeof

PACKAGE = Path(fabric.engine.nvmeof.__file__).parent
ALLOWED = {"collections", "dataclasses", "enum", "fabric", "heapq", "itertools", "struct", "types", "typing"}
FABRIC = ("fabric.engine.nvmeof", "fabric.errors")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_only_pure_modules_are_imported() -> None:
    modules = sorted(PACKAGE.rglob("*.py"))
    found = {name for module in modules for name in imported(module)}

    assert len(modules) > 40
    assert {name.split(".")[0] for name in found} <= ALLOWED
    assert {name for name in found if name.startswith("fabric") and not name.startswith(FABRIC)} == set()


def test_host_and_target_do_not_see_each_other() -> None:
    for role, other in (("host", "target"), ("target", "host")):
        seen = {name for module in (PACKAGE / role).glob("*.py") for name in imported(module)}
        assert not {name for name in seen if name.startswith(f"fabric.engine.nvmeof.{other}")}
