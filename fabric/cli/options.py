"""The options that several verbs share, and what they become. Knows no verb."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from fabric.intent import VaultOptions
    from fabric.serial import Json as JsonValue

__all__ = (
    "Adopt",
    "AskVaultPass",
    "ConfirmS",
    "Disruptive",
    "DryRun",
    "ExtraVars",
    "FailureBudget",
    "Force",
    "Full",
    "Install",
    "Inventory",
    "Json",
    "Limit",
    "OptionalInventory",
    "Quiet",
    "Runs",
    "Strict",
    "SwitchesOnly",
    "VaultFile",
    "VaultId",
    "Workers",
    "extra_variables",
    "vault_options",
)

_INVENTORY_HELP: Final = "Ansible inventory: file, folder or script; may be given several times, the last one wins."
_ENVIRONMENT: Final = "FABRICCTL_INVENTORY"

Inventory = Annotated[
    list[Path], typer.Option("--inventory", "-i", help=_INVENTORY_HELP, envvar=_ENVIRONMENT, show_default=False)
]
OptionalInventory = Annotated[
    list[Path] | None,
    typer.Option("--inventory", "-i", help=f"{_INVENTORY_HELP} Default: what the plan or run was made from."),
]
Limit = Annotated[str, typer.Option("--limit", "-l", help="Ansible host pattern: only these devices.")]
ExtraVars = Annotated[
    list[str] | None,
    typer.Option("--extra-vars", "-e", help="NAME=VALUE or a JSON object, over everything, as for ansible-playbook."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
Full = Annotated[bool, typer.Option("--full", help="Whole diffs.")]
Runs = Annotated[Path, typer.Option("--runs", help="Where run folders are made.")]
Adopt = Annotated[
    bool, typer.Option("--adopt", help="Change device-wide settings although ports outside the intent feel it.")
]
Disruptive = Annotated[bool, typer.Option("--disruptive", help="Allow changes that interrupt traffic.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a device in which others changed what the run owns; keep nothing.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let each device judge its change, and apply nothing.")]
SwitchesOnly = Annotated[
    bool, typer.Option("--switches-only", help="Leave hosts and targets alone, whatever the inventory says.")
]
Install = Annotated[
    bool,
    typer.Option("--install", help="SONiC: install by load and reload, whatever it would take in service."),
]
Force = Annotated[bool, typer.Option("--force", help="Push although the compliance check failed.")]
ConfirmS = Annotated[
    int, typer.Option("--confirm-s", min=10, max=86399, help="Seconds until an unconfirmed change goes back by itself.")
]
FailureBudget = Annotated[
    str,
    typer.Option(
        "--failure-budget",
        metavar="N|P%",
        help="Switches that may fail; one more, and the run is stopped and taken back. Default: no limit.",
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, max=256, help="Devices at a time.")]
VaultFile = Annotated[
    list[Path] | None, typer.Option("--vault-password-file", help="Vault password file or script, as for Ansible.")
]
VaultId = Annotated[list[str] | None, typer.Option("--vault-id", help="LABEL@FILE, as for Ansible.")]
AskVaultPass = Annotated[bool, typer.Option("--ask-vault-pass", "-J", help="Ask for the vault password.")]


def extra_variables(texts: Sequence[str] | None) -> dict[str, "JsonValue"]:
    """Returns the variables of `-e`, later ones winning.

    Raises:
        typer.BadParameter: a text is neither NAME=VALUE nor a JSON object.
    """
    variables: dict[str, JsonValue] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if text.lstrip().startswith("{"):
            variables.update(_object(text))
        elif equals and name.strip().isidentifier():
            variables[name.strip()] = value
        else:
            # the text itself may be a password: it stays out of terminals and CI logs
            raise typer.BadParameter("-e: expected NAME=VALUE or a JSON object")
    return variables


def _object(text: str) -> dict[str, "JsonValue"]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"-e: no JSON object: {error}") from error
    return dict(found)


def vault_options(
    files: Sequence[Path] | None, ids: Sequence[str] | None, *, ask: bool = False
) -> "VaultOptions | None":
    """Returns how to open vaulted values, None when nothing was said; asks on the terminal when told to."""
    from fabric.intent import VaultOptions  # lazy: `--help` needs none of it

    secrets: tuple[tuple[str, bytes], ...] = ()
    if ask:
        password = typer.prompt("Vault password", hide_input=True, err=True)
        secrets = (("default", os.fsencode(password)),)
    if not (files or ids or secrets):
        return None
    return VaultOptions(password_files=tuple(files or ()), ids=tuple(ids or ()), secrets=secrets)
