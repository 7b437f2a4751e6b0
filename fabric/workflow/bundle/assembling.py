"""What goes into a support bundle: run folders, journals, inventory, versions, facts; every byte through the redactor.

Nothing is written here, so that a user can be told first. A device's whole configuration (`*.before`) never goes in.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.errors import FabricError
from fabric.push.journal import file_name
from fabric.remote.ansible import RawInventory, VaultOptions, read_inventory
from fabric.serial import Json, SerialError, parse_json, to_json
from fabric.workflow.bundle.facts import platform_facts, versions
from fabric.workflow.bundle.gathering import Found, Kinds, LeftOut, walk
from fabric.workflow.bundle.naming import (
    RUN_NAME,
    names_of_documents,
    names_of_files,
    names_of_inventory,
    names_of_machine,
)
from fabric.workflow.bundle.pseudonyms import PseudonymMap, Pseudonyms
from fabric.workflow.bundle.redacting import Redactor, names_a_secret
from fabric.workflow.doctor import doctor
from fabric.workflow.environment import Environment

__all__ = ("Bundle", "BundleRequest", "Member", "assemble", "latest_run")

_FROM_JSON: Final = "made from report.json, which is in"
_RUN: Final = Kinds(
    (".json", ".jsonl", ".txt", ".diff"),
    {
        "report.html": _FROM_JSON,
        "report.junit.xml": _FROM_JSON,
        "report.sarif": _FROM_JSON,
        ".svg": "made from tune.json, which is in",
    },
)
_STATE: Final = Kinds((".jsonl", ".lock"), {".before": "a device's whole configuration: it carries hashes and keys"})
_NOT_READ: Final = "The inventory could not be read; secrets in it are known by their shape alone."


@dataclass(frozen=True, slots=True)
class BundleRequest:
    """What is asked for.

    Attributes:
        runs: run folders.
        sources: of the inventory; () takes those that the first run was made from.
        anonymize: give names and addresses other ones.
        known: pseudonyms of an earlier bundle, to go on with.
    """

    runs: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()
    vault: VaultOptions | None = field(default=None, repr=False)
    anonymize: bool = False
    known: PseudonymMap | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the bundle, fit to leave this machine."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that nobody has written yet.

    Attributes:
        hidden: how many secrets were taken out.
        pseudonyms: what stands for what; None if nothing was anonymized. Stays here.
    """

    members: tuple[Member, ...]
    left_out: tuple[LeftOut, ...]
    hidden: int
    notes: tuple[str, ...] = ()
    pseudonyms: PseudonymMap | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Document:
    """A file before it is redacted; `content` is JSON, one JSON a line, or text."""

    name: str
    content: Json
    shape: str = "json"


def latest_run(runs: Path) -> Path | None:
    """Returns the last run folder in `runs` by its name, None if there is none."""
    try:
        found = [one for one in runs.iterdir() if RUN_NAME.match(one.name) and one.is_dir()]
    except OSError:
        return None
    return max(found, key=lambda one: one.name, default=None)


def assemble(request: BundleRequest, environment: Environment) -> Bundle:
    """Returns the bundle.

    Raises:
        FabricError: a run folder cannot be read.
    """
    documents, left_out = _files(request.runs, environment.state_dir)
    sources = request.sources or _sources(documents)
    inventory, notes = _inventory(sources, request.vault)
    documents += _about(inventory, environment)
    redactor = Redactor(_secrets(inventory, request.vault))
    clean: Callable[[str], str] = redactor.text
    pseudonyms = None
    if request.anonymize:
        names = names_of_files((one.name for one in documents), (run.resolve().name for run in request.runs))
        names |= names_of_machine() | names_of_documents(one.content for one in documents)
        pseudonyms = Pseudonyms(names | (names_of_inventory(inventory) if inventory else {}), request.known)
    members = _members(documents, redactor, pseudonyms)
    if pseudonyms is not None:
        clean = _both(redactor, pseudonyms)
    left = tuple(LeftOut(_tame(clean(one.name)), clean(one.reason)) for one in left_out)
    told = tuple(clean(note) for note in notes)
    return Bundle(members, left, redactor.hidden, told, pseudonyms.map() if pseudonyms else None)


def _both(redactor: Redactor, pseudonyms: Pseudonyms) -> Callable[[str], str]:
    return lambda text: pseudonyms.text(redactor.text(text))


def _files(runs: Iterable[Path], state_dir: Path) -> tuple[list[_Document], list[LeftOut]]:
    documents: list[_Document] = []
    left_out: list[LeftOut] = []
    places = []
    for number, run in enumerate(runs):
        name = _readable(run.resolve().name) or f"run{number + 1}"
        places.append((run, f"runs/{name}", _RUN))
        journals = state_dir / file_name(name)
        if journals.is_dir():
            places.append((journals, f"state/{name}", _STATE))
    if (state_dir / "locks").is_dir():
        places.append((state_dir / "locks", "state/locks", _STATE))
    for folder, prefix, kinds in places:
        for one in walk(folder, kinds):
            name = f"{prefix}/{one.name}"
            if isinstance(one, LeftOut):
                left_out.append(LeftOut(name, one.reason))
            elif b"\0" in one.content:
                left_out.append(LeftOut(name, "no text"))
            else:
                documents.append(_document(Found(name, one.content)))
    return documents, left_out


