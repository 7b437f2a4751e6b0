"""Which changes SONiC's generic config updater takes, by table, field, operation, ASIC and branch.

The mechanism was read in sonic-utilities, generic_config_updater/field_operation_validators.py and gu_common.py; its
data stand in `gcu_rules.json`. It judges the difference between the databases, not the patch as written: a whole table
that is added is one operation, a row one, a field one. Knows no file of the device and no command.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from fabric.lab.sonic.patch import Operation, split_pointer

__all__ = ("Asic", "GcuRules", "Scenario", "gcu_rules", "illegal")

_FILE: Final = Path(__file__).with_name("gcu_rules.json")
_VALIDATORS: Final = "generic_config_updater.field_operation_validators"
_BRANCH: Final = re.compile(r"\d{8}")
_BUILT: Final = re.compile(r"(?<!\d)20\d{6}(?!\d)")
_FECS: Final = ("rs", "fc", "none", "auto")  # DEFAULT_SUPPORTED_FECS_LIST of the same file


@dataclass(frozen=True, slots=True)
class Asic:
    """What decides beside the change.

    Attributes:
        family: ASIC family of the HwSKU. branch: the date in the build version that the updater finds, or "".
        built: the date of the image, also where the updater does not find it; decides which rules it has.
    """

    family: str
    branch: str
    built: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Fields of a table that may be changed, on families from a branch date on."""

    fields: frozenset[str]
    operations: frozenset[str]
    families: Mapping[str, str]

    def takes(self, operation: str, asic: Asic) -> bool:
        """Returns whether the operation is allowed there."""
        since = self.families.get(asic.family, "")
        return bool(since) and operation in self.operations and not (asic.branch and asic.branch < since)


class GcuRules:
    """The rules of one release.

    Args:
        data: the parsed `gcu_rules.json`.
    """

    def __init__(self, data: Mapping[str, object]) -> None:
        families = cast("Mapping[str, Mapping[str, Sequence[str]]]", data["families"])
        self._exact = {sku.lower(): name for name, skus in families["mellanox"].items() for sku in skus}
        self._inside = [(sku.lower(), name) for name, skus in families["broadcom"].items() for sku in skus]
        self._own_families = frozenset(cast("Sequence[str]", data["asic_types_that_are_families"]))
        self._never_removed = frozenset(cast("Sequence[str]", data["never_removed"]))
        wred = cast("Mapping[str, object]", data["wred_profile_before"])
        self._wred_before = cast("str", wred["branch"])
        self._wred = _scenario({**wred, "since": data["wred_profile_since"]})
        self._tables = {
            table: [_scenario(row) for row in rows]
            for table, rows in cast("Mapping[str, Sequence[Mapping[str, object]]]", data["tables"]).items()
        }

    def asic(self, *, hwsku: str, asic_type: str, build_version: str) -> Asic:
        """Returns the family and branch that the rules look at; the family is "unknown" for an unlisted HwSKU."""
        dates = [part for part in build_version.split(".") if _BRANCH.fullmatch(part)]
        built = _BUILT.findall(build_version)
        return Asic(self._family(hwsku.lower(), asic_type), dates[-1] if dates else "", built[-1] if built else "")

    def asic_type(self, hwsku: str) -> str:
        """Returns `mellanox` or `broadcom` for a listed HwSKU, else `broadcom`."""
        return "mellanox" if hwsku.lower() in self._exact else "broadcom"

    def refusal(self, operations: Sequence[Operation], asic: Asic) -> str:
        """Returns the device's words for the first operation that it refuses, "" when it takes all."""
        for one in operations:
            if one["op"] == "remove" and one["path"] in self._never_removed:
                return f"Given patch operation is invalid. Operation: remove is illegal on field: {one['path']}"
        for one in operations:
            table = split_pointer(cast("str", one["path"]))[0]
            validator = self._refuses(table, one, asic)
            if validator:
                return illegal(table, validator)
        return ""

    def _family(self, hwsku: str, asic_type: str) -> str:
        if asic_type in self._own_families:
            return asic_type
        if asic_type in {"mellanox", "vs"} and hwsku in self._exact:
            return self._exact[hwsku]
        if asic_type in {"broadcom", "vs"}:
            return next((name for sku, name in self._inside if sku in hwsku), "unknown")
        return "unknown"

    def _refuses(self, table: str, one: Operation, asic: Asic) -> str:
        """Returns the name of the function that refuses, or ""."""
        parts = split_pointer(cast("str", one["path"]))
        if table == "PORT":
            return "" if _port_is_fine(one, parts) else "port_config_update_validator"
        if table == "WRED_PROFILE" and asic.built and asic.built < self._wred_before:
            names = [name.rsplit("/", 1)[-1] for name in _fields(one, parts, with_ports=True)]
            fine = all(name in self._wred.fields for name in names) and self._wred.takes(cast("str", one["op"]), asic)
            return "" if fine else "wred_profile_config_update_validator"
        if table not in self._tables:
            return ""
        if table == "BUFFER_PROFILE":
            fine = len(parts) <= 2 or self._fields_are_fine(table, _fields(one, parts, with_ports=True), one, asic)
            return "" if fine else "buffer_profile_config_update_validator"
        fine = self._fields_are_fine(table, _fields(one, parts, with_ports=False), one, asic)
        return "" if fine else "rdma_config_update_validator"

    def _fields_are_fine(self, table: str, fields: Sequence[str], one: Operation, asic: Asic) -> bool:
        if asic.family == "unknown":
            return False
        by_end = table == "BUFFER_PROFILE"
        for name in fields:
            wanted = name.rsplit("/", 1)[-1] if by_end else name
            scenario = next((each for each in self._tables[table] if wanted in each.fields), None)
            if scenario is None or not scenario.takes(cast("str", one["op"]), asic):
                return False
        return True


