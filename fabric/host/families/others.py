"""Broadcom, Intel, Soft-RoCE, and any NIC with DCB operations in the kernel. Source: hosts.md 4.2, 4.3, 7.1."""

from dataclasses import replace
from typing import Final

from fabric.errors import UnsupportedFeatureError
from fabric.host import names
from fabric.host.actions import Disruption, Run, Stage, Step, Write
from fabric.host.families.common import (
    CM_SETTINGS,
    DCB_SETTINGS,
    DCBX_OWNER,
    PAUSE,
    cm_reads,
    dcb_reads,
    dcqcn_old,
    dcqcn_reads,
    device,
    holds,
    number_read,
)
from fabric.host.families.link import LINK_SETTINGS, link_reads
from fabric.host.parse import ethtool, niccli, rdma
from fabric.host.settings import Driver, NicFacts, Read, Setting, Value
from fabric.intent.model import DcqcnSetting
from fabric.plan.model import HostNicPlan
from fabric.state.host import NicState

__all__ = ("BNXT_RE", "GENERIC", "IRDMA", "RDMA_MTU", "RXE", "rxe_name")

RDMA_MTU: Final = "rdma-mtu"
_PATH_MTUS: Final = (256, 512, 1024, 2048, 4096)  # InfiniBand Architecture Specification volume 1, table 95
_KERNEL_HEADERS: Final = 96  # Linux iboe_get_mtu; hosts.md 4.1

_BNXT_CC: Final = "bnxt_re's configfs folder of congestion control is from memory"
_BNXT_DCBX: Final = "bnxt refuses `dcb` until DCBX of the firmware is off in its NVM options"
_IRDMA_CC: Final = "irdma's DCQCN values in configfs are from the vendor's guide, seen on no device"
_IRDMA_FLAG: Final = "the flag fw-lldp-agent is from the vendor's guide, seen on no device"


