"""Which lines go together, and what does not hold together."""

from fabric.nos.eos import EOS
from fabric.nos.eos.joints import flaws, units

TEXT = """\
qos profile P
   qos trust dscp
   !
   uc-tx-queue 3
      bandwidth percent 50
!
interface Ethernet1
   mtu 9214
   service-profile P
   qos trust cos
   !
   tx-queue 3
      priority strict
!
interface Ethernet2
   service-profile MISSING
   service-policy type qos input PM
!
qos map dscp 24 26 to traffic-class 5
priority-flow-control pause watchdog default timeout 0.05
priority-flow-control pause watchdog action drop
"""


def test_profiles_and_the_qos_of_an_interface_are_whole_and_other_lines_alone() -> None:
    paths = list(EOS.tree(TEXT))
    found = units(paths)
    assert sorted(path for one in found for path in one.paths) == sorted(paths)
    assert [(one.paths[0][0], len(one.paths), one.rows) for one in found] == [
        ("qos profile P", 2, (("qos profile P",),)),
        ("interface Ethernet1", 1, ()),
        ("interface Ethernet1", 3, ()),
        ("interface Ethernet2", 2, ()),
        ("qos map dscp", 1, ()),
        ("qos map dscp", 1, ()),
        ("priority-flow-control pause watchdog default timeout", 2, ()),
    ]


def test_interface_that_names_what_is_not_there_is_told() -> None:
    found = flaws(EOS.tree(TEXT))
    assert [one.text for one in found] == [
        "interface Ethernet2 names the profile MISSING",
        "interface Ethernet2 names the policy PM",
    ]
    assert found[0].paths == (("interface Ethernet2", "service-profile"), ("qos profile MISSING",))
