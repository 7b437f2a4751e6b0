"""Settings and reads that several NIC families share: DCB through `dcb`, MTU, pause, the CM's default type of service.

Source: hosts.md 4.2. Knows no family.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from fabric.errors import HostError
from fabric.host import names
from fabric.host.actions import Disruption, MakeFolder, Run, Stage, Step, Write
from fabric.host.parse import dcb, ethtool
from fabric.host.parse.text import PRIORITIES, whole
from fabric.host.settings import NicFacts, Read, Setting, Value
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState

__all__ = (
    "CM_SETTINGS",
    "DCBX_OWNER",
    "DCB_SETTINGS",
    "PAUSE",
    "EtsClass",
    "cm_folder",
    "cm_reads",
    "dcb_reads",
    "dcqcn_back",
    "dcqcn_old",
    "dcqcn_reads",
    "dcqcn_wanted",
    "device",
    "found_classes",
    "holds",
    "number_read",
    "planned_back",
    "planned_classes",
    "same_classes",
)

ROCE_V2: Final = "RoCE v2"  # Linux drivers/infiniband/core/cache.c gid_type_str
_NO_SAMPLE_DCBX: Final = "dcb dcbx show"
_OWNER_BACK: Final = "DCBX was not given back to a NIC's firmware"

EtsClass: TypeAlias = tuple[tuple[int, ...], str, int]
"""(priorities, `ets` or `strict`, percent): a traffic class without its number, which NICs choose differently."""


def device(facts: NicFacts) -> str:
    """Returns the NIC's RDMA device.

    Raises:
        HostError: it has none, or the name is none.
    """
    if not facts.rdma_device:
        remedy = "Load the RDMA driver of this NIC, or name its family."
        raise HostError("this netdev has no RDMA device", where=facts.netdev, remedy=remedy)
    return names.rdma_device(facts.rdma_device)


def number_read(path: str, field: str, *, unconfirmed: str = "") -> Read:
    """Returns the read of a file that holds one number, as that field of the state."""

    def parse(text: str, netdev: str) -> NicState:
        fields: Mapping[str, int] = {field: whole(text.strip(), path)}
        return NicState(netdev, **fields)  # type: ignore[arg-type]  # the caller names a field of numbers

    return Read(parse, path=path, unconfirmed=unconfirmed)


def planned_back(
    steps: Callable[[HostNicPlan, NicFacts], tuple[Step, ...]], **fields: Callable[[NicState], object]
) -> Callable[[HostNicPlan, NicFacts, NicState], tuple[Step, ...] | None]:
    """Returns the way back of a setting whose steps write a value of the plan: the same steps with the old value.

    Args:
        steps: the setting's own.
        fields: name in the plan → its old value, UNKNOWN where it was not read.
    """

    def back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
        old = {name: found(state) for name, found in fields.items()}
        if any(value is UNKNOWN for value in old.values()):
            return None
        return steps(replace(plan, **old), facts)  # type: ignore[arg-type]  # the caller names fields of their type

    return back


def dcqcn_old(plan: HostNicPlan, state: NicState) -> HostNicPlan | None:
    """Returns the plan with the values that stood, None when one of them was not read."""
    found = {} if state.dcqcn is UNKNOWN else dict(state.dcqcn)
    if any(one.name not in found for one in plan.dcqcn):
        return None
    return replace(plan, dcqcn=tuple(replace(one, value=found[one.name]) for one in plan.dcqcn))


def dcqcn_back(
    steps: Callable[[HostNicPlan, NicFacts], tuple[Step, ...]],
) -> Callable[[HostNicPlan, NicFacts, NicState], tuple[Step, ...] | None]:
    """Returns the way back of the DCQCN values."""

    def back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
        old = dcqcn_old(plan, state)
        return None if old is None else steps(old, facts)

    return back


def dcqcn_wanted(plan: HostNicPlan) -> Value:
    """Returns the planned DCQCN values as (name, value), None when there is none."""
    return tuple((one.name, one.value) for one in plan.dcqcn) or None


def dcqcn_reads(plan: HostNicPlan, path: Callable[[str], str], *, unconfirmed: str) -> tuple[Read, ...]:
    """Returns the reads of the planned DCQCN values, one file each at `path(name)`."""
    return tuple(_dcqcn_read(names.setting_name(one.name), path, unconfirmed) for one in plan.dcqcn)


def _dcqcn_read(name: str, path: Callable[[str], str], unconfirmed: str) -> Read:
    def parse(text: str, netdev: str) -> NicState:
        return NicState(netdev, dcqcn=((name, whole(text.strip(), name)),))

    return Read(parse, path=path(name), unconfirmed=unconfirmed)


# --- 802.3x pause ---------------------------------------------------------------------------------------------------


def _pause_steps(_: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    argv = ("ethtool", "-A", names.netdev(facts.port), "rx", "off", "tx", "off")
    # 79: ethtool's "nothing to change" was 79 before 5.x, ethtool.c do_spause
    return (Step(Run(argv, accepted=(0, 79)), disruption=Disruption.LINK),)


def _pause_found(state: NicState) -> Known[Value]:
    if state.global_pause_rx is UNKNOWN or state.global_pause_tx is UNKNOWN:
        return UNKNOWN
    return state.global_pause_rx, state.global_pause_tx


def _pause_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    if state.global_pause_rx is UNKNOWN or state.global_pause_tx is UNKNOWN:
        return None
    rx, tx = ("on" if one else "off" for one in (state.global_pause_rx, state.global_pause_tx))
    argv = ("ethtool", "-A", names.netdev(facts.port), "rx", rx, "tx", tx)
    return (Step(Run(argv, accepted=(0, 79)), disruption=Disruption.LINK),)


PAUSE: Final = Setting("global-pause", lambda _: (False, False), _pause_found, _pause_steps, back=_pause_back)


# --- DCB ------------------------------------------------------------------------------------------------------------


def _dcb(facts: NicFacts, table: str, verb: str, *words: str) -> Step:
    return Step(Run(("dcb", table, verb, "dev", names.netdev(facts.port), *words)))


def planned_classes(plan: HostNicPlan) -> tuple[EtsClass, ...]:
    """Returns the traffic classes that the plan uses: CNPs strict, the rest sharing 100 %.

    Drivers refuse shares that do not sum to 100 (Linux mlx5 en_dcbnl.c), so what the strict class leaves is dealt
    out in proportion, the largest share taking the remainder.
    """
    members: dict[int, list[int]] = {}
    for priority, tc in enumerate(plan.prio_tc):
        members.setdefault(tc, []).append(priority)
    strict = plan.prio_tc[plan.cnp_priority]
    shared = {tc: plan.ets_percent[tc] for tc in members if tc != strict}
    if not sum(shared.values()):
        shared = dict.fromkeys(shared, 1)
    total = sum(shared.values())
    percent = {tc: share * 100 // total for tc, share in shared.items()}
    if percent:
        percent[max(percent, key=lambda tc: (percent[tc], -tc))] += 100 - sum(percent.values())
    kinds = {tc: "strict" if tc == strict else "ets" for tc in members}
    return tuple((tuple(members[tc]), kinds[tc], percent.get(tc, 0)) for tc in sorted(members))


def found_classes(state: NicState) -> Known[tuple[EtsClass, ...]]:
    """Returns the traffic classes that carry a priority, UNKNOWN when a part was not read."""
    prio_tc, tsa, percent = state.prio_tc, state.tsa, state.ets_percent
    if prio_tc is UNKNOWN or tsa is UNKNOWN or percent is UNKNOWN:
        return UNKNOWN
    return tuple(
        (
            tuple(priority for priority, own in enumerate(prio_tc) if own == tc),
            tsa[tc],
            percent[tc] if tsa[tc] == "ets" else 0,
        )
        for tc in sorted(set(prio_tc))
    )


def same_classes(wanted: Value, found: Value) -> bool:
    """Returns whether both have the same traffic classes, whatever their numbers."""
    return isinstance(wanted, tuple) and isinstance(found, tuple) and sorted(wanted) == sorted(found)


def holds(wanted: Value, found: Value) -> bool:
    """Returns whether every planned entry is among the found ones; others, DSCPs say, may be as they are."""
    return isinstance(wanted, tuple) and isinstance(found, tuple) and set(wanted) <= set(found)


def _ets_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    tcs = {plan.prio_tc[members[0]]: (kind, percent) for members, kind, percent in planned_classes(plan)}
    prio_tc = [f"{priority}:{tc}" for priority, tc in enumerate(plan.prio_tc)]
    tsa = [f"{tc}:{tcs.get(tc, ('strict', 0))[0]}" for tc in range(PRIORITIES)]
    shares = [f"{tc}:{tcs.get(tc, ('strict', 0))[1]}" for tc in range(PRIORITIES)]
    words = ("willing", "off", "prio-tc", *prio_tc, "tc-tsa", *tsa, "tc-bw", *shares)
    return (_dcb(facts, "ets", "set", *words),)


def _ets_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    prio_tc, tsa, percent = state.prio_tc, state.tsa, state.ets_percent
    if prio_tc is UNKNOWN or tsa is UNKNOWN or percent is UNKNOWN or not all(tsa):
        return None
    willing = () if state.ets_willing is UNKNOWN else ("willing", "on" if state.ets_willing else "off")
    tables = (("prio-tc", prio_tc), ("tc-tsa", tsa), ("tc-bw", percent))
    words = [word for name, row in tables for word in (name, *(f"{at}:{value}" for at, value in enumerate(row)))]
    return (_dcb(facts, "ets", "set", *willing, *words),)


def _app_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    entries = (f"{dscp}:{priority}" for dscp, priority in plan.dscp_to_priority)
    return (_dcb(facts, "app", "replace", "dscp-prio", *entries),)


def _app_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    if state.dscp_to_priority is UNKNOWN:
        return None
    # `del` of an entry that is not there fails, so all go and the old ones come back
    old = [f"{dscp}:{priority}" for dscp, priority in state.dscp_to_priority]
    again = (_dcb(facts, "app", "add", "dscp-prio", *old),) if old else ()
    return (_dcb(facts, "app", "flush", "dscp-prio"), *again)


def _pfc_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    on = (f"{priority}:on" for priority in plan.pfc_priorities)
    return (_dcb(facts, "pfc", "set", "prio-pfc", "all:off", *on),)


DCBX_OWNER: Final = Setting(
    "dcbx-owner",
    lambda _: "os",
    lambda state: state.dcbx_owner,
    lambda _, facts: (_dcb(facts, "dcbx", "set", "host", "ieee"),),
    back=lambda _, facts, __: (replace(_dcb(facts, "dcbx", "set", "lld-managed", "ieee"), unconfirmed=_OWNER_BACK),),
)

DCB_SETTINGS: Final = (
    Setting(
        "dscp-map",
        lambda plan: plan.dscp_to_priority,
        lambda state: state.dscp_to_priority,
        _app_steps,
        holds,
        back=_app_back,
    ),
    Setting("ets", planned_classes, found_classes, _ets_steps, same_classes, back=_ets_back),
    Setting(
        "pfc",
        lambda plan: plan.pfc_priorities,
        lambda state: state.pfc_priorities,
        _pfc_steps,
        back=planned_back(_pfc_steps, pfc_priorities=lambda state: state.pfc_priorities),
    ),
)


def dcb_reads(facts: NicFacts) -> tuple[Read, ...]:
    """Returns the reads of PFC, DSCP map, classes, buffers, DCBX owner and 802.3x pause."""
    netdev = names.netdev(facts.port)

    def show(table: str, parse: Callable[[str, str], NicState], *, flag: str = "-j", unconfirmed: str = "") -> Read:
        return Read(parse, argv=("dcb", *flag.split(), table, "show", "dev", netdev), unconfirmed=unconfirmed)

    return (
        show("pfc", dcb.read_pfc),
        show("ets", dcb.read_ets),
        show("app", dcb.read_app, flag="-N -j"),
        show("buffer", dcb.read_buffer),
        show("dcbx", dcb.read_dcbx, unconfirmed=_NO_SAMPLE_DCBX),
        Read(ethtool.read_pause, argv=("ethtool", "-a", netdev), unconfirmed="ethtool -a"),
    )


# --- RDMA connection manager ----------------------------------------------------------------------------------------


def cm_folder(facts: NicFacts) -> str:
    """Returns the configfs folder of the CM's defaults of this device. Source: Linux cma_configfs.c."""
    return f"/sys/kernel/config/rdma_cm/{device(facts)}"


