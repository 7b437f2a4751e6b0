"""What a host showed when it was asked, and how its connections were defined. Changes nothing, judges nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fabric.errors import HostError
from fabric.host.batch import ask, foreseeing, read_many
from fabric.host.change import HostIntent
from fabric.host.executor import Executor, list_folder, listing
from fabric.host.nvme.connect import read_connect
from fabric.host.observe import HostReading, host_questions, observe_host
from fabric.host.parse.rdma import read_statistic
from fabric.policy import PROFILE_PATH
from fabric.qos import UNKNOWN, Known
from fabric.serial import Json, from_json, parse_json
from fabric.state.host import RdmaCounters

__all__ = ("Definition", "HostReport", "read_definitions", "read_host", "report_from_json")

CONFIG_PATH: Final = "/etc/nvme/config.json"
DISCOVERY_PATH: Final = "/etc/nvme/discovery.conf"
UNITS: Final = "/etc/systemd/system"
_PROFILE: Final = (("test", "-e", PROFILE_PATH), PROFILE_PATH)
_STATISTIC: Final = ("rdma", "-j", "statistic", "show")
UNIT_NAME: Final = re.compile(r"fabricctl-nvme-[0-9a-f]{12}\.service")


@dataclass(frozen=True, slots=True)
class Definition:
    """How a connection was, or will be, made.

    Attributes:
        nqn: "" where the subsystem is discovered.
        host_traddr: "" where routing chooses.
        tos: type of service that is asked for; UNKNOWN where the definition names none: the device's default then.
        source: the path of the file that says so.
    """

    nqn: str
    traddr: str
    host_traddr: str
    tos: Known[int]
    source: str


@dataclass(frozen=True, slots=True)
class HostReport:
    """All that was read of one host.

    Attributes:
        definitions: UNKNOWN when a file that defines connections could not be read.
        shard_profile: text of the engine's profile, "" for none.
    """

    host: str
    reading: HostReading
    definitions: Known[tuple[Definition, ...]]
    counters: tuple[RdmaCounters, ...]
    shard_profile: Known[str] = UNKNOWN


def report_from_json(data: Json) -> HostReport:
    """Returns the report that `fabric.serial.to_json` wrote.

    Raises:
        SerialError: it is none.
    """
    return from_json(HostReport, data)


def read_host(intent: HostIntent, executor: Executor) -> HostReport:
    """Returns all that can be read of a host or target; what cannot is UNKNOWN.

    Raises:
        HostError: the host cannot be reached, or a NIC family is unknown.
    """
    own = (listing(UNITS), CONFIG_PATH, DISCOVERY_PATH, _STATISTIC, *_PROFILE)
    executor = foreseeing(executor, (*host_questions(intent.plan), *own))
    reading = observe_host(intent.plan, executor)
    return HostReport(intent.host, reading, read_definitions(executor), _counters(executor), _profile(executor))


def _profile(executor: Executor) -> Known[str]:
    there, text = ask(executor, _PROFILE)
    if there.status == 1:
        return ""
    return text.stdout if there.ok and text.ok else UNKNOWN


def _counters(executor: Executor) -> tuple[RdmaCounters, ...]:
    done = executor.run(_STATISTIC)
    try:
        return read_statistic(done.stdout) if done.ok and done.stdout.strip() else ()
    except HostError:
        return ()  # a counter that nobody could read is absent, and so UNKNOWN


def read_definitions(executor: Executor) -> Known[tuple[Definition, ...]]:
    """Returns how connections are defined: by our units, in nvme-cli's config.json and in its discovery.conf.

    Raises:
        HostError: the host cannot be reached.
    """
    names = list_folder(executor, UNITS)
    if names is None:
        return UNKNOWN
    units = [f"{UNITS}/{name}" for name in names if UNIT_NAME.fullmatch(name)]
    texts = read_many(executor, (*units, CONFIG_PATH, DISCOVERY_PATH))
    if any(texts[path] is None for path in units):
        return UNKNOWN
    config, discovery = texts[CONFIG_PATH], texts[DISCOVERY_PATH]
    try:
        own = [one for path in units if (one := unit_definition(texts[path] or "", path)) is not None]
        theirs = config_definitions(config) if config else ()
        found = discovery_definitions(discovery) if discovery else ()
    except HostError:
        return UNKNOWN
    return (*own, *theirs, *found)


def unit_definition(text: str, path: str) -> Definition | None:
    """Returns the connection that a unit of ours makes, None when its text has none.

    Raises:
        HostError: the command in it cannot be read.
    """
    options = unit_command(text)
    return _definition(options, path) if options else None


def unit_command(text: str) -> dict[str, str]:
    """Returns the options of the connection that a unit's text makes, {} when it makes none.

    Raises:
        HostError: the command in it cannot be read.
    """
    row = re.search(r"(?m)^ExecStart=-?\S*/nvme (connect .*)$", text)
    # systemd.service(5): `%` and `$` are written twice
    return read_connect(f"nvme {row[1].replace('%%', '%').replace('$$', '$')}") if row else {}


def _definition(options: Mapping[str, str], source: str) -> Definition:
    tos = options.get("tos", "")
    return Definition(
        options.get("nqn", ""),
        options.get("traddr", ""),
        options.get("host-traddr", ""),
        int(tos) if re.fullmatch("[0-9]{1,3}", tos) else UNKNOWN,
        source,
    )


def config_definitions(text: str) -> tuple[Definition, ...]:
    """Returns the connections of nvme-cli 2's config.json. Source: libnvme doc/config-schema.json.

    Raises:
        HostError: it is no such file.
    """
    try:
        root: Any = parse_json(text)
        ports = [
            (subsystem["nqn"], port)
            for host in root
            for subsystem in host.get("subsystems", ())
            for port in subsystem.get("ports", ())
        ]
        rows = [(str(nqn), {key: str(value) for key, value in port.items()}) for nqn, port in ports]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostError("this is no configuration of nvme-cli", where=CONFIG_PATH, found=str(error)) from error
    names = {"host_traddr": "host-traddr"}
    return tuple(
        _definition({"nqn": nqn, **{names.get(key, key): value for key, value in port.items()}}, CONFIG_PATH)
        for nqn, port in rows
    )


def discovery_definitions(text: str) -> tuple[Definition, ...]:
    """Returns the discovery controllers of discovery.conf, one line of options each; `#` starts a comment.

    Raises:
        HostError: a line has an open quote.
    """
    lines = (line.strip() for line in text.splitlines())
    return tuple(
        _definition(read_connect(f"nvme connect {line}"), DISCOVERY_PATH)
        for line in lines
        if line and not line.startswith("#")
    )
