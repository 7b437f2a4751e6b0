"""What each kind of value says when it refuses, as one golden table."""

from fabric.serial import Json
from tests.unit.intent.golden import check_golden
from tests.unit.intent.inventories import complaints, raw, small

NQN = "nqn.2026-01.net.example:kv"
PORTS: dict[str, Json] = {"ports": "Ethernet1", "speed": "100G", "role": "host"}
NIC: dict[str, Json] = {"netdev": "ens1", "family": "mlx5", "speed": "100G"}

SWITCH_CASES: tuple[tuple[str, Json], ...] = (
    ("fabric_mtu", True),
    ("fabric_mtu", "big"),
    ("fabric_mtu", 9216.5),
    ("fabric_mtu", 99),
    ("fabric_mtu", []),
    ("fabric_data_dscps", []),
    ("fabric_data_dscps", "26-28"),
    ("fabric_data_dscps", True),
    ("fabric_data_priority", 8),
    ("fabric_cnp_dscp", -1),
    ("fabric_ecn_enabled", "sometimes"),
    ("fabric_ecn_kmin", "150 kbit"),
    ("fabric_ecn_kmin", False),
    ("fabric_ecn_kmin", "\u0661\u0665\u0660KB"),  # Arabic-Indic digits, which int() takes
    ("fabric_ecn_overrides", {"speed": "100G"}),
    ("fabric_ecn_overrides", [{"kmin": 1, "kmax": 2, "pmax_percent": 1}]),
    ("fabric_ecn_overrides", [{"kmin": 1}]),
    ("fabric_ecn_overrides", [{"kmin": 2, "kmax": 2, "pmax_percent": 1, "role": "leaf"}]),
    ("fabric_ets", {"9": 100}),
    ("fabric_ets", {"0": 100, "3": 0}),
    ("fabric_ets", [50, 50]),
    ("fabric_dcbx", {"mode": "ieee"}),
    ("fabric_dcbx", ["ieee"]),
    ("fabric_nic_mlx5", {"dcqcn": {"rp_dce_tcp_g": -1}}),
    ("fabric_nic_mlx5", {"dcqcn": {"rp dce": 1}}),
    ("fabric_nic_mlx5", "on"),
    ("fabric_nic_mlx6", {}),
    ("fabric_nos", "eos\nreload"),
    ("fabric_features", "evpn vxlan"),
    ("fabric_ports", "Ethernet1"),
    ("fabric_ports", [{}]),
    ("fabric_ports", [{**PORTS, "ports": "Ethernet[1:"}]),
    ("fabric_ports", [{**PORTS, "ports": []}]),
    ("fabric_ports", [{**PORTS, "ports": "Ethernet1\nshutdown"}]),
    ("fabric_ports", [{**PORTS, "ports": None}]),
    ("fabric_ports", [{**PORTS, "speed": "fast"}]),
    ("fabric_ports", [{**PORTS, "speed": True}]),
    ("fabric_ports", [{**PORTS, "speed": "\uff11\uff10\uff10G"}]),  # fullwidth digits
    ("fabric_ports", [{**PORTS, "cable": "\uff13m"}]),
    ("fabric_ports", [{**PORTS, "cable": "long"}]),
    ("fabric_ports", [{**PORTS, "cable": "0m"}]),
    ("fabric_ports", [{**PORTS, "cable": 3.5}]),
    ("fabric_ports", [{**PORTS, "vlan": 4095}]),
    ("fabric_ports", [{**PORTS, "fec": "firecode"}]),
    ("fabric_lags", [{"name": "Port-Channel1", "members": ["Ethernet1", "Ethernet1"]}]),
    ("fabric_links", [{"a": "leaf1", "b": "gpu1:ens1"}]),
    ("fabric_links", [{"a": "leaf1:Ethernet1;reload", "b": "gpu1:ens1"}]),
    ("ansible_port", 0),
    ("ansible_host", "-oProxyCommand=x"),
    ("ansible_password", 12345),
    ("ansible_become_pass", True),
    ("fabric_known_hosts", "known\nhosts"),
)
HOST_CASES: tuple[tuple[str, Json], ...] = (
    ("fabric_nics", [{**NIC, "netdev": "a-name-that-is-too-long"}]),
    ("fabric_nics", [{**NIC, "family": "mlx4"}]),
    ("fabric_nics", [{**NIC, "addresses": ["192.0.2.300/24"]}]),
    ("fabric_nics", [{**NIC, "addresses": "192.0.2.3/24"}]),
    ("fabric_nics", [{**NIC, "addresses": ["192.0.2.[3:4]/24"]}]),
    ("fabric_nics", [NIC, NIC]),
    ("fabric_connect", [NQN, "iqn.2026-01.net.example:kv"]),
)
TARGET_CASES: tuple[tuple[str, Json], ...] = (
    ("fabric_subsystems", [{"nqn": "nqn.2026-13.net.example:kv"}]),
    ("fabric_subsystems", [{"nqn": f"{NQN}{'x' * 200}"}]),
    ("fabric_subsystems", [{"nqn": f"{NQN};rm"}]),
    ("fabric_subsystems", [{"nqn": NQN.replace("2026", "\uff12\uff10\uff12\uff16")}]),
    ("fabric_subsystems", [{"nqn": NQN, "namespaces": [{"nsid": 0}]}]),
    ("fabric_subsystems", [{"nqn": NQN, "namespaces": [{"nsid": True}]}]),
    ("fabric_subsystems", [{"nqn": NQN, "namespaces": [{"nsid": 1, "device": "nvme0n1"}]}]),
    ("fabric_nvme_ports", [{"traddr": "kv1.example.net"}]),
    ("fabric_nvme_ports", [{"traddr": "192.0.2.2", "trsvcid": 70000}]),
    ("fabric_managed", 2),
)


def _table() -> str:
    lines = []
    for device, cases in (("leaf1", SWITCH_CASES), ("gpu1", HOST_CASES), ("kv1", TARGET_CASES)):
        for variable, value in cases:
            devices = small()
            for name in devices if variable == "fabric_links" else [device]:
                devices[name][1][variable] = value
            found = complaints(raw(devices))
            lines += [f"{variable} = {value!r}", *(f"    {text}" for text in found or ["nothing wrong"])]
    return "\n".join([*lines, ""])


def test_each_refusal_says_what_was_found_and_what_may_stand_there() -> None:
    table = _table()

    assert "nothing wrong" not in table
    check_golden("fields.txt", table)
