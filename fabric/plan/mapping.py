"""Which traffic class each DSCP falls into, and that class's queue, priority group and PFC priority.

The closure: data DSCPs, the data class, its queue, its priority group and the PFC priority carry one number on
every port. Notification packets (CNP) have a class of their own. All other DSCPs keep the network OS's default
class where it has a default map, and otherwise fall into its default class; those that the default map puts into
the data class go to the default class instead. So do those of the OS's default class where the policy gives that class
to CNPs: its queue is strict.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fabric.intent.model import RocePolicy
from fabric.plan.ledger import Ledger
from fabric.qos import DSCP_COUNT, IDENTITY, PRIORITY_COUNT, Capabilities, DscpMap, TcMap, dscp_map, dscps_of, tc_map

__all__ = ("Classes", "numbers", "plan_classes")

_CONTROL_CLASS: Final = 7  # SONiC keeps its own protocols' traffic in priority group 7 (switches.md 1.1)


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of one switch and the maps that lead there.

    Attributes:
        data: traffic class, queue, priority group and PFC priority of RoCE data.
        cnp: traffic class and queue of CNPs.
        default: traffic class of what nobody listed.
        lossy_group: priority group of everything that is not lossless.
    """

    data: int
    cnp: int
    default: int
    lossy_group: int
    dscp_to_tc: DscpMap
    tc_to_queue: TcMap
    tc_to_pg: TcMap
    pfc_to_queue: TcMap
    pfc_to_pg: TcMap

    def local(self, traffic_class: int) -> int:
        """Returns the class here of a class of the policy, where 0 means "what nobody listed".

        A network OS whose default class is 1 (EOS) has 0 and 1 change places; the data class is the same
        everywhere.
        """
        if traffic_class == self.data:
            return self.data
        return {0: self.default, self.default: 0}.get(traffic_class, traffic_class)


def plan_classes(
    policy: RocePolicy, capabilities: Capabilities, *, cnp_dscps: Iterable[int], ledger: Ledger
) -> Classes:
    """Returns the classes of one switch.

    Args:
        policy: the switch's.
        capabilities: its network OS's.
        cnp_dscps: DSCPs that CNPs carry anywhere in the fabric: NIC families differ.
        ledger: takes what cannot be met, and which DSCPs were moved.
    """
    data = policy.data_priority
    cnp = capabilities.cnp_queue.value if policy.cnp_priority is None else policy.cnp_priority
    default = _default_class(capabilities, taken=(data, cnp))
    cnps = frozenset(cnp_dscps)
    _check(policy, capabilities, data=data, cnp=cnp, cnps=cnps, ledger=ledger)
    lossy_group = 0 if data != 0 else 1
    groups = {tc: tc if tc in (data, _CONTROL_CLASS) else lossy_group for tc in range(PRIORITY_COUNT)}
    entries = _dscps(policy, capabilities, data=data, cnp=cnp, default=default, cnps=cnps, ledger=ledger)
    return Classes(
        data=data,
        cnp=cnp,
        default=default,
        lossy_group=lossy_group,
        dscp_to_tc=entries,
        tc_to_queue=IDENTITY,
        tc_to_pg=tc_map(groups),
        pfc_to_queue=IDENTITY,
        pfc_to_pg=tc_map({data: data}),
    )


def numbers(values: Iterable[int]) -> str:
    """Returns `24-25, 27-31` for ascending numbers."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _default_class(capabilities: Capabilities, *, taken: tuple[int, int]) -> int:
    """Returns the class of DSCP 0 by default, or the lowest free one when the policy needs that class."""
    stock = capabilities.dscp_default_to_tc.value
    natural = 0 if stock is None or stock[0] is None else stock[0]
    candidates: tuple[int, ...] = (natural, *range(PRIORITY_COUNT))
    return next(tc for tc in candidates if tc not in taken)


def _check(
    policy: RocePolicy, capabilities: Capabilities, *, data: int, cnp: int, cnps: frozenset[int], ledger: Ledger
) -> None:
    reserved = capabilities.reserved_queues.value
    for name, queue in (("data_priority", data), ("cnp_priority", cnp)):
        if queue in reserved:
            what = f"{capabilities.nos} keeps queue {queue} for itself"
            ledger.problem(what, at=name, found=queue, expected=f"none of {numbers(sorted(reserved))}")
    if data == cnp:
        ledger.problem("CNPs would be paused with the data they slow down", at="cnp_priority", found=cnp)
    both = sorted(cnps & set(policy.data_dscps))
    if both:
        ledger.problem("a DSCP is both data and CNP", at="data_dscps", found=numbers(both))
    if capabilities.lossless_priorities_max.value < 1:
        what = f"{capabilities.nos} has no lossless priority on this ASIC"
        ledger.problem(what, at="data_priority", found=data)


def _dscps(
    policy: RocePolicy,
    capabilities: Capabilities,
    *,
    data: int,
    cnp: int,
    default: int,
    cnps: frozenset[int],
    ledger: Ledger,
) -> DscpMap:
    stock: DscpMap = capabilities.dscp_default_to_tc.value or (None,) * DSCP_COUNT
    entries = {dscp: default if tc is None else tc for dscp, tc in enumerate(stock)}
    entries |= dict.fromkeys(cnps, cnp)
    unlisted = [dscp for dscp, tc in entries.items() if tc == data and dscp not in policy.data_dscps]
    if unlisted and policy.reassign_unlisted:
        entries |= dict.fromkeys(unlisted, default)
        ledger.note("dscp-moved", f"DSCP {numbers(unlisted)}: from the lossless class {data} to class {default}")
    elif unlisted:
        text = f"DSCP {numbers(unlisted)}: nobody listed them, and they stay in the lossless class {data}"
        ledger.note("unlisted-dscp-in-lossless-class", text)
    entries |= dict.fromkeys(policy.data_dscps, data)
    _clear_strict_class(entries, cnp=cnp, default=default, cnps=cnps, stock=stock, ledger=ledger)
    planned = dscp_map(entries)
    others = [tc for tc in range(PRIORITY_COUNT) if tc not in (data, cnp, default) and dscps_of(planned, tc)]
    if others:
        text = f"traffic classes {numbers(others)} keep their DSCPs and the scheduling of {capabilities.nos}"
        ledger.note("classes-left-alone", text)
    return planned


def _clear_strict_class(
    entries: dict[int, int], *, cnp: int, default: int, cnps: frozenset[int], stock: DscpMap, ledger: Ledger
) -> None:
    """Moves what nobody listed out of the CNP class where that is the OS's default class.

    A strict queue of best-effort traffic starves all others, CNPs among them.
    """
    crowd = [dscp for dscp, tc in entries.items() if tc == cnp and dscp not in cnps] if stock[0] == cnp else []
    if crowd:
        entries |= dict.fromkeys(crowd, default)
        ledger.note("dscp-moved", f"DSCP {numbers(crowd)}: from the strict class {cnp} of CNPs to class {default}")
