"""Cables from LLDP of one end or both, and from lists: what agrees, what does not, and what is then written."""

from collections.abc import Mapping

import pytest

from fabric.intent.model import Endpoint
from fabric.nos import catalog
from fabric.nos.base import LldpSeen
from fabric.workflow.importing import Cabled
from fabric.workflow.importing.joining import Known, join

LEAF, SPINE = Endpoint("leaf1", "Ethernet0"), Endpoint("spine1", "Ethernet1/1")
DEVICES = {
    "leaf1": Known("leaf1", "LEAF1.example.net", frozenset({"Ethernet0", "Ethernet4"}), {"etp1": "Ethernet0"}),
    "spine1": Known("spine1", "spine1", frozenset({"Ethernet1/1", "Ethernet2/1"}), {}),
}


def verdicts(seen: Mapping[str, list[LldpSeen]], listed: tuple[Cabled, ...] = ()) -> tuple[list[str], set[Endpoint]]:
    cables, told = join(DEVICES, seen, listed)
    return [one.verdict for one in told], {end for cable in cables for end in (cable.a, cable.b)}


def sees(port: str, system: str, far: str, description: str = "") -> LldpSeen:
    return LldpSeen(port, system, far, description)


def test_both_ends_agree_by_alias_and_by_name_with_a_domain() -> None:
    seen = {
        "leaf1": [sees("Ethernet0", "spine1.example.net", "Ethernet1/1")],
        "spine1": [sees("Ethernet1/1", "leaf1", "etp1")],
    }
    assert verdicts(seen) == (["both-ends"], {LEAF, SPINE})


def test_one_end_is_taken_when_the_other_was_not_asked() -> None:
    assert verdicts({"spine1": [sees("Ethernet1/1", "LEAF1", "etp1")]}) == (["one-end"], {LEAF, SPINE})


@pytest.mark.parametrize(
    "answer",
    [
        [sees("Ethernet1/1", "leaf1", "Ethernet4")],  # sees another port
        [sees("Ethernet2/1", "leaf1", "etp1")],  # another port sees it
        [],  # sees nobody
    ],
)
def test_ends_that_disagree_make_no_cable(answer: list[LldpSeen]) -> None:
    seen = {"leaf1": [sees("Ethernet0", "spine1", "Ethernet1/1")], "spine1": answer}
    told, ends = verdicts(seen)
    assert set(told) == {"disagree"}
    assert ends == set()


def test_neighbour_that_is_not_imported_and_two_neighbours_are_told_apart() -> None:
    seen = {
        "leaf1": [
            sees("Ethernet0", "gpu1", "ens1"),
            sees("Ethernet4", "spine1", "Ethernet1/1"),
            sees("Ethernet4", "spine1", "Ethernet2/1"),
        ]
    }
    assert verdicts(seen) == (["unknown-neighbour", "ambiguous"], set())


def test_name_of_a_neighbour_that_is_no_name_is_not_repeated() -> None:
    _, told = join(DEVICES, {"leaf1": [sees("Ethernet0", "x\n{{ y }}\x1b[2J", "\x1b")]}, ())
    assert told[0].told == "sees a neighbour without a proper name, which is no port of an imported device"


def test_listed_cable_counts_more_than_lldp_and_says_so() -> None:
    seen = {"leaf1": [sees("Ethernet0", "spine1", "Ethernet2/1")]}
    assert verdicts(seen, (Cabled(LEAF, SPINE, 30),)) == (["disagree"], {LEAF, SPINE})
    agreed = {"leaf1": [sees("Ethernet0", "spine1", "Ethernet1/1")]}
    assert verdicts(agreed, (Cabled(LEAF, SPINE, 30),)) == (["listed"], {LEAF, SPINE})


def test_listed_cable_to_nowhere_or_used_twice_is_told() -> None:
    other = Endpoint("spine1", "Ethernet9/1")
    stranger = Endpoint("gpu1", "ens1")
    rows = (Cabled(LEAF, stranger), Cabled(LEAF, other), Cabled(LEAF, SPINE), Cabled(LEAF, SPINE))
    assert verdicts({}, rows) == (["unknown-neighbour", "disagree", "listed", "disagree"], {LEAF, SPINE})


def test_sonic_reads_lldpctl_and_its_lists_of_one() -> None:
    one = '{"eth0": {"via": "LLDP", "chassis": {"spine1": {"id": {"type": "mac", "value": "02"}}}, "port": {"id": {"type": "local", "value": "Ethernet1/1"}, "descr": "to leaf"}}}'
    seen = (LldpSeen("eth0", "spine1", "Ethernet1/1", "to leaf"),)
    sonic = catalog.get("sonic")
    assert sonic.lldp(f'{{"lldp": {{"interface": {one}}}}}') == seen
    assert sonic.lldp(f'{{"lldp": {{"interface": [{one}]}}}}') == seen