def _cm_steps(facts: NicFacts, file: str, text: str) -> tuple[Step, ...]:
    folder = cm_folder(facts)
    return (
        Step(Run(("modprobe", "rdma_cm")), Stage.LINK),
        Step(MakeFolder(folder), Stage.LINK),
        Step(Write(f"{folder}/ports/{facts.rdma_port}/{file}", text), Stage.LINK),
    )


def _tos_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return _cm_steps(facts, "default_roce_tos", str(plan.tos))


CM_SETTINGS: Final = (
    Setting(
        "roce-mode",
        lambda _: ROCE_V2,
        lambda state: state.default_mode,
        lambda _, facts: _cm_steps(facts, "default_roce_mode", ROCE_V2),
        back=lambda _, facts, state: _cm_steps(facts, "default_roce_mode", str(state.default_mode)),
    ),
    Setting(
        "default-tos",
        lambda plan: plan.tos,
        lambda state: state.default_tos,
        _tos_steps,
        back=planned_back(_tos_steps, tos=lambda state: state.default_tos),
    ),
)


def cm_reads(facts: NicFacts) -> tuple[Read, ...]:
    """Returns the reads of the CM's defaults; none without an RDMA device. The folder is there once it was made."""
    if not facts.rdma_device:
        return ()
    folder = f"{cm_folder(facts)}/ports/{facts.rdma_port}"
    mode = Read(lambda text, netdev: NicState(netdev, default_mode=text.strip()), path=f"{folder}/default_roce_mode")
    return mode, number_read(f"{folder}/default_roce_tos", "default_tos")
