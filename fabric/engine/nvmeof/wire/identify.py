"""Identify pages: controller, namespace, active namespace list, namespace descriptors. Knows no command.

Source: NVMe base 1.4 section 5.15 (figures 245, 247, 249); SPDK nvme_spec.h (spdk_nvme_ctrlr_data, spdk_nvme_ns_data).
Only what a fabrics host decides by is read; the offset of each field stands beside it.
"""

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.admin import IDENTIFY_BYTES
from fabric.engine.nvmeof.wire.fields import NQN_FIELD_BYTES, need, pack_text, parse_text
from fabric.errors import RemoteProtocolError

__all__ = (
    "IdentifyController",
    "IdentifyNamespace",
    "NamespaceIds",
    "pack_active_namespaces",
    "parse_active_namespaces",
    "parse_namespace_ids",
)

_MAX_LISTED = IDENTIFY_BYTES // 4
_TBKAS = 1 << 6  # CTRATT: traffic resets the keep-alive timer
_SGL_SUPPORTED, _SGL_KEYED, _SGL_OFFSET = 1, 1 << 2, 1 << 20  # SGLS
_SQE_AND_CAPSULE_UNIT = 16  # IOCCSZ, IORCSZ and ICDOFF count 16 bytes


@dataclass(frozen=True, slots=True)
class IdentifyController:
    """What a controller can do. Sizes as on the wire; the properties give bytes.

    Attributes:
        serial, model, firmware: ASCII, blank padded (SN 4, MN 24, FR 64).
        mdts: largest transfer as a power of two of pages (77); 0 is no limit.
        cntlid: (78).
        version: (80).
        oaes: notices that it can send (92).
        ctratt: (96).
        retry_delays_100ms: CRDT1 to CRDT3 (128).
        aerl: Asynchronous Event Requests that it holds, from 0 (259).
        kas_100ms: granularity of the keep-alive timer (320); 0 is none.
        max_commands: MAXCMD (514); 0 is not said.
        namespaces: NN (516).
        oncs: optional commands (520).
        sgls: (536).
        subnqn: (768).
        command_capsule: IOCCSZ (1792). response_capsule: IORCSZ (1796). capsule_offset: ICDOFF (1800).
        max_descriptors: MSDBD (1803).
        kind: CNTRLTYPE (111): 0 not said, 1 I/O, 2 discovery.
        cmic: (76). volatile_cache: VWC (525).
    """

    serial: str
    model: str
    firmware: str
    cntlid: int
    subnqn: str
    mdts: int = 0
    version: int = 0x10300
    oaes: int = 0
    ctratt: int = 0
    retry_delays_100ms: tuple[int, int, int] = (0, 0, 0)
    aerl: int = 3
    kas_100ms: int = 10
    max_commands: int = 0
    namespaces: int = 0
    oncs: int = 0
    sgls: int = _SGL_SUPPORTED | _SGL_KEYED
    command_capsule: int = 4
    response_capsule: int = 1
    capsule_offset: int = 0
    max_descriptors: int = 1
    kind: int = 1
    cmic: int = 0
    volatile_cache: int = 0

    @property
    def has_keyed_sgl(self) -> bool:
        """SGLS bit 2; RDMA needs it."""
        return bool(self.sgls & _SGL_KEYED)

    @property
    def takes_capsule_offset(self) -> bool:
        """SGLS bit 20: an SGL may point into the capsule."""
        return bool(self.sgls & _SGL_OFFSET)

    @property
    def traffic_keeps_alive(self) -> bool:
        """TBKAS: any command resets the keep-alive timer."""
        return bool(self.ctratt & _TBKAS)

    @property
    def in_capsule_bytes(self) -> int:
        """Data that fits into a command capsule of an I/O queue."""
        if not self.takes_capsule_offset or self.capsule_offset:
            return 0
        return max(0, self.command_capsule * _SQE_AND_CAPSULE_UNIT - 64)

    def max_transfer_bytes(self, min_page_shift: int) -> int | None:
        """Returns the largest transfer, or None when there is no limit."""
        return 1 << (min_page_shift + self.mdts) if self.mdts else None

    def pack(self) -> bytes:
        """Returns 4096 bytes."""
        page = bytearray(IDENTIFY_BYTES)
        page[4:24] = pack_text(self.serial, 20, pad=b" ")
        page[24:64] = pack_text(self.model, 40, pad=b" ")
        page[64:72] = pack_text(self.firmware, 8, pad=b" ")
        struct.pack_into("<BBHI", page, 76, self.cmic, self.mdts, self.cntlid, self.version)
        struct.pack_into("<II", page, 92, self.oaes, self.ctratt)
        page[111] = self.kind
        struct.pack_into("<3H", page, 128, *self.retry_delays_100ms)
        page[259] = self.aerl
        struct.pack_into("<H", page, 320, self.kas_100ms)
        struct.pack_into("<BBHIH", page, 512, 0x66, 0x44, self.max_commands, self.namespaces, self.oncs)
        page[525] = self.volatile_cache
        struct.pack_into("<I", page, 536, self.sgls)
        page[768:1024] = pack_text(self.subnqn, NQN_FIELD_BYTES)
        struct.pack_into("<IIH", page, 1792, self.command_capsule, self.response_capsule, self.capsule_offset)
        page[1803] = self.max_descriptors
        return bytes(page)

    @classmethod
    def parse(cls, data: bytes) -> "IdentifyController":
        """Returns what a page of 4096 bytes says.

        Raises:
            RemoteProtocolError: too short, or a text is not UTF-8.
        """
        page = need(data, IDENTIFY_BYTES, "Identify Controller page")
        cmic, mdts, cntlid, version = struct.unpack_from("<BBHI", page, 76)
        oaes, ctratt = struct.unpack_from("<II", page, 92)
        crdt1, crdt2, crdt3 = struct.unpack_from("<3H", page, 128)
        max_commands, namespaces, oncs = struct.unpack_from("<HIH", page, 514)
        command_capsule, response_capsule, capsule_offset = struct.unpack_from("<IIH", page, 1792)
        return cls(
            serial=parse_text(page[4:24], "SN"),
            model=parse_text(page[24:64], "MN"),
            firmware=parse_text(page[64:72], "FR"),
            cntlid=cntlid,
            subnqn=parse_text(page[768:1024], "SUBNQN"),
            mdts=mdts,
            version=version,
            oaes=oaes,
            ctratt=ctratt,
            retry_delays_100ms=(crdt1, crdt2, crdt3),
            aerl=page[259],
            kas_100ms=struct.unpack_from("<H", page, 320)[0],
            max_commands=max_commands,
            namespaces=namespaces,
            oncs=oncs,
            sgls=struct.unpack_from("<I", page, 536)[0],
            command_capsule=command_capsule,
            response_capsule=response_capsule,
            capsule_offset=capsule_offset,
            max_descriptors=page[1803],
            kind=page[111],
            cmic=cmic,
            volatile_cache=page[525],
        )


