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
from fabric.cli.labfaults import fault_app
from fabric.cli.labplaces import Place, environment_of, finite, site_of, split
from fabric.errors import EnvironmentMissingError, FabricError, HostError

if TYPE_CHECKING:
    from fabric.workflow.lab import LabStatus

__all__ = ("app",)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Emulate a fabric here: virtual machines, switches and cables of an inventory.",
)
app.add_typer(fault_app, name="fault")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A device of the lab.")]


@app.command()
@reported
def up(
    inventory: Annotated[
        list[Path] | None, typer.Option("--inventory", "-i", help="Ansible inventory of the fabric to emulate.")
    ] = None,
    *,
    topology: Annotated[
        str | None,
        typer.Option("--topology", "-t", help="A shipped inventory: lab (the default), incast, two-leaves, direct."),
    ] = None,
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
    environment = environment_of(printer)
    if inventory and topology:
        raise FabricError("--topology is the short name of an inventory, and -i gives another", found=topology)
    sources = tuple(inventory or ()) or (shipped(topology or "lab"),)
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

    Exit 1 when there is a lab and a part of it is dead, or another version made it.

    \b
    fabricctl lab status
    fabricctl lab status --json
    """
    from fabric.cli.exits import Exit
    from fabric.workflow.lab import lab_status

    printer = Printer(as_json=as_json)
    found = lab_status(environment_of(printer))
    printer.document(found)
    _show(printer, found)
    if found.state in {"dead", "unreadable"}:
        printer.line("clear it with: fabricctl lab down", style="bold red")
        raise typer.Exit(Exit.FINDINGS)


@app.command()
@reported
def down(*, as_json: o.Json = False) -> None:
    """Stop the lab and remove all of it, also what a crash left.

    \b
    fabricctl lab down
    FABRICCTL_LAB=/tmp/second fabricctl lab down
    """
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
    """Open the serial console of a machine; Ctrl-] leaves it.

    \b
    fabricctl lab console host1
    fabricctl lab console host1 --log
    """
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
    switch, port = split(place)
    finite(seconds or 0)
    site = site_of(printer)
    is_new = _touched(output)
    printer.line(f"capturing {place} into {output}" + ("" if seconds else "; Ctrl-C ends it"))
    try:
        frames = site.ask(
            "capture", timeout_s=None, switch=switch, port=port, path=str(output.absolute()), seconds=seconds
        )
    except KeyboardInterrupt:
        if as_json:
            printer.document({"path": str(output), "frames": None})
        return
    except HostError:
        if is_new and output.stat().st_size == 0:
            output.unlink()
        raise
    printer.document({"path": str(output), "frames": frames})
    printer.line(f"{frames} frames")


@app.command()
@reported
def counters(
    switches: Annotated[list[str] | None, typer.Argument(metavar="[SWITCH…]", help="Default: all.")] = None,
    *,
    as_json: o.Json = False,
) -> None:
    """Show the true counters of the data planes, and received frames by DSCP.

    \b
    fabricctl lab counters
    fabricctl lab counters leaf1
    """
    printer = Printer(as_json=as_json)
    found = site_of(printer).ask("counters", switches=list(switches or ()))
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


def _touched(path: Path) -> bool:
    """Returns whether the file is new; as the user who asks, not as the lab's process, that cannot tell them so well.

    Raises:
        EnvironmentMissingError: it cannot be written.
    """
    try:
        is_new = not path.exists()
        with path.open("ab"):
            return is_new
    except OSError as error:
        raise EnvironmentMissingError(f"{path} cannot be written", found=str(error.strerror)) from error


def _show(printer: Printer, status: "LabStatus") -> None:
    if status.state == "none":
        printer.line(f"no lab in {status.folder}")
        return
    if status.state == "unreadable":
        printer.line(f"in {status.folder} lies what cannot be read: another version made it, or it was killed")
        printer.line(f"  {', '.join(status.left)}")
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
