"""SONiC's own YANG judges what the renderer makes of generated switches. Needs the reference data and yanglint."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fabric.diff import changes
from fabric.nos.sonic import SONIC
from tests.oracle.sonic_base import BasePort, sonic_base
from tests.strategies.sonic import Case, cases

pytestmark = pytest.mark.reference

_PORTS = (BasePort("Ethernet0"), BasePort("Ethernet4", cable_m=40), BasePort("Ethernet8", 25_000))


def _judge(reference: Path, folder: Path, texts: dict[str, str]) -> dict[str, str]:
    """Returns name → the oracle's line, of files that it has to judge in one call."""
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    command = [sys.executable, str(reference / "oracles" / "sonic_yang_check")]
    run = subprocess.run(
        [*command, *(str(folder / f"{name}.json") for name in texts)], capture_output=True, text=True, check=False
    )
    if run.returncode == 2:
        if os.environ.get("CI") == "true":
            pytest.fail(run.stderr)
        pytest.skip(run.stderr.strip())
    lines = run.stdout.splitlines()
    return dict(zip(texts, lines, strict=True))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("stock_qos", [False, True])
def test_bases_are_accepted_as_they_are(reference: Path, tmp_path: Path, *, dynamic: bool, stock_qos: bool) -> None:
    base = sonic_base(_PORTS, dynamic=dynamic, stock_qos=stock_qos)
    verdicts = _judge(reference, tmp_path, {"base": json.dumps(base)})
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
    verdicts = _judge(reference, tmp_path, texts)
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
    verdicts = _judge(reference, tmp_path, texts)
    assert {name for name, line in verdicts.items() if line.startswith("rejected ")} == set(_REJECTED)
