"""What the data plane asks of whoever drives it, and where it says every frame is. Types alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

__all__ = ("Action", "DropReason", "PausePeer", "Send", "Tally")


@dataclass(frozen=True, slots=True)
class Send:
    """A frame is on the link of `port` from `start_ns`, and all of it is there at `end_ns`."""

    port: str
    frame: bytes
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class PausePeer:
    """The peer of `port` must hold, or may send, that PFC priority."""

    port: str
    priority: int
    paused: bool
    at_ns: int


Action: TypeAlias = Send | PausePeer


class DropReason(StrEnum):
    """Why a frame, or one copy of it, did not go on."""

    MALFORMED = "malformed"
    CONTROL = "control"  # PFC, LLDP and the like end at the switch
    MTU = "mtu"
    NO_WAY = "no-way"  # it would leave where it came, or there is no other port
    BUFFER = "buffer"  # priority group, headroom too
    TAIL = "tail"
    EARLY = "early"
    WATCHDOG = "watchdog"
    DOWN = "down"  # the port it waited at was shut down


@dataclass(frozen=True, slots=True)
class Tally:
    """Where every frame is: received = refused + admitted; copies = sent + lost + queued.

    Attributes:
        refused: frames that were not queued at all. lost: copies that were not sent.
    """

    received: int
    admitted: int
    copies: int
    sent: int
    queued: int
    refused: Mapping[DropReason, int]
    lost: Mapping[DropReason, int]
