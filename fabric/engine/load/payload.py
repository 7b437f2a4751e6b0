"""Sectors that say what they are, and what is wrong with one that is not as expected. Pure: bytes in, bytes out.

A sector is 4096 bytes: a header of 64 and a body that follows from it. So the body is verified byte by byte, by
comparison with a table of noise, and needs no checksum; only the header has one.

| offset | bytes | field, little-endian |
|---|---|---|
| 0 | 8 | magic, `FABLOAD1`: format 1, whose checksum is CRC-32 of IEEE 802.3 as in zlib |
| 8 | 8 | run |
| 16 | 8 | device: of the namespace, see `device_id` |
| 24 | 8 | LBA of the first block |
| 32 | 8 | version: 1 by `prepare`, one more by each write |
| 40 | 4 | length of the sector, 4096 |
| 44 | 16 | zero |
| 60 | 4 | CRC-32 of the 60 bytes before |
| 64 | 4032 | body: a window of the noise; where it begins follows from run, device, LBA and version |

CRC-32C would need a package where Linux has none for Python; plain Python computes it at a few MiB a second. Two
versions of one sector have different windows until 2**20 versions lie between them; two other sectors have the same one
once in 2**20.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Final, NamedTuple

from fabric.engine.load.model import SECTOR_BYTES, FlawKind

__all__ = (
    "FIRST_VERSION",
    "GUARD_BYTES",
    "Damage",
    "Label",
    "Origin",
    "damage",
    "device_id",
    "guard_damage",
    "guard_pattern",
    "poison_pattern",
    "sector",
    "sector_matches",
)

FIRST_VERSION: Final = 1
GUARD_BYTES: Final = 4096  # a page, so that what lies behind it is aligned for O_DIRECT

_MAGIC: Final = b"FABLOAD1"
_FIELDS: Final = struct.Struct("<8sQQQQI16x")
_CHECKSUM: Final = struct.Struct("<I")
_HEADER_BYTES: Final = 64
_BODY_BYTES: Final = SECTOR_BYTES - _HEADER_BYTES
_WINDOWS: Final = 1 << 20
_MASK: Final = _WINDOWS - 1
_WORD: Final = (1 << 64) - 1
_VERSION_STEP: Final = 0x9E375  # odd: versions visit every window before one comes again
_NOISE: Final = Random(0x4641424C4F414431).randbytes(_WINDOWS + _BODY_BYTES)  # noqa: S311, a pattern, no secret
_PATTERN: Final = struct.Struct("<8sQ")
_POISON: Final = b"UNWRITTN"
_GUARD: Final = b"GUARDED!"
_SHOWN_BYTES: Final = 16
_TELLING_BYTES: Final = 8  # so many equal bytes of noise are no chance: 2**-64 x 2**20 windows
_OLDER_VERSIONS: Final = 16


class Origin(NamedTuple):
    """What all sectors of one namespace and run have in common."""

    run: int
    device: int


class Label(NamedTuple):
    """Which sector."""

    run: int
    device: int
    lba: int
    version: int

    def __str__(self) -> str:
        return f"run {self.run:#x}, device {self.device:#x}, LBA {self.lba}, version {self.version}"


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with a sector: from which byte on, and what stands there."""

    kind: FlawKind
    offset: int
    expected: str
    found: str


def device_id(target: str, nsid: int) -> int:
    """Returns 64 bits for a namespace, the same over every path to it.

    Args:
        target: the subsystem's NQN, or the path of a file or device.
        nsid: of the namespace.
    """
    return int.from_bytes(blake2b(f"{nsid} {target}".encode(), digest_size=8).digest(), "little")


def _window(run: int, device: int, lba: int, version: int) -> int:
    # two rounds of a multiplicative hash; the version stays linear, so that no two near ones meet
    mixed = (run ^ device * 0x9E3779B97F4A7C15 ^ lba * 0xD6E8FEB86659FD93) & _WORD
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & _WORD
    return (mixed >> 40) + version * _VERSION_STEP & _MASK


def _header(run: int, device: int, lba: int, version: int) -> bytes:
    fields = _FIELDS.pack(_MAGIC, run, device, lba, version, SECTOR_BYTES)
    return fields + _CHECKSUM.pack(zlib.crc32(fields))


def sector(origin: Origin, lba: int, version: int) -> bytes:
    """Returns the 4096 bytes of a sector."""
    run, device = origin
    at = _window(run, device, lba, version)
    return _header(run, device, lba, version) + _NOISE[at : at + _BODY_BYTES]


def sector_matches(data: bytes, offset: int, origin: Origin, lba: int, version: int) -> bool:
    """Returns whether `data` has this sector at `offset`, every byte of it."""
    run, device = origin
    at = _window(run, device, lba, version)
    return data.startswith(_header(run, device, lba, version), offset) and data.startswith(
        _NOISE[at : at + _BODY_BYTES], offset + _HEADER_BYTES
    )


