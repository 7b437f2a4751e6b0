"""A `Fabric` as inventory files: what `load` of them gives is the same fabric again.

What every switch says alike stands once, in `group_vars/switches.yml`; what is a default is not written. Secrets are no
part of a fabric, and none is written.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fabric.intent.emitting import document, inline
from fabric.intent.model import (
    ConnectPolicy,
    EtsShare,
    Fabric,
    Host,
    HostNic,
    Link,
    NicPolicy,
    NvmeTarget,
    RocePolicy,
    Subsystem,
    Switch,
    SwitchPort,
)
from fabric.intent.ranges import RangeError, expand
from fabric.qos.keeping import ALL_ASPECTS, Aspect
from fabric.serial import Json, to_json
from fabric.units import format_speed, natural_key

__all__ = ("write",)

_HOST_MTU: Final = 9000
_RENAMED: Final = {"ecn_kmin_bytes": "ecn_kmin", "ecn_kmax_bytes": "ecn_kmax", "mtu_bytes": "mtu"}
_CONNECT: Final = {
    "nr_io_queues": "io_queues",
    "queue_size": "queue_size",
    "keep_alive_s": "keep_alive",
    "reconnect_delay_s": "reconnect_delay",
    "ctrl_loss_tmo_s": "ctrl_loss_tmo",
    "fast_io_fail_tmo_s": "fast_io_fail_tmo",
    "iopolicy": "iopolicy",
}

_Vars = dict[str, Json]


def write(
    fabric: Fabric,
    *,
    access: Mapping[str, Mapping[str, Json]] | None = None,
    comments: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Returns relative path → text of an inventory that `load` reads as `fabric`.

    Args:
        fabric: what to write, as `load` or an import gives it.
        access: device → further variables, such as `ansible_host`.
        comments: relative path → lines to stand first in it, without their `#`.
    """
    told, more = comments or {}, access or {}
    switches = {one.name: {**more.get(one.name, {}), **_switch(one, fabric.links)} for one in fabric.switches}
    shared = _shared(list(switches.values()))
    variables: dict[str, _Vars] = {"group_vars/all/fabric.yml": _wide(fabric)}
    if shared:
        variables["group_vars/switches.yml"] = shared
    for name, own in switches.items():
        variables[f"host_vars/{name}.yml"] = {key: value for key, value in own.items() if key not in shared}
    ends = {host.name: _host(host) for host in fabric.hosts} | {one.name: _target(one) for one in fabric.targets}
    variables |= {f"host_vars/{name}.yml": {**more.get(name, {}), **own} for name, own in ends.items()}
    files = {"hosts.yml": _groups(fabric, told.get("hosts.yml", ()))}
    return files | {path: document(own, comments=told.get(path, ())) for path, own in variables.items()}


def _groups(fabric: Fabric, comments: Iterable[str]) -> str:
    lines = [f"# {one}" for one in comments]
    for group, devices in (("switches", fabric.switches), ("hosts", fabric.hosts), ("targets", fabric.targets)):
        if devices:
            lines += [f"{group}:", "  hosts:", *(f"    {inline(one.name)}:" for one in devices)]
    return "\n".join(lines) + "\n"


def _shared(devices: Sequence[_Vars]) -> _Vars:
    """Returns what all of several devices say alike."""
    if len(devices) < 2:
        return {}
    first, *others = devices
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}


def _wide(fabric: Fabric) -> _Vars:
    out: _Vars = {"fabric_name": fabric.name}
    if fabric.links:
        out["fabric_links"] = [_link(link, fabric) for link in fabric.links]
    return out


def _link(link: Link, fabric: Fabric) -> Json:
    out: _Vars = {"a": str(link.a), "b": str(link.b)}
    ends = _ends(link, fabric.switches)
    if link.cable_m is not None and all(end.cable_m == link.cable_m for end in ends):
        out["cable"] = f"{link.cable_m}m"
    if link.fec is not None and not ends:  # else the ports say it
        out["fec"] = link.fec
    return out