def _dcb_all(_: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    return (*link_reads(facts), *dcb_reads(facts), *cm_reads(facts))


GENERIC: Final = Driver(
    "generic",
    "inbox",
    (DCBX_OWNER, PAUSE, *DCB_SETTINGS, *LINK_SETTINGS, *CM_SETTINGS),
    _dcb_all,
    unconfirmed=("congestion control of an unknown NIC family is not set and not read",),
)


# --- Broadcom -------------------------------------------------------------------------------------------------------


def _bnxt_cc(facts: NicFacts) -> str:
    return f"/sys/kernel/config/bnxt_re/{device(facts)}/ports/{facts.rdma_port}/cc"


def _bnxt_steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    values = {
        "ecn_enable": int(plan.np_enabled or plan.rp_enabled),
        "roce_dscp": plan.tos >> 2,
        "cnp_dscp": plan.cnp_dscp,
        "apply": 1,
    }
    folder = _bnxt_cc(facts)
    return tuple(
        Step(Write(f"{folder}/{name}", str(value)), Stage.LINK, unconfirmed=_BNXT_CC) for name, value in values.items()
    )


def _bnxt_reads(plan: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    tool = ("niccli", "--dev", str(facts.tool_index), "qos", "--ets", "--show")
    reads = (*_dcb_all(plan, facts), Read(niccli.read_niccli_qos, argv=tool))
    if not facts.rdma_device:
        return reads
    return (*reads, number_read(f"{_bnxt_cc(facts)}/cnp_dscp", "cnp_dscp", unconfirmed="bnxt_re configfs"))


BNXT_RE: Final = Driver(
    "bnxt_re",
    "inbox",
    (
        DCBX_OWNER,
        PAUSE,
        *DCB_SETTINGS,
        *LINK_SETTINGS,
        *CM_SETTINGS,
        Setting("cnp-dscp", lambda plan: plan.cnp_dscp, lambda state: state.cnp_dscp, _bnxt_steps),
    ),
    _bnxt_reads,
    unconfirmed=(_BNXT_CC, _BNXT_DCBX),
)


# --- Intel ----------------------------------------------------------------------------------------------------------


def _check_irdma(plan: HostNicPlan) -> None:
    if len(plan.pfc_priorities) > 1:
        raise UnsupportedFeatureError(
            "an E810 port pauses one traffic class only",
            where=plan.netdev,
            found=f"priorities {', '.join(str(one) for one in plan.pfc_priorities)}",
        )
    if max(plan.prio_tc) > 3:
        raise UnsupportedFeatureError(
            "an E810 port has four traffic classes", where=plan.netdev, found=str(plan.prio_tc)
        )


def _agent_steps(_: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    argv = ("ethtool", "--set-priv-flags", names.netdev(facts.port), "fw-lldp-agent", "off")
    return (Step(Run(argv), disruption=Disruption.LINK, unconfirmed=_IRDMA_FLAG),)


def _agent_back(_: HostNicPlan, facts: NicFacts, __: NicState) -> tuple[Step, ...] | None:
    argv = ("ethtool", "--set-priv-flags", names.netdev(facts.port), "fw-lldp-agent", "on")
    return (Step(Run(argv), disruption=Disruption.LINK, unconfirmed=_IRDMA_FLAG),)


def _irdma_values(plan: HostNicPlan) -> Value:
    own = ((names.setting_name(one.name), one.value) for one in plan.dcqcn)
    return (("roce_dcqcn_enable", int(plan.rp_enabled)), *own)


def _irdma_file(facts: NicFacts, name: str) -> str:
    return f"/sys/kernel/config/irdma/{device(facts)}/{name}"


def _irdma_dcqcn(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    values = (("roce_dcqcn_enable", int(plan.rp_enabled)), *((one.name, one.value) for one in plan.dcqcn))
    return _irdma_writes(values, facts)


def _irdma_back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
    switch = replace(plan, dcqcn=(DcqcnSetting("roce_dcqcn_enable", 0), *plan.dcqcn))
    old = dcqcn_old(switch, state)
    return None if old is None else _irdma_writes(tuple((one.name, one.value) for one in old.dcqcn), facts)


def _irdma_writes(values: tuple[tuple[str, int], ...], facts: NicFacts) -> tuple[Step, ...]:
    return tuple(
        Step(Write(_irdma_file(facts, names.setting_name(name)), str(value)), Stage.LINK, unconfirmed=_IRDMA_CC)
        for name, value in values
    )


def _irdma_reads(plan: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    flags = ("ethtool", "--show-priv-flags", names.netdev(facts.port))
    reads = (
        *_dcb_all(plan, facts),
        Read(ethtool.read_firmware_lldp, argv=flags, unconfirmed="ethtool --show-priv-flags"),
    )
    if not facts.rdma_device:
        return reads
    switch = replace(plan, dcqcn=(DcqcnSetting("roce_dcqcn_enable", 0), *plan.dcqcn))
    return (*reads, *dcqcn_reads(switch, lambda name: _irdma_file(facts, name), unconfirmed="irdma configfs"))


IRDMA: Final = Driver(
    "irdma",
    "inbox",
    (
        Setting("firmware-lldp", lambda _: False, lambda state: state.firmware_lldp, _agent_steps, back=_agent_back),
        DCBX_OWNER,
        PAUSE,
        *DCB_SETTINGS,
        *LINK_SETTINGS,
        *CM_SETTINGS,
        Setting("dcqcn", _irdma_values, lambda state: state.dcqcn, _irdma_dcqcn, holds, back=_irdma_back),
    ),
    _irdma_reads,
    check=_check_irdma,
    unconfirmed=(_IRDMA_CC, _IRDMA_FLAG),
)


# --- Soft-RoCE ------------------------------------------------------------------------------------------------------


def rxe_name(facts: NicFacts) -> str:
    """Returns the RDMA device on this netdev: the one that is there, else the one that we make.

    The kernel makes none on a VLAN (Linux rxe_newlink), it serves one from the netdev below.
    """
    return device(facts) if facts.rdma_device else names.rdma_device(f"rxe_{facts.port}")


def _rxe_steps(_: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    name = rxe_name(facts)
    add = ("rdma", "link", "add", name, "type", "rxe", "netdev", names.netdev(facts.port))
    return (
        Step(Run(("modprobe", "rdma_rxe")), Stage.LINK),
        Step(Run(add, unless_exists=f"/sys/class/infiniband/{name}"), Stage.LINK),
    )


def _rxe_back(_: HostNicPlan, facts: NicFacts, __: NicState) -> tuple[Step, ...] | None:
    name = rxe_name(facts)
    return (Step(Run(("rdma", "link", "delete", name), if_exists=f"/sys/class/infiniband/{name}"), Stage.LINK),)


def _with_device(setting: Setting) -> Setting:
    """Soft-RoCE's device may not be there yet when the steps are written, so its name is given."""

    def steps(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
        return setting.steps(plan, _named(facts))

    def back(plan: HostNicPlan, facts: NicFacts, state: NicState) -> tuple[Step, ...] | None:
        return setting.back(plan, _named(facts), state)

    return replace(setting, steps=steps, back=back)


def _named(facts: NicFacts) -> NicFacts:
    return replace(facts, rdma_device=rxe_name(facts))


# --- its path MTU ---------------------------------------------------------------------------------------------------


def _mtu_wanted(plan: HostNicPlan) -> Value:
    # the kernel sets 96 B aside (Linux iboe_get_mtu; hosts.md 4.1), so a plan that ignores that gets the next smaller
    fits = [mtu for mtu in _PATH_MTUS if mtu <= plan.mtu_bytes - _KERNEL_HEADERS]
    return min(plan.rdma_mtu_bytes, max(fits, default=_PATH_MTUS[0]))


def _mtu_met(wanted: Value, found: Value) -> bool:
    return isinstance(wanted, int) and isinstance(found, int) and found >= wanted


def _anew(plan: HostNicPlan, facts: NicFacts) -> tuple[Step, ...]:
    name = rxe_name(facts)
    gone = Run(("rdma", "link", "delete", name), if_exists=f"/sys/class/infiniband/{name}")
    # a new device has the kernel's defaults again
    defaults = (step for one in CM_SETTINGS for step in one.steps(plan, _named(facts)))
    return (Step(gone, Stage.LINK, Disruption.LINK), *_rxe_steps(plan, facts), *defaults)


def _rxe_reads(_: HostNicPlan, facts: NicFacts) -> tuple[Read, ...]:
    reads = (*link_reads(facts), *cm_reads(_named(facts)))
    return (*reads, Read(_read_mtu, argv=("ibv_devinfo", "-d", device(facts)))) if facts.rdma_device else reads


def _read_mtu(text: str, netdev: str) -> NicState:
    return NicState(netdev, rdma_mtu_bytes=rdma.read_devinfo(text)[0].active_mtu_bytes)


def _check_rxe(plan: HostNicPlan) -> None:
    if plan.dcqcn:
        raise UnsupportedFeatureError(
            "Soft-RoCE has no congestion control", where=plan.netdev, found=plan.dcqcn[0].name
        )


RXE: Final = Driver(
    "rxe",
    "inbox",
    (
        *LINK_SETTINGS,  # before the device: its path MTU follows the netdev's
        Setting(
            "rdma-link",
            lambda _: True,
            lambda state: state.rdma_device,
            _rxe_steps,
            lambda _, found: found is not None,
            back=_rxe_back,
        ),
        Setting(
            RDMA_MTU,
            _mtu_wanted,
            lambda state: state.rdma_mtu_bytes,
            _anew,
            _mtu_met,
            back=lambda *_: (),
            repair=True,
        ),
        *(_with_device(one) for one in CM_SETTINGS),
    ),
    _rxe_reads,
    check=_check_rxe,
)
