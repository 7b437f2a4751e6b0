"""The comparator sees what a takeover may not touch, and only that."""

import copy
from collections.abc import Callable

import pytest

from tests.brownfield.compare import canonical_lines, canonical_tables, eos_changes, port_channels, sonic_changes
from tests.brownfield.samples import Tables, tables_of

OURS = ("Ethernet0",)
BEFORE: Tables = {
    "PORT": {"Ethernet0": {"mtu": "9100", "speed": "100000"}, "Ethernet4": {"mtu": "9100"}},
    "PORT_QOS_MAP": {
        "global": {"dscp_to_tc_map": "AZURE"},
        "Ethernet0,Ethernet4": {"pfc_enable": "3,4", "scheduler": "s"},
    },
    "QUEUE": {"Ethernet0,Ethernet4|3-4": {"wred_profile": "AZURE"}},
    "WRED_PROFILE": {"AZURE": {"ecn": "ecn_all"}},
    "VLAN": {"Vlan2": {}},
    "CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m", "Ethernet4": "5m"}},
}


def _set(table: str, key: str, **row: object) -> Callable[[Tables], None]:
    def change(tables: Tables) -> None:
        tables.setdefault(table, {})[key] = row

    return change


def _split(tables: Tables) -> None:
    row = tables["PORT_QOS_MAP"].pop("Ethernet0,Ethernet4")
    tables["PORT_QOS_MAP"] |= {"Ethernet4": row, "Ethernet0": {"pfc_enable": "3", "scheduler": "s"}}


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (_split, 0),
        (_set("PORT", "Ethernet0", mtu="9216", speed="100000"), 0),
        (_set("QUEUE", "Ethernet0|6", scheduler="FABRICCTL_STRICT"), 0),
        (_set("WRED_PROFILE", "FABRICCTL_X", ecn="ecn_all"), 0),
        (_set("PFC_WD", "GLOBAL", POLL_INTERVAL="200"), 0),
        (_set("PORT", "Ethernet0", mtu="9216", speed="40000"), 1),
        (_set("PORT", "Ethernet4", mtu="9216"), 1),
        (_set("PORT_QOS_MAP", "global", dscp_to_tc_map="FABRICCTL"), 1),
        (_set("PORT_QOS_MAP", "Ethernet0,Ethernet4", pfc_enable="3", scheduler="s"), 1),
        (_set("PORT_QOS_MAP", "Ethernet0,Ethernet4", pfc_enable="3,4"), 2),
        (_set("QUEUE", "Ethernet4|6", scheduler="FABRICCTL_STRICT"), 1),
        (_set("WRED_PROFILE", "AZURE", ecn="ecn_none"), 1),
        (_set("VLAN", "Vlan3"), 1),
        (_set("CABLE_LENGTH", "AZURE", Ethernet0="40m", Ethernet4="40m"), 1),
        (lambda tables: tables.pop("VLAN"), 1),
    ],
)
def test_a_cell_that_nobody_asked_for_is_seen(change: Callable[[Tables], object], count: int) -> None:
    after = copy.deepcopy(BEFORE)
    change(after)
    assert len(sonic_changes(BEFORE, after, OURS, adopted=False)) == count


def test_device_wide_rows_count_as_asked_for_once_adopted() -> None:
    after = copy.deepcopy(BEFORE)
    after["PORT_QOS_MAP"]["global"] = {"dscp_to_tc_map": "FABRICCTL"}
    assert sonic_changes(BEFORE, after, OURS, adopted=True) == ()


def test_order_and_flat_form_do_not_count() -> None:
    nested, flat = tables_of('{"A": {"x": {"f": "1"}, "y": {}}}'), tables_of('{"A|y": {}, "A|x": {"f": "1"}}')
    assert canonical_tables(nested) == canonical_tables(flat)
    assert canonical_tables(nested) != canonical_tables(tables_of('{"A": {"x": {"f": "1"}}}'))


EOS = """\
hostname a
!
interface Ethernet1
   description one
   mtu 1500
   uc-tx-queue 3
      no priority
!
interface Ethernet2
   mtu 1500
   channel-group 3 mode active
!
qos map dscp 1 to traffic-class 3
end
"""


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("one\n   mtu 1500", "one\n   mtu 9214", 0),
        ("      no priority", "      priority strict", 0),
        ("hostname a\n!", "hostname a\nqos profile FABRICCTL-X\n   qos trust dscp", 0),
        ("one", "two", 2),
        ("1500\n   channel", "9214\n   channel", 2),
        ("hostname a", "hostname a\nqos profile FABRIC", 1),
        ("dscp 1 to", "dscp 2 to", 2),
        ("interface Ethernet1\n", "interface Ethernet1\n   shutdown\n", 1),
    ],
)
def test_a_line_that_nobody_asked_for_is_seen(old: str, new: str, count: int) -> None:
    assert EOS.replace(old, new, 1) != EOS
    assert len(eos_changes(EOS, EOS.replace(old, new, 1), ("Ethernet1",), adopted=False)) == count


def test_members_bring_their_port_channel_and_adoption_the_maps() -> None:
    assert port_channels(EOS) == {"Port-Channel3": ("Ethernet2",)}
    after = EOS.replace("dscp 1 to", "dscp 2 to") + "interface Port-Channel3\n   mtu 9214\n"
    assert eos_changes(EOS, after, ("Ethernet2",), adopted=True) == ("+ interface Port-Channel3",)
    assert canonical_lines(EOS) == canonical_lines(EOS.replace("!\n", ""))
