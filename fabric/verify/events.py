"""What a counter can mean: the event, its unit, whether it may move, and which packets it is about. Types alone.

| way | packets that the counter is about |
|---|---|
| in | those that come to the device |
| out | those that the device sends |
| both | either, the counter cannot tell |
| local | none: what the device did or has by itself |
"""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ("Event", "Meaning", "Per", "Row", "Rule", "Unit", "Way")


class Event(StrEnum):
    """What happened, whoever counts it."""

    GAP_SEEN = "gap-seen"  # a responder saw a hole in the packet numbers
    GAP_NAKED = "gap-naked"  # a requester was told of one, and sent again
    READ_GAP = "read-gap"  # a requester saw a hole in what a READ returned
    ACK_TIMEOUT = "ack-timeout"
    DUPLICATE = "duplicate"
    RETRANSMITTED = "retransmitted"
    SLOW_RESTART = "slow-restart"
    QP_DEAD = "queue-pair-died"
    NOT_READY = "receiver-not-ready"
    NO_BUFFER = "no-receive-buffer"
    PROTOCOL_ERROR = "protocol-error"
    FLUSHED = "flushed-at-teardown"
    ICRC_ERROR = "invariant-crc-error"
    DEVICE_DROP = "dropped-by-the-nic"
    SEND_ERROR = "not-sent"
    LINK_ERROR = "link-error"
    LINK_DOWN = "link-down"
    BITS_CORRECTED = "bits-corrected"
    SLOW_HOST = "host-bus-full"
    STORM = "pause-storm"
    CE_RECEIVED = "ce-received"
    CNP_SENT = "cnp-sent"
    CNP_HANDLED = "cnp-handled"
    CNP_IGNORED = "cnp-ignored"
    PAUSE_RECEIVED = "pause-received"
    PAUSE_SENT = "pause-sent"
    PAUSED_TIME = "paused-time"
    PAUSING_TIME = "pausing-time"
    PAUSE_CHANGED = "pause-changed"
    RESUME_RECEIVED = "resume-received"
    RESUME_SENT = "resume-sent"
    RDMA_SENT = "rdma-packets-sent"
    RDMA_RECEIVED = "rdma-packets-received"
    RDMA_BYTES = "rdma-bytes"
    CLASS_SENT = "packets-of-the-class-sent"
    CLASS_RECEIVED = "packets-of-the-class-received"
    CLASS_BYTES = "bytes-of-the-class"
    OPERATIONS = "operations"
    PORT_SENT = "frames-sent-at-the-port"
    PORT_RECEIVED = "frames-received-at-the-port"
    PORT_DISCARD = "frames-discarded-at-the-port"
    QUEUE_SENT = "packets-through-the-queue"
    QUEUE_DROP = "dropped-at-the-queue"
    EARLY_DROP = "dropped-by-wred"
    MARKED = "marked"
    GROUP_DROP = "dropped-at-the-priority-group"
    WATCHDOG_STORM = "watchdog-tripped"
    WATCHDOG_RESTORED = "watchdog-restored"
    WATCHDOG_DROP = "dropped-by-the-watchdog"
    WATCHDOG_PASSED = "passed-in-a-storm"


class Unit(StrEnum):
    """What one count is. An episode may be one lost packet or a thousand: say "> 0", never "= n"."""

    PACKETS = "packets"
    EPISODES = "episodes"
    MICROSECONDS = "µs"
    BYTES = "bytes"


class Rule(StrEnum):
    """ZERO: a move is a fault. BOUNDED: it is evidence. VOLUME: how much there was."""

    ZERO = "zero"
    BOUNDED = "bounded"
    VOLUME = "volume"


class Way(StrEnum):
    """Which packets, seen from the device."""

    IN = "in"
    OUT = "out"
    BOTH = "both"
    LOCAL = "local"


class Per(StrEnum):
    """What the number in the counter's name is."""

    DEVICE = "device"
    PRIORITY = "priority"
    QUEUE = "queue"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Row:
    """One event in one family's names; `{}` stands for a priority, queue or group.

    Attributes:
        mixed: counts every class alike, so that drops of lossy traffic move it too.
        unconfirmed: nobody here has seen it in a driver's source or in a sample.
    """

    family: str
    names: tuple[str, ...]
    event: Event
    unit: Unit
    rule: Rule
    way: Way
    per: Per = Per.DEVICE
    mixed: bool = False
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """The row of one counter; index: priority, queue or group in its name, None for the whole device."""

    row: Row
    index: int | None = None