def _document(found: Found) -> _Document:
    """Returns a file as JSON if it is some: then what is hidden is decided value by value."""
    text = found.content.decode("utf-8", "replace")
    try:
        if found.name.endswith((".json", ".lock")) and text.strip():
            return _Document(found.name, parse_json(text))
        if found.name.endswith(".jsonl"):
            return _Document(found.name, [_line(line) for line in text.splitlines()], "jsonl")
    except SerialError:
        pass
    return _Document(found.name, text, "text")


def _line(line: str) -> Json:
    try:
        return parse_json(line)
    except SerialError:  # torn by a kill: as text
        return line


def _sources(documents: Iterable[_Document]) -> tuple[Path, ...]:
    for one in documents:
        if one.name.endswith("/plan.json") and isinstance(one.content, dict):
            data = one.content.get("data")
            sources = data.get("sources") if isinstance(data, dict) else None
            if isinstance(sources, list):
                return tuple(Path(source) for source in sources if isinstance(source, str) and "\0" not in source)
    return ()


def _inventory(sources: tuple[Path, ...], vault: VaultOptions | None) -> tuple[RawInventory | None, list[str]]:
    if not sources:
        return None, ["No inventory was named, and no run says which it was made from."]
    try:
        inventory = read_inventory(sources, vault=vault, prefixes=("fabric_", "ansible_"))
    except FabricError as error:
        return None, [_NOT_READ, str(error)]
    return inventory, [f"{one.host} {one.variable} {one.source}: {one.message}".strip() for one in inventory.problems]


def _about(inventory: RawInventory | None, environment: Environment) -> Iterator[_Document]:
    unix_s = environment.clock.unix_s()
    yield _Document("doctor.json", to_json(doctor()))
    yield _Document("versions.json", versions())
    folders = {"state": environment.state_dir, "here": Path.cwd()}
    yield _Document("platform.json", platform_facts(folders, unix_s))
    if inventory is not None:
        yield _Document("inventory.json", _shown(inventory))


def _shown(inventory: RawInventory) -> Json:
    """Returns the inventory; what came out of a vault, and what is a secret by its name, is not in it."""
    hidden = _hidden(inventory)
    values: list[Json] = [None if number in hidden else value for number, value in enumerate(inventory.values)]
    hosts: dict[str, Json] = {
        name: {
            "groups": list(host.groups),
            "variables": {
                name: "hidden" if index in hidden else index for name, index in sorted(host.variables.items())
            },
        }
        for name, host in sorted(inventory.hosts.items())
    }
    return {"values": values, "hosts": hosts, "warnings": list(inventory.warnings)}


def _hidden(inventory: RawInventory) -> frozenset[int]:
    """Returns the values that hold a secret, or command lines, which may."""
    return _secret(inventory) | _named(inventory, lambda name: name.endswith("_args"))


def _secret(inventory: RawInventory) -> frozenset[int]:
    return inventory.hidden | _named(inventory, names_a_secret)


def _named(inventory: RawInventory, wanted: Callable[[str], bool]) -> frozenset[int]:
    hosts = inventory.hosts.values()
    return frozenset(index for host in hosts for name, index in host.variables.items() if wanted(name))


def _secrets(inventory: RawInventory | None, vault: VaultOptions | None) -> Iterator[str]:
    """Yields what must be in no file: from the inventory, the vault's passwords, and this process's variables."""
    if inventory is not None:
        for index in _secret(inventory):
            yield from _leaves(inventory.values[index])
    if vault is not None:
        yield from (secret.decode("utf-8", "replace") for _, secret in vault.secrets)
    for path in _password_files(vault):
        try:
            yield path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:  # Ansible has told so already
            continue
    yield from (value for name, value in os.environ.items() if names_a_secret(name))


def _password_files(vault: VaultOptions | None) -> Iterator[Path]:
    if vault is not None:
        yield from vault.password_files
        yield from (Path(one.rpartition("@")[2]) for one in vault.ids)
    named = os.environ.get("ANSIBLE_VAULT_PASSWORD_FILE")
    if named:
        yield Path(named)


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _members(documents: Iterable[_Document], redactor: Redactor, pseudonyms: Pseudonyms | None) -> tuple[Member, ...]:
    members: dict[str, Member] = {}
    for one in documents:
        redacted = redactor.text(one.content) if isinstance(one.content, str) else redactor.json(one.content)
        name = redactor.text(one.name)
        if pseudonyms is not None:
            redacted = pseudonyms.json(redacted)
            name = pseudonyms.text(name)
        name = _unused(_tame(name), members)
        members[name] = Member(name, _rendered(redacted, one.shape).encode("utf-8", "backslashreplace"))
    return tuple(members[name] for name in sorted(members))


def _rendered(content: Json, shape: str) -> str:
    if shape == "text":
        return str(content)
    if shape == "jsonl" and isinstance(content, list):
        return "".join(f"{json.dumps(line)}\n" for line in content)
    return json.dumps(content, indent=1) + "\n"


def _tame(name: str) -> str:
    """Returns a path that no program takes for another one: below here, no control characters, no dots that climb."""
    return "/".join(file_name(_readable(part)) for part in name.split("/") if part)


def _readable(name: str) -> str:
    """Returns a name that has a place in UTF-8; a file's may be any bytes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _unused(name: str, taken: Mapping[str, object]) -> str:
    number = 2
    fresh = name
    while fresh in taken:
        fresh = f"{number}-{name.replace('/', '-')}"
        number += 1
    return fresh
