"""What may be planted, what a verdict should call it, and what really happened."""

from dataclasses import dataclass
from enum import StrEnum

from fabric.lab.wire import PacketKind


class Fault(StrEnum):
    """What is planted, the list of bar 1."""

    NONE = "none"
    NTH = "nth-packet-dropped"
    RANDOM = "random-loss"
    MISCLASSIFIED = "misclassified-dscp"
    PFC_OFF = "pfc-off"
    WATCHDOG = "watchdog-trip"
    FLAP = "port-flap"
    CORRUPT = "payload-corrupted"
    RESET = "counter-reset"
    REBOOT = "host-reboot"
    UNAVAILABLE = "counters-unavailable"
    HEADROOM = "headroom-too-small"
    DEAF = "nic-ignores-pauses"
    REORDERED = "packets-overtaken"
    SLOW = "slow-host"


BAR_1 = tuple(Fault)[:11]
MORE = (Fault.HEADROOM, Fault.DEAF, Fault.REORDERED, Fault.SLOW)
INCAST = frozenset({Fault.PFC_OFF, Fault.HEADROOM, Fault.DEAF})
POOR = frozenset({Fault.NONE, Fault.NTH, Fault.RANDOM, Fault.FLAP, Fault.CORRUPT})  # need no switch's counters
CAUSE = {
    Fault.NTH: "loss-on-cable",
    Fault.RANDOM: "loss-on-cable",
    Fault.MISCLASSIFIED: "dscp-misclassified",
    Fault.PFC_OFF: "pfc-off",
    Fault.WATCHDOG: "watchdog-tripped",
    Fault.FLAP: "link-flap",
    Fault.CORRUPT: "payload-corrupted",
    Fault.HEADROOM: "headroom-overflow",
    Fault.DEAF: "pause-ignored",
    Fault.REORDERED: "reordering",
}
KINDS = (
    PacketKind.SEND,
    PacketKind.WRITE,
    PacketKind.READ_REQUEST,
    PacketKind.READ_RESPONSE,
    PacketKind.ACK,
    PacketKind.CNP,
    PacketKind.CM,
)


@dataclass(frozen=True, slots=True)
class Truth:
    """What really happened.

    Attributes:
        lost: packets of the class that went on a cable and came off none. flaws: payloads that were wrong.
        places: any of these in the place of a finding is right. device: whose counters are void or gone.
        struck: whether the fault did anything. counts_ports: whether every port's frames were counted.
    """

    fault: Fault
    lost: int
    flaws: int
    places: tuple[str, ...] = ()
    device: str = ""
    struck: bool = True
    counts_ports: bool = False
