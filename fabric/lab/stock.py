"""Configurations of switches as they come: the seeds of the demo fabric, before anybody provisioned RoCE.

A SONiC switch after `config qos reload` (DSCP 26 in lossy TC 1, PFC on 3 and 4) and an EOS switch without QoS.
Both carry things that are none of our business (users, routes, ports outside the intent), so that a run shows
that they stay. Knows neither renderers nor parsers.

Source: sonic-buildimage files/build_templates/qos_config.j2 and buffers_config.j2 for what the SONiC template binds;
pool and profile sizes are plausible, not of a HwSKU.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ("StockPort", "eos_config", "sonic_config")

_IDENTITY: Final = {str(index): str(index) for index in range(8)}
_DSCP_EXCEPTIONS: Final = {"3": "3", "4": "4", "5": "2", "8": "0", "46": "5", "48": "6"}  # qos_config.j2, map AZURE
_WRED_COLOURS: Final = ("green", "yellow", "red")


@dataclass(frozen=True, slots=True)
class StockPort:
    """One port as the cabling plan has it.

    Attributes:
        cable_m: the length that the device was told, 5 where nobody measured.
    """

    name: str
    speed_mbps: int
    mtu_bytes: int = 9100
    cable_m: int = 5


def sonic_config(hostname: str, hwsku: str, ports: Sequence[StockPort], *, dynamic_buffers: bool = False) -> str:
    """Returns a config_db.json of a SONiC switch with the stock QoS template on every port."""
    names = [port.name for port in ports]
    tables: dict[str, dict[str, object]] = {
        "DEVICE_METADATA": {"localhost": _metadata(hostname, hwsku, dynamic=dynamic_buffers)},
        "PORT": {port.name: _sonic_port(index, port) for index, port in enumerate(ports)},
        "CABLE_LENGTH": {"AZURE": {port.name: f"{port.cable_m}m" for port in ports}},
        "LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|192.0.2.1/32": {}},
        "NTP_SERVER": {"192.0.2.123": {}},
        "STATIC_ROUTE": {"default|198.51.100.0/24": {"nexthop": "192.0.2.254", "ifname": "", "distance": "0"}},
        **_stock_maps(),
        **_stock_buffers(names, ports, dynamic=dynamic_buffers),
        "PORT_QOS_MAP": {"global": {"dscp_to_tc_map": "AZURE"}, **{name: _stock_binding() for name in names}},
        "QUEUE": {f"{name}|{queue}": row for name in names for queue, row in _stock_queues().items()},
    }
    return json.dumps(tables, indent=4) + "\n"


def eos_config(hostname: str, model: str, ports: Sequence[StockPort]) -> str:
    """Returns a running-config of an EOS switch without QoS: routed ports, nothing lossless."""
    lines = [
        f"! device: {hostname} ({model}, EOS-4.32.2F)",
        "!",
        "transceiver qsfp default-mode 4x10G",
        "!",
        "service routing protocols model multi-agent",
        "!",
        f"hostname {hostname}",
        "!",
        "ntp server 192.0.2.123",
        "!",
        "spanning-tree mode mstp",
        "!",
    ]
    for port in ports:
        lines += [f"interface {port.name}", f"   description port of {hostname}", "   no switchport", "!"]
    lines += [
        "interface Management1",
        "   ip address 192.0.2.10/24",
        "!",
        "ip routing",
        "!",
        "ip route 198.51.100.0/24 192.0.2.254",
        "!",
        "end",
    ]
    return "\n".join(lines) + "\n"


def _metadata(hostname: str, hwsku: str, *, dynamic: bool) -> dict[str, str]:
    return {
        "hostname": hostname,
        "hwsku": hwsku,
        "platform": "x86_64-lab-r0",
        "type": "LeafRouter",
        "mac": "02:00:5e:00:00:01",
        "bgp_asn": "65001",
        "buffer_model": "dynamic" if dynamic else "traditional",
    }


def _sonic_port(index: int, port: StockPort) -> dict[str, str]:
    lanes = 8 if port.speed_mbps >= 400_000 else 4  # 400G over eight 50G lanes, IEEE 802.3bs
    return {
        "lanes": ",".join(str(index * 8 + lane) for lane in range(lanes)),
        "alias": f"etp{index + 1}",
        "index": str(index + 1),
        "speed": str(port.speed_mbps),
        "mtu": str(port.mtu_bytes),
        "fec": "rs",
        "pfc_asym": "off",
        "admin_status": "up",
    }


def _stock_maps() -> dict[str, dict[str, object]]:
    dscp = {str(code): _DSCP_EXCEPTIONS.get(str(code), "1") for code in range(64)}
    wred: dict[str, str] = {"ecn": "ecn_all"}
    for colour in _WRED_COLOURS:
        wred[f"wred_{colour}_enable"] = "true"
        wred[f"{colour}_min_threshold"] = "1048576"
        wred[f"{colour}_max_threshold"] = "2097152"
        wred[f"{colour}_drop_probability"] = "5"
    return {
        "DSCP_TO_TC_MAP": {"AZURE": dscp},
        "TC_TO_QUEUE_MAP": {"AZURE": _IDENTITY},
        "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {**dict.fromkeys("01256", "0"), "3": "3", "4": "4", "7": "7"}},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": _IDENTITY},
        "SCHEDULER": {
            "scheduler.0": {"type": "DWRR", "weight": "14"},
            "scheduler.1": {"type": "DWRR", "weight": "15"},
        },
        "WRED_PROFILE": {"AZURE_LOSSLESS": wred},
    }


def _stock_binding() -> dict[str, str]:
    return {
        "dscp_to_tc_map": "AZURE",
        "tc_to_queue_map": "AZURE",
        "tc_to_pg_map": "AZURE",
        "pfc_to_queue_map": "AZURE",
        "pfc_enable": "3,4",
        "pfcwd_sw_enable": "3,4",
    }


def _stock_queues() -> dict[str, dict[str, str]]:
    queues = {str(queue): {"scheduler": "scheduler.0"} for queue in (0, 1, 2, 5, 6)}
    for queue in ("3", "4"):
        queues[queue] = {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
    return queues


def _stock_buffers(names: Sequence[str], ports: Sequence[StockPort], *, dynamic: bool) -> dict[str, dict[str, object]]:
    profiles: dict[str, object] = {
        "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
        "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"},
        "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "9216", "dynamic_th": "7"},
    }
    lossless = {port.name: "NULL" for port in ports}
    if not dynamic:  # what buffermgrd writes beside the template: one profile a speed and length
        for port in ports:
            lossless[port.name] = f"pg_lossless_{port.speed_mbps}_{port.cable_m}m_profile"
            profiles[lossless[port.name]] = {
                "pool": "ingress_lossless_pool",
                "xon": "19456",
                "xoff": "177632",
                "size": "197088",
                "dynamic_th": "0",
            }
    groups: dict[str, object] = {}
    queues: dict[str, object] = {}
    for name in names:
        groups[f"{name}|0"] = {"profile": "ingress_lossy_profile"}
        groups[f"{name}|3-4"] = {"profile": lossless[name]}
        queues[f"{name}|0-2"] = {"profile": "egress_lossy_profile"}
        queues[f"{name}|3-4"] = {"profile": "egress_lossless_profile"}
        queues[f"{name}|5-6"] = {"profile": "egress_lossy_profile"}
    size = {} if dynamic else {"size": "26451968"}
    return {
        "BUFFER_POOL": {
            "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", **size},
            "egress_lossless_pool": {"type": "egress", "mode": "dynamic", "size": "60817392"},
            "egress_lossy_pool": {"type": "egress", "mode": "dynamic", **size},
        },
        "BUFFER_PROFILE": profiles,
        "BUFFER_PG": groups,
        "BUFFER_QUEUE": queues,
    }
