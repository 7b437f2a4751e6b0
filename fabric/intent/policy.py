"""From the policy variables of one device to its `RocePolicy`."""

from typing import Final

from fabric.intent.checks import policy_flaws
from fabric.intent.doors import NicPolicyDoor, PolicyDoor
from fabric.intent.flaws import Flaw
from fabric.intent.model import DcqcnSetting, EcnOverride, EtsShare, NicPolicy, RocePolicy, SwitchRole
from fabric.intent.reading import Reading

__all__ = ("make_policy",)

_RENAMED: Final = {"ecn_kmin": "ecn_kmin_bytes", "ecn_kmax": "ecn_kmax_bytes", "mtu": "mtu_bytes"}
_NIC_PREFIX: Final = "nic_"


def make_policy(reading: Reading[PolicyDoor]) -> tuple[RocePolicy, tuple[Flaw, ...]]:
    """Returns the policy with the defaults of `RocePolicy` for what was not said, and what is wrong with it."""
    door = reading.door
    plain = {
        _RENAMED.get(field, field): value
        for field, value in door
        if value is not None and not field.startswith(_NIC_PREFIX) and field not in {"ecn_overrides", "ets"}
    }
    nics = tuple(
        _nic_policy(field.removeprefix(_NIC_PREFIX), value) for field, value in door if isinstance(value, NicPolicyDoor)
    )
    policy = RocePolicy(
        **plain,
        ecn_overrides=_overrides(door),
        ets=_shares(door),
        nics=nics,
    )
    return policy, tuple(policy_flaws(door, policy, reading.failed))


def _overrides(door: PolicyDoor) -> tuple[EcnOverride, ...]:
    return tuple(
        EcnOverride(
            kmin_bytes=one.kmin,
            kmax_bytes=one.kmax,
            pmax_percent=one.pmax_percent,
            speed_mbps=one.speed,
            role=SwitchRole(one.role) if one.role is not None else None,
        )
        for one in door.ecn_overrides or ()
    )


def _shares(door: PolicyDoor) -> tuple[EtsShare, ...]:
    """Returns the shares; the default gives half to the data priority, wherever that is."""
    data = door.data_priority if door.data_priority is not None else RocePolicy().data_priority
    shares = door.ets if door.ets is not None else ({0: 50, data: 50} if data else {0: 100})
    return tuple(EtsShare(traffic_class, percent) for traffic_class, percent in sorted(shares.items()))


def _nic_policy(family: str, door: NicPolicyDoor) -> NicPolicy:
    return NicPolicy(
        family=family,
        rp_enabled=door.rp_enabled,
        np_enabled=door.np_enabled,
        cnp_dscp=door.cnp_dscp,
        cnp_priority=door.cnp_priority,
        dcqcn=tuple(DcqcnSetting(name, value) for name, value in sorted(door.dcqcn.items())),
    )
