"""Writes the parts of docs/explanation/nvmeof.md that the code's own tables say: `python -m tests.doc_nvmeof`.

A part stands between `<!-- from the code: NAME -->` and `<!-- end -->`. `filled` gives the page as it must be; a test
compares.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from fabric.engine.nvmeof.errors import status_error
from fabric.engine.nvmeof.host.bringup import AFTER
from fabric.engine.nvmeof.host.refusals import rejection
from fabric.engine.nvmeof.host.states import CONTROLLER, QUEUE, SLOT, draw
from fabric.engine.nvmeof.target.profile import NVMET, SPDK, Refusal, TargetProfile
from fabric.engine.nvmeof.wire.cm import CmStatus
from fabric.engine.nvmeof.wire.status import DISPOSITIONS, text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "nvmeof.md"
PART = re.compile(r"(?ms)^<!-- from the code: (?P<name>[\w-]+) -->\n.*?^<!-- end -->$")
LEFT_OUT = ("name",)


def mermaid(diagram: str) -> str:
    return f"```mermaid\n{diagram}```"


def steps() -> str:
    """Returns the two bring-ups as one line each."""
    rows = []
    for is_discovery, after in AFTER.items():
        (one,) = set(after) - set(after.values())
        way = [one]
        while (one := after.get(way[-1], way[-1])) is not way[-1]:
            way.append(one)
        rows.append(f"| {'discovery' if is_discovery else 'I/O'} | {' → '.join(way)} |")
    return "\n".join(["| controller | steps |", "|---|---|", *rows])


def statuses() -> str:
    """Returns what becomes of each status that has a row of its own."""
    rows = [
        f"| {text(code).split(' (')[0]} | 0x{code:03x} | {kind} | `{type(status_error(code)).__name__}` |"
        for code, kind in sorted(DISPOSITIONS.items())
    ]
    return "\n".join(["| status | code | disposition | error |", "|---|---|---|---|", *rows])


def rejections() -> str:
    """Returns what becomes of each reject of a connection."""
    rows = []
    for status in CmStatus:
        error = rejection(status, "")
        rows.append(
            f"| {status.value} | {error.what} | `{type(error).__name__}` | {error.remedy or 'none: tried again'} |"
        )
    return "\n".join(["| reject | meaning | error | remedy |", "|---|---|---|---|", *rows])


def profiles() -> str:
    """Returns where the two profiles of the soft target differ."""
    rows = []
    for one in fields(TargetProfile):
        left, right = getattr(NVMET, one.name), getattr(SPDK, one.name)
        if left != right and one.name not in LEFT_OUT:
            rows.append(f"| `{one.name}` | {said(left)} | {said(right)} |")
    return "\n".join(["| | nvmet | SPDK |", "|---|---|---|", *rows])


def said(value: object) -> str:
    """Returns a value of a profile for a cell."""
    if isinstance(value, Refusal):
        field = f", field {value.field.name}" if value.field else ""
        return f"{text(value.status)}{field}"
    words = {True: "yes", False: "no", None: "none"}
    return words[value] if value is None or isinstance(value, bool) else f"{value}"


PARTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "controller": lambda: mermaid(draw(CONTROLLER)),
        "bring-up": steps,
        "queue": lambda: mermaid(draw(QUEUE)),
        "slot": lambda: mermaid(draw(SLOT)),
        "status": statuses,
        "rejections": rejections,
        "profiles": profiles,
    }
)


def filled(page: str) -> str:
    """Returns the page with every part as the code says it now."""
    return PART.sub(lambda part: f"<!-- from the code: {part['name']} -->\n{PARTS[part['name']]()}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
