"""Which driver serves which NIC."""

from typing import Final

from fabric.errors import HostError
from fabric.host.families.mlx5 import INBOX, OFED
from fabric.host.families.others import BNXT_RE, GENERIC, IRDMA, RXE
from fabric.host.settings import Driver
from fabric.registry import nearest

__all__ = ("DRIVERS", "driver")

DRIVERS: Final = (INBOX, OFED, BNXT_RE, IRDMA, RXE, GENERIC)


def driver(family: str, flavour: str = "inbox") -> Driver:
    """Returns the driver of that family; a family without its own out-of-tree driver has one for both flavours.

    Raises:
        HostError: nobody knows the family.
    """
    own = [one for one in DRIVERS if one.family == family]
    if not own:
        known = sorted({one.family for one in DRIVERS})
        close = nearest(family, known)
        raise HostError(
            f"no driver for NIC family {family!r}",
            expected=", ".join(known),
            remedy=f"Did you mean {close!r}?" if close else "",
        )
    return next((one for one in own if one.flavour == flavour), own[0])