def _ends(link: Link, switches: Iterable[Switch]) -> list[SwitchPort]:
    named = {switch.name: switch for switch in switches}
    wanted = [(named[end.device], end.port) for end in (link.a, link.b) if end.device in named]
    return [port for switch, name in wanted for port in switch.ports if port.name == name]


# --- policy ----------------------------------------------------------------------------------------------------


def _policy(policy: RocePolicy) -> _Vars:
    out: _Vars = {}
    default = RocePolicy()
    for field in dataclasses.fields(RocePolicy):
        value = getattr(policy, field.name)
        if field.name in {"ets", "nics", "ecn_overrides"} or value == getattr(default, field.name):
            continue
        out[f"fabric_{_RENAMED.get(field.name, field.name)}"] = to_json(value)
    data = policy.data_priority
    if policy.ets != ((EtsShare(0, 50), EtsShare(data, 50)) if data else (EtsShare(0, 100),)):
        out["fabric_ets"] = {str(one.traffic_class): one.percent for one in policy.ets}
    if policy.ecn_overrides:
        out["fabric_ecn_overrides"] = [
            _said(
                speed=format_speed(one.speed_mbps) if one.speed_mbps is not None else None,
                role=one.role.value if one.role is not None else None,
                kmin=one.kmin_bytes,
                kmax=one.kmax_bytes,
                pmax_percent=one.pmax_percent,
            )
            for one in policy.ecn_overrides
        ]
    return out | {f"fabric_nic_{one.family}": _nic_policy(one) for one in policy.nics}


def _nic_policy(policy: NicPolicy) -> Json:
    out = _said(
        rp_enabled=policy.rp_enabled,
        np_enabled=policy.np_enabled,
        cnp_dscp=policy.cnp_dscp,
        cnp_priority=policy.cnp_priority,
    )
    if policy.dcqcn:
        out["dcqcn"] = {one.name: one.value for one in policy.dcqcn}
    return out


def _said(**values: Json) -> _Vars:
    return {name: value for name, value in values.items() if value is not None}


# --- switches --------------------------------------------------------------------------------------------------


def _switch(switch: Switch, links: Iterable[Link]) -> _Vars:
    out: _Vars = {"fabric_nos": switch.nos, "fabric_role": switch.role.value}
    for name, value in (("version", switch.version), ("asic", switch.asic), ("hwsku", switch.hwsku)):
        if value:
            out[f"fabric_{name}"] = value
    if switch.adopt:
        out["fabric_adopt"] = True
    if switch.features:
        out["fabric_features"] = list(switch.features)
    out |= _policy(switch.policy)
    common = {port.keep for port in switch.ports}
    keep = next(iter(common)) if len(common) == 1 else frozenset[Aspect]()
    if keep:
        out["fabric_keep"] = _aspects(keep)
    linked = {end.port: link for link in links for end in (link.a, link.b) if end.device == switch.name}
    out["fabric_ports"] = list(_ports(switch, linked, keep))
    if lags := _lags(switch):
        out["fabric_lags"] = lags
    return out


def _aspects(keep: frozenset[Aspect]) -> Json:
    return "all" if keep == ALL_ASPECTS else [one.value for one in Aspect if one in keep]


def _ports(switch: Switch, linked: Mapping[str, Link], keep: frozenset[Aspect]) -> Iterable[Json]:
    groups: dict[str, tuple[_Vars, list[str]]] = {}
    for port in switch.ports:
        link = linked.get(port.name)
        is_on_link = link is not None and link.cable_m == port.cable_m
        said = _said(
            role=port.role.value,
            speed=format_speed(port.speed_mbps),
            mtu=port.mtu_bytes if port.mtu_bytes != switch.policy.mtu_bytes else None,
            cable=f"{port.cable_m}m" if port.cable_m is not None and not is_on_link else None,
            fec=port.fec,
            lanes=port.lanes,
            breakout_of=port.breakout_of,
            vlan=port.vlan,
            routed=port.routed if port.routed is not (port.vlan is None) else None,
            keep=_aspects(port.keep) if port.keep != keep else None,
        )
        groups.setdefault(inline(said), (said, []))[1].append(port.name)
    for said, names in groups.values():
        yield {"ports": _names(names), **said}


