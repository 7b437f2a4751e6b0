"""The verb `support-bundle`: what is in it is said first, then it is written."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fabric.cli import options as o
from fabric.cli.console import Printer
from fabric.cli.failures import reported

if TYPE_CHECKING:
    from fabric.workflow.bundle import Bundle

__all__ = ("support_bundle",)

_KIB = 1024


@reported
def support_bundle(
    run: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Run folders. Default: the last one in --runs.")
    ] = None,
    *,
    inventory: o.OptionalInventory = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: support-TIME.tar.gz here.")] = None,
    anonymize: Annotated[bool, typer.Option("--anonymize", help="Give names and addresses other ones.")] = False,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="With --anonymize: what stands for what, gone on with. Default: OUTPUT.map.json."),
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Say what would be in it, and write nothing.")] = False,
    runs: o.Runs = Path("runs"),
    vault_file: o.VaultFile = None,
    vault_id: o.VaultId = None,
    ask_vault_pass: o.AskVaultPass = False,
    as_json: o.Json = False,
) -> None:
    """Pack runs, journals, inventory and facts, without secrets.

    \b
    fabricctl support-bundle runs/20261129-171122-provision
    fabricctl support-bundle --anonymize --list
    """
    from fabric.workflow import Environment  # lazy: --help must not pay for it
    from fabric.workflow import bundle as b

    if map_file is not None and not anonymize:
        raise typer.BadParameter("--map goes with --anonymize")
    printer = Printer(as_json=as_json)
    environment = Environment()
    unix_s = environment.clock.unix_s()
    target = output or b.default_output(unix_s)
    map_path = map_file or target.with_name(f"{target.name}.map.json")
    latest = b.latest_run(runs)
    request = b.BundleRequest(
        runs=tuple(run or ([latest] if latest else ())),
        sources=tuple(inventory or ()),
        vault=o.vault_options(vault_file, vault_id, ask=ask_vault_pass),
        anonymize=anonymize,
        known=b.read_map(map_path) if anonymize and map_path.exists() else None,
    )
    made = b.assemble(request, environment)
    _tell(printer, made)
    written = None
    if not only_list:
        if made.pseudonyms is not None:  # first, so that no bundle is without its map
            printer.line(f"wrote {b.write_map(made.pseudonyms, map_path)}: keep it here, it undoes --anonymize")
        written = b.write_bundle(made, target, unix_s)
        printer.line(f"wrote {written}: look through it, then send it")
    manifest = b.manifest_of(made, unix_s)
    kept_here = str(map_path) if made.pseudonyms is not None and written else ""
    printer.document({"written": str(written or ""), "map": kept_here, "manifest": manifest})


def _tell(printer: Printer, made: "Bundle") -> None:
    printer.line("in the bundle:")
    for one in made.members:
        printer.line(f"  {one.name} ({max(1, len(one.content) // _KIB)} KiB)")
    for left in made.left_out:
        printer.line(f"  not in it: {left.name}: {left.reason}")
    for note in made.notes:
        printer.line(f"note: {note}")
    names = "pseudonyms" if made.pseudonyms is not None else "the real ones"
    printer.line(f"secrets hidden: {made.hidden}; names and addresses: {names}")
