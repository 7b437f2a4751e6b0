"""Numbers that YAML 1.1 reads otherwise than people do: 0644 is 420, 12:30 is 750. Ansible gives only the result."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fabric.intent.flaws import Flaw, Spot
from fabric.intent.places import Places, all_files, pairs

__all__ = ("number_traps",)

# yaml.org/type/int.html: base 8 and base 60
_OCTAL: Final = r"[-+]?0[0-7_]*[0-7]"
_SEXAGESIMAL: Final = r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
_TRAP: Final = re.compile(rf"{_OCTAL}|{_SEXAGESIMAL}")
_SUSPECT: Final = re.compile(rf"(?m)(?:^|[\s\[,{{])(?:{_OCTAL}|{_SEXAGESIMAL})\s*(?:$|[\]}},#])")
_PREFIXES: Final = ("fabric_", "ansible_port", "ansible_ssh_port")


def number_traps(sources: Sequence[Path], places: Places) -> Iterator[Flaw]:
    """Returns a flaw for each such number in a variable of ours; composes only the files that a quick look suspects."""
    for file in all_files(sources):
        if _SUSPECT.search(file.read_text(encoding="utf-8", errors="replace")):
            yield from _in_node(str(file), places.root(file), "")


def _in_node(file: str, node: Any, variable: str) -> Iterator[Flaw]:
    kind = getattr(node, "id", "")
    if kind == "mapping":
        for key, value in pairs(node):
            name = str(key.value)
            yield from _in_node(file, value, variable or (name if name.startswith(_PREFIXES) else ""))
    elif kind == "sequence":
        for item in node.value:
            yield from _in_node(file, item, variable)
    elif kind == "scalar" and variable and not node.style and _TRAP.fullmatch(node.value):
        yield Flaw(
            "YAML 1.1 reads this number in base 8 or 60",
            Spot(variable=variable),
            node.value,
            "a decimal number, or text in quotes",
            place=f"{file}:{node.start_mark.line + 1}",
        )
