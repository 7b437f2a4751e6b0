"""A small site: one SONiC and one EOS leaf, a host on each; served by the lab, with things that must stay."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabric.lab import DeviceSpec, Fronts, serve
from fabric.lab.stock import StockPort, eos_config, sonic_config
from fabric.observe import Recorder
from fabric.workflow import Environment, Request

__all__ = ("Site", "served_site", "write_site")

_INVENTORY = """\
switches:
  vars:
    fabric_name: small
    fabric_role: leaf
    fabric_adopt: true
    ansible_user: admin
    fabric_links:
      - {a: "leaf1:Ethernet0", b: "gpu1:ens1", cable: 5m}
      - {a: "leaf2:Ethernet1/1", b: "gpu2:ens1", cable: 5m}
      - {a: "leaf1:Ethernet8", b: "leaf2:Ethernet2/1", cable: 40m}
  hosts:
    leaf1:
      fabric_nos: sonic
      fabric_version: "202411"
      fabric_asic: spectrum3
      fabric_hwsku: ACS-MSN4700
      fabric_ports:
        - {ports: Ethernet0, role: host, speed: 100G, lanes: 4}
        - {ports: Ethernet8, role: fabric, speed: 100G, lanes: 4}
    leaf2:
      fabric_nos: eos
      fabric_version: 4.31.2F
      fabric_asic: trident3
      fabric_hwsku: DCS-7050CX3-32S
      fabric_ports:
        - {ports: Ethernet1/1, role: host, speed: 100G}
        - {ports: Ethernet2/1, role: fabric, speed: 100G}
hosts:
  vars: {fabric_managed: false}  # nothing emulates them here
  hosts:
    gpu1:
      fabric_nics: [{netdev: ens1, family: mlx5, speed: 100G, addresses: [192.0.2.11/26]}]
    gpu2:
      fabric_nics: [{netdev: ens1, family: mlx5, speed: 100G, addresses: [192.0.2.75/26]}]
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A served site.

    Attributes:
        request: names both inventory sources.
        recorder: hears what the environment's observer hears.
    """

    request: Request
    environment: Environment
    fronts: Fronts
    recorder: Recorder
    folder: Path


def write_site(folder: Path) -> Path:
    """Writes the inventory and returns its path."""
    path = folder / "site.yml"
    path.write_text(_INVENTORY)
    return path


def specs() -> list[DeviceSpec]:
    """Returns the two switches as they come, each with one port more than the intent names."""
    sonic = [StockPort(name, 100_000) for name in ("Ethernet0", "Ethernet8", "Ethernet16")]
    eos = [StockPort(name, 100_000) for name in ("Ethernet1/1", "Ethernet2/1", "Ethernet3/1")]
    text = sonic_config(sonic, hostname="leaf1", hwsku="ACS-MSN4700", dynamic=True, watchdog=False)
    return [
        DeviceSpec("leaf1", "sonic", text, hwsku="ACS-MSN4700"),
        DeviceSpec("leaf2", "eos", eos_config("leaf2", "DCS-7050CX3-32S", eos)),
    ]


@contextmanager
def served_site(folder: Path) -> Iterator[Site]:
    """Yields the site, its switches served on loopback."""
    inventory = write_site(folder)
    recorder = Recorder()
    with serve(specs(), directory=folder / "lab") as fronts:
        overlay = folder / "lab.yml"
        overlay.write_text(fronts.inventory())
        overlay.chmod(0o600)
        request = Request(sources=(inventory, overlay), runs=folder / "runs", confirm_s=30, disruptive=True)
        environment = Environment(observer=recorder, state_dir=folder / "state")
        yield Site(request, environment, fronts, recorder, folder)
