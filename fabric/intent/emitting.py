"""Values as YAML that Ansible reads back as they are: no boolean out of a word, no template out of a text.

Written in flow style, so that each item of a list has one line. Knows no variable.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fabric.serial import Json

__all__ = ("Template", "document", "inline")

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|[0-9]+[GMm]")
# YAML 1.1 takes these for something else
_WORDS: Final = frozenset({"y", "yes", "n", "no", "true", "false", "on", "off", "null", "none", "nan", "inf"})
_TEMPLATE: Final = re.compile(r"\{[{%#]")  # where Jinja starts, whatever its end
_WIDTH: Final = 110


class Template(str):
    """A Jinja expression that Ansible shall render: written as it is, where any other text is kept from rendering."""

    __slots__ = ()


def document(variables: Mapping[str, Json], *, comments: Iterable[str] = ()) -> str:
    """Returns a file of variables: comments first, then a line each, lists and long mappings item by item."""
    lines = [f"# {one}" for one in comments]
    for name, value in variables.items():
        lines += _entry(name, value)
    return "\n".join(lines) + "\n" if lines else "---\n"


def inline(value: Json) -> str:
    """Returns a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(str(key))}: {inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(inline(one) for one in value) + "]"
    return _scalar(value)


def _entry(name: str, value: Json) -> list[str]:
    line = f"{name}: {inline(value)}"
    if isinstance(value, list) and value and (len(line) > _WIDTH or isinstance(value[0], dict)):
        return [f"{name}:", *(f"  - {inline(one)}" for one in value)]
    if isinstance(value, dict) and value and len(line) > _WIDTH:
        return [f"{name}:", *(f"  {_scalar(str(key))}: {inline(one)}" for key, one in value.items())]
    return [line]


def _scalar(value: str | float | bool | None) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    quoted = _quoted(value)
    is_meant = isinstance(value, Template)
    return f"!unsafe {quoted}" if _TEMPLATE.search(value) and not is_meant else quoted


def _quoted(value: str) -> str:
    """Returns the text in double quotes, all but printable ASCII escaped (YAML 1.2 section 5.7)."""
    escaped = "".join(
        f"\\{one}" if one in '\\"' else one if " " <= one <= "~" else f"\\U{ord(one):08X}" for one in value
    )
    return f'"{escaped}"'
