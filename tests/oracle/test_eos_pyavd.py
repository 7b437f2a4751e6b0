"""Our EOS text against PyAVD's, for fabrics that nobody chose: the same set of (context, line).

PyAVD (aristanetworks/avd) prints what Arista's own people print. What it cannot say stands in one list.
"""

import re
from typing import Any

import pytest

from fabric.intent.model import Switch
from fabric.nos.base import RenderContext
from fabric.nos.eos import EOS
from fabric.plan import make_plan
from fabric.qos import Capabilities
from tests.oracle.pyavd_translator import structured_config
from tests.strategies.fabrics import generate

pyavd = pytest.importorskip("pyavd", reason="pyavd is not installed: pip install 'fabricctl[dev]'")

Lines = frozenset[tuple[tuple[str, ...], str]]

# kind of line → why PyAVD cannot say it
NOT_IN_PYAVD = {
    r"dcbx mode \w+": "its schema has no DCBX key (switches.md 2d)",
    r"bandwidth guaranteed \d+": "its schema takes `percent` only (tooling-facts.md)",
    r"tx-queue \d": "the context of the former on an interface; it prints `uc-tx-queue` there (tooling-facts.md)",
}
FABRICS = 200
SHARE = 20  # fabrics in one test, so that a failure names few


@pytest.mark.sweep  # the few fabrics beside are of `make test`
@pytest.mark.parametrize("first", range(0, FABRICS, SHARE))
def test_text_of_generated_fabrics_is_that_of_pyavd(first: int) -> None:
    compared = sum(_compare(seed) for seed in range(first, first + SHARE))

    assert compared >= SHARE  # every fabric has an EOS leaf


def test_text_of_a_few_fabrics_is_that_of_pyavd() -> None:
    assert sum(_compare(seed) for seed in range(1000, 1004)) >= 4


def test_few_kinds_of_line_are_beyond_pyavd() -> None:
    assert len(NOT_IN_PYAVD) <= 6


def test_a_wrong_line_is_told_apart() -> None:
    right = _lines("qos profile A\n   uc-tx-queue 3\n      bandwidth percent 50\n")
    wrong = _lines("qos profile A\n   uc-tx-queue 4\n      bandwidth percent 50\n")

    assert right != wrong
    assert (("qos profile A", "uc-tx-queue 3"), "bandwidth percent 50") in right


def _compare(seed: int) -> int:
    """Compares every EOS switch of a fabric; returns how many there were."""
    fabric = generate(seed, defaults_only=seed % 2 == 0)
    plan = make_plan(fabric, _capabilities)
    switches = [switch for switch in fabric.switches if switch.nos == "eos"]
    for switch in switches:
        planned = plan.switch(switch.name)
        assert planned is not None
        ours = EOS.render(planned.qos, RenderContext(asic=switch.asic, adopt=switch.adopt))
        assert _ours(ours.text) == _lines(_printed(structured_config(fabric, switch))), f"seed {seed}, {switch.name}"
    return len(switches)


def _capabilities(switch: Switch) -> Capabilities:
    if switch.nos == "eos":
        return EOS.capabilities(asic=switch.asic, version=switch.version)
    from fabric.nos.catalog import catalog

    return catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)


def _printed(config: dict[str, Any]) -> str:
    text = pyavd.get_device_config(config)
    assert isinstance(text, str)
    return text


def _ours(text: str) -> Lines:
    beyond = [re.compile(kind) for kind in NOT_IN_PYAVD]
    return frozenset(
        (context, line) for context, line in _lines(text) if not any(one.fullmatch(line) for one in beyond)
    )


def _lines(text: str) -> Lines:
    """Returns every line with what it is nested in, by indentation alone."""
    above: list[tuple[int, str]] = []
    found = set()
    for row in text.splitlines():
        line, indent = row.strip(), len(row) - len(row.lstrip())
        if not line or line.startswith("!"):
            continue
        above = [(depth, name) for depth, name in above if depth < indent]
        found.add((tuple(name for _, name in above), line))
        above.append((indent, line))
    return frozenset(found)
