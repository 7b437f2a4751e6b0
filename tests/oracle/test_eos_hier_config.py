"""Our remediation against hier_config 3: the same running text must become the same text.

hier_config knows no EOS defaults and undoes with `no` and the whole line, its value too, so that the inputs have no
line that EOS hides, and those that go have no value.
"""

import pytest

from fabric.diff import IntendedConfig, changes
from fabric.nos.eos import EOS
from fabric.tree import Tree

hier_config = pytest.importorskip("hier_config", reason="hier_config is not installed: pip install 'fabricctl[dev]'")

_EVERYTHING = (("**",),)

CASES = {
    "a new profile and its binding": (
        "interface Ethernet1\n   mtu 9214\n",
        """qos profile A
   priority-flow-control priority 3 no-drop
interface Ethernet1
   mtu 9214
   service-profile A
""",
    ),
    "a line of a queue less": (
        "qos profile A\n   uc-tx-queue 3\n      bandwidth percent 50\n      random-detect ecn count\n",
        "qos profile A\n   uc-tx-queue 3\n      bandwidth percent 50\n",
    ),
    "rewriting goes": ("hostname a\nqos rewrite dscp\n", "hostname a\n"),
    "all off goes": ("hostname a\npriority-flow-control all off\n", "hostname a\n"),
    "a profile less": (
        "qos profile A\n   priority-flow-control priority 3 no-drop\nhostname a\n",
        "hostname a\n",
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_remediation_has_the_lines_of_hier_config(case: str) -> None:
    running, intended = CASES[case]

    assert _ours(running, intended) == _theirs(running, intended)


def _ours(running: str, intended: str) -> set[str]:
    tree: Tree = EOS.tree(running)
    wanted = IntendedConfig(device="a", nos="eos", tree=EOS.tree(intended), owned=_EVERYTHING)
    payload = EOS.payload(changes(tree, wanted, EOS.rules).forward, tree)
    return {row for row in payload.splitlines() if row.strip() != "exit"}


def _theirs(running: str, intended: str) -> set[str]:
    configs = [hier_config.get_hconfig(hier_config.Platform.ARISTA_EOS, text) for text in (running, intended)]
    lines = hier_config.WorkflowRemediation(*configs).remediation_config.all_children_sorted()
    return {" " * (3 * (line.depth() - 1)) + line.text for line in lines}
