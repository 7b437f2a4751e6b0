"""Which names a bundle gives away: found in the inventory, in the documents of the runs, and on this machine."""

import getpass
import os
import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote

from fabric.remote.ansible import CONNECTION_VARIABLES, RawInventory
from fabric.serial import Json

__all__ = ("RUN_NAME", "names_of_documents", "names_of_files", "names_of_inventory", "names_of_machine")

RUN_NAME: Final = re.compile(r"\d{8}-\d{6}-[a-z-]+(-\d+)?\Z")

_DEVICE: Final = "device"
_FIELDS: Final = {"device": _DEVICE, "host": _DEVICE, "switch": _DEVICE, "owner": "user", "fabric": "fabric"}
_LISTS: Final = frozenset({"switches", "hosts", "targets"})  # of `fabric.json`: their members have a name
_ORDINARY: Final = frozenset(  # names that say nothing of the site
    {"all", "ungrouped", "switches", "hosts", "targets", "leafs", "leaves", "spines", "localhost", "root", "fabric"}
)


def names_of_machine() -> dict[str, str]:
    """Returns user, host, and the folders whose names may tell who they are, each with its kind."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no such user: a container with a number alone
        user = ""
    found = [(user, "user"), (os.uname().nodename, "machine"), *_domain(os.uname().nodename)]
    found += [(str(Path.home()), "folder"), (str(Path.cwd()), "folder")]
    return dict(_telling(found))


def names_of_inventory(inventory: RawInventory) -> dict[str, str]:
    """Returns hosts, groups, users and domain names."""
    found: list[tuple[str, str]] = []
    for name, host in inventory.hosts.items():
        found += [(name, _DEVICE), *((group, "group") for group in host.groups), *_domain(name)]
        for about, kind in (("host", "name"), ("username", "user")):
            for variable in CONNECTION_VARIABLES[about]:
                value = inventory.values[host.variables[variable]] if variable in host.variables else ""
                if isinstance(value, str):
                    found += [(value, kind), *(_domain(value) if about == "host" else ())]
    return dict(_telling(found))


def names_of_documents(documents: Iterable[Json]) -> dict[str, str]:
    """Returns the names that stand in documents of runs and in lines of journals."""
    return dict(_telling([one for document in documents for one in _within(document)]))


def names_of_files(files: Iterable[str], runs: Iterable[str]) -> dict[str, str]:
    """Returns the devices that journals and locks are named after, and folders of runs that have an own name."""
    devices = ((unquote(PurePosixPath(name).stem), _DEVICE) for name in files if name.startswith("state/"))
    own = ((run, "run") for run in runs if not RUN_NAME.match(run))
    return dict(_telling((*devices, *own)))


def _within(data: Json) -> Iterator[tuple[str, str]]:
    if isinstance(data, list):
        for one in data:
            yield from _within(one)
    elif isinstance(data, dict):
        for key, one in data.items():
            if isinstance(one, str) and key in _FIELDS:
                yield one, _FIELDS[key]
            elif key in _LISTS and isinstance(one, list):
                yield from ((str(row["name"]), _DEVICE) for row in one if isinstance(row, dict) and _named(row))
            elif key == "roles" and isinstance(one, dict):
                yield from ((name, _DEVICE) for name in one)
            elif key == "sources" and isinstance(one, list):
                yield from ((path, "folder") for path in one if isinstance(path, str))
            yield from _within(one)
        if "switches" in data and _named(data):
            yield str(data["name"]), "fabric"


def _named(row: dict[str, Json]) -> bool:
    return isinstance(row.get("name"), str)


def _domain(name: str) -> Iterator[tuple[str, str]]:
    domain = name.partition(".")[2]
    if domain:
        yield domain, "domain"


def _telling(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields what is a name of this site; addresses are known by their shape."""
    for name, kind in found:
        if name and name != "/" and name.casefold() not in _ORDINARY and not _is_address(name):
            yield name, kind


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
