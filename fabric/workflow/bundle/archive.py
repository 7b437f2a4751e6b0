"""Writes a bundle: a tar.gz of mode 0600, whole or not at all; and the map of its pseudonyms, which stays here."""

import gzip
import hashlib
import io
import json
import os
import tarfile
import time
from pathlib import Path
from typing import Final

from fabric._version import __version__
from fabric.errors import EnvironmentMissingError, FabricError
from fabric.push.journal import write_private
from fabric.serial import Json, SerialError, from_json, parse_json, to_json
from fabric.workflow.bundle.assembling import Bundle, Member
from fabric.workflow.bundle.pseudonyms import PseudonymMap

__all__ = ("default_output", "manifest_of", "read_map", "write_bundle", "write_map")

SCHEMA: Final = 1
_MODE: Final = 0o600
_README: Final = """\
A support bundle of fabricctl {version}. `manifest.json` lists what is in it, and what was left out and why.

runs/       run folders: intent, plan, what was pushed, reports as JSON
state/      journals of the transactions, locks; no configuration of a device
inventory.json, doctor.json, versions.json, platform.json

Hidden: what the inventory or its vault holds as a secret, in any form that is known; what a field's name or its shape
shows as one. {anonymized}
Free text that people wrote is as they wrote it: look through it before you send it.
"""
_ANONYMIZED: Final = "Names and addresses are pseudonyms; the same stands for the same everywhere."
_REAL: Final = "Names and addresses are the real ones (--anonymize replaces them)."


def default_output(unix_s: float) -> Path:
    """Returns `support-20261130-031500.tar.gz` in the current folder."""
    return Path(f"support-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(unix_s))}.tar.gz")


def manifest_of(bundle: Bundle, unix_s: float) -> Json:
    """Returns what is in the bundle and what is not."""
    files: list[Json] = [
        {"name": one.name, "bytes": len(one.content), "sha256": hashlib.sha256(one.content).hexdigest()}
        for one in bundle.members
    ]
    data: dict[str, Json] = {
        "tool_version": __version__,
        "created_unix_s": unix_s,
        "anonymized": bundle.pseudonyms is not None,
        "secrets_hidden": bundle.hidden,
        "files": files,
        "left_out": to_json(bundle.left_out),
        "notes": list(bundle.notes),
    }
    return {"schema": SCHEMA, "kind": "SupportBundle", "data": data}


def write_bundle(bundle: Bundle, output: Path, unix_s: float) -> Path:
    """Writes the archive and returns its path.

    Raises:
        FabricError: there is such a file already.
        EnvironmentMissingError: it cannot be written.
    """
    if output.is_symlink() or output.exists():
        raise FabricError("the file is there already", where=str(output), remedy="Name another with -o.")
    scratch = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
        with os.fdopen(descriptor, "wb") as file:
            _pack(bundle, file, unix_s)
            file.flush()
            os.fsync(file.fileno())
        os.link(scratch, output)  # fails where `rename` would overwrite
        scratch.unlink()
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise EnvironmentMissingError(
            f"{output} cannot be written",
            found=error.strerror or str(error),
            remedy="Free space or choose another place with -o.",
        ) from error
    return output


def _pack(bundle: Bundle, file: io.BufferedWriter, unix_s: float) -> None:
    told = _ANONYMIZED if bundle.pseudonyms is not None else _REAL
    readme = Member("README.txt", _README.format(version=__version__, anonymized=told).encode())
    manifest = Member("manifest.json", (json.dumps(manifest_of(bundle, unix_s), indent=1) + "\n").encode())
    # the archive says neither who made it nor under which name
    with (
        gzip.GzipFile("", "wb", fileobj=file, mtime=int(unix_s)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one in (readme, manifest, *bundle.members):
            entry = tarfile.TarInfo(f"support/{one.name}")
            entry.size, entry.mode, entry.mtime = len(one.content), _MODE, int(unix_s)
            archive.addfile(entry, io.BytesIO(one.content))


def write_map(pseudonyms: PseudonymMap, path: Path) -> Path:
    """Writes what stands for what; mode 0600.

    Raises:
        EnvironmentMissingError: it cannot be written.
    """
    write_private(path, json.dumps({"schema": SCHEMA, "kind": "PseudonymMap", "data": to_json(pseudonyms)}) + "\n")
    return path


def read_map(path: Path) -> PseudonymMap:
    """Returns what `write_map` wrote.

    Raises:
        FabricError: it is no map.
    """
    try:
        document = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise SerialError("not a map of this release")
        found = from_json(PseudonymMap, document.get("data"))
        bytes.fromhex(found.key)
    except (OSError, ValueError) as error:  # SerialError is a ValueError
        raise FabricError("the map of pseudonyms cannot be read", where=str(path), found=str(error)) from error
    return found
