"""NVIDIA ConnectX, with the kernel's own driver and with OFED's. Source: hosts.md 4.3."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fabric.errors import HostError, UnsupportedFeatureError
from fabric.host import names
from fabric.host.actions import Disruption, Run, Stage, Step, Write
from fabric.host.families.common import (
    CM_SETTINGS,
    DCB_SETTINGS,
    DCBX_OWNER,
    PAUSE,
    cm_reads,
    dcb_reads,
    dcqcn_back,
    dcqcn_reads,
    dcqcn_wanted,
    device,
    found_classes,
    holds,
    number_read,
    planned_back,
    planned_classes,
    same_classes,
)
from fabric.host.families.link import LINK_SETTINGS, link_reads
from fabric.host.parse import mlnx_qos
from fabric.host.parse.text import PRIORITIES
from fabric.host.settings import Driver, NicFacts, Read, Setting, Value
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NicState

__all__ = ("INBOX", "OFED")

_FIRMWARE: Final = "the firmware mask of RoCE congestion control was not set on a device"
_DEBUGFS: Final = "the debugfs congestion parameters were not written on a device"
_OFED_ECN: Final = "OFED's ecn folder was seen in samples only, not written on a device"
_MLNX_QOS: Final = "mlnx_qos was seen to print, not to set"


# --- points of congestion control, shared ---------------------------------------------------------------------------


def _cc_wanted(plan: HostNicPlan) -> Value:
    return plan.pfc_priorities, plan.np_enabled, plan.rp_enabled


def _cc_found(state: NicState) -> Known[Value]:
    if state.np_priorities is UNKNOWN or state.rp_priorities is UNKNOWN:
        return UNKNOWN
    return state.np_priorities, state.rp_priorities


def _cc_agrees(wanted: Value, found: Value) -> bool:
    """Whether both points are as wanted on the data's priorities; other priorities may be as they are."""
    if not isinstance(wanted, tuple) or not isinstance(found, tuple):
        return False
    priorities, np_enabled, rp_enabled = wanted
    np_found, rp_found = found
    return all((one in np_found, one in rp_found) == (np_enabled, rp_enabled) for one in priorities)


# --- inbox ----------------------------------------------------------------------------------------------------------


def _cc_params(facts: NicFacts) -> str:
    return f"/sys/kernel/debug/mlx5/{names.pci_address(facts.pci)}/cc_params"


def _parameter(name: str) -> str:
    """The firmware's name for the port of this PCI function, `ROCE_CC_PRIO_MASK_P1`."""
    return f"ROCE_CC_PRIO_MASK_P{name}"


def _firmware_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return _mask_steps(plan.pfc_priorities if plan.np_enabled else (), facts)


def _mask_steps(priorities: tuple[int, ...], facts: NicFacts) -> tuple[Step, ...]:
    mask = sum(1 << priority for priority in priorities)
    pci = names.pci_address(facts.pci)
    name = _parameter(str(int(pci[-1]) + 1))
    argv = ("mstconfig", "-y", "-d", pci, "set", f"{name}={mask}")
    return (Step(Run(argv), disruption=Disruption.FIRMWARE_RESET, unconfirmed=_FIRMWARE),)


def _check_inbox(plan: HostNicPlan) -> None:
    if plan.np_enabled != plan.rp_enabled:
        raise UnsupportedFeatureError(
            "the kernel's mlx5 driver turns reaction and notification point on or off together",
            where=plan.netdev,
            found=f"rp_enabled {plan.rp_enabled}, np_enabled {plan.np_enabled}",
            remedy="Make them equal, or use the vendor's driver.",
        )


