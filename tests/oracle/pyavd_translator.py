"""From the intent to PyAVD's structured configuration, by own reading of switches.md: the judge of our EOS renderer.

Shares no code with `fabric.plan` and none with `fabric.nos`: each number is worked out here again, from the documents.
Knows only `fabric.intent.model`.
"""

from collections.abc import Iterable
from typing import Any

from fabric.intent.model import EcnOverride, Fabric, Host, NvmeTarget, RocePolicy, Switch

__all__ = ("structured_config",)

# switches.md 0: EOS, trust dscp: 0-7 → 1, 8-15 → 0, then block by block
_BLOCK_CLASS = {0: 1, 1: 0, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}
_CNP_CLASS = 6  # switches.md 0, row CNP
_MTU_MAX = 9214  # switches.md 0, row MTU
_POLL_MAX_MS = 30_000  # switches.md 1.4
_ACTION = {"drop": "drop", "alert": "notify-only"}


def structured_config(fabric: Fabric, switch: Switch) -> dict[str, Any]:
    """Returns what PyAVD needs to print the QoS of one EOS switch."""
    policy = switch.policy
    classes = _Classes(policy)
    speeds = list(dict.fromkeys(port.speed_mbps for port in switch.ports))
    config: dict[str, Any] = {
        "qos_profiles": [_profile(switch, classes, speed) for speed in speeds],
        "ethernet_interfaces": [
            {
                "name": port.name,
                "mtu": min(port.mtu_bytes, policy.mtu_bytes, _MTU_MAX),
                "service_profile": _profile_name(port.speed_mbps),
            }
            for port in switch.ports
        ],
    }
    moved = _moved(policy, classes, _cnp_dscps(fabric, policy))
    if moved:
        config["qos"] = {"map": {"dscp": moved}}
    if policy.watchdog_enabled and switch.adopt:
        config["priority_flow_control"] = {"watchdog": _timers(policy) | {"action": _ACTION[policy.watchdog_action]}}
    return config


class _Classes:
    """The three traffic classes of a policy as EOS numbers them."""

    def __init__(self, policy: RocePolicy) -> None:
        self.data = policy.data_priority
        self.cnp = _CNP_CLASS if policy.cnp_priority is None else policy.cnp_priority
        # DSCP 0 is in class 1 by default; a policy that takes 1 for something else leaves the lowest free one
        self.default = next(tc for tc in (1, 0, 2, 3, 4, 5, 6, 7) if tc not in {self.data, self.cnp})

    def place(self, named: int) -> int:
        """Returns where EOS keeps the class that a policy calls `named`: 0 is what nobody listed."""
        if named == self.data:
            return named
        if named == 0:
            return self.default
        return 0 if named == self.default else named


def _cnp_dscps(fabric: Fabric, policy: RocePolicy) -> set[int]:
    """Returns every DSCP that a CNP of this fabric may carry: the policy's, and those of NIC families in use."""
    found = {policy.cnp_dscp}
    owners: tuple[Host | NvmeTarget, ...] = (*fabric.hosts, *fabric.targets)
    for owner in owners:
        for nic in owner.nics:
            own = [one.cnp_dscp for one in owner.policy.nics if one.family == nic.family and one.cnp_dscp is not None]
            found |= set(own) or {owner.policy.cnp_dscp}
    return found


def _moved(policy: RocePolicy, classes: _Classes, cnp_dscps: Iterable[int]) -> list[str]:
    """Returns the lines of the DSCP map that differ from EOS's own, as PyAVD takes them."""
    wanted: dict[int, int] = {}
    for dscp in range(64):
        stock = _BLOCK_CLASS[dscp // 8]
        if dscp in policy.data_dscps:
            tc = classes.data
        elif dscp in cnp_dscps:
            tc = classes.cnp
        elif stock == classes.data and policy.reassign_unlisted:
            tc = classes.default
        else:
            tc = stock
        if tc != stock:
            wanted[dscp] = tc
    lines = []
    for tc in sorted(set(wanted.values())):
        members = " ".join(str(dscp) for dscp in sorted(wanted) if wanted[dscp] == tc)
        lines.append(f"{members} to traffic-class {tc}")
    return lines


def _profile_name(speed_mbps: int) -> str:
    return f"FABRICCTL-{speed_mbps // 1000}G"


def _profile(switch: Switch, classes: _Classes, speed_mbps: int) -> dict[str, Any]:
    policy = switch.policy
    pfc: dict[str, Any] = {"enabled": True, "priorities": [{"priority": classes.data, "no_drop": True}]}
    if policy.watchdog_enabled and not switch.adopt:
        pfc["watchdog"] = {
            "enabled": True,
            "action": _ACTION[policy.watchdog_action],
            "timer": _timers(policy),
        }
    return {
        "name": _profile_name(speed_mbps),
        "trust": "dscp",
        "priority_flow_control": pfc,
        "uc_tx_queues": _queues(switch, classes, speed_mbps),
    }


def _timers(policy: RocePolicy) -> dict[str, str]:
    shorter = min(policy.watchdog_detection_ms, policy.watchdog_restoration_ms)
    polling = policy.watchdog_polling_ms
    if polling is None:
        polling = min(shorter // 2, _POLL_MAX_MS)
    return {
        "timeout": f"{policy.watchdog_detection_ms / 1000:g}",
        "recovery_time": f"{policy.watchdog_restoration_ms / 1000:g}",
        "polling_interval": f"{polling / 1000:g}",
    }


def _queues(switch: Switch, classes: _Classes, speed_mbps: int) -> list[dict[str, Any]]:
    queues: dict[int, dict[str, Any]] = {}
    for share in switch.policy.ets:
        queue = queues.setdefault(
            classes.place(share.traffic_class), {"priority": "no priority", "bandwidth_percent": 0}
        )
        queue["bandwidth_percent"] += share.percent
    queues[classes.cnp] = {"priority": "priority strict"}
    if switch.policy.ecn_enabled:
        data = queues.setdefault(classes.data, {})
        data["random_detect"] = {"ecn": {"count": True, "threshold": _threshold(switch, speed_mbps)}}
    return [{"id": index, **queue} for index, queue in sorted(queues.items())]


def _threshold(switch: Switch, speed_mbps: int) -> dict[str, Any]:
    policy = switch.policy
    override = _override(policy.ecn_overrides, switch, speed_mbps)
    if override is None:
        # switches.md 5.5: thresholds are proportional to the line rate; marking starts no later than asked
        kmin = policy.ecn_kmin_bytes * speed_mbps // 100_000
        kmax = policy.ecn_kmax_bytes * speed_mbps // 100_000
        pmax = policy.ecn_pmax_percent
    else:
        kmin, kmax, pmax = override.kmin_bytes, override.kmax_bytes, override.pmax_percent
    in_kilo = kmin % 1000 == kmax % 1000 == 0
    return {
        "units": "kbytes" if in_kilo else "bytes",
        "min": kmin // 1000 if in_kilo else kmin,
        "max": kmax // 1000 if in_kilo else kmax,
        "max_probability": pmax,
        "weight": 0,
    }


def _override(overrides: Iterable[EcnOverride], switch: Switch, speed_mbps: int) -> EcnOverride | None:
    """Returns the override that fits and is most particular: speed and role, speed, role; the last of equals."""
    best: EcnOverride | None = None
    best_rank = -1
    for one in overrides:
        if one.speed_mbps not in {None, speed_mbps} or one.role not in {None, switch.role}:
            continue
        rank = 2 * (one.speed_mbps is not None) + (one.role is not None)
        if rank >= best_rank:
            best, best_rank = one, rank
    return best