@dataclass(frozen=True, slots=True)
class IdentifyNamespace:
    """The geometry of a namespace.

    Attributes:
        blocks: NSZE (0).
        block_shift: LBADS of the format in use (at 128, 4 bytes a format).
        metadata_bytes: MS of that format; we refuse to use a namespace where it is not 0.
        write_protected: NSATTR bit 0 (99).
        nguid: 16 bytes (104). eui64: 8 bytes (120).
    """

    blocks: int
    block_shift: int
    metadata_bytes: int = 0
    write_protected: bool = False
    nguid: bytes = bytes(16)
    eui64: bytes = bytes(8)

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return 1 << self.block_shift

    def pack(self) -> bytes:
        """Returns 4096 bytes: one format, in use."""
        page = bytearray(IDENTIFY_BYTES)
        struct.pack_into("<QQQ", page, 0, self.blocks, self.blocks, self.blocks)
        page[99] = int(self.write_protected)
        page[104:120], page[120:128] = self.nguid, self.eui64
        struct.pack_into("<HB", page, 128, self.metadata_bytes, self.block_shift)
        return bytes(page)

    @classmethod
    def parse(cls, data: bytes) -> "IdentifyNamespace | None":
        """Returns what a page of 4096 bytes says; None when it is all zero: nvmet's answer for a missing namespace.

        Raises:
            RemoteProtocolError: too short, or a format that cannot be.
        """
        page = need(data, IDENTIFY_BYTES, "Identify Namespace page")
        if not any(page):
            return None
        (blocks,) = struct.unpack_from("<Q", page, 0)
        metadata, shift = struct.unpack_from("<HB", page, 128 + 4 * (page[26] & 0xF))
        if not 9 <= shift <= 32:
            raise RemoteProtocolError(
                "a namespace has no usable block size", expected="LBADS 9 to 32", found=str(shift)
            )
        return cls(blocks, shift, metadata, bool(page[99] & 1), page[104:120], page[120:128])


@dataclass(frozen=True, slots=True)
class NamespaceIds:
    """What names a namespace for ever; empty when the target does not say."""

    eui64: bytes = b""
    nguid: bytes = b""
    uuid: bytes = b""


_ID_KINDS = {1: ("eui64", 8), 2: ("nguid", 16), 3: ("uuid", 16)}  # NVMe base 1.4 figure 249: type, field, bytes


def parse_namespace_ids(data: bytes) -> NamespaceIds:
    """Returns the identification descriptors of a namespace; a zeroed page has none.

    Raises:
        RemoteProtocolError: too short, or a descriptor does not fit.
    """
    page = need(data, IDENTIFY_BYTES, "namespace descriptor page")
    found: dict[str, bytes] = {}
    at = 0
    while at + 4 <= len(page) and page[at]:
        kind, size = page[at], page[at + 1]
        if at + 4 + size > len(page) or (kind in _ID_KINDS and size != _ID_KINDS[kind][1]):
            raise RemoteProtocolError("a namespace descriptor has a wrong length", found=f"type {kind}, {size} bytes")
        if kind in _ID_KINDS:
            found[_ID_KINDS[kind][0]] = page[at + 4 : at + 4 + size]
        at += 4 + size
    return NamespaceIds(**found)


def pack_active_namespaces(nsids: Sequence[int], after: int) -> bytes:
    """Returns the active namespaces above `after`, 1024 at most."""
    listed = sorted(nsid for nsid in nsids if nsid > after)[:_MAX_LISTED]
    return struct.pack(f"<{len(listed)}I", *listed).ljust(IDENTIFY_BYTES, b"\0")


def parse_active_namespaces(data: bytes) -> tuple[int, ...]:
    """Returns the listed namespaces; 1024 of them say that more may follow.

    Raises:
        RemoteProtocolError: too short, or not ascending.
    """
    nsids = struct.unpack(f"<{_MAX_LISTED}I", need(data, IDENTIFY_BYTES, "active namespace list"))
    used = nsids[: nsids.index(0)] if 0 in nsids else nsids
    if any(low >= high for low, high in itertools.pairwise(used)):
        raise RemoteProtocolError("the active namespace list is not ascending")
    return used
