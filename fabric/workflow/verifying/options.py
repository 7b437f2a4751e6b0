"""What `verify` is asked for, beside where the inventory is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fabric.policy import ShardPolicy

__all__ = ("DEFAULT_PROFILE", "QUIESCE_S", "VerifyOptions")

DEFAULT_PROFILE: Final = "incast"
# hosts.md 1.3: 2.147 s per retry by RDMA CM on Linux 6.1, seven retries after the first packet
QUIESCE_S: Final = 8 * 2.147


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How far one verification goes.

    Attributes:
        profile: name of a load profile, or the path of one.
        seconds: each phase lasts so long; None: as the profile says.
        packets: of the lossless classes at least, and the load is repeated until then; 0: once.
        scratch: what may be overwritten: targets or NQNs, `/NSID` behind one for one namespace. (): reads alone.
        gentle: little enough to go on beside production.
        go_on: load although a check before it failed.
        checked: run folder of a provisioning, or of `check --live`, whose findings stand for the checks.
        idle_s: how long the fabric is watched without load; never less than what counters are cached for.
        quiesce_s: how long to wait after the load for what comes late; counters' caches are waited for in any case.
        longest_s: after that the load is repeated no more.
        policies: host → how it cuts and deals its reads.
    """

    profile: str = DEFAULT_PROFILE
    seconds: int | None = None
    packets: int = 0
    scratch: tuple[str, ...] = ()
    gentle: bool = False
    go_on: bool = False
    checked: Path | None = None
    idle_s: float = 10.0
    quiesce_s: float = QUIESCE_S
    longest_s: float = 3600.0
    policies: Mapping[str, ShardPolicy] = field(default_factory=dict)
