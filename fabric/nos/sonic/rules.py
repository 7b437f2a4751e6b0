"""In which order SONiC takes changes, and which of them interrupt traffic. Data only."""

from typing import Final

from fabric.diff import DiffRules, Pattern
from fabric.nos.sonic.names import (
    BOUND_MAPS,
    BUFFER_PG,
    BUFFER_POOL,
    BUFFER_PROFILE,
    BUFFER_QUEUE,
    CABLE_LENGTH,
    DEVICE_METADATA,
    PFC_WD,
    PORT,
    PORT_QOS_MAP,
    QUEUE,
    SCHEDULER,
    WRED_PROFILE,
)

__all__ = ("RULES",)

_ORDER: Final[tuple[Pattern, ...]] = (
    *((table, "**") for table in BOUND_MAPS.values()),
    (SCHEDULER, "**"),
    (WRED_PROFILE, "**"),
    (BUFFER_POOL, "**"),
    (BUFFER_PROFILE, "**"),
    (PORT, "**"),
    (CABLE_LENGTH, "**"),
    (BUFFER_PG, "**"),  # headroom before the pauses that need it
    (BUFFER_QUEUE, "**"),
    (PORT_QOS_MAP, "(?!global$).*", "**"),
    (PORT_QOS_MAP, "**"),
    (QUEUE, "**"),
    (PFC_WD, "GLOBAL", "**"),
    (PFC_WD, "**"),
)

_SWAP: Final = "a buffer profile is swapped under traffic: packets in that buffer may be lost (switches.md 1.9)"
_FLAP: Final = "the port goes down and comes up again"
_REFUSED: Final = "buffers are re-carved: needs load and reload, all ports interrupted"

RULES: Final = DiffRules(
    order=_ORDER,
    disruptive=(
        ((DEVICE_METADATA, "localhost", "buffer_model"), _REFUSED),
        ((BUFFER_POOL, "**"), _REFUSED),
        ((BUFFER_PG, "**"), _SWAP),
        ((BUFFER_QUEUE, "**"), _SWAP),
        ((PORT, ".*", "speed|fec|lanes|autoneg|link_training"), _FLAP),
    ),
)
