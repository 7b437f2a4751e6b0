"""Configurations of 100,000 lines or rows of which nothing is ours: VLANs, access lists, route maps, neighbours.

They end in bytes that are no UTF-8, as a description typed in another code page leaves them: `surrogateescape` keeps
each as it came.
"""

import json
from collections.abc import Iterator
from typing import Final

from fabric.lab.spec import NosName
from fabric.lab.stock import StockPort, eos_config, sonic_tables
from tests.brownfield.bases import Board
from tests.brownfield.inventory import Wanted
from tests.brownfield.judge import Subject
from tests.brownfield.samples import Form, Language, Sample

__all__ = ("LATIN", "PORTS", "giant", "giant_config_db", "giant_eos")

PORTS: Final = tuple(f"Ethernet{number}" for number in range(4, 68, 4))
LATIN: Final = b"B\xfcro K\xf6ln".decode("utf-8", "surrogateescape")  # Latin-1 on a device that knows no encoding
_VLANS_MAX: Final = 4000
_FOREIGN_PORT: Final = "Ethernet996"


def giant(nos: NosName, size: int, *, asic: str = "spectrum3") -> Subject:
    """Returns a switch that holds `size` lines or rows which are none of ours, and on whose other ports we want RoCE."""
    text = giant_eos(size) if nos == "eos" else giant_config_db(size)
    language = Language.EOS if nos == "eos" else Language.CONFIG_DB
    board = Board("DCS-7388X5" if nos == "eos" else "ACS-MSN4700", asic)
    wanted = Wanted(dict.fromkeys(PORTS, 100_000), (_FOREIGN_PORT,))
    return Subject(Sample(f"giant {nos}", text, language, Form.COMPLETE, {}), text, wanted, board)


def giant_eos(lines: int) -> str:
    """Returns a running-config of at least `lines` lines with the ports PORTS and one more."""
    text = eos_config("giant", "DCS-7388X5", [StockPort(name) for name in (*PORTS, _FOREIGN_PORT)])
    head, _, tail = text.partition("interface Management1")
    foreign = [f"interface {_FOREIGN_PORT}.7", f"   description {LATIN}", "!", *_eos_lines(lines)]
    return "\n".join([head + "\n".join(foreign), f"interface Management1{tail}"])


def _eos_lines(lines: int) -> Iterator[str]:
    vlans = min(_VLANS_MAX, lines // 10)
    for vlan in range(2, 2 + vlans):
        yield from (f"vlan {vlan}", f"   name tenant-{vlan}", "!")
    left = lines - 3 * vlans
    for number in range(left // 100 + 1):
        yield f"ip access-list acl-{number}"
        yield from (
            f"   {10 * row} permit tcp 10.{number % 250}.{row}.0/24 any eq {1000 + row}" for row in range(1, 60)
        )
        yield "!"
        yield from (f"ip route 10.{number % 250}.{row}.0/24 192.0.2.{row}" for row in range(1, 20))
        yield "!"
        for row in range(1, 7):
            yield f"route-map rm-{number} permit {row}"
            yield from (f"   match ip address access-list acl-{number}", "   set local-preference 200", "!")


def giant_config_db(rows: int) -> str:
    """Returns a config_db.json of at least `rows` rows with the ports PORTS and one more."""
    stock = [StockPort(name) for name in (*PORTS, _FOREIGN_PORT)]
    tables: dict[str, dict[str, dict[str, str]]] = dict(sonic_tables(stock, hostname="giant", watchdog=True))
    tables["PORT"][_FOREIGN_PORT]["description"] = LATIN
    vlans = min(_VLANS_MAX, rows // 10)
    tables["VLAN"] = {f"Vlan{vlan}": {"vlanid": str(vlan)} for vlan in range(2, 2 + vlans)}
    tables["ACL_TABLE"] = {f"acl{number}": {"type": "L3", "stage": "ingress"} for number in range(1000)}
    tables["ACL_RULE"] = {
        f"acl{number % 1000}|RULE_{number}": {"PRIORITY": str(number), "PACKET_ACTION": "FORWARD"}
        for number in range(rows // 2)
    }
    tables["NEIGH"] = {
        f"Vlan{2 + number % vlans}|10.{number >> 16}.{number >> 8 & 255}.{number & 255}": {"family": "IPv4"}
        for number in range(rows - rows // 2 - vlans)
    }
    return json.dumps(tables, indent=4, ensure_ascii=False) + "\n"