def poison_pattern(number: int, length: int) -> bytes:
    """Returns what stands in a buffer before the read of this number; `length` is a multiple of 16."""
    return _PATTERN.pack(_POISON, number) * (length // _PATTERN.size)


def guard_pattern(number: int) -> bytes:
    """Returns the page beside the buffer of this number."""
    return _PATTERN.pack(_GUARD, number) * (GUARD_BYTES // _PATTERN.size)


def guard_damage(found: bytes, pattern: bytes) -> Damage | None:
    """Returns what is wrong with a guard, None when nothing is."""
    if found == pattern:
        return None
    at = _first_other(found, pattern)
    return Damage(FlawKind.GUARD, at, _shown(pattern, at), _shown(found, at))


def damage(found: bytes, origin: Origin, lba: int, version: int, poison: bytes) -> Damage | None:
    """Returns what is wrong with a sector that was read, None when nothing is.

    Args:
        found: 4096 bytes.
        origin: of this run and namespace.
        lba: where it was read.
        version: the last that was written there.
        poison: what stood in the buffer before, 4096 bytes.
    """
    wanted, label = sector(origin, lba, version), Label(*origin, lba, version)
    if found == wanted:
        return None
    at = _first_other(found, wanted)
    if _tells(found, at) and poison.startswith(found[at : at + _SHOWN_BYTES], at):
        what = "the buffer as it was before the read" + (f", from byte {at} on" if at else "")
        return Damage(FlawKind.UNWRITTEN, at, str(label), what)
    return _of_one(found, label, at) or _of_two(found, wanted, label, at) or _of_pieces(found, wanted, label, at)


def _of_one(found: bytes, label: Label, at: int) -> Damage | None:
    """Returns what is wrong when it is the whole of another sector, or of any sector but not in its place."""
    claimed = _label(found)
    if claimed is not None and found == _whole(claimed):
        is_here = (claimed.device, claimed.lba) == (label.device, label.lba)
        return Damage(FlawKind.STALE if is_here else FlawKind.MISPLACED, at, str(label), str(claimed))
    start = found.find(_MAGIC, 1)
    while start > 0:
        moved = _label(found[start:])
        if moved is not None and found.endswith(_whole(moved)[: SECTOR_BYTES - start]):
            return Damage(FlawKind.MISPLACED, at, str(label), f"{moved}, begun at byte {start}")
        start = found.find(_MAGIC, start + 1)
    return None


def _of_two(found: bytes, wanted: bytes, label: Label, at: int) -> Damage | None:
    """Returns what is wrong when it begins as one sector and ends as another, one of them the expected one."""
    claimed = _label(found)
    others = [label._replace(version=one) for one in _versions_near(label.version)]
    for other in (*([claimed] if claimed not in (None, label) else []), *others):
        whole = _whole(other)
        if _tells(found, at) and found.endswith(whole[at:]):
            return Damage(FlawKind.TORN, at, str(label), f"from byte {at} on {other}")
        end = _first_other(found, whole)
        # an end inside the header tells nothing: one changed byte of a version makes it as another's up to the checksum
        if end >= _HEADER_BYTES and end - at >= _TELLING_BYTES and found.endswith(wanted[end:]):
            return Damage(FlawKind.TORN, at, str(label), f"up to byte {end} {other}")
    return None


def _of_pieces(found: bytes, wanted: bytes, label: Label, at: int) -> Damage:
    """Returns what is wrong when it is neither: more than two pieces, or bytes of nobody."""
    if at >= _HEADER_BYTES and _is_noise(found, at):
        return Damage(FlawKind.TORN, at, str(label), f"from byte {at} on {_whose(found, label, at)}")
    claimed = _label(found)
    if claimed not in (None, label):  # another's header, and not its body
        return Damage(
            FlawKind.TORN, at, str(label), f"the header of {claimed}, and {_whose(found, label, _HEADER_BYTES)}"
        )
    if not any(found[at:]):
        return Damage(FlawKind.WRONG, at, str(label), f"zeroes from byte {at} on")
    return Damage(FlawKind.WRONG, at, _shown(wanted, at), _shown(found, at))


def _whole(label: Label) -> bytes:
    return sector(Origin(label.run, label.device), label.lba, label.version)


def _versions_near(version: int) -> Iterator[int]:
    yield from range(version - 1, max(version - _OLDER_VERSIONS, 0) - 1, -1)
    yield version + 1


def _whose(found: bytes, label: Label, at: int) -> str:
    piece, inside = found[at : at + _SHOWN_BYTES], at - _HEADER_BYTES
    for version in (label.version, *_versions_near(label.version)):
        start = _window(label.run, label.device, label.lba, version) + inside
        if _NOISE.startswith(piece, start):
            return f"the body of version {version}"
    return "the body of another sector" if _is_noise(found, at) else _shown(found, at)


def _label(found: bytes) -> Label | None:
    """Returns what a whole header says, None without one."""
    if len(found) < _HEADER_BYTES or not found.startswith(_MAGIC):
        return None
    _magic, run, device, lba, version, length = _FIELDS.unpack_from(found)
    (checksum,) = _CHECKSUM.unpack_from(found, _FIELDS.size)
    if zlib.crc32(found[: _FIELDS.size]) != checksum or length != SECTOR_BYTES:
        return None
    return Label(run, device, lba, version)


def _tells(found: bytes, at: int) -> bool:
    return len(found) - at >= _TELLING_BYTES


def _is_noise(found: bytes, at: int) -> bool:
    return len(found) - at >= _TELLING_BYTES and found[at : at + _SHOWN_BYTES] in _NOISE


def _first_other(found: bytes, wanted: bytes) -> int:
    # bisection: comparing slices is a memcmp, comparing bytes is Python
    low, high = 0, len(wanted)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found[low:middle] != wanted[low:middle] else (middle, high)
    return low


def _shown(data: bytes, at: int) -> str:
    return data[at : at + _SHOWN_BYTES].hex(" ")
