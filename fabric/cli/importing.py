"""`fabricctl import`: options in, one call of `workflow.importing`, text and an exit code out. No logic."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.running import environment_of, request_of
from fabric.cli.wording import Line

if TYPE_CHECKING:
    from fabric.intent import SwitchRole
    from fabric.workflow.importing import ImportSummary, Joined, Unexpressed, Way

__all__ = ("import_",)


@reported
def import_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the inventory is written.")],
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=FILE]...", help="Running configurations; NAME where the text tells no host name."
        ),
    ] = None,
    *,
    inventory: Annotated[
        list[Path] | None, typer.Option("--inventory", "-i", help="Read the switches of this inventory.")
    ] = None,
    host: Annotated[list[str] | None, typer.Option("--host", help="Read this device: USER@ADDRESS[:PORT].")] = None,
    nos: Annotated[str, typer.Option("--nos", help="Network OS of all files and of --host: sonic or eos.")] = "",
    lldp: Annotated[
        list[str] | None, typer.Option("--lldp", help="NAME=FILE: LLDP neighbours as that device prints them.")
    ] = None,
    cabling: Annotated[
        list[Path] | None, typer.Option("--cabling", help="Cables with lengths: CSV, or JSON of NetBox's dcim/cables.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the fabric.")] = "fabric",
    speed: Annotated[str, typer.Option("--speed", help="Of ports whose speed nobody tells, such as 100G.")] = "",
    role: Annotated[
        list[str] | None, typer.Option("--role", help="NAME=leaf, spine or superspine; else by the name.")
    ] = None,
    private_key: Annotated[Path | None, typer.Option("--private-key", help="Key file for --host.")] = None,
    known_hosts: Annotated[Path | None, typer.Option("--known-hosts", help="OpenSSH known_hosts for --host.")] = None,
    ask_pass: Annotated[bool, typer.Option("--ask-pass", "-k", help="Ask for the password of --host.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of the same names in DIR; others stay.")
    ] = False,
    limit: o.Limit = "",
    extra_vars: o.ExtraVars = None,
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    full: o.Full = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write an inventory of what runs already: its plan is an empty diff.

    \b
    fabricctl import site leaf1.json leaf2.cfg --cabling cables.csv
    fabricctl import site -i access.yml                   live, with LLDP
    fabricctl import site --host admin@192.0.2.11 --nos sonic --ask-pass
    """
    from fabric.cli.exits import Exit
    from fabric.intent.model import SwitchRole
    from fabric.workflow.importing import ImportOptions, ImportRequest, import_fabric
    from fabric.workflow.importing.live import single_way

    printer = Printer(as_json=as_json, quiet=quiet)
    password = typer.prompt("Password", hide_input=True, err=True) if ask_pass else None
    ways: dict[str, Way] = {}
    for one in host or ():
        way = single_way(one, nos, password=password, private_key=private_key, known_hosts=known_hosts)
        ways[way.access.host if way.access.port == 22 else f"{way.access.host}:{way.access.port}"] = way
    vault = o.vault_options(vault_file, vault_id, ask=ask_vault_pass)
    summary = import_fabric(
        ImportRequest(
            folder=folder,
            configs=tuple(configs or ()),
            nos=nos,
            lldp=tuple(lldp or ()),
            cabling=tuple(cabling or ()),
            live=request_of(inventory, extra_vars, limit=limit, vault=vault) if inventory else None,
            single=ways,
            options=ImportOptions(name=name, speed_mbps=_speed(speed), roles=_roles(role or (), SwitchRole)),
            force=force,
        ),
        environment_of(printer),
    )
    printer.document(summary)
    for text, style in _lines(summary, full=full):
        printer.line(text, style=style)
    raise typer.Exit(Exit.OK if summary.is_whole else Exit.FINDINGS)


def _speed(text: str) -> int | None:
    from fabric.units import parse_speed

    try:
        return int(parse_speed(text)) if text else None
    except ValueError as error:
        raise typer.BadParameter(f"--speed: {error}") from error


def _roles(texts: Sequence[str], roles: "type[SwitchRole]") -> dict[str, "SwitchRole"]:
    out = {}
    for text in texts:
        device, equals, role = text.partition("=")
        if not equals or role not in list(roles):
            raise typer.BadParameter(f"--role: expected NAME=ROLE with a role of {', '.join(roles)}")
        out[device] = roles(role)
    return out


def _lines(summary: "ImportSummary", *, full: bool) -> Iterator[Line]:
    found = summary.imported
    fabric = found.fabric
    yield f"wrote {summary.folder}: {len(fabric.switches)} switches, {len(fabric.links)} links", "bold"
    for title, entries in (
        ("not imported", [f"{name}: {why}" for name, why in found.failed.items()]),
        ("cables", [_cable(one) for one in found.joined if one.verdict not in {"both-ends", "listed"}]),
        ("assumed", list(found.assumed)),
    ):
        if entries:
            yield f"{title}:", "bold"
            yield from ((f"  {entry}", "") for entry in entries)
    if found.unexpressed:
        yield "not expressed, and kept as it is:", "bold"
        for one in found.unexpressed:
            yield from _unexpressed(one, full=full)
    yield f"next: fabricctl plan -i {summary.folder}", ""


def _cable(one: "Joined") -> str:
    return f"{one.a}{f' and {one.b}' if one.b else ''}: {one.told}"


def _unexpressed(one: "Unexpressed", *, full: bool) -> Iterator[Line]:
    ports = f" {one.ports[0]}" if one.ports else ""
    ports += f" … {one.ports[-1]} ({len(one.ports)})" if len(one.ports) > 1 else ""
    keep = f" [fabric_keep: {', '.join(one.keep)}]" if one.keep else ""
    yield f"  {one.device}{ports}: {one.why}{keep}", ""
    if not one.keep:
        yield f"      at {one.path}", "dim"
    shown = one.change if full else one.change[:1]
    yield from ((f"      without it: {line}", "dim") for line in shown)
