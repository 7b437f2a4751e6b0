"""`fabricctl lab …` on the command line: options in, one call of `workflow.lab`, text and an exit code out.

Heavy imports stand inside the verbs: `fabricctl --help` must not pay for SSH servers.
"""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported

if TYPE_CHECKING:
    from fabric.lab.site import Site
    from fabric.workflow import Environment
    from fabric.workflow.lab import LabStatus

__all__ = ("app",)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Emulate a fabric here: virtual machines, switches and cables of an inventory.",
)
fault_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Break cables of the running lab.")
app.add_typer(fault_app, name="fault")

Place = Annotated[str, typer.Argument(metavar="SWITCH:PORT", help="A port of an emulated switch, leaf1:Ethernet0.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A device of the lab.")]
Packet = Annotated[
    str,
    typer.Option(
        "--packet",
        help="Which frames count: any, roce, data, cm, send, write, read-request, read-response, ack, cnp.",
    ),
]
Nth = Annotated[int, typer.Option("--nth", min=1, help="Strike the n-th such frame that arrives.")]
Every = Annotated[bool, typer.Option("--every", help="And each n-th after it.")]


@app.command()
@reported
def up(
    inventory: Annotated[
        list[Path] | None, typer.Option("--inventory", "-i", help="Ansible inventory of the fabric to emulate.")
    ] = None,
    *,
    topology: Annotated[
        str, typer.Option("--topology", "-t", help="A shipped inventory: lab, incast, two-leaves, direct.")
    ] = "lab",
    fresh: Annotated[bool, typer.Option("--fresh", help="Boot every machine; use and keep no warm state.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="MAC addresses and all draws come from it.")] = 1,
    rate_mbit: Annotated[
        int, typer.Option("--rate", min=1, max=100_000, help="Rate of each emulated link, Mbit/s.")
    ] = 100,
    extra_vars: o.ExtraVars = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Start the lab and return when every machine can be logged in to.

    \b
    fabricctl lab up                          two hosts and a target on one leaf
    fabricctl lab up --topology incast
    fabricctl lab up -i inventory/lab && fabricctl provision -i inventory/lab
    """
    import time

    from fabric.workflow.lab import design_lab, lab_status, lab_up
    from fabric.workflow.lab import topology as shipped

    start_s = time.monotonic()
    printer = Printer(as_json=as_json, quiet=quiet)
    environment = _environment(printer)
    sources = tuple(inventory or ()) or (shipped(topology),)
    extra = o.extra_variables(extra_vars)
    spec = design_lab(sources, environment, extra_vars=extra, seed=seed, rate_bps=rate_mbit * 1_000_000)
    lab_up(spec, environment, is_fresh=fresh)
    status = lab_status(environment)
    printer.document(status)
    _show(printer, status)
    printer.line(f"up after {time.monotonic() - start_s:.1f} s; stop it with: fabricctl lab down")
    named = " ".join(f"-i {source}" for source in sources)
    printer.line(f"try: fabricctl provision {named}")


@app.command()
@reported
def status(*, as_json: o.Json = False) -> None:
    """Say what runs, where, and what does not.

    Exit 1 when there is a lab and a part of it is dead.
    """
    from fabric.cli.exits import Exit
    from fabric.workflow.lab import lab_status

    printer = Printer(as_json=as_json)
    found = lab_status(_environment(printer))
    printer.document(found)
    _show(printer, found)
    if found.state == "dead":
        printer.line("a part of the lab is dead; clear it with: fabricctl lab down", style="bold red")
        raise typer.Exit(Exit.FINDINGS)


@app.command()
@reported
def down(*, as_json: o.Json = False) -> None:
    """Stop the lab and remove all of it, also what a crash left."""
    from fabric.workflow.lab import lab_down

    printer = Printer(as_json=as_json)
    names = lab_down()
    printer.document(list(names))
    printer.line(f"removed: {', '.join(names)}" if names else "there was no lab")


@app.command(context_settings={"ignore_unknown_options": True})
@reported
def ssh(
    name: Name,
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND]", help="Run it; else a shell.")] = None,
    *,
    as_json: o.Json = False,
) -> None:
    """Log in to a device of the lab.

    \b
    fabricctl lab ssh host1
    fabricctl lab ssh host1 -- nvme list
    fabricctl lab ssh leaf1 -- show pfc counters
    """
    from fabric.workflow.lab import run_ssh

    printer = Printer(as_json=as_json)
    done = run_ssh(name, command or (), captured=as_json)
    printer.document(done)
    raise typer.Exit(done.status)


@app.command()
@reported
def console(
    name: Name,
    *,
    log: Annotated[bool, typer.Option("--log", help="Print what it has printed so far, and end.")] = False,
    as_json: o.Json = False,
) -> None:
    """Open the serial console of a machine; Ctrl-] leaves it."""
    from fabric.workflow.lab import console_log, run_console

    printer = Printer(as_json=as_json)
    if log or as_json:
        text = console_log(name)
        printer.document({"name": name, "log": text})
        printer.line(text)
        return
    run_console(name)


@app.command()
@reported
def pcap(
    place: Place,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; tshark reads it.")],
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.1, help="How long; without it until Ctrl-C.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Capture what crosses a switch port, both directions.

    \b
    fabricctl lab pcap leaf1:Ethernet0 -o port.pcap --seconds 5
    """
    printer = Printer(as_json=as_json)
    switch, port = _split(place)
    site = _site(printer)
    output.touch()  # as the user who asks: the lab's process may not be the one to say that it cannot
    printer.line(f"capturing {place} into {output}" + ("" if seconds else "; Ctrl-C ends it"))
    try:
        frames = site.ask(
            "capture", timeout_s=None, switch=switch, port=port, path=str(output.absolute()), seconds=seconds
        )
    except KeyboardInterrupt:
        if as_json:
            printer.document({"path": str(output), "frames": None})
        return
    printer.document({"path": str(output), "frames": frames})
    printer.line(f"{frames} frames")


@app.command()
@reported
def counters(
    switches: Annotated[list[str] | None, typer.Argument(metavar="[SWITCH…]", help="Default: all.")] = None,
    *,
    as_json: o.Json = False,
) -> None:
    """Show the true counters of the data planes, and received frames by DSCP."""
    printer = Printer(as_json=as_json)
    found = _site(printer).ask("counters", switches=list(switches or ()))
    printer.document(found)
    for switch, ports in found.items():
        for port, row in ports.items():
            printer.line(f"{switch}:{port}", style="bold")
            for text in _counter_lines(row):
                printer.line(f"  {text}")


def _counter_lines(row: dict[str, Any]) -> list[str]:
    counted = row["counters"]
    by_dscp = ", ".join(f"{dscp}: {count}" for dscp, count in row["dscp_received"].items())
    return [
        f"received by DSCP: {by_dscp or '-'}",
        f"pauses received by priority: {_by_index(counted['pfc_rx_frames'])}",
        f"pauses sent by priority: {_by_index(counted['pfc_tx_frames'])}",
        f"dropped at ingress by group: {_by_index(counted['pg_dropped_packets'])}",
        *(
            f"queue {one['queue']}: {one['packets']} packets, {one['bytes']} B, "
            f"{one['dropped_packets']} dropped, {one['marked_packets']} marked"
            for one in counted["queues"]
            if one["packets"] or one["dropped_packets"]
        ),
    ]


def _by_index(values: object) -> str:
    if not isinstance(values, list):
        return "unknown"
    return ", ".join(f"{index}: {value}" for index, value in enumerate(values) if value) or "-"


# Faults.


def _fault(place: str, kind: str, *, as_json: bool, **more: Any) -> None:
    printer = Printer(as_json=as_json)
    switch, port = _split(place)
    number = _site(printer).ask("fault-add", kind=kind, switch=switch, port=port, **more)
    printer.document({"number": number})
    printer.line(f"fault {number}: {kind} at {place}; end it with: fabricctl lab fault clear {number}")


@fault_app.command()
@reported
def drop(place: Place, *, packet: Packet = "any", nth: Nth = 1, every: Every = False, as_json: o.Json = False) -> None:
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
    packet: Packet = "any",
    nth: Nth = 1,
    every: Every = False,
    as_json: o.Json = False,
) -> None:
    """Hold frames back that arrive at a switch port."""
    _fault(place, "delay", as_json=as_json, packet=packet, nth=nth, every=every, delay_ms=ms)


@fault_app.command()
@reported
def reorder(
    place: Place, *, packet: Packet = "any", nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Let the next frame overtake."""
    _fault(place, "reorder", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command()
@reported
def duplicate(
    place: Place, *, packet: Packet = "any", nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Let frames arrive twice."""
    _fault(place, "duplicate", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command()
@reported
def corrupt(
    place: Place, *, packet: Packet = "data", nth: Nth = 1, every: Every = False, as_json: o.Json = False
) -> None:
    """Change the payload so that every checksum on the way is still right."""
    _fault(place, "corrupt", as_json=as_json, packet=packet, nth=nth, every=every)


@fault_app.command(name="down")
@reported
def cut(place: Place, *, as_json: o.Json = False) -> None:
    """Cut a cable, both directions."""
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
    """Let the far end of a cable pause one priority."""
    _fault(place, "storm", as_json=as_json, priority=priority, duration_ms=round(seconds * 1000))


@fault_app.command(name="list")
@reported
def list_faults(*, as_json: o.Json = False) -> None:
    """List the faults, and how many frames each struck."""
    printer = Printer(as_json=as_json)
    found = _site(printer).ask("fault-list")
    printer.document(found)
    for one in found:
        fault = one["fault"]
        printer.line(f"{one['number']}: {fault['kind']} at {fault['switch']}:{fault['port']}, struck {one['struck']}")
    if not found:
        printer.line("no faults")


@fault_app.command()
@reported
def clear(
    number: Annotated[int | None, typer.Argument(metavar="[NUMBER]", help="Default: all.")] = None,
    *,
    as_json: o.Json = False,
) -> None:
    """Mend one cable, or all."""
    printer = Printer(as_json=as_json)
    site = _site(printer)
    if number is None:
        count = site.ask("fault-clear")
    else:
        site.ask("fault-remove", number=number)
        count = 1
    printer.document({"cleared": count})
    printer.line(f"cleared {count}")


def _split(place: str) -> tuple[str, str]:
    switch, colon, port = place.partition(":")
    if not (switch and colon and port):
        raise typer.BadParameter(f"{place!r} is no SWITCH:PORT, such as leaf1:Ethernet0")
    return switch, port


def _environment(printer: Printer) -> "Environment":
    from fabric.workflow import Environment

    return Environment(observer=printer.progress)


def _site(printer: Printer) -> "Site":
    from fabric.workflow.lab import opened_lab

    return opened_lab(_environment(printer))


def _show(printer: Printer, status: "LabStatus") -> None:
    if status.state == "none":
        printer.line(f"no lab in {status.folder}")
        return
    rate = status.rate_bps // 1_000_000
    printer.line(f"lab {status.name}: {status.state}, seed {status.seed}, {rate} Mbit/s links, in {status.folder}")
    for one in status.devices:
        where = f"{one.login.user}@{one.login.host} port {one.login.port}" if one.login else "no login"
        memory = f", {one.memory_mib} MiB" if one.memory_mib else ""
        printer.line(f"  {one.name:<10} {one.kind:<7} {'up  ' if one.running else 'DEAD'} {where}{memory}")
    for switch, texts in status.plane.get("unresolved", {}).items():
        for text in texts:
            printer.line(f"  {switch}: not emulated: {text}")
