"""Link of a netdev: MTU, up, addresses; and the RDMA device on it. Knows no family.

Order: the MTU, since an RDMA device takes its path MTU from it; the link; then addresses, which give it its GIDs.
"""

from dataclasses import replace
from typing import Final

from fabric.host import names
from fabric.host.actions import Disruption, Run, Stage, Step
from fabric.host.families.common import holds, number_read
from fabric.host.parse import ip, rdma
from fabric.host.settings import NicFacts, Read, Setting
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN
from fabric.state.host import NicState

__all__ = ("LINK_SETTINGS", "link_reads")

# the netdev below a VLAN's must carry its frames; a larger MTU that somebody gave it stays
_RAISE: Final = 'test "$(cat "/sys/class/net/$1/mtu")" -ge "$2" || exec ip link set dev "$1" mtu "$2"'
_TAKE_AWAY: Final = (
    'if ip -o address show dev "$1" to "${2%/*}" | grep -q .; then exec ip address del "$2" dev "$1"; fi'
)
# until the kernel has looked for a duplicate (2 s at most), nothing can be bound to an IPv6 address
_SETTLED: Final = (
    "for look in 1 2 3 4 5 6 7 8 9 10; do "
    'ip -6 -o address show dev "$1" tentative | grep -q . || exit 0; sleep 0.5; done'
)


def _link(netdev: str, *words: str, disruption: Disruption = Disruption.NONE) -> Step:
    return Step(Run(("ip", "link", "set", "dev", names.netdev(netdev), *words)), Stage.LINK, disruption)


def _mtu_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    mtu = str(plan.mtu_bytes)
    own = _link(facts.netdev, "mtu", mtu, disruption=Disruption.LINK)
    if not facts.parent:
        return (own,)
    argv = ("sh", "-c", _RAISE, "sh", names.netdev(facts.parent), mtu)
    return (Step(Run(argv), Stage.LINK, Disruption.LINK), own)


def _mtu_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    if state.mtu_bytes is UNKNOWN:
        return None
    own = (_link(facts.netdev, "mtu", str(state.mtu_bytes), disruption=Disruption.LINK),)
    below = state.parent_mtu_bytes
    if not facts.parent or below is UNKNOWN or below >= plan.mtu_bytes:
        return own
    return (*own, _link(facts.parent, "mtu", str(below), disruption=Disruption.LINK))


def _up_steps(_: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    below = (_link(facts.port, "up"),) if facts.port != facts.netdev else ()  # else the kernel refuses the VLAN
    return (*below, _link(facts.netdev, "up"))


def _up_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    own = () if state.link_up is True else (_link(facts.netdev, "down"),)
    below = facts.port != facts.netdev and state.parent_link_up is False
    return (*own, _link(facts.port, "down")) if below else own


def _addresses(plan: HostNicPlan) -> tuple[str, ...]:
    return tuple(names.ip_interface(one) for one in plan.addresses)


def _absent(plan: HostNicPlan, state: NicState) -> tuple[str, ...]:
    there = () if state.addresses is UNKNOWN else state.addresses
    return tuple(one for one in _addresses(plan) if one not in there)


def _address_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    # replace, not add: at boot the OS may have given it already
    argv, netdev = ("ip", "address", "replace"), names.netdev(facts.netdev)
    steps = tuple(Step(Run((*argv, one, "dev", netdev)), Stage.LINK) for one in _addresses(plan))
    if not any(":" in one for one in plan.addresses):
        return steps
    return (*steps, Step(Run(("sh", "-c", _SETTLED, "sh", netdev)), Stage.LINK))


def _address_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    own = ("sh", "-c", _TAKE_AWAY, "sh", names.netdev(facts.netdev))
    return tuple(Step(Run((*own, one)), Stage.LINK) for one in _absent(plan, state))


LINK_SETTINGS: Final = (
    Setting("mtu", lambda plan: plan.mtu_bytes, lambda state: state.mtu_bytes, _mtu_steps, back=_mtu_back),
    Setting(
        "link-up",
        lambda _: True,
        lambda state: state.link_up,
        _up_steps,
        back=_up_back,
    ),
    Setting(
        "addresses",
        lambda plan: _addresses(plan) or None,
        lambda state: state.addresses,
        _address_steps,
        holds,
        back=_address_back,
        lacking=lambda plan, state: replace(plan, addresses=_absent(plan, state)),
    ),
)


def link_reads(facts: NicFacts) -> tuple[Read, ...]:
    """Returns the reads of MTU, link, addresses and RDMA device."""

    def links(text: str, netdev: str) -> NicState:
        ports = rdma.read_links(text)
        own = [port.device for place in (netdev, facts.port) for port in ports if port.netdev == place]
        return NicState(netdev, rdma_device=own[0] if own else None)

    return (
        number_read(f"/sys/class/net/{names.netdev(facts.netdev)}/mtu", "mtu_bytes"),
        Read(ip.read_address, argv=("ip", "-j", "address", "show")),
        Read(links, argv=("rdma", "-j", "link", "show")),
    )