def _read_mask(text: str, netdev: str) -> NicState:
    """Reads `ROCE_CC_PRIO_MASK_P1  255` from `mstconfig q`; columns differ, so only name and last number count."""
    found = re.search(r"ROCE_CC_PRIO_MASK_P\d\s+(?:.*\s)?(0x[0-9a-fA-F]+|\d+)\s*$", text, re.MULTILINE)
    if found is None:
        raise HostError("the firmware shows no ROCE_CC_PRIO_MASK")
    mask = int(found[1], 0)
    on = tuple(priority for priority in range(PRIORITIES) if mask >> priority & 1)
    return NicState(netdev, np_priorities=on, rp_priorities=on)


def _inbox_reads(plan: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    reads = (*link_reads(facts), *dcb_reads(facts), *cm_reads(facts))
    if not facts.pci:
        return reads
    pci = names.pci_address(facts.pci)
    name = _parameter(str(int(pci[-1]) + 1))
    return (
        *reads,
        number_read(f"{_cc_params(facts)}/np_cnp_dscp", "cnp_dscp", unconfirmed="mlx5 debugfs cc_params"),
        number_read(f"{_cc_params(facts)}/np_cnp_prio", "cnp_priority", unconfirmed="mlx5 debugfs cc_params"),
        Read(_read_mask, argv=("mstconfig", "-d", pci, "q", name), unconfirmed="mstconfig q"),
        *dcqcn_reads(plan, lambda name: f"{_cc_params(facts)}/{name}", unconfirmed="mlx5 debugfs cc_params"),
    )


def _firmware_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    return None if state.np_priorities is UNKNOWN else _mask_steps(state.np_priorities, facts)


def _dcqcn_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return tuple(_debugfs(names.setting_name(one.name), one.value, facts) for one in plan.dcqcn)


def _dscp_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (_debugfs("np_cnp_dscp", plan.cnp_dscp, facts),)


def _priority_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (_debugfs("np_cnp_prio", plan.cnp_priority, facts),)


def _debugfs(name: str, value: int, facts: NicFacts) -> Step:
    return Step(Write(f"{_cc_params(facts)}/{name}", str(value)), unconfirmed=_DEBUGFS)


INBOX: Final = Driver(
    "mlx5",
    "inbox",
    (
        DCBX_OWNER,
        PAUSE,
        *DCB_SETTINGS,
        Setting("cc-points", _cc_wanted, _cc_found, _firmware_steps, _cc_agrees, back=_firmware_back),
        Setting(
            "cnp-dscp",
            lambda plan: plan.cnp_dscp,
            lambda state: state.cnp_dscp,
            _dscp_steps,
            back=planned_back(_dscp_steps, cnp_dscp=lambda state: state.cnp_dscp),
        ),
        Setting(
            "cnp-priority",
            lambda plan: plan.cnp_priority,
            lambda state: state.cnp_priority,
            _priority_steps,
            back=planned_back(_priority_steps, cnp_priority=lambda state: state.cnp_priority),
        ),
        Setting(
            "dcqcn",
            dcqcn_wanted,
            lambda state: state.dcqcn,
            _dcqcn_steps,
            holds,
            back=dcqcn_back(_dcqcn_steps),
        ),
        *LINK_SETTINGS,
        *CM_SETTINGS,
    ),
    _inbox_reads,
    check=_check_inbox,
    unconfirmed=(_FIRMWARE, _DEBUGFS),
)


# --- OFED -----------------------------------------------------------------------------------------------------------


def _ecn(facts: NicFacts) -> str:
    return f"/sys/class/net/{names.netdev(facts.port)}/ecn"


def _mlnx_qos(facts: NicFacts, *words: str) -> Step:
    return Step(Run(("mlnx_qos", "-i", names.netdev(facts.port), *words)), unconfirmed=_MLNX_QOS)


def _list(values: Iterable[object]) -> str:
    return ",".join(str(value) for value in values)


def _ofed_ets(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    tcs = {plan.prio_tc[members[0]]: (kind, percent) for members, kind, percent in planned_classes(plan)}
    rows = [tcs.get(tc, ("strict", 0)) for tc in range(PRIORITIES)]
    words = ("-p", _list(plan.prio_tc), "-s", _list(kind for kind, _ in rows), "-t", _list(share for _, share in rows))
    return (_mlnx_qos(facts, *words),)


def _ofed_ets_back(_: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    prio_tc, tsa, percent = state.prio_tc, state.tsa, state.ets_percent
    if prio_tc is UNKNOWN or tsa is UNKNOWN or percent is UNKNOWN or not all(tsa):
        return None
    return (_mlnx_qos(facts, "-p", _list(prio_tc), "-s", _list(tsa), "-t", _list(percent)),)


def _ofed_map(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return tuple(_mlnx_qos(facts, "--dscp2prio", f"set,{dscp},{priority}") for dscp, priority in plan.dscp_to_priority)


def _ofed_map_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    found = {} if state.dscp_to_priority is UNKNOWN else dict(state.dscp_to_priority)
    planned = [dscp for dscp, _ in plan.dscp_to_priority]
    if any(dscp not in found for dscp in planned):
        return None
    return _ofed_map(replace(plan, dscp_to_priority=tuple((dscp, found[dscp]) for dscp in planned)), facts)


def _ofed_pfc(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (_mlnx_qos(facts, "--pfc", _list(int(one in plan.pfc_priorities) for one in range(PRIORITIES))),)


def _ofed_points_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    np_on, rp_on = state.np_priorities, state.rp_priorities
    if np_on is UNKNOWN or rp_on is UNKNOWN:
        return None
    return tuple(
        Step(Write(f"{_ecn(facts)}/{point}/enable/{priority}", str(int(priority in on))), unconfirmed=_OFED_ECN)
        for point, on in (("roce_np", np_on), ("roce_rp", rp_on))
        for priority in plan.pfc_priorities
    )


def _ofed_cnp_dscp(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (Step(Write(f"{_ecn(facts)}/roce_np/cnp_dscp", str(plan.cnp_dscp)), unconfirmed=_OFED_ECN),)


def _ofed_cnp_priority(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (Step(Write(f"{_ecn(facts)}/roce_np/cnp_802p_prio", str(plan.cnp_priority)), unconfirmed=_OFED_ECN),)


def _ofed_class(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return (Step(Write(_traffic_class(facts), str(plan.tos)), Stage.LINK, unconfirmed=_OFED_ECN),)


def _ofed_class_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    old = state.traffic_class  # how "none" is written back was seen nowhere
    return None if old is UNKNOWN or old is None else _ofed_class(replace(plan, tos=old), facts)


def _ofed_points(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    points = (("roce_np", plan.np_enabled), ("roce_rp", plan.rp_enabled))
    return tuple(
        Step(Write(f"{_ecn(facts)}/{point}/enable/{priority}", str(int(on))), unconfirmed=_OFED_ECN)
        for point, on in points
        for priority in plan.pfc_priorities
    )


def _ofed_dcqcn(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    return tuple(
        Step(Write(f"{_ecn(facts)}/{_ofed_file(one.name)}", str(one.value)), unconfirmed=_OFED_ECN)
        for one in plan.dcqcn
    )


def _ofed_file(name: str) -> str:
    point, _, rest = names.setting_name(name).partition("_")
    if point not in {"np", "rp"} or not rest:
        raise HostError("OFED keeps DCQCN values by point", found=name, expected="a name that starts with np_ or rp_")
    return f"roce_{point}/{rest}"


def _traffic_class(facts: NicFacts) -> str:
    return f"/sys/class/infiniband/{device(facts)}/tc/{facts.rdma_port}/traffic_class"


def _read_traffic_class(text: str, netdev: str) -> NicState:
    found = re.search(r"Global tclass=(\d+)", text)
    return NicState(netdev, traffic_class=int(found[1]) if found else None)


def _ofed_reads(plan: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    netdev = names.netdev(facts.port)
    reads = (
        *link_reads(facts),
        Read(mlnx_qos.read_mlnx_qos, argv=("mlnx_qos", "-i", netdev)),
        dcb_reads(facts)[-1],  # 802.3x pause
        Read(_read_points, argv=("grep", "-r", "", f"{_ecn(facts)}/roce_np/enable", f"{_ecn(facts)}/roce_rp/enable")),
        number_read(f"{_ecn(facts)}/roce_np/cnp_dscp", "cnp_dscp"),
        number_read(f"{_ecn(facts)}/roce_np/cnp_802p_prio", "cnp_priority", unconfirmed="OFED cnp_802p_prio"),
        *dcqcn_reads(plan, lambda name: f"{_ecn(facts)}/{_ofed_file(name)}", unconfirmed="OFED DCQCN values"),
        *cm_reads(facts),
    )
    return (*reads, Read(_read_traffic_class, path=_traffic_class(facts))) if facts.rdma_device else reads


def _read_points(text: str, netdev: str) -> NicState:
    """Reads `…/roce_np/enable/3:1`, one line a file, as `grep -r ""` prints them."""
    rows = re.findall(r"/roce_(np|rp)/enable/(\d):([01])", text)
    if not rows:
        raise HostError("the ecn folder shows no priority")
    on = {
        point: tuple(sorted(int(prio) for own, prio, value in rows if own == point and value == "1"))
        for point in ("np", "rp")
    }
    return NicState(netdev, np_priorities=on["np"], rp_priorities=on["rp"])


OFED: Final = Driver(
    "mlx5",
    "ofed",
    (
        Setting(
            "dcbx-owner",
            lambda _: "os",
            lambda state: state.dcbx_owner,
            lambda _, facts: (_mlnx_qos(facts, "-d", "os"),),
            back=lambda _, facts, __: (_mlnx_qos(facts, "-d", "fw"),),
        ),
        PAUSE,
        Setting(
            "trust",
            lambda _: "dscp",
            lambda state: state.trust,
            lambda _, facts: (_mlnx_qos(facts, "--trust", "dscp"),),
            back=lambda _, facts, state: (_mlnx_qos(facts, "--trust", str(state.trust)),),
        ),
        Setting(
            "dscp-map",
            lambda plan: plan.dscp_to_priority,
            lambda state: state.dscp_to_priority,
            _ofed_map,
            holds,
            back=_ofed_map_back,
        ),
        Setting("ets", planned_classes, found_classes, _ofed_ets, same_classes, back=_ofed_ets_back),
        Setting(
            "pfc",
            lambda plan: plan.pfc_priorities,
            lambda state: state.pfc_priorities,
            _ofed_pfc,
            back=planned_back(_ofed_pfc, pfc_priorities=lambda state: state.pfc_priorities),
        ),
        Setting("cc-points", _cc_wanted, _cc_found, _ofed_points, _cc_agrees, back=_ofed_points_back),
        Setting(
            "cnp-dscp",
            lambda plan: plan.cnp_dscp,
            lambda state: state.cnp_dscp,
            _ofed_cnp_dscp,
            back=planned_back(_ofed_cnp_dscp, cnp_dscp=lambda state: state.cnp_dscp),
        ),
        Setting(
            "cnp-priority",
            lambda plan: plan.cnp_priority,
            lambda state: state.cnp_priority,
            _ofed_cnp_priority,
            back=planned_back(_ofed_cnp_priority, cnp_priority=lambda state: state.cnp_priority),
        ),
        Setting("dcqcn", dcqcn_wanted, lambda state: state.dcqcn, _ofed_dcqcn, holds, back=dcqcn_back(_ofed_dcqcn)),
        *LINK_SETTINGS,
        *CM_SETTINGS,
        Setting(
            "traffic-class",
            lambda plan: plan.tos,
            lambda state: state.traffic_class,
            _ofed_class,
            back=_ofed_class_back,
        ),
    ),
    _ofed_reads,
    unconfirmed=(_MLNX_QOS, _OFED_ECN),
)
