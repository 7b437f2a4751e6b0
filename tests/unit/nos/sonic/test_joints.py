"""Which rows go together, and what each kind of flaw looks like."""

import pytest

from fabric.nos.sonic.joints import flaws, units
from fabric.tree import Path, Tree


def groups(*paths: Path) -> list[set[Path]]:
    return [set(one.paths) for one in units(paths)]


def tree(nested: dict[str, object]) -> Tree:
    return Tree.from_nested(nested)


def test_fields_of_a_row_go_together_but_those_of_ports_and_cables() -> None:
    row = [("WRED_PROFILE", "a", "green_min_threshold"), ("WRED_PROFILE", "a", "green_max_threshold")]
    assert groups(*row, ("PORT", "Ethernet0", "mtu"), ("PORT", "Ethernet0", "fec")) == [
        set(row),
        {("PORT", "Ethernet0", "mtu")},
        {("PORT", "Ethernet0", "fec")},
    ]
    assert [one.rows for one in units([*row, ("CABLE_LENGTH", "AZURE", "Ethernet0")])] == [(("WRED_PROFILE", "a"),), ()]


def test_rows_of_one_queue_go_together_in_whatever_form_their_keys_are() -> None:
    joined, single, span, other = (
        ("QUEUE", key, "scheduler") for key in ("Ethernet0,Ethernet4|3", "Ethernet4|3", "Ethernet0|2-3", "Ethernet0|5")
    )
    assert groups(joined, other, single, span) == [{joined, single, span}, {other}]


def test_what_a_port_pauses_goes_with_its_headroom_and_polling_with_the_times_it_bounds() -> None:
    pauses, headroom = ("PORT_QOS_MAP", "Ethernet0", "pfc_enable"), ("BUFFER_PG", "Ethernet0|3", "profile")
    first, second = ("PFC_WD", "Ethernet0", "action"), ("PFC_WD", "Ethernet4", "action")
    polling = ("PFC_WD", "GLOBAL", "POLL_INTERVAL")
    assert groups(pauses, headroom, first, second) == [{pauses, headroom}, {first}, {second}]
    assert groups(first, second, polling) == [{first, second, polling}]


PORT = {"PORT": {"Ethernet0": {"speed": "1", "lanes": "1"}}}


@pytest.mark.parametrize(
    ("nested", "said"),
    [
        ({"QUEUE": {"Ethernet0|3": {"scheduler": "[SCHEDULER|s]"}}}, "QUEUE|Ethernet0|3 names SCHEDULER|s"),
        ({"BUFFER_PG": {"Ethernet0|3": {"profile": "p"}}}, "BUFFER_PG|Ethernet0|3 names BUFFER_PROFILE|p"),
        (
            {"BUFFER_PORT_INGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": ["p"]}}},
            "BUFFER_PORT_INGRESS_PROFILE_LIST|Ethernet0 names BUFFER_PROFILE|p",
        ),
        ({"PFC_WD": {"Ethernet8": {"action": "drop"}}}, "PFC_WD|Ethernet8 names PORT|Ethernet8"),
        (
            {"QUEUE": {"Ethernet0|3": {}, "Ethernet0|3-4": {}}},
            "QUEUE|Ethernet0|3 and QUEUE|Ethernet0|3-4 are about one and the same",
        ),
        (
            {"WRED_PROFILE": {"w": {"green_min_threshold": "2", "green_max_threshold": "1"}}},
            "WRED_PROFILE|w: green_max_threshold is below green_min_threshold",
        ),
        (
            {"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"detection_time": "100"}}},
            "PFC_WD|Ethernet0: detection_time is below the polling interval",
        ),
        (
            {"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}},
            "Ethernet0 pauses priority 3, and its group 3 has no headroom",
        ),
    ],
)
def test_flaw_is_told(nested: dict[str, object], said: str) -> None:
    assert [one.text for one in flaws(tree({**PORT, **nested}))] == [said]


def test_what_holds_together_has_no_flaw() -> None:
    whole = {
        **PORT,
        "BUFFER_PROFILE": {"lossless": {"xoff": "9"}},
        "BUFFER_PG": {"Ethernet0|3-4": {"profile": "NULL"}, "Ethernet0|5": {"profile": "lossless"}},
        "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"m": {"6": "5"}},
        "PORT_QOS_MAP": {"global": {}, "Ethernet0": {"pfc_enable": "3,4,6", "pfc_to_pg_map": "m"}},
        "QUEUE": {"CPU|1": {}, "leaf1|asic0|Ethernet0|3": {}},
        "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}, "Ethernet0": {"detection_time": "200"}},
    }
    assert flaws(tree(whole)) == ()


def test_configuration_without_ports_says_nothing_of_ports() -> None:
    assert flaws(tree({"PFC_WD": {"Ethernet8": {"action": "drop"}}})) == ()
