"""What to serve: devices and their faults, as data. Knows no socket and no network OS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, cast

from fabric.errors import FabricError
from fabric.registry import nearest

__all__ = ("LOOPBACK", "NOS_NAMES", "DeviceSpec", "Fault", "FaultKind", "NosName", "spec_from_json")

NosName = Literal["eos", "sonic"]
LOOPBACK: Final = "127.0.0.1"  # the lab listens nowhere else
NOS_NAMES: Final[tuple[NosName, ...]] = ("eos", "sonic")


class FaultKind(StrEnum):
    """What goes wrong.

    `match` of a fault is searched in the command, typed line or patch text; empty matches everything.
    """

    DROP_AFTER_COMMIT = "drop-after-commit"  # the commit happens, its answer never arrives
    DROP_AT = "drop-at"  # the n-th matching command is lost with the connection and does not happen
    DROP_AFTER = "drop-after"  # the matching command happens, its answer never arrives
    REBOOT = "reboot"  # the device boots its saved configuration instead of doing the matching command
    REBOOT_AFTER = "reboot-after"  # likewise, once it has done it
    REFUSE = "refuse"  # the device refuses the matching line or patch in its own words
    DELAY = "delay"  # the answer to a matching command takes `seconds` longer
    WRONG_PROMPT = "wrong-prompt"  # prompts do not look like prompts
    NEW_HOST_KEY = "new-host-key"  # the next restart comes up with other host keys
    DENY_AUTH = "deny-auth"  # no password is right
    REFUSE_REVERT = "refuse-revert"  # abort, rollback and restore are refused


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one device.

    Attributes:
        match: regular expression; "" for every command.
        seconds: of `delay`, on the device's clock.
        nth: 1 is the next matching command; `drop-at` strikes that one alone (0: every one), the others from there on.
        times: how often it strikes before it is used up; 0 for always.
        text: what the device says when it refuses; "" for the network OS's usual words.
    """

    kind: FaultKind
    match: str = ""
    seconds: float = 0.0
    nth: int = 1
    times: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One emulated device.

    Attributes:
        nos: `eos` or `sonic`.
        config: text of any configuration file of that network OS, the seed.
        password: "" draws one at the start. enable_secret: EOS; "" asks for none.
        version: EOS release, or SONiC build version such as `master.0-dirty-20260101.000000`; "" for a default.
        hwsku: SONiC hardware SKU, or EOS model; "" takes it from the seed, else a default.
        asic_type: SONiC `mellanox`, `broadcom`, `cisco-8000`…; "" derives it from the SKU.
        reload_s: how long a reboot, or a SONiC `config reload`, refuses connections, seconds.
    """

    name: str
    nos: NosName
    config: str
    username: str = "admin"
    password: str = field(default="", repr=False)
    enable_secret: str = field(default="", repr=False)
    version: str = ""
    hwsku: str = ""
    asic_type: str = ""
    reload_s: float = 0.3
    faults: tuple[Fault, ...] = ()


def spec_from_json(data: Mapping[str, object]) -> DeviceSpec:
    """Returns the spec of a JSON object with the attribute names of `DeviceSpec`; `faults` is a list of objects.

    Raises:
        FabricError: a key is unknown or a value cannot be.
    """
    values = dict(data)
    raw_faults = values.pop("faults", [])
    known = tuple(DeviceSpec.__dataclass_fields__)
    for key in values:
        if key not in known:
            close = nearest(key, known)
            raise FabricError(
                f"a device has no field {key!r}",
                where=str(values.get("name", "")),
                expected=", ".join(known),
                remedy=f"Did you mean {close!r}?" if close else "",
            )
    if values.get("nos") not in NOS_NAMES:
        raise FabricError("no such network OS", found=repr(values.get("nos")), expected=", ".join(NOS_NAMES))
    try:
        faults = tuple(_fault(one) for one in cast("list[dict[str, object]]", raw_faults))
        return DeviceSpec(**cast("dict[str, str]", values), faults=faults)  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError) as error:
        raise FabricError(f"a device cannot be read: {error}", where=str(values.get("name", ""))) from error


def _fault(data: dict[str, object]) -> Fault:
    values = dict(data)
    kind = FaultKind(str(values.pop("kind")))
    return Fault(kind, **values)  # type: ignore[arg-type]
