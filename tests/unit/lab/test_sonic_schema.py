"""The demands of the QoS models, with SONiC's own models as the judge."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabric.lab.sonic.configdb import Database
from fabric.lab.sonic.schema import schema

Mutation = Callable[[Any], object]


@pytest.fixture
def base(reference: Path) -> Database:
    data: Database = json.loads((reference / "sonic-yang" / "sample_config_db.json").read_text())
    return data


def put(table: str, key: str, field: str, value: object) -> Mutation:
    return lambda data: data.setdefault(table, {}).setdefault(key, {}).update({field: value})


def drop(table: str, key: str) -> Mutation:
    return lambda data: data[table].pop(key)


def drop_field(table: str, key: str, field: str) -> Mutation:
    return lambda data: data[table][key].pop(field)


WRED = "ROCE_LOSSLESS"
REJECTED: dict[str, Mutation] = {
    "unknown wred profile": put("QUEUE", "Ethernet0|3", "wred_profile", "none"),
    "unknown scheduler": put("QUEUE", "Ethernet0|3", "scheduler", "none"),
    "unknown leaf": put("PORT_QOS_MAP", "Ethernet0", "pfc_enabled", "3"),
    "pfc 8": put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "8"),
    "pfc trailing comma": put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,"),
    "dscp 64": put("DSCP_TO_TC_MAP", "ROCE", "64", "3"),
    "tc 16": put("DSCP_TO_TC_MAP", "ROCE", "26", "16"),
    "map name": put("DSCP_TO_TC_MAP", "-x", "26", "3"),
    "unknown map": put("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "none"),
    "old reference": put("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "[DSCP_TO_TC_MAP|ROCE]"),
    "unknown global map": put("PORT_QOS_MAP", "global", "dscp_to_tc_map", "none"),
    "port that is not there": put("PORT_QOS_MAP", "Ethernet96", "pfc_enable", "3"),
    "comma-joined ports": put("PORT_QOS_MAP", "Ethernet0,Ethernet4", "pfc_enable", "3"),
    "queue of no port": put("QUEUE", "Ethernet96|3", "scheduler", "scheduler.0"),
    "dynamic_th 8": put("BUFFER_PROFILE", "ingress_lossy_profile", "dynamic_th", "8"),
    "mtu 9300": put("PORT", "Ethernet0", "mtu", "9300"),
    "fec": put("PORT", "Ethernet0", "fec", "ll"),
    "pool": put("BUFFER_PROFILE", "ingress_lossy_profile", "pool", "none"),
    "profile without size": drop_field("BUFFER_PROFILE", "ingress_lossy_profile", "size"),
    "port without lanes": drop_field("PORT", "Ethernet0", "lanes"),
    "removed profile that is bound": drop("BUFFER_PROFILE", "ingress_lossy_profile"),
    "removed scheduler that is bound": drop("SCHEDULER", "scheduler.0"),
    "removed map that is bound": drop("DSCP_TO_TC_MAP", "ROCE"),
    "removed port that is used": drop("PORT", "Ethernet0"),
    "weight 0": put("SCHEDULER", "scheduler.0", "weight", "0"),
    "scheduler type": put("SCHEDULER", "scheduler.0", "type", "dwrr"),
    "pg 8": put("BUFFER_PG", "Ethernet0|8", "profile", "ingress_lossy_profile"),
    "queue 16": put("BUFFER_QUEUE", "Ethernet0|16", "profile", "egress_lossy_profile"),
    "cable": put("CABLE_LENGTH", "AZURE", "Ethernet0", "40"),
    "cable of no port": put("CABLE_LENGTH", "AZURE", "Ethernet96", "40m"),
    "watchdog action": put("PFC_WD", "Ethernet0", "action", "no-drop"),
    "watchdog below poll": put("PFC_WD", "GLOBAL", "POLL_INTERVAL", "300"),
    "watchdog detection": put("PFC_WD", "Ethernet0", "detection_time", "5001"),
    "poll interval of a port": put("PFC_WD", "Ethernet0", "POLL_INTERVAL", "200"),
    "poll interval": put("PFC_WD", "GLOBAL", "POLL_INTERVAL", "99"),
    "ecn": put("WRED_PROFILE", WRED, "ecn", "ecn_blue"),
    "probability 101": put("WRED_PROFILE", WRED, "green_drop_probability", "101"),
    "max below min": put("WRED_PROFILE", WRED, "green_max_threshold", "1"),
    "max without min": drop_field("WRED_PROFILE", WRED, "green_min_threshold"),
    "negative threshold": put("WRED_PROFILE", WRED, "green_min_threshold", "-1"),
    "bad boolean": put("WRED_PROFILE", WRED, "wred_green_enable", "yes"),
    "pattern mtu": put("LOSSLESS_TRAFFIC_PATTERN", "AZURE", "mtu", "9300"),
    "default threshold": put("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "AZURE", "default_dynamic_th", "9"),
}
ACCEPTED: dict[str, Mutation] = {
    "nothing": lambda _: None,
    "pfc off": put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", ""),
    "two priorities": put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,4"),
    "pg row missing": drop("BUFFER_PG", "Ethernet0|0"),
    "pfc on a lossy class": put("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "4"),
    "dscp to another class": put("DSCP_TO_TC_MAP", "ROCE", "26", "0"),
    "ecn none": put("WRED_PROFILE", WRED, "ecn", "ecn_none"),
    "literal NULL": put("BUFFER_PG", "Ethernet0|5", "profile", "NULL"),
    "new map": put("DSCP_TO_TC_MAP", "FABRICCTL", "26", "3"),
    "strict": put("SCHEDULER", "FABRICCTL-STRICT", "type", "STRICT"),
    "queue range": put("BUFFER_QUEUE", "Ethernet0|10-12", "profile", "egress_lossy_profile"),
    "pattern at most": put("LOSSLESS_TRAFFIC_PATTERN", "AZURE", "mtu", "9216"),
}


def mutated(base: Database, mutation: Mutation) -> Database:
    mutation(base)
    return base


@pytest.mark.parametrize("name", list(REJECTED))
def test_wrong_configuration_is_rejected(name: str, base: Database) -> None:
    assert schema().problems(mutated(base, REJECTED[name]))


@pytest.mark.parametrize("name", list(ACCEPTED))
def test_sound_configuration_is_accepted(name: str, base: Database) -> None:
    assert schema().problems(mutated(base, ACCEPTED[name])) == ()


def test_sonics_own_models_agree_on_every_mutation(reference: Path, tmp_path: Path) -> None:
    if shutil.which("yanglint") is None:
        pytest.skip("yanglint is missing: install libyang2-tools")
    text = (reference / "sonic-yang" / "sample_config_db.json").read_text()
    verdicts = {}
    for name, mutation in (REJECTED | ACCEPTED).items():
        path = tmp_path / f"{name.replace(' ', '_')}.json"
        path.write_text(json.dumps(mutated(json.loads(text), mutation)))
        verdicts[str(path)] = name in ACCEPTED
    judge = reference / "oracles" / "sonic_yang_check"
    done = subprocess.run([sys.executable, str(judge), *verdicts], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    accepted = {
        line.removeprefix("ok ").split(" ", 1)[0] for line in done.stdout.splitlines() if line.startswith("ok ")
    }
    assert {name for name, good in verdicts.items() if good != (name in accepted)} == set()


def test_voq_rows_need_a_voq_switch() -> None:
    row: Database = {"QUEUE": {"host|Asic0|Ethernet0|3": {}}, "DEVICE_METADATA": {"localhost": {"switch_type": "voq"}}}
    assert schema().problems(row) == ()
    row["DEVICE_METADATA"]["localhost"].clear()
    assert schema().problems(row)


def test_list_of_profiles_is_a_list_of_references() -> None:
    base: Database = {
        "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000"}},
        "BUFFER_POOL": {"p": {"type": "ingress", "mode": "dynamic"}},
        "BUFFER_PROFILE": {"a": {"size": "0", "pool": "p"}},
        "BUFFER_PORT_INGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": "a,b"}},
    }
    assert schema().problems(base)
    base["BUFFER_PORT_INGRESS_PROFILE_LIST"]["Ethernet0"]["profile_list"] = ["a"]
    assert schema().problems(base) == ()
    base["BUFFER_PROFILE"]["a"]["size"] = {"nested": "1"}
    assert schema().problems(base)


def test_table_without_a_model_is_not_judged() -> None:
    assert schema().problems({"FOREIGN": {"x": {"y": "z"}}}) == ()
