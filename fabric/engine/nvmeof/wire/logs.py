"""Log pages: discovery, changed namespaces. Knows no controller.

Source: NVMe-oF 1.1 section 5.3; SPDK nvmf_spec.h (spdk_nvmf_discovery_log_page, _log_page_entry); NVMe base 1.4
section 5.14.1.4.
"""

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.fields import need, pack_text, parse_text
from fabric.errors import RemoteProtocolError

__all__ = (
    "CHANGED_LIST_BYTES",
    "CHANGED_TOO_MANY",
    "DISCOVERY_ENTRY_BYTES",
    "DISCOVERY_HEADER_BYTES",
    "AddressFamily",
    "DiscoveryEntry",
    "DiscoveryHeader",
    "SubsystemType",
    "TransportType",
    "pack_changed_namespaces",
    "parse_changed_namespaces",
    "parse_discovery_entries",
)

DISCOVERY_HEADER_BYTES = 1024
DISCOVERY_ENTRY_BYTES = 1024
CHANGED_LIST_BYTES = 4096  # 1024 words
CHANGED_TOO_MANY = 0xFFFFFFFF  # first entry: more than 1024 changed
_HEADER = struct.Struct("<QQH1006x")  # genctr, numrec, recfmt
# In order: TRTYPE ADRFAM SUBTYPE TREQ PORTID CNTLID ASQSZ EFLAGS, TRSVCID at 32, SUBNQN 256, TRADDR 512, TSAS 768
_ENTRY = struct.Struct("<BBBBHHHH20x32s192x256s256s256s")


class TransportType(enum.IntEnum):
    """enum spdk_nvmf_trtype."""

    RDMA = 1
    FC = 2
    TCP = 3
    INTRA_HOST = 0xFE


class AddressFamily(enum.IntEnum):
    """enum spdk_nvmf_adrfam."""

    UNSPECIFIED = 0
    IPV4 = 1
    IPV6 = 2
    IB = 3
    FC = 4
    INTRA_HOST = 0xFE


class SubsystemType(enum.IntEnum):
    """enum spdk_nvmf_subtype."""

    REFERRAL = 1
    NVM = 2
    CURRENT_DISCOVERY = 3


@dataclass(frozen=True, slots=True)
class DiscoveryHeader:
    """The head of the discovery log: it changed when `generation` did."""

    generation: int
    records: int

    def pack(self) -> bytes:
        """Returns 1024 bytes."""
        return _HEADER.pack(self.generation, self.records, 0)

    @classmethod
    def parse(cls, data: bytes) -> "DiscoveryHeader":
        """Returns the header at the start of `data`.

        Raises:
            RemoteProtocolError: too short, or another record format.
        """
        generation, records, recfmt = _HEADER.unpack(need(data, DISCOVERY_HEADER_BYTES, "discovery log header"))
        if recfmt:
            raise RemoteProtocolError("the discovery log has another format", expected="0", found=str(recfmt))
        return cls(generation, records)


@dataclass(frozen=True, slots=True)
class DiscoveryEntry:
    """One subsystem at one address.

    Attributes:
        transport: a TransportType; raw, since a log may list what we do not speak.
        family: an AddressFamily, raw.
        subsystem_type: a SubsystemType, raw.
        subnqn: the subsystem.
        address: TRADDR.
        service: TRSVCID, the port.
        port_id: the target's port.
        cntlid: 0xFFFF is dynamic.
        admin_depth: ASQSZ, largest admin queue.
        requirements: TREQ.
        flags: EFLAGS.
        specific: TSAS, 256 bytes: for RDMA queue pair type, provider (nvmet says "not specified"), CM service.
    """

    transport: int
    family: int
    subsystem_type: int
    subnqn: str
    address: str
    service: str
    port_id: int = 0
    cntlid: int = 0xFFFF
    admin_depth: int = 32
    requirements: int = 0
    flags: int = 0
    specific: bytes = b"\x01\x01\x01"

    def pack(self) -> bytes:
        """Returns 1024 bytes."""
        return _ENTRY.pack(
            self.transport,
            self.family,
            self.subsystem_type,
            self.requirements,
            self.port_id,
            self.cntlid,
            self.admin_depth,
            self.flags,
            pack_text(self.service, 32, pad=b" "),  # ASCII, blank padded (NVMe-oF 1.1 figure 34)
            pack_text(self.subnqn, 256),
            pack_text(self.address, 256, pad=b" "),
            self.specific,
        )

    @classmethod
    def parse(cls, data: bytes) -> "DiscoveryEntry":
        """Returns the entry at the start of `data`; blanks and NULs end a text.

        Raises:
            RemoteProtocolError: too short, or a text is not UTF-8.
        """
        raw = need(data, DISCOVERY_ENTRY_BYTES, "discovery log entry")
        trtype, adrfam, subtype, treq, portid, cntlid, asqsz, eflags, *texts = _ENTRY.unpack(raw)
        service, subnqn, address, specific = texts
        return cls(
            transport=trtype,
            family=adrfam,
            subsystem_type=subtype,
            subnqn=parse_text(subnqn, "SUBNQN"),
            address=parse_text(address, "TRADDR"),
            service=parse_text(service, "TRSVCID"),
            port_id=portid,
            cntlid=cntlid,
            admin_depth=asqsz,
            requirements=treq,
            flags=eflags,
            specific=bytes(specific),
        )


def parse_discovery_entries(data: bytes, records: int) -> tuple[DiscoveryEntry, ...]:
    """Returns `records` entries, which follow one another in `data`.

    Raises:
        RemoteProtocolError: `data` is shorter, or an entry cannot be read.
    """
    raw = need(data, records * DISCOVERY_ENTRY_BYTES, "discovery log")
    return tuple(DiscoveryEntry.parse(raw[at : at + 1024]) for at in range(0, len(raw), DISCOVERY_ENTRY_BYTES))


def pack_changed_namespaces(nsids: Sequence[int]) -> bytes:
    """Returns the changed namespace list, 4096 bytes; more than 1024 say "too many"."""
    listed = [CHANGED_TOO_MANY] if len(nsids) > CHANGED_LIST_BYTES // 4 else list(nsids)
    return struct.pack(f"<{len(listed)}I", *listed).ljust(CHANGED_LIST_BYTES, b"\0")


def parse_changed_namespaces(data: bytes) -> tuple[int, ...] | None:
    """Returns the namespaces that changed, or None when there were too many to list.

    Raises:
        RemoteProtocolError: fewer than 4096 bytes.
    """
    nsids = struct.unpack("<1024I", need(data, CHANGED_LIST_BYTES, "changed namespace list"))
    if nsids[0] == CHANGED_TOO_MANY:
        return None
    return tuple(nsid for nsid in nsids if nsid)
