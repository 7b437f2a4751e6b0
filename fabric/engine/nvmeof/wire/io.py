"""NVM commands: Read, Write, Flush, Write Zeroes, Dataset Management. Knows no namespace.

Source: NVMe base 1.4 section 6; SPDK nvme_spec.h (enum spdk_nvme_nvm_opcode, spdk_nvme_dsm_range).
"""

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.fields import need
from fabric.errors import LocalProtocolError

__all__ = (
    "DSM_RANGE_BYTES",
    "FORCE_UNIT_ACCESS",
    "MAX_BLOCKS",
    "MAX_RANGES",
    "IoOpcode",
    "LbaRange",
    "block_range",
    "deallocate",
    "flush",
    "pack_keyed_transfer",
    "pack_ranges",
    "pack_tcp_transfer",
    "pack_tcp_write",
    "parse_ranges",
    "range_count",
    "read",
    "write",
    "write_zeroes",
)

MAX_BLOCKS = 1 << 16  # NLB has 16 bits, counted from 0
MAX_RANGES = 256  # NR has 8 bits, counted from 0
DSM_RANGE_BYTES = 16
FORCE_UNIT_ACCESS = 1 << 30
_DEALLOCATE = 1 << 25  # DEAC of Write Zeroes
_ATTRIBUTE_DEALLOCATE = 1 << 2  # AD of Dataset Management
_PSDT_SGL = 0x40  # as in `command`
_KEYED = 0x40 << 24  # SglKind.KEYED, as the last byte of the descriptor
_TRANSPORT = 0x5A << 24  # SglKind.TRANSPORT, likewise
_IN_CAPSULE = 0x01 << 24  # SglKind.IN_CAPSULE, likewise
_TRANSFER = struct.Struct("<BBHI16xQIIQI12x")  # opc, flags, cid, nsid, sgl1 (16 bytes), slba, cdw12
_RANGE = struct.Struct("<IIQ")  # attributes, blocks (counted from 1), first block


class IoOpcode(enum.IntEnum):
    """enum spdk_nvme_nvm_opcode."""

    FLUSH = 0x00
    WRITE = 0x01
    READ = 0x02
    COMPARE = 0x05
    WRITE_ZEROES = 0x08
    DATASET_MANAGEMENT = 0x09


@dataclass(frozen=True, slots=True)
class LbaRange:
    """Blocks `slba` to `slba + blocks - 1`."""

    slba: int
    blocks: int


def read(nsid: int, slba: int, blocks: int) -> Command:
    """Returns a Read of `blocks` blocks.

    Raises:
        LocalProtocolError: `blocks` is not in 1 to 65536.
    """
    return _block_command(IoOpcode.READ, nsid, slba, blocks, 0)


def write(nsid: int, slba: int, blocks: int, *, force_unit_access: bool = False) -> Command:
    """Returns a Write of `blocks` blocks.

    Raises:
        LocalProtocolError: `blocks` is not in 1 to 65536.
    """
    return _block_command(IoOpcode.WRITE, nsid, slba, blocks, FORCE_UNIT_ACCESS if force_unit_access else 0)


def write_zeroes(nsid: int, slba: int, blocks: int, *, deallocate: bool = False) -> Command:
    """Returns a Write Zeroes of `blocks` blocks.

    Raises:
        LocalProtocolError: `blocks` is not in 1 to 65536.
    """
    return _block_command(IoOpcode.WRITE_ZEROES, nsid, slba, blocks, _DEALLOCATE if deallocate else 0)


def pack_keyed_transfer(cid: int, words: tuple[int, int, int, int], memory: tuple[int, int, int]) -> bytes:
    """Returns the 64 bytes of a Read or Write of keyed memory: what `Command.pack` makes, at a third of the time.

    Args:
        cid: the command id.
        words: opcode, namespace, first block, CDW12.
        memory: its address, its length below 2^24, and the key under which the target may use it.
    """
    opcode, nsid, slba, cdw12 = words
    address, length, key = memory
    # length and the low byte of the key share a word: bytes 8-10 are the length, 11-14 the key, 15 the kind
    low, high = length | (key & 0xFF) << 24, key >> 8 | _KEYED
    return _TRANSFER.pack(opcode, _PSDT_SGL, cid, nsid, address, low, high, slba, cdw12)


def pack_tcp_transfer(cid: int, words: tuple[int, int, int, int], memory: tuple[int, int, int]) -> bytes:
    """Returns the same for TCP, where the command id stands for address and key; of `memory` the length counts."""
    opcode, nsid, slba, cdw12 = words
    return _TRANSFER.pack(opcode, _PSDT_SGL, cid, nsid, 0, memory[1], _TRANSPORT, slba, cdw12)


def pack_tcp_write(cid: int, words: tuple[int, int, int, int], memory: tuple[int, int, int]) -> bytes:
    """Returns the same for a write whose data follows in the capsule."""
    opcode, nsid, slba, cdw12 = words
    return _TRANSFER.pack(opcode, _PSDT_SGL, cid, nsid, 0, memory[1], _IN_CAPSULE, slba, cdw12)


def flush(nsid: int) -> Command:
    """Returns a Flush of the namespace's volatile write cache."""
    return Command(IoOpcode.FLUSH, nsid)


def deallocate(nsid: int, ranges: int) -> Command:
    """Returns a Dataset Management that deallocates `ranges` ranges; `pack_ranges` gives its data.

    Raises:
        LocalProtocolError: `ranges` is not in 1 to 256.
    """
    if not 1 <= ranges <= MAX_RANGES:
        raise LocalProtocolError("a wrong number of ranges", expected=f"1 to {MAX_RANGES}", found=str(ranges))
    return Command(IoOpcode.DATASET_MANAGEMENT, nsid, ranges - 1, _ATTRIBUTE_DEALLOCATE)


def block_range(command: Command) -> LbaRange:
    """Returns the blocks of a Read, Write, Write Zeroes or Compare."""
    return LbaRange(command.cdw10 | command.cdw11 << 32, (command.cdw12 & 0xFFFF) + 1)


def range_count(command: Command) -> int:
    """Returns how many ranges a Dataset Management has."""
    return (command.cdw10 & 0xFF) + 1


def pack_ranges(ranges: Sequence[LbaRange]) -> bytes:
    """Returns the data of a Dataset Management, 16 bytes a range."""
    return b"".join(_RANGE.pack(0, one.blocks, one.slba) for one in ranges)


def parse_ranges(data: bytes, count: int) -> tuple[LbaRange, ...]:
    """Returns the first `count` ranges in `data`.

    Raises:
        RemoteProtocolError: `data` is shorter.
    """
    raw = need(data, count * DSM_RANGE_BYTES, "Dataset Management data")
    return tuple(LbaRange(slba, blocks) for _attributes, blocks, slba in _RANGE.iter_unpack(raw))


def _block_command(opcode: IoOpcode, nsid: int, slba: int, blocks: int, flags: int) -> Command:
    if not 1 <= blocks <= MAX_BLOCKS:
        raise LocalProtocolError("a wrong number of blocks", expected=f"1 to {MAX_BLOCKS}", found=str(blocks))
    return Command(opcode, nsid, slba & 0xFFFFFFFF, slba >> 32, blocks - 1 | flags)
