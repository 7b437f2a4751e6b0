"""What SONiC's generic config updater (GCU) refuses to change in service: then only load and reload installs it.

GCU judges the difference between the configuration before and after, not our patch. Among the tables that a renderer
here touches it guards PFC_WD, and until its release of 2026 WRED_PROFILE. The way of the judgement:
Source: sonic-utilities 691b1bbc4, generic_config_updater/gu_common.py validate_field_operation and
field_operation_validators.py rdma_config_update_validator_common; 2e9e81c1b (#4219) for WRED_PROFILE before it.
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
from fabric.nos.sonic.names import PFC_WD, WRED_PROFILE
from fabric.nos.sonic.render_queues import needs_stock_wred
from fabric.tree import Tree

__all__ = ("refusals",)

_GLOBAL: Final = "GLOBAL"
_CURVE_FIELDS: Final = frozenset({"green_min_threshold", "green_max_threshold", "green_drop_probability"})
_DATE: Final = re.compile(r"(?<!\d)\d{8}(?!\d)")
_ASIC_TYPES: Final = ("cisco-8000", "marvell-teralynx")  # families that are told by the platform, not by the HwSKU


@dataclass(frozen=True, slots=True)
class _Allowed:
    family_of: Mapping[str, str]
    watchdog_since: Mapping[str, str]
    curve_since: Mapping[str, str]


def refusals(changes: Sequence[Change], running: Tree, context: RenderContext) -> tuple[str, ...]:
    """Returns why GCU will not take these changes in service, one sentence each; () if it will, as far as is known."""
    watchdogs = [one for one in changes if one.path[0] == PFC_WD]
    curves = [one for one in changes if one.path[0] == WRED_PROFILE]
    return (
        *(_watchdog_reasons(watchdogs, running, context) if watchdogs else ()),
        *(_curve_reasons(curves, running, context) if curves and needs_stock_wred(context.version) else ()),
    )


def _curve_reasons(curves: Sequence[Change], running: Tree, context: RenderContext) -> Iterator[str]:
    if any(one.op is not Op.REPLACE or one.path[-1] not in _CURVE_FIELDS for one in curves):
        yield "GCU of this branch changes nothing of a WRED profile but the green thresholds and probability"
    yield from _family(WRED_PROFILE, _allowed().curve_since, running, context)


def _watchdog_reasons(guarded: Sequence[Change], running: Tree, context: RenderContext) -> Iterator[str]:
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
    yield from _family(PFC_WD, _allowed().watchdog_since, running, context)


def _family(table: str, since_by_family: Mapping[str, str], running: Tree, context: RenderContext) -> Iterator[str]:
    told = running.get(("DEVICE_METADATA", "localhost", "hwsku"))
    hwsku = told if isinstance(told, str) else context.hwsku
    kind = running.get(("DEVICE_METADATA", "localhost", "asic_type"))
    family = kind if isinstance(kind, str) and kind in _ASIC_TYPES else _allowed().family_of.get(hwsku)
    if family is None:
        if hwsku:
            yield f"GCU does not list the HwSKU {hwsku}: it refuses every change of {table}"
        return
    since = since_by_family.get(family)
    branch = _DATE.search(context.version)
    if since is None:
        yield f"GCU takes no change of {table} on {family}"
    elif branch is not None and branch[0] < since:
        yield f"GCU takes changes of {table} on {family} from branch {since} on; this is {branch[0]}"


@cache
def _allowed() -> _Allowed:
    data = json.loads(files("fabric.nos.sonic").joinpath("data", "gcu.json").read_text(encoding="utf-8"))
    family_of = {hwsku: family for family, skus in data["families"].items() for hwsku in skus}
    return _Allowed(family_of, data["watchdog_since"], data["curve_since"])