def _names(names: Sequence[str]) -> Json:
    """Returns the names as one range, or as a list of ranges and names."""
    runs = list(_ranges(names))
    return runs[0] if len(runs) == 1 else [*runs]


def _ranges(names: Sequence[str]) -> Iterable[str]:
    """Yields ranges that make just these names in this order, each over the last number of a name."""
    rest = list(names)
    while rest:
        count = next(size for size in range(len(rest), 0, -1) if size == 1 or _range(rest[:size]) is not None)
        yield _range(rest[:count]) or rest[0]
        rest = rest[count:]


def _range(names: Sequence[str]) -> str | None:
    heads = {name.rstrip("0123456789") for name in names}
    if len(heads) != 1 or len(names) < 3:
        return None
    head = heads.pop()
    digits = [name[len(head) :] for name in names]
    if any(not one or (one[0] == "0" and one != "0") for one in digits):
        return None
    numbers = [int(one) for one in digits]
    step = numbers[1] - numbers[0]
    if step <= 0:
        return None
    text = f"{head}[{numbers[0]}:{numbers[-1]}{f':{step}' if step > 1 else ''}]"
    try:
        return text if expand(text) == tuple(names) else None
    except RangeError:
        return None


def _lags(switch: Switch) -> list[Json]:
    members: dict[tuple[str, bool], list[str]] = {}
    for port in switch.ports:
        if port.lag is not None:
            members.setdefault((port.lag, port.mlag), []).append(port.name)
    return [
        {"name": name, "members": _names(ports), **({"mlag": True} if mlag else {})}
        for (name, mlag), ports in sorted(members.items(), key=lambda item: natural_key(item[0][0]))
    ]


# --- hosts and targets -----------------------------------------------------------------------------------------


def _host(host: Host) -> _Vars:
    out: _Vars = {} if host.managed else {"fabric_managed": False}
    out |= _policy(host.policy)
    if host.nics:
        out["fabric_nics"] = [_nic(nic) for nic in host.nics]
    if host.connect:
        out["fabric_connect"] = list(host.connect)
    default = ConnectPolicy()
    connect: _Vars = {
        name: getattr(host.connect_policy, field)
        for field, name in _CONNECT.items()
        if getattr(host.connect_policy, field) != getattr(default, field)
    }
    if connect:
        out["fabric_connect_policy"] = connect
    if host.shard_profile is not None:
        out["fabric_shard_profile"] = to_json(host.shard_profile)
    return out


def _nic(nic: HostNic) -> Json:
    return _said(
        netdev=nic.netdev,
        family=nic.family,
        speed=format_speed(nic.speed_mbps),
        mtu=nic.mtu_bytes if nic.mtu_bytes != _HOST_MTU else None,
        addresses=list(nic.addresses) or None,
        vlan=nic.vlan,
    )


def _target(target: NvmeTarget) -> _Vars:
    out: _Vars = {} if target.managed else {"fabric_managed": False}
    out |= _policy(target.policy)
    if target.nics:
        out["fabric_nics"] = [_nic(nic) for nic in target.nics]
    if target.subsystems:
        out["fabric_subsystems"] = [_subsystem(one) for one in target.subsystems]
    if target.ports:
        out["fabric_nvme_ports"] = [{"traddr": one.traddr, "trsvcid": one.trsvcid} for one in target.ports]
    return out


def _subsystem(subsystem: Subsystem) -> Json:
    out: _Vars = {"nqn": subsystem.nqn}
    if subsystem.namespaces:
        out["namespaces"] = [
            {"nsid": one.nsid, **({"device": one.device} if one.device else {})} for one in subsystem.namespaces
        ]
    if subsystem.allowed_hosts:
        out["allowed_hosts"] = list(subsystem.allowed_hosts)
    return out
