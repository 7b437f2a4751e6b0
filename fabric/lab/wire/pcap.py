"""Captures that tshark reads: classic pcap with ns timestamps. Writes to any binary file; knows no socket."""

import struct
from collections.abc import Iterator
from typing import BinaryIO, Final

__all__ = ("PcapWriter", "read_pcap")

_MAGIC_NS: Final = 0xA1B23C4D  # draft-ietf-opsawg-pcap section 4: nanosecond resolution
_ETHERNET: Final = 1  # LINKTYPE_ETHERNET
_HEADER: Final = struct.Struct("<IHHiIII")
_RECORD: Final = struct.Struct("<IIII")
_SNAP_BYTES: Final = 262_144
_SECOND_NS: Final = 1_000_000_000


class PcapWriter:
    """One capture.

    Args:
        file: open for binary writing; the caller closes it.
        start_unix_ns: what `now_ns` 0 is in Unix time.
    """

    def __init__(self, file: BinaryIO, *, start_unix_ns: int = 0) -> None:
        self._file = file
        self._start_unix_ns = start_unix_ns
        file.write(_HEADER.pack(_MAGIC_NS, 2, 4, 0, 0, _SNAP_BYTES, _ETHERNET))

    def write(self, frame: bytes, now_ns: int) -> None:
        """Appends a frame."""
        seconds, rest_ns = divmod(self._start_unix_ns + now_ns, _SECOND_NS)
        self._file.write(_RECORD.pack(seconds, rest_ns, len(frame), len(frame)) + frame)


def read_pcap(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields (Unix time in ns, frame) of a capture that `PcapWriter` wrote; a half record at the end is left out.

    Raises:
        ValueError: it is no such capture.
    """
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or _HEADER.unpack(head)[0] != _MAGIC_NS:
        raise ValueError("no little-endian pcap with nanoseconds")
    while len(record := file.read(_RECORD.size)) == _RECORD.size:
        seconds, rest_ns, captured, _ = _RECORD.unpack(record)
        frame = file.read(captured)
        if len(frame) < captured:
            return
        yield seconds * _SECOND_NS + rest_ns, frame
