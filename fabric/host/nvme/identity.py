"""Who a host is to targets: hostnqn and hostid. Made once, never changed.

Source: hosts.md 3.5. Debian's package makes the two independently, and a cloned image shares them; targets take a pair
that is not consistent for two hosts. An existing value is kept nevertheless: targets admit hosts by it.
"""

from dataclasses import dataclass
from typing import Final

from fabric.errors import HostError
from fabric.host import names
from fabric.host.actions import PutFile
from fabric.qos import UNKNOWN, Known

__all__ = ("HOSTID_PATH", "HOSTNQN_PATH", "HostIdentity", "identity", "identity_actions")

HOSTNQN_PATH: Final = "/etc/nvme/hostnqn"
HOSTID_PATH: Final = "/etc/nvme/hostid"
_UUID_PREFIX: Final = "nqn.2014-08.org.nvmexpress:uuid:"  # NVM Express Base Specification 2.0, section 4.5.1


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """The pair that a host presents.

    Attributes:
        warning: what is odd about a pair that was there already, "" if nothing.
    """

    hostnqn: str
    hostid: str
    warning: str = ""


def identity(hostnqn: Known[str | None], hostid: Known[str | None], *, new_uuid: str) -> HostIdentity:
    """Returns the pair that the host has, completed where a half or both are missing.

    Args:
        hostnqn: text of the file, None: there is none. UNKNOWN: it was not read.
        hostid: likewise.
        new_uuid: drawn by the caller, used only when nothing is there.

    Raises:
        HostError: one was not read, or what stands there is no identity.
    """
    if hostnqn is UNKNOWN or hostid is UNKNOWN:
        raise HostError("the host's identity was not read", remedy="Read it first: it must never be replaced.")
    has_nqn, has_id = (hostnqn or "").strip(), (hostid or "").strip().lower()
    if not has_nqn:
        uuid = names.hostid(has_id or new_uuid)
        return HostIdentity(_UUID_PREFIX + uuid, uuid)
    names.nqn(has_nqn)
    own = has_nqn.removeprefix(_UUID_PREFIX).lower() if has_nqn.startswith(_UUID_PREFIX) else ""
    if not has_id:
        return HostIdentity(has_nqn, names.hostid(own or new_uuid))
    names.hostid(has_id)
    differs = own and own != has_id
    warning = f"hostid {has_id} is not the UUID of {has_nqn}: some targets refuse the pair" if differs else ""
    return HostIdentity(has_nqn, has_id, warning)


def identity_actions(pair: HostIdentity, *, hostnqn: str | None, hostid: str | None) -> tuple[PutFile, ...]:
    """Returns the files to make; what is there stays untouched. hostnqn, hostid: text of the files, None for none."""
    wanted = ((HOSTNQN_PATH, pair.hostnqn, hostnqn), (HOSTID_PATH, pair.hostid, hostid))
    return tuple(PutFile(path, f"{text}\n") for path, text, there in wanted if not (there or "").strip())
