"""Texts of many devices to one inventory. Pure: no file, no device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fabric.errors import FabricError
from fabric.intent.fields import DEVICE_NAME
from fabric.intent.model import Endpoint, Fabric, Link, Switch
from fabric.intent.writing import write
from fabric.nos.base import LldpSeen
from fabric.qos import UNKNOWN
from fabric.units import natural_key
from fabric.workflow.importing.joining import Known, join
from fabric.workflow.importing.model import Cabled, Config, Imported, ImportOptions, ImportRefusedError, Unexpressed
from fabric.workflow.importing.switches import Cable, ReadSwitch, described, read_switch

__all__ = ("import_texts",)

_RESERVED: Final = frozenset({"all", "ungrouped", "switches", "hosts", "targets", "localhost"})
_HEAD: Final = (
    "Written by fabricctl import. Its plan changes nothing on these switches.",
    "fabric_keep names what stays as the device has it since the intent has no words for it: take an entry away, and",
    "`fabricctl plan` shows what would change. See docs/how-to/import.md.",
)
_VAULT: Final = "Passwords belong in a vault, group_vars/all/vault.yml beside this file: see docs/how-to/vault.md."


def import_texts(
    configs: Mapping[str, Config],
    *,
    lldp: Mapping[str, str] | None = None,
    cabling: Sequence[Cabled] = (),
    options: ImportOptions | None = None,
) -> Imported:
    """Returns the inventory of these running configurations, whose plan is an empty diff on each.

    Args:
        configs: device name → its running configuration. The names become those of the inventory.
        lldp: device name → the output of LLDP there, as its network OS prints it; of any of the devices.
        cabling: cables that somebody listed: they count more than LLDP.
        options: what cannot be read off a device.

    Raises:
        ImportRefusedError: no device could be imported, or a name can be none in an inventory.
    """
    chosen, neighbours = options or ImportOptions(), dict(lldp or {})
    failed: dict[str, str] = {}
    reads = _read(configs, failed)
    seen = _neighbours(reads, neighbours, failed)
    known = {
        name: Known(name, one.identity.hostname, frozenset(port.name for port in one.ports), one.identity.aliases)
        for name, one in reads.items()
    }
    cables, joined = join(known, seen, cabling)
    assumed: list[str] = []
    switches: list[Switch] = []
    told: list[Unexpressed] = []
    for name, read in reads.items():
        try:
            switch, unexpressed = described(read, _cables(name, (*cabling, *cables), reads), chosen, assumed.append)
        except FabricError as error:
            failed[name] = str(error)
            continue
        switches.append(switch)
        told += unexpressed
    if not switches:
        raise ImportRefusedError("no device could be imported", found="; ".join(failed.values()))
    fabric = _fabric(chosen.name, switches, cables)
    return Imported(
        fabric=fabric,
        files=write(
            fabric, access=chosen.access, comments={"hosts.yml": _HEAD, "group_vars/all/fabric.yml": (_VAULT,)}
        ),
        unexpressed=tuple(told),
        assumed=tuple(assumed),
        joined=joined,
        failed=failed,
    )


def _read(configs: Mapping[str, Config], failed: dict[str, str]) -> dict[str, ReadSwitch]:
    reads: dict[str, ReadSwitch] = {}
    for name in sorted(configs, key=natural_key):
        if DEVICE_NAME.fullmatch(name) is None or name.lower() in _RESERVED:
            raise ImportRefusedError(
                "the name cannot stand in an inventory",
                found=name.encode("unicode_escape").decode(),
                expected="letters, digits and ._-, at most 63, and no name of a group",
                remedy="Give the device another name: NAME=FILE.",
            )
        try:
            reads[name] = read_switch(name, configs[name])
        except FabricError as error:
            failed[name] = str(error)
    return reads


def _neighbours(
    reads: Mapping[str, ReadSwitch], outputs: Mapping[str, str], failed: dict[str, str]
) -> dict[str, Sequence[LldpSeen]]:
    seen: dict[str, Sequence[LldpSeen]] = {}
    for name, output in outputs.items():
        if name in reads:
            try:
                seen[name] = reads[name].nos.lldp(output)
            except FabricError as error:
                failed[f"{name} (LLDP)"] = str(error)
    return seen


def _cables(name: str, cables: Sequence[Cabled], reads: Mapping[str, ReadSwitch]) -> dict[str, Cable]:
    """Returns port → its cable; later ones count: those between imported devices, which were judged."""
    out: dict[str, Cable] = {}
    for one in cables:
        for near, far in ((one.a, one.b), (one.b, one.a)):
            if near.device == name:
                is_known = far.device in reads
                speed = one.speed_mbps or (_speed_of(far, reads) if is_known else None)
                out[near.port] = Cable(far if is_known else None, one.cable_m, speed)
    return out


def _speed_of(end: Endpoint, reads: Mapping[str, ReadSwitch]) -> int | None:
    found = reads[end.device].qos.port(end.port)
    return None if found is None or found.speed_mbps is UNKNOWN else found.speed_mbps


def _fabric(name: str, switches: Sequence[Switch], cables: Sequence[Cabled]) -> Fabric:
    ports = {Endpoint(switch.name, port.name): port for switch in switches for port in switch.ports}
    links: list[Link] = []
    for one in cables:
        if one.a not in ports or one.b not in ports:
            continue
        ends = (ports[one.a], ports[one.b])
        links.append(
            Link(
                a=one.a,
                b=one.b,
                speed_mbps=ends[0].speed_mbps,
                cable_m=next((end.cable_m for end in ends if end.cable_m is not None), None),
                fec=next((end.fec for end in ends if end.fec is not None), None),
                mtu_bytes=min(end.mtu_bytes for end in ends),
            )
        )
    linked = {end for link in links for end in (link.a, link.b)}
    return Fabric(
        name=name,
        switches=tuple(
            replace(
                switch,
                ports=tuple(
                    port if Endpoint(switch.name, port.name) in linked else replace(port, peer=None)
                    for port in switch.ports
                ),
            )
            for switch in switches
        ),
        links=tuple(sorted(links, key=lambda link: (natural_key(str(link.a)), natural_key(str(link.b))))),
    )
