"""What an import is given, and what comes of it. Holds no secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fabric.errors import FabricError
from fabric.intent.model import Endpoint, Fabric, SwitchRole
from fabric.serial import Json

__all__ = ("Cabled", "Config", "ImportOptions", "ImportRefusedError", "Imported", "Joined", "Unexpressed")


class ImportRefusedError(FabricError):
    """Nothing could be imported, or what is there would be overwritten."""


@dataclass(frozen=True, slots=True)
class Config:
    """The running configuration of one device.

    Attributes:
        nos: a name that `nos.catalog` knows.
        text: as the device prints it.
    """

    nos: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Cabled:
    """One cable that somebody listed.

    Attributes:
        cable_m: its length, None when not told. speed_mbps: None when not told.
        source: file and line, or where in the document.
    """

    a: Endpoint
    b: Endpoint
    cable_m: int | None = None
    speed_mbps: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an import cannot read off a device.

    Attributes:
        name: of the fabric.
        speed_mbps: of ports whose configuration does not tell, and no cable either.
        roles: device → role; of others it is guessed from the name, and told.
        access: device → Ansible variables that say how to reach it; never a secret.
    """

    name: str = "fabric"
    speed_mbps: int | None = None
    roles: Mapping[str, SwitchRole] = field(default_factory=dict)
    access: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unexpressed:
    """Something that a device does and the intent has no words for.

    Attributes:
        device: which.
        path: where in its configuration, the first place; "" for the whole device.
        why: what the intent cannot say.
        ports: those that it is about; () for the device.
        keep: the entries of `fabric_keep` that let it stay; () where nothing can.
        change: what the first provision would change there without them; () for nothing that could be told.
    """

    device: str
    path: str
    why: str
    ports: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    change: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """What became of one cable.

    Attributes:
        a, b: its ends; b is None where the far end is no imported device.
        verdict: `both-ends`, `one-end`, `listed`, `disagree`, `unknown-neighbour` or `ambiguous`.
        told: in words.
    """

    a: Endpoint
    b: Endpoint | None
    verdict: str
    told: str


@dataclass(frozen=True, slots=True)
class Imported:
    """An inventory and what must be known of it.

    Attributes:
        fabric: what the files say: `load` of them gives it again.
        files: relative path → text.
        unexpressed: what the intent has no words for.
        assumed: what nobody told and was taken to be so, in words.
        joined: the cables, whether both ends agree on them.
        failed: device → why it is not in the inventory.
    """

    fabric: Fabric
    files: Mapping[str, str]
    unexpressed: tuple[Unexpressed, ...] = ()
    assumed: tuple[str, ...] = ()
    joined: tuple[Joined, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
