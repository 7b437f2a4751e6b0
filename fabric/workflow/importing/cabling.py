"""Cables from a list: CSV by hand, or the JSON that NetBox answers at `/api/dcim/cables/`. All problems at once.

Source of the JSON: NetBox 4, netbox/dcim/api/serializers_/cables.py (`a_terminations`, `b_terminations`, `length`,
`length_unit`) and netbox/netbox/api/serializers/generic.py (`object_type`, `object`); read, not tried on a server.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fabric.errors import IntentError, Problem
from fabric.intent.fields import DEVICE_NAME, LONGEST_CABLE_M, PORT_NAME, SPEEDS
from fabric.intent.model import Endpoint
from fabric.units import parse_speed
from fabric.workflow.importing.model import Cabled

__all__ = ("read_cabling",)

COLUMNS: Final = ("a_device", "a_port", "b_device", "b_port", "length_m", "speed")
_HEADERS: Final = frozenset({"a_device", "a device", "device"})
_METRES: Final = {"km": 1000.0, "m": 1.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}
_SHOWN: Final = 60


def read_cabling(path: Path) -> tuple[Cabled, ...]:
    """Returns the cables of a file: JSON of NetBox where it begins with a bracket, else CSV.

    Raises:
        IntentError: with every line that is wrong, or because the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise IntentError([Problem("the list of cables cannot be read", place=str(path), found=str(error))]) from error
    problems: list[Problem] = []
    rows = _netbox(text, path, problems) if text.lstrip()[:1] in {"{", "["} else _csv(text, path, problems)
    cables = tuple(rows)
    if problems:
        raise IntentError(problems)
    return cables


def _csv(text: str, path: Path, problems: list[Problem]) -> Iterator[Cabled]:
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            place = f"{path}:{reader.line_num}"
            if not any(cells) or cells[0].startswith("#") or cells[0].lower() in _HEADERS:
                continue
            if not 4 <= len(cells) <= len(COLUMNS):
                expected = ",".join(COLUMNS)
                problems.append(Problem("the line has no four to six columns", place=place, expected=expected))
                continue
            yield from _cable([*cells, "", ""][: len(COLUMNS)], place, problems)
    except csv.Error as error:
        problems.append(Problem("the line is no CSV", place=f"{path}:{reader.line_num}", found=str(error)))


def _cable(cells: Sequence[str], place: str, problems: list[Problem]) -> Iterator[Cabled]:
    before = len(problems)
    ends = [_end(cells[0], cells[1], place, problems), _end(cells[2], cells[3], place, problems)]
    length = _length(cells[4], 1.0, place, problems)
    speed = _speed(cells[5], place, problems)
    if len(problems) == before:
        yield Cabled(ends[0], ends[1], length, speed, place)


def _end(device: str, port: str, place: str, problems: list[Problem]) -> Endpoint:
    for value, pattern, what in ((device, DEVICE_NAME, "device"), (port, PORT_NAME, "port")):
        if pattern.fullmatch(value) is None:
            problems.append(Problem(f"this is no name of a {what}", place=place, found=_shown(value)))
    return Endpoint(device, port)


def _length(text: str, metres: float, place: str, problems: list[Problem]) -> int | None:
    """Returns whole metres, rounded up: a cable taken for longer loses nothing; None for an empty text."""
    if not text:
        return None
    try:
        length = math.ceil(float(text.removesuffix("m")) * metres)
    except (ValueError, OverflowError):
        length = 0
    if not 1 <= length <= LONGEST_CABLE_M:
        expected = f"metres, above 0 and at most {LONGEST_CABLE_M}"
        problems.append(Problem("this is no cable length", place=place, found=_shown(text), expected=expected))
        return None
    return length


def _speed(text: str, place: str, problems: list[Problem]) -> int | None:
    if not text:
        return None
    try:
        speed = int(parse_speed(text))
    except ValueError:
        speed = 0
    if speed not in SPEEDS:
        problems.append(Problem("this is no speed", place=place, found=_shown(text), expected="25G, 100G, 400G, …"))
        return None
    return speed


def _netbox(text: str, path: Path, problems: list[Problem]) -> Iterator[Cabled]:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(Problem("the file is no JSON", place=str(path), found=str(error)))
        return
    rows = document.get("results") if isinstance(document, Mapping) else document
    if not isinstance(rows, list):
        what = "the JSON is no list of cables"
        problems.append(Problem(what, place=str(path), expected="the answer of /api/dcim/cables/, with its `results`"))
        return
    if isinstance(document, Mapping) and document.get("next"):
        remedy = "Ask NetBox for all at once: ?limit=0."
        problems.append(Problem("the answer is one page of several", place=str(path), remedy=remedy))
    for index, row in enumerate(rows):
        yield from _netbox_cable(row, f"{path}: results[{index}]", problems)


def _netbox_cable(row: Any, place: str, problems: list[Problem]) -> Iterator[Cabled]:
    if not isinstance(row, Mapping):
        problems.append(Problem("this is no cable", place=place, found=_shown(str(row))))
        return
    ends = [_netbox_ends(row.get(f"{side}_terminations"), place, problems) for side in "ab"]
    if any(end is None for end in ends):
        return
    if any(not end for end in ends):
        return  # a power cord, a patch panel, a circuit: nothing between two interfaces
    if len(ends[0] or ()) != len(ends[1] or ()):
        what = "a cable that is split has other ends than a switch port"
        problems.append(Problem(what, place=place, remedy="List its strands in CSV."))
        return
    unit = row.get("length_unit")
    unit = unit.get("value") if isinstance(unit, Mapping) else unit
    length = row.get("length")
    if length is not None and unit not in _METRES:
        expected = ", ".join(_METRES)
        problems.append(Problem("this is no unit of length", place=place, found=_shown(str(unit)), expected=expected))
        return
    for (a_device, a_port), (b_device, b_port) in zip(ends[0] or (), ends[1] or (), strict=True):
        before = len(problems)
        a, b = _end(a_device, a_port, place, problems), _end(b_device, b_port, place, problems)
        metres = _length("" if length is None else str(length), _METRES.get(str(unit), 1.0), place, problems)
        if len(problems) == before:
            yield Cabled(a, b, metres, None, place)


def _netbox_ends(terminations: Any, place: str, problems: list[Problem]) -> list[tuple[str, str]] | None:
    """Returns (device, port) of each interface, [] when the cable ends elsewhere, None when it cannot be told."""
    if not isinstance(terminations, list):
        problems.append(Problem("the cable has no list of terminations", place=place, expected="NetBox 3.3 or later"))
        return None
    out = []
    for one in terminations:
        if not isinstance(one, Mapping) or one.get("object_type") != "dcim.interface":
            return []
        far = one.get("object")
        device = far.get("device") if isinstance(far, Mapping) else None
        names = (device.get("name") if isinstance(device, Mapping) else None, far.get("name") if far else None)
        if not all(isinstance(name, str) for name in names):
            what = "the termination does not say which device and interface it is"
            problems.append(Problem(what, place=place, remedy="Ask NetBox for whole objects, not brief ones."))
            return None
        out.append((str(names[0]), str(names[1])))
    return out


def _shown(text: str) -> str:
    return json.dumps(text[:_SHOWN])
