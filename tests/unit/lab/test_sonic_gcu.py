"""The field rules of the generic config updater, against the updater's own data file."""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabric.lab.sonic.gcu import Asic, gcu_rules

ORACLE = "sonic_gcu_field_operation_validators.json"
BRANCHES = (
    "",
    "20181031",
    "20191130",
    "20201231",
    "20220531",
    "20221105",
    "20240531",
    "20241205",
    "20251110",
    "20260601",
)
OPERATIONS = ("add", "remove", "replace", "move")


@pytest.fixture(scope="session")
def oracle(reference: Path) -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((reference / "oracles" / ORACLE).read_text())
    return data


def listed(oracle: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields (vendor, family, HwSKU) of every listed HwSKU."""
    for group, families in oracle["helper_data"]["rdma_config_update_validator"].items():
        for family, skus in families.items():
            yield from ((group.removesuffix("_asics"), family, sku) for sku in skus)


def expected(oracle: Mapping[str, Any], table: str, field: str, operation: str, family: str, branch: str) -> bool:
    """Returns what the data file says, read straight from it."""
    scenarios = oracle["tables"][table]["validator_data"]["rdma_config_update_validator"]
    for scenario in scenarios.values():
        if field in scenario["fields"]:
            since = scenario["platforms"].get(family, "")
            return bool(since) and operation in scenario["operations"] and (not branch or branch >= since)
    return False


def test_every_listed_hwsku_has_the_family_of_the_file(oracle: Mapping[str, Any]) -> None:
    for vendor, family, sku in listed(oracle):
        found = gcu_rules().asic(hwsku=sku, asic_type=vendor, build_version="")
        # the updater looks a Broadcom SKU up as a part of the device's: the first family that has one wins
        parts = [name for other, name, part in listed(oracle) if other == "broadcom" and part.lower() in sku.lower()]
        assert found.family == (family if vendor == "mellanox" else parts[0]), sku


PATHS = {
    "PFC_WD": ("/PFC_WD/Ethernet0/{}", ("action", "detection_time", "restoration_time", "pfc_stat_history", "bogus")),
    "BUFFER_PROFILE": (
        "/BUFFER_PROFILE/pg_lossless_100000_40m_profile/{}",
        ("dynamic_th", "xoff", "packet_discard_action", "xon", "size", "pool"),
    ),
    "BUFFER_POOL": ("/BUFFER_POOL/ingress_lossless_pool/{}", ("size", "xoff", "mode")),
}


@pytest.mark.parametrize("table", list(PATHS))
def test_field_changes_are_judged_as_the_file_says(table: str, oracle: Mapping[str, Any]) -> None:
    form, fields = PATHS[table]
    families = sorted({family for _, family, _ in listed(oracle)} | {"cisco-8000", "marvell-teralynx", "unknown"})
    seen = set()
    for field, operation, family, branch in itertools.product(fields, OPERATIONS, families, BRANCHES):
        change = {"op": operation, "path": form.format(field), "value": "1"}
        verdict = gcu_rules().refusal([change], Asic(family, branch)) == ""
        assert verdict == expected(oracle, table, field, operation, family, branch), (field, operation, family, branch)
        seen.add(verdict)
    assert seen == ({False} if table == "BUFFER_POOL" else {False, True})


LATEST = Asic("spc3", "20260601")


@pytest.mark.parametrize(
    ("change", "is_taken"),
    [
        ({"op": "add", "path": "/PFC_WD/Ethernet0", "value": {"action": "drop", "detection_time": "200"}}, True),
        ({"op": "add", "path": "/PFC_WD/Ethernet0", "value": {"action": "drop", "bogus": "200"}}, False),
        ({"op": "remove", "path": "/PFC_WD/Ethernet0"}, True),
        ({"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "100"}, True),
        ({"op": "remove", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL"}, False),
        ({"op": "remove", "path": "/PFC_WD/GLOBAL"}, False),
        ({"op": "remove", "path": "/LOOPBACK_INTERFACE/Loopback0"}, False),
        # the keys of an added object keep their case, the rule is in lower case (read in _get_fields_in_patch)
        ({"op": "add", "path": "/PFC_WD/GLOBAL", "value": {"POLL_INTERVAL": "200"}}, False),
        # a whole table: its rows are taken for fields
        ({"op": "add", "path": "/PFC_WD", "value": {"Ethernet0": {"action": "drop"}}}, False),
        ({"op": "remove", "path": "/PFC_WD"}, True),
        ({"op": "add", "path": "/BUFFER_PROFILE/p", "value": {"size": "1"}}, True),
        ({"op": "remove", "path": "/BUFFER_PROFILE/p"}, True),
        ({"op": "add", "path": "/BUFFER_POOL/p", "value": {"size": "1"}}, False),
        ({"op": "remove", "path": "/BUFFER_POOL/p"}, False),
        ({"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}, True),
        ({"op": "replace", "path": "/PORT/Ethernet0/fec", "value": "rs"}, True),
        ({"op": "replace", "path": "/PORT/Ethernet0/fec", "value": "ll"}, False),
        ({"op": "replace", "path": "/PORT/Ethernet0/speed", "value": "fast"}, False),
        ({"op": "add", "path": "/PORT/Ethernet0", "value": {"fec": "ll"}}, False),
        ({"op": "add", "path": "/PORT", "value": {"Ethernet0": {"fec": "ll"}}}, False),
        ({"op": "remove", "path": "/PORT/Ethernet0"}, True),
        ({"op": "add", "path": "/DSCP_TO_TC_MAP/X", "value": {"26": "3"}}, True),
        ({"op": "replace", "path": "/WRED_PROFILE/X/ecn", "value": "ecn_all"}, True),
        ({"op": "add", "path": "/QUEUE/Ethernet0|3", "value": {}}, True),
        ({"op": "add", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "5m"}, True),
    ],
)
def test_rows_and_tables_are_judged(change: dict[str, object], *, is_taken: bool) -> None:
    assert (gcu_rules().refusal([change], LATEST) == "") is is_taken


def test_refusal_is_in_the_updaters_words() -> None:
    change = {"op": "replace", "path": "/PFC_WD/Ethernet0/action", "value": "drop"}
    assert gcu_rules().refusal([change], Asic("unknown", "")) == (
        "Modification of PFC_WD table is illegal- validating function "
        "generic_config_updater.field_operation_validators.rdma_config_update_validator returned False"
    )


@pytest.mark.parametrize(
    ("hwsku", "asic_type", "build", "expected_asic"),
    [
        ("ACS-MSN4700", "mellanox", "20240531.10", Asic("spc3", "20240531", "20240531")),
        ("acs-msn4700", "vs", "master.123-abc", Asic("spc3", "")),
        ("Force10-S6100-ITPAC", "broadcom", "", Asic("th", "")),
        ("ACS-MSN4700", "broadcom", "", Asic("unknown", "")),
        ("Cisco-8102-C64", "cisco-8000", "", Asic("cisco-8000", "")),
        ("anything", "marvell-teralynx", "", Asic("marvell-teralynx", "")),
        ("Seastone-DX010-25-50", "broadcom", "", Asic("th", "")),
        ("Accton-AS9716", "broadcom", "", Asic("unknown", "")),
        ("Accton-AS9716", "innovium", "", Asic("unknown", "")),
    ],
)
def test_family_and_branch(hwsku: str, asic_type: str, build: str, expected_asic: Asic) -> None:
    assert gcu_rules().asic(hwsku=hwsku, asic_type=asic_type, build_version=build) == expected_asic


def test_vendor_follows_from_a_listed_hwsku() -> None:
    assert gcu_rules().asic_type("ACS-MSN2700") == "mellanox"
    assert gcu_rules().asic_type("Force10-S6100") == "broadcom"
