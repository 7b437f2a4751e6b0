"""Running configurations and LLDP of live devices. Reads; changes nothing.

The devices are those of an inventory that says how to log in and which network OS there is (`fabric_nos`), or single
ones. What is wrong with the rest of such an inventory is no matter: it is about to be written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.errors import FabricError, IntentError, Problem
from fabric.intent.access import DeviceAccess
from fabric.intent.emitting import Template
from fabric.nos import catalog
from fabric.push import SessionFactory, fetch_all, run_all, session_factory
from fabric.serial import Json
from fabric.workflow.environment import Environment
from fabric.workflow.importing.model import Config
from fabric.workflow.request import Request

__all__ = ("Reached", "Way", "access_variables", "read_live", "single_way", "ways_of_inventory")

_OF_NO_MATTER: Final = frozenset({"fabric_ports", "fabric_role", "fabric_links", "fabric_lags"})
_LLDP: Final = "lldp"


@dataclass(frozen=True, slots=True)
class Way:
    """One device and how to reach it; holds its secrets, never serialise it."""

    nos: str
    access: DeviceAccess


@dataclass(frozen=True, slots=True)
class Reached:
    """What live devices said.

    Attributes:
        configs: device → configuration. lldp: device → the output of LLDP, of those that have it.
        errors: device → why nothing was read.
    """

    configs: Mapping[str, Config]
    lldp: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, FabricError] = field(default_factory=dict)


def ways_of_inventory(request: Request) -> dict[str, Way]:
    """Returns device → way of the switches of an inventory that the limit leaves.

    Raises:
        IntentError: the inventory cannot be read, or a switch has no `fabric_nos`.
    """
    from fabric.intent.build import build  # lazy: pydantic
    from fabric.intent.devices import FABRIC_WIDE
    from fabric.intent.flaws import to_problems
    from fabric.intent.places import Places
    from fabric.remote.ansible import read_inventory

    inventory = read_inventory(
        request.sources,
        vault=request.vault,
        limit=request.limit,
        extra_vars=request.extra_vars,
        once=sorted(FABRIC_WIDE),
    )
    unread = [Problem(one.message, place=one.source, device=one.host, field=one.variable) for one in inventory.problems]
    if unread:
        raise IntentError(unread)
    built = build(inventory, catalog.names())
    serious = [flaw for flaw in built.flaws if flaw.spot.variable not in _OF_NO_MATTER]
    if serious:
        raise IntentError(to_problems(serious, inventory, Places(request.sources, inventory.hosts), FABRIC_WIDE))
    chosen = [switch for switch in built.fabric.switches if switch.name in inventory.selected]
    if not chosen:
        remedy = "Put the devices into the group switches, each with fabric_nos, and check --limit."
        raise IntentError([Problem("the inventory has no switch to read", remedy=remedy)])
    return {switch.name: Way(switch.nos, built.access[switch.name]) for switch in chosen}


def read_live(ways: Mapping[str, Way], environment: Environment, *, workers: int = 8) -> Reached:
    """Returns the running configuration and the LLDP neighbours of each device.

    A device without LLDP is imported without its cables; one that gives no configuration is not imported.
    """
    factories: dict[str, SessionFactory] = {
        name: session_factory(catalog.get(way.nos), way.access, clock=environment.clock) for name, way in ways.items()
    }
    readings = fetch_all(factories, workers=workers, observer=environment.observer)
    configs = {one.device: Config(ways[one.device].nos, one.text) for one in readings if one.error is None}
    errors = {one.device: one.error for one in readings if one.error is not None}
    commands = {name: {_LLDP: catalog.get(ways[name].nos).lldp_command} for name in configs}
    asked = run_all(
        {name: factories[name] for name in configs}, commands, workers=workers, observer=environment.observer
    )
    lldp = {one.device: one.outputs[_LLDP] for one in asked if one.error is None}
    return Reached(configs, lldp, errors)


def access_variables(ways: Mapping[str, Way]) -> dict[str, dict[str, Json]]:
    """Returns device → Ansible variables to reach it. A password becomes the name of one in the vault."""
    return {name: _variables(way.access) for name, way in ways.items()}


def _variables(access: DeviceAccess) -> dict[str, Json]:
    out: dict[str, Json] = {"ansible_host": access.host}
    if access.port != 22:
        out["ansible_port"] = access.port
    if access.username:
        out["ansible_user"] = access.username
    for name, path in (("ansible_private_key_file", access.private_key), ("fabric_known_hosts", access.known_hosts)):
        if path is not None:
            out[name] = str(path)
    if access.password is not None:
        out["ansible_password"] = Template("{{ vault_switch_password }}")
    if access.enable_secret is not None:
        out["ansible_become_password"] = Template("{{ vault_enable_secret }}")
    return out


def single_way(text: str, nos: str, *, password: str | None, private_key: Path | None, known_hosts: Path | None) -> Way:
    """Returns the way of `user@address` or `user@address:port`.

    Raises:
        FabricError: the text is no such thing.
    """
    user, at, where = text.rpartition("@")
    host, colon, port = where.rpartition(":") if where.count(":") == 1 else (where, "", "")
    from fabric.intent.fields import SSH_HOST  # lazy: pydantic

    if not at or not user or SSH_HOST.fullmatch(host) is None or (colon and not (port.isascii() and port.isdigit())):
        raise FabricError("this is no way to a device", found=text, expected="USER@ADDRESS or USER@ADDRESS:PORT")
    if not nos:
        raise FabricError(
            "nobody said which network OS is there", where=host, remedy="Say it: --nos sonic or --nos eos."
        )
    access = DeviceAccess(
        device=host,
        host=host,
        port=int(port) if colon else 22,
        username=user,
        password=password,
        private_key=private_key,
        known_hosts=known_hosts,
        enable_secret=None,
    )
    return Way(catalog.get(nos).name, access)
