"""Writes an inventory of 1,024 switches and measures how long `fabric.intent.load` takes; JSON is the last line.

    python benchmarks/inventory.py [--keep DIR] [--pods N]

20 pods of 32 leaves (SONiC) and 16 spines (EOS), 64 superspines (EOS), 64 or 128 ports each, 15,360 cables.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

LEAVES, SPINES, SUPERSPINES, UPLINKS = 32, 16, 64, 16

ALL = """\
fabric_name: big
ansible_user: admin
mgmt_domain: example.net
fabric_links:
"""
LEAF = """\
fabric_nos: sonic
fabric_version: "202411"
fabric_asic: spectrum3
fabric_hwsku: Mellanox-SN4700-O32
fabric_role: leaf
fabric_ports:
  - {ports: "Ethernet[0:188:4]", role: host, speed: 100G, cable: 5m, fec: rs, lanes: 4}
  - {ports: "Ethernet[192:252:4]", role: fabric, speed: 400G, cable: 40m, fec: rs, lanes: 8}
"""
SPINE = """\
fabric_nos: eos
fabric_version: 4.31.2F
fabric_asic: tomahawk4
fabric_hwsku: DCS-7060DX5-64S
fabric_role: spine
fabric_ports:
  - {ports: "Ethernet[1:64]/1", role: fabric, speed: 400G, cable: 40m, fec: rs}
"""
SUPERSPINE = """\
fabric_nos: eos
fabric_version: 4.31.2F
fabric_role: superspine
fabric_ports:
  - {ports: "Ethernet[1:128]/1", role: fabric, speed: 400G, cable: 100m, fec: rs}
"""


def write(directory: Path, pods: int = 20) -> int:
    """Returns the number of switches in the inventory that it writes."""
    (directory / "group_vars").mkdir(parents=True, exist_ok=True)
    hosts: dict[str, list[str]] = {"leafs": [], "spines": [], "superspines": []}
    links = []
    for pod in range(1, pods + 1):
        hosts["leafs"] += [f"p{pod}-leaf{leaf}" for leaf in range(1, LEAVES + 1)]
        for spine in range(1, SPINES + 1):
            hosts["spines"].append(f"p{pod}-spine{spine}")
            port = 188 + 4 * spine
            links.append((f"p{pod}-leaf[1:{LEAVES}]:Ethernet{port}", f"p{pod}-spine{spine}:Ethernet[1:{LEAVES}]/1"))
            index = (pod - 1) * SPINES + spine - 1
            first = index % (SUPERSPINES // UPLINKS) * UPLINKS
            above = f"superspine[{first + 1}:{first + UPLINKS}]:Ethernet{index // (SUPERSPINES // UPLINKS) + 1}/1"
            links.append((f"p{pod}-spine{spine}:Ethernet[{LEAVES + 1}:{LEAVES + UPLINKS}]/1", above))
    hosts["superspines"] = [f"superspine{number}" for number in range(1, SUPERSPINES + 1)]
    _write_hosts(directory, hosts)
    rows = "".join(f'  - {{a: "{a}", b: "{b}", cable: 40m}}\n' for a, b in links)
    (directory / "group_vars" / "all.yml").write_text(ALL + rows, encoding="utf-8")
    for name, text in (("leafs", LEAF), ("spines", SPINE), ("superspines", SUPERSPINE)):
        (directory / "group_vars" / f"{name}.yml").write_text(text, encoding="utf-8")
    return sum(len(names) for names in hosts.values())


def _write_hosts(directory: Path, hosts: dict[str, list[str]]) -> None:
    lines = ["switches:", "  vars:", '    ansible_host: "{{ inventory_hostname }}.{{ mgmt_domain }}"', "  children:"]
    for group, names in hosts.items():
        lines += [f"    {group}:", "      hosts:", *(f"        {name}:" for name in names)]
    (directory / "hosts.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(directory: Path, switches: int) -> dict[str, object]:
    """Returns the figures of one load in this process."""
    from fabric.intent import load
    from fabric.remote.ansible import read_inventory

    start = time.perf_counter()
    read_inventory([directory])
    read = time.perf_counter()
    loaded = load([directory])
    end = time.perf_counter()
    size = sum(file.stat().st_size for file in directory.rglob("*.yml"))
    return {
        "switches": switches,
        "ports": sum(len(switch.ports) for switch in loaded.fabric.switches),
        "links": len(loaded.fabric.links),
        "inventory_bytes": size,
        "read_s": round(read - start, 2),
        "load_s": round(end - read, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "reader_peak_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--keep", type=Path, help="write the inventory here and keep it")
    parser.add_argument("--pods", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = args.keep or Path(scratch)
        switches = write(directory, args.pods)
        print(json.dumps(measure(directory, switches)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
