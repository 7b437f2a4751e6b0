"""What a load profile may say: pydantic models that live at this door and nowhere else."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict

from fabric.intent.fields import ByteCount, Dscp, Flag, PatternedText, Percent, Word, choice, whole

__all__ = ("PhaseDoor", "ProfileDoor")

_GIB: Final = 1 << 30


class _Door(BaseModel):
    """Unknown keys are errors; nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BurstDoor(_Door):
    """`burst`: all begin one at the same time, then all are idle."""

    size: ByteCount
    idle_percent: Annotated[int, whole(1, 99, "percent")] = 80


class BackgroundDoor(_Door):
    """`background`: plain TCP to every host that reads; receivers listen on `port` for the time of the phase."""

    connections: Annotated[int, whole(1, 256)] = 8
    dscp: Dscp = 0
    port: Annotated[int, whole(1024, 65535)] = 47100


class PhaseDoor(_Door):
    """An entry of `phases`. How long a request is: `size`, or that of a KV cache by `model` and `ranks`."""

    name: Word
    pattern: Annotated[str, choice("pairwise", "incast", "outcast", "all")]
    size: ByteCount | None = None
    model: PatternedText | None = None
    ranks: Annotated[int, whole(1, 1024)] = 8
    readers: Annotated[int, whole(1, 1024)] = 16
    seconds: Annotated[int, whole(1, 86_400, "s")] = 30
    write_percent: Percent = 0
    burst: BurstDoor | None = None
    background: BackgroundDoor | None = None
    rotate: Flag = False
    check: Flag = True
    rate_mbps: Annotated[int, whole(1, 10_000_000, "Mb/s")] | None = None


class ProfileDoor(_Door):
    """The whole file."""

    about: str = ""
    transport: Annotated[str, choice("rdma", "tcp")] = "rdma"
    span: ByteCount = _GIB
    phases: tuple[PhaseDoor, ...] = ()
