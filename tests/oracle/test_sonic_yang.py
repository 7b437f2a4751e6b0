"""SONiC's own YANG judges what the renderer makes of generated switches. Needs the reference data and yanglint."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fabric.diff import changes
from fabric.nos.sonic import SONIC
from tests.oracle.sonic_base import BasePort, sonic_base
from tests.oracle.yang import judge
from tests.strategies.sonic import Case, cases

pytestmark = pytest.mark.reference

_PORTS = (BasePort("Ethernet0"), BasePort("Ethernet4", cable_m=40), BasePort("Ethernet8", 25_000))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("stock_qos", [False, True])
def test_bases_are_accepted_as_they_are(reference: Path, tmp_path: Path, *, dynamic: bool, stock_qos: bool) -> None:
    base = sonic_base(_PORTS, dynamic=dynamic, stock_qos=stock_qos)
    verdicts = judge(reference, tmp_path, {"base": json.dumps(base)})
    assert verdicts["base"].startswith("ok "), verdicts


@pytest.mark.parametrize("adopt", [False, True])
def test_future_of_generated_bases_is_accepted(reference: Path, tmp_path: Path, *, adopt: bool) -> None:
    drawn: list[Case] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases(for_yang=True))
    def collect(case: Case) -> None:
        drawn.append(case)

    collect()
    texts = {f"case{number}": _future(case, adopt=adopt) for number, case in enumerate(drawn)}
    assert len(texts) >= 10
    verdicts = judge(reference, tmp_path, texts)
    assert [line for line in verdicts.values() if not line.startswith("ok ")] == []


def _future(case: Case, *, adopt: bool) -> str:
    intended = SONIC.render(case.qos, case.context)
    forward = changes(case.context.running, intended, SONIC.rules, adopt=adopt).forward
    return SONIC.apply(case.base, SONIC.payload(forward, case.context.running))


def _set(table: str, key: str, field: str, value: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        config[table][key][field] = value

    return change


def _drop(table: str, key: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        del config[table][key]

    return change


# switches.md 2a: what the YANG is known to reject, and what it accepts although it is wrong
_REJECTED = {
    "unknown-wred-profile": _set("QUEUE", "Ethernet0|3", "wred_profile", "NOBODY"),
    "unknown-leaf": _set("PORT_QOS_MAP", "Ethernet0", "pfc_enabled", "3"),
    "pfc-priority-8": _set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "8"),
    "dscp-64": _set("DSCP_TO_TC_MAP", "AZURE", "64", "0"),
    "alpha-8": _set("BUFFER_PROFILE", "ingress_lossy_profile", "dynamic_th", "8"),
    "mtu-9300": _set("PORT", "Ethernet0", "mtu", "9300"),
    "drop-probability-101": _set("WRED_PROFILE", "AZURE_LOSSLESS", "green_drop_probability", "101"),
    "max-below-min": _set("WRED_PROFILE", "AZURE_LOSSLESS", "green_max_threshold", "1"),
    "detection-below-polling": _set("PFC_WD", "Ethernet0", "detection_time", "150"),
}
_ACCEPTED = {
    "no-lossless-group": _drop("BUFFER_PG", "Ethernet0|3-4"),
    "pfc-on-another-priority": _set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "4"),
    "dscp-26-lossy": _set("DSCP_TO_TC_MAP", "AZURE", "26", "0"),
    "tc-3-to-queue-0": _set("TC_TO_QUEUE_MAP", "AZURE", "3", "0"),
    "no-headroom": _set("BUFFER_PROFILE", "pg_lossless_100000_5m_profile", "xoff", "0"),
    "no-ecn": _set("WRED_PROFILE", "AZURE_LOSSLESS", "ecn", "ecn_none"),
}


def test_the_oracle_rejects_wrong_syntax_and_accepts_wrong_meaning(reference: Path, tmp_path: Path) -> None:
    base = sonic_base(_PORTS)
    texts = {}
    for name, change in (_REJECTED | _ACCEPTED).items():
        mutant = copy.deepcopy(base)
        change(mutant)
        assert mutant != base
        texts[name] = json.dumps(mutant)
    verdicts = judge(reference, tmp_path, texts)
    assert {name for name, line in verdicts.items() if line.startswith("rejected ")} == set(_REJECTED)