@functools.cache
def gcu_rules() -> GcuRules:
    """Returns the rules, read once."""
    return GcuRules(json.loads(_FILE.read_text("utf-8")))


def illegal(table: str, validator: str) -> str:
    """Returns the words of a refused change. Source: gu_common.py validate_field_operation."""
    function = f"{_VALIDATORS}.{validator}"
    return f"Modification of {table} table is illegal- validating function {function} returned False"


def _scenario(row: Mapping[str, object]) -> Scenario:
    return Scenario(
        fields=frozenset(cast("Sequence[str]", row["fields"])),
        operations=frozenset(cast("Sequence[str]", row["operations"])),
        families=cast("Mapping[str, str]", row["since"]),
    )


def _fields(one: Operation, parts: Sequence[str], *, with_ports: bool) -> tuple[str, ...]:
    """Returns the fields that the operation touches, as the updater names them.

    The keys of an added object keep their case while the path is lowered: an added `/PFC_WD/GLOBAL` gives
    `global/POLL_INTERVAL`, which no rule lists (read in _get_fields_in_patch).
    """
    names = [part for part in parts[1:] if with_ports or not any(letter.isdigit() for letter in part)]
    path = "/".join(names).lower()
    value = one.get("value")
    if isinstance(value, dict):
        return tuple(f"{path}/{key}" if path else key for key in value)
    return (path,)


def _port_is_fine(one: Operation, parts: Sequence[str]) -> bool:
    """Speed and FEC against what the port supports; without STATE_DB: any number, and the default list."""
    if one["op"] == "remove":
        return True
    value = one.get("value")
    rows = [value] if len(parts) == 2 else list(value.values()) if isinstance(value, dict) else []
    fields = {parts[2]: value} if len(parts) == 3 else {}
    for row in rows:
        fields |= {key: found for key, found in row.items() if key in {"fec", "speed"}} if isinstance(row, dict) else {}
    fec, speed = fields.get("fec"), fields.get("speed")
    return (fec is None or str(fec).strip() in _FECS) and (speed is None or str(speed).isdigit())
