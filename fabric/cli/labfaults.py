"""`fabricctl lab fault …`: cables of the running lab are broken and mended."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from enum import StrEnum
from typing import Annotated, Any

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.labplaces import Place, finite, site_of, split

__all__ = ("PacketName", "fault_app")

fault_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Break cables of the running lab.")


class PacketName(StrEnum):
    """The kinds of `fabric.lab.wire`, which `--help` must not import."""

    ANY = "any"
    ROCE = "roce"
    DATA = "data"
    CM = "cm"
    SEND = "send"
    WRITE = "write"
    READ_REQUEST = "read-request"
    READ_RESPONSE = "read-response"
    ACK = "ack"
    CNP = "cnp"


Packet = Annotated[PacketName, typer.Option("--packet", help="Which frames count.")]
Nth = Annotated[int, typer.Option("--nth", min=1, help="Strike the n-th such frame that arrives.")]
Every = Annotated[bool, typer.Option("--every", help="And each n-th after it.")]


def _fault(place: str, kind: str, *, as_json: bool, **more: Any) -> None:
    printer = Printer(as_json=as_json)
    switch, port = split(place)
    number = site_of(printer).ask("fault-add", kind=kind, switch=switch, port=port, **more)
    printer.document({"number": number})
    printer.line(f"fault {number}: {kind} at {place}; end it with: fabricctl lab fault clear {number}")


@fault_app.command()
@reported
def drop(
    place: Place, *, packet: Packet = PacketName.ANY, nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Lose frames that arrive at a switch port.

    \b
    fabricctl lab fault drop leaf1:Ethernet0 --packet read-response --nth 100 --every
    """
    _fault(place, "drop", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command()
@reported
def delay(
    place: Place,
    *,
    ms: Annotated[int, typer.Option("--ms", min=1, help="How long, milliseconds.")],
    packet: Packet = PacketName.ANY,
    nth: Nth = 1,
    every: Every = False,
    as_json: o.Json = False,
) -> None:
    """Hold frames back that arrive at a switch port.

    \b
    fabricctl lab fault delay leaf1:Ethernet0 --ms 20 --packet ack --every
    """
    _fault(place, "delay", as_json=as_json, packet=packet, nth=nth, every=every, delay_ms=ms)


@fault_app.command()
@reported
def reorder(
    place: Place, *, packet: Packet = PacketName.ANY, nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Let the next frame overtake.

    \b
    fabricctl lab fault reorder leaf1:Ethernet0 --packet data --nth 50 --every
    """
    _fault(place, "reorder", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command()
@reported
def duplicate(
    place: Place, *, packet: Packet = PacketName.ANY, nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Let frames arrive twice.

    \b
    fabricctl lab fault duplicate leaf1:Ethernet0 --packet send --nth 2
    """
    _fault(place, "duplicate", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command()
@reported
def corrupt(
    place: Place, *, packet: Packet = PacketName.DATA, nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Change the payload so that every checksum on the way is still right.

    \b
    fabricctl lab fault corrupt leaf1:Ethernet16 --packet read-response --nth 10
    """
    _fault(place, "corrupt", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command(name="down")
@reported
def cut(place: Place, *, as_json: o.Json = False) -> None:
    """Cut a cable, both directions.

    \b
    fabricctl lab fault down leaf1:Ethernet0
    """
    _fault(place, "down", as_json=as_json)


@fault_app.command()
@reported
def storm(
    place: Place,
    *,
    seconds: Annotated[float, typer.Option("--seconds", min=0.001, help="How long.")],
    priority: Annotated[int, typer.Option("--priority", min=0, max=7, help="Which priority is paused.")] = 3,
    as_json: o.Json = False,
) -> None:
    """Let the far end of a cable pause one priority.

    \b
    fabricctl lab fault storm leaf1:Ethernet0 --priority 3 --seconds 2
    """
    _fault(place, "storm", as_json=as_json, priority=priority, duration_ms=round(finite(seconds) * 1000))


@fault_app.command(name="list")
@reported
def list_faults(*, as_json: o.Json = False) -> None:
    """List the faults, and how many frames each struck.

    \b
    fabricctl lab fault list
    """
    printer = Printer(as_json=as_json)
    found = site_of(printer).ask("fault-list")
    printer.document(found)
    for one in found:
        fault = one["fault"]
        what = "over" if one["is_over"] else f"struck {one['struck']}"
        printer.line(f"{one['number']}: {fault['kind']} at {fault['switch']}:{fault['port']}, {what}")
    if not found:
        printer.line("no faults")


@fault_app.command()
@reported
def clear(
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", help="Default: all.")] = None,
    *,
    as_json: o.Json = False,
) -> None:
    """Mend one cable, or all.

    \b
    fabricctl lab fault clear
    fabricctl lab fault clear 2
    """
    printer = Printer(as_json=as_json)
    site = site_of(printer)
    if number is None:
        count = site.ask("fault-clear")
    else:
        site.ask("fault-remove", number=number)
        count = 1
    printer.document({"cleared": count})
    printer.line(f"cleared {count}")
