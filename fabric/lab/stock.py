"""Configurations of switches as they come: seeds of the demo fabric, of tests and of oracles.

A SONiC switch after `config qos reload` (DSCP 26 in lossy TC 1, PFC on 3 and 4) and an EOS switch without QoS.
Both carry things that are none of our business (routes, time servers, ports outside the intent), so that a run shows
that they stay. Knows neither renderers nor parsers.

Source: sonic-buildimage files/build_templates/qos_config.j2 and buffers_config.j2 for what the SONiC template binds;
sizes of pools and profiles are plausible, not of any HwSKU.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ("StockPort", "eos_config", "sonic_config", "sonic_tables")

Table: TypeAlias = dict[str, dict[str, str]]

_DSCP_EXCEPTIONS: Final = {3: "3", 4: "4", 5: "2", 8: "0", 46: "5", 48: "6"}  # qos_config.j2, map AZURE
_PLATFORMS: Final = {"ACS-MSN2700": "x86_64-mlnx_msn2700-r0", "ACS-MSN4700": "x86_64-mlnx_msn4700-r0"}


@dataclass(frozen=True, slots=True)
class StockPort:
    """One front-panel port as the cabling plan has it.

    Attributes:
        cable_m: the length that the device was told, 5 where nobody measured.
        mtu: as text; "" for none.
    """

    name: str
    speed_mbps: int = 100_000
    cable_m: int = 5
    lanes: int = 4
    mtu: str = "9100"


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


def sonic_config(ports: Sequence[StockPort], **options: object) -> str:
    """Returns `sonic_tables` as `show runningconfiguration all` prints it."""
    return json.dumps(sonic_tables(ports, **options), indent=4) + "\n"  # type: ignore[arg-type]


def sonic_tables(
    ports: Sequence[StockPort],
    *,
    hostname: str = "leaf1",
    hwsku: str = "ACS-MSN4700",
    dynamic: bool = False,
    stock_qos: bool = True,
    watchdog: bool = True,
    cables_with_profile: Sequence[int] = (5, 40, 300),
) -> dict[str, Table]:
    """Returns a configuration that SONiC's YANG accepts.

    Args:
        ports: front-panel ports.
        hostname: name of the device.
        hwsku: decides the platform, and so whether it is a Mellanox.
        dynamic: dynamic buffer model; else traditional, with the profiles that buffermgrd would have made.
        stock_qos: as after `config qos reload`; else buffers only.
        watchdog: as after `pfcwd start_default`.
        cables_with_profile: lengths that have a lossless profile at each port's speed (traditional only).
    """
    out: dict[str, Table] = {
        "DEVICE_METADATA": {
            "localhost": {
                "hostname": hostname,
                "hwsku": hwsku,
                "platform": _PLATFORMS.get(hwsku, "x86_64-dellemc_s5232f_c3538-r0"),
                "type": "LeafRouter",
                "mac": "02:00:5e:00:00:01",
                "bgp_asn": "65001",
                "buffer_model": "dynamic" if dynamic else "traditional",
            }
        },
        "PORT": {port.name: _port_row(index, port) for index, port in enumerate(ports)},
        "CABLE_LENGTH": {"AZURE": {port.name: f"{port.cable_m}m" for port in ports}},
        "LOOPBACK_INTERFACE": {"Loopback0": {}, "Loopback0|192.0.2.1/32": {}},
        "NTP_SERVER": {"192.0.2.123": {}},
        "STATIC_ROUTE": {"default|198.51.100.0/24": {"nexthop": "192.0.2.254", "ifname": "", "distance": "0"}},
        "DEFAULT_LOSSLESS_BUFFER_PARAMETER": {"AZURE": {"default_dynamic_th": "0"}},
        "LOSSLESS_TRAFFIC_PATTERN": {"AZURE": {"mtu": "1024", "small_packet_percentage": "100"}},
    }
    out |= _buffers(ports, dynamic=dynamic, cables=cables_with_profile, stock_qos=stock_qos)
    if stock_qos:
        out |= _stock_qos(ports, mellanox="mlnx" in out["DEVICE_METADATA"]["localhost"]["platform"])
    if watchdog:
        row = {"action": "drop", "detection_time": "200", "restoration_time": "200"}
        out["PFC_WD"] = {"GLOBAL": {"POLL_INTERVAL": "200"}, **{port.name: dict(row) for port in ports}}
    return out


def _port_row(index: int, port: StockPort) -> dict[str, str]:
    first = index * port.lanes
    row = {
        "lanes": ",".join(str(lane) for lane in range(first, first + port.lanes)),
        "alias": f"etp{index + 1}",
        "index": str(index + 1),
        "speed": str(port.speed_mbps),
        "admin_status": "up",
        "fec": "rs",
    }
    return row | ({"mtu": port.mtu} if port.mtu else {})


def _buffers(ports: Sequence[StockPort], *, dynamic: bool, cables: Sequence[int], stock_qos: bool) -> dict[str, Table]:
    profiles: Table = {
        "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
        "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"},
        "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1024", "dynamic_th": "0"},
    }
    groups: Table = {f"{port.name}|0": {"profile": "ingress_lossy_profile"} for port in ports}
    if dynamic:
        groups |= {f"{port.name}|3-4": {"profile": "NULL"} for port in ports}
    else:
        for speed in {port.speed_mbps for port in ports}:
            for cable in cables:
                profiles[f"pg_lossless_{speed}_{cable}m_profile"] = {
                    "pool": "ingress_lossless_pool",
                    "size": "19456",
                    "xon": "19456",
                    "xoff": str(30_000 + cable * speed // 2_000),
                    "dynamic_th": "0",
                }
        bound = [port for port in ports if stock_qos and port.cable_m in cables]
        groups |= {
            f"{port.name}|3-4": {"profile": f"pg_lossless_{port.speed_mbps}_{port.cable_m}m_profile"} for port in bound
        }
    queues = (("0-2", "egress_lossy_profile"), ("3-4", "egress_lossless_profile"), ("5-6", "egress_lossy_profile"))
    return {
        "BUFFER_POOL": {
            "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "46333952", "xoff": "6291456"},
            "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "46333952"},
            "egress_lossless_pool": {"type": "egress", "mode": "dynamic", "size": "60817392"},
        },
        "BUFFER_PROFILE": profiles,
        "BUFFER_PG": groups,
        "BUFFER_QUEUE": {f"{port.name}|{key}": {"profile": name} for port in ports for key, name in queues},
    }


def _stock_qos(ports: Sequence[StockPort], *, mellanox: bool) -> dict[str, Table]:
    identity = {str(index): str(index) for index in range(8)}
    binding = {
        "dscp_to_tc_map": "AZURE",
        "tc_to_queue_map": "AZURE",
        "tc_to_pg_map": "AZURE",
        "pfc_to_queue_map": "AZURE",
        **({"pfc_to_pg_map": "AZURE"} if mellanox else {}),
        "pfc_enable": "3,4",
        "pfcwd_sw_enable": "3,4",
    }
    curve = {
        f"{colour}_{field}": value
        for colour in ("green", "yellow", "red")
        for field, value in (("min_threshold", "1048576"), ("max_threshold", "2097152"), ("drop_probability", "5"))
    }
    enabled = {f"wred_{colour}_enable": "true" for colour in ("green", "yellow", "red")}
    queues: Table = {}
    for port in ports:
        for queue in (3, 4):
            queues[f"{port.name}|{queue}"] = {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
        for queue in (0, 1, 2, 5, 6):
            queues[f"{port.name}|{queue}"] = {"scheduler": "scheduler.0"}
    return {
        "DSCP_TO_TC_MAP": {"AZURE": {str(dscp): _DSCP_EXCEPTIONS.get(dscp, "1") for dscp in range(64)}},
        "TC_TO_QUEUE_MAP": {"AZURE": dict(identity)},
        "TC_TO_PRIORITY_GROUP_MAP": {
            "AZURE": {str(tc): {3: "3", 4: "4", 7: "7"}.get(tc, "0") for tc in range(8)},
        },
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": dict(identity)},
        **({"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3", "4": "4"}}} if mellanox else {}),
        "SCHEDULER": {
            "scheduler.0": {"type": "DWRR", "weight": "14"},
            "scheduler.1": {"type": "DWRR", "weight": "15"},
        },
        "WRED_PROFILE": {"AZURE_LOSSLESS": {"ecn": "ecn_all", **enabled, **curve}},
        "PORT_QOS_MAP": {"global": {"dscp_to_tc_map": "AZURE"}, **{port.name: dict(binding) for port in ports}},
        "QUEUE": queues,
    }
