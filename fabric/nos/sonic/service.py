"""What SONiC's generic config updater (GCU) refuses to change in service: then only load and reload installs it.

GCU judges the difference between the configuration before and after, not our patch. Only PFC_WD is guarded among the
tables that a renderer here touches. The way of the judgement:
Source: sonic-utilities 691b1bbc4, generic_config_updater/gu_common.py validate_field_operation and
field_operation_validators.py rdma_config_update_validator_common.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from fabric.diff import Change, Op, future
from fabric.nos.base import RenderContext
from fabric.nos.sonic.names import PFC_WD
from fabric.tree import Tree

__all__ = ("refusals",)

_GLOBAL: Final = "GLOBAL"
_DATE: Final = re.compile(r"(?<!\d)\d{8}(?!\d)")
_ASIC_TYPES: Final = ("cisco-8000", "marvell-teralynx")  # families that are told by the platform, not by the HwSKU


@dataclass(frozen=True, slots=True)
class _Allowed:
    family_of: Mapping[str, str]
    watchdog_since: Mapping[str, str]


def refusals(changes: Sequence[Change], running: Tree, context: RenderContext) -> tuple[str, ...]:
    """Returns why GCU will not take these changes in service, one sentence each; () if it will, as far as is known."""
    guarded = [one for one in changes if one.path[0] == PFC_WD]
    return tuple(_reasons(guarded, running, context)) if guarded else ()


def _reasons(guarded: Sequence[Change], running: Tree, context: RenderContext) -> Iterator[str]:
    rows = running.children(PFC_WD)
    puts = [one for one in guarded if one.op is not Op.REMOVE]
    # A new row is one change with an object as its value, and each key of that object must be an allowed field. The
    # table's keys are rows; those of GLOBAL are compared in lower case with fields in upper case.
    if puts and not rows:
        yield "PFC_WD is not there yet, and GCU takes no whole table of it: install by load and reload"
    elif _GLOBAL not in rows and any(one.path[1] == _GLOBAL for one in puts):
        yield "PFC_WD|GLOBAL is not there yet, and GCU takes no whole row of it: install by load and reload"
    left = future(running, guarded).children(PFC_WD)
    if left and _GLOBAL in rows and _GLOBAL not in left:  # the table may go as a whole
        yield "GCU never removes PFC_WD|GLOBAL"
    yield from _family(running, context)


def _family(running: Tree, context: RenderContext) -> Iterator[str]:
    told = running.get(("DEVICE_METADATA", "localhost", "hwsku"))
    hwsku = told if isinstance(told, str) else context.hwsku
    kind = running.get(("DEVICE_METADATA", "localhost", "asic_type"))
    allowed = _allowed()
    family = kind if isinstance(kind, str) and kind in _ASIC_TYPES else allowed.family_of.get(hwsku)
    if family is None:
        if hwsku:
            yield f"GCU does not list the HwSKU {hwsku}: it refuses every change of PFC_WD"
        return
    since = allowed.watchdog_since.get(family)
    branch = _DATE.search(context.version)
    if since is None:
        yield f"GCU takes no change of PFC_WD on {family}"
    elif branch is not None and branch[0] < since:
        yield f"GCU takes changes of PFC_WD on {family} from branch {since} on; this is {branch[0]}"


@cache
def _allowed() -> _Allowed:
    data = json.loads(files("fabric.nos.sonic").joinpath("data", "gcu.json").read_text(encoding="utf-8"))
    family_of = {hwsku: family for family, skus in data["families"].items() for hwsku in skus}
    return _Allowed(family_of, data["watchdog_since"])
