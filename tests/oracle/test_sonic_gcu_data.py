"""What the SONiC dialect holds of the updater's allow-list, against the reference copy of the upstream file."""

import json
from importlib.resources import files
from pathlib import Path


def test_families_and_branches_are_those_of_the_updater(reference: Path) -> None:
    upstream = json.loads((reference / "oracles" / "sonic_gcu_field_operation_validators.json").read_text())
    ours = json.loads(files("fabric.nos.sonic").joinpath("data", "gcu.json").read_text(encoding="utf-8"))
    lists = upstream["helper_data"]["rdma_config_update_validator"]
    (scenario,) = upstream["tables"]["PFC_WD"]["validator_data"]["rdma_config_update_validator"].values()
    assert ours["families"] == lists["mellanox_asics"] | lists["broadcom_asics"]
    assert ours["watchdog_since"] == scenario["platforms"]
