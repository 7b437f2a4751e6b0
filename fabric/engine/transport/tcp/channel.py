"""PDUs over one non-blocking socket, for either side: partial sends, gathered sends, data received in place.

While data is awaited the kernel writes it straight to its destination, and what follows it to a small staging buffer,
in one system call. At most one staging buffer's worth of a PDU's data is ever copied. Knows no command.
"""

import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fabric.engine.nvmeof.tcp import DataPdu, Digests, FatalStatus, Pdu, PduWriter, Terminate
from fabric.engine.nvmeof.tcp.parsing import parse_header
from fabric.engine.nvmeof.tcp.pdu import COMMON_BYTES
from fabric.engine.nvmeof.tcp.stream import DIGEST_BYTES, Checksum
from fabric.engine.transport.tcp.framing import Frame, StreamError, read_frame
from fabric.errors import RemoteProtocolError

__all__ = ("Channel", "Sink")

_STAGING_BYTES = 2048
_GATHER = 64  # buffers a sendmsg; IOV_MAX is 1024, and a kernel buffer rarely takes more than this
_NONE = memoryview(b"")


class Sink(Protocol):
    """What understands the PDUs of a channel."""

    def place(self, pdu: Pdu, length: int) -> memoryview:
        """Returns where the data of a PDU goes, `length` writable bytes. Raises StreamError if nowhere."""
        ...

    def take(self, pdu: Pdu, data: memoryview) -> None:
        """Takes a PDU that is complete, its digests being right. Raises StreamError if it cannot be."""
        ...


@dataclass(slots=True)
class Channel:
    """One connection's bytes.

    Attributes:
        sock: connected or connecting, non-blocking.
        sink: what understands the PDUs.
        writer: makes PDUs; its digests and alignment are set after the exchange.
        digests: what arrives carries.
        backlog: bytes that wait to be sent.
    """

    sock: socket.socket
    sink: Sink
    writer: PduWriter
    digests: Digests = field(default_factory=Digests)
    backlog: int = 0
    _outgoing: deque[tuple[memoryview, Callable[[], None] | None]] = field(default_factory=deque)
    _staging: bytearray = field(default_factory=lambda: bytearray(_STAGING_BYTES))
    _start: int = 0
    _end: int = 0
    _frame: Frame | None = None
    _pdu: Pdu | None = None
    _data: memoryview = _NONE
    _filled: int = 0

    @property
    def checksum(self) -> Checksum:
        """CRC-32C, as the writer has it."""
        return self.writer.checksum

    def push(self, pdu: Pdu, data: bytes | memoryview = b"", sent: Callable[[], None] | None = None) -> None:
        """Queues a PDU; `data` is not copied, so it must keep until `sent` is called."""
        head, tail = self.writer.parts(pdu, data)
        parts = [memoryview(part) for part in (head, data, tail) if part]
        for part in parts[:-1]:
            self._outgoing.append((part, None))
        self._outgoing.append((parts[-1], sent))
        self.backlog += sum(part.nbytes for part in parts)

    def send(self) -> bool:
        """Sends what the kernel takes; returns whether all is sent.

        Raises:
            OSError: the connection is broken.
        """
        outgoing = self._outgoing
        while outgoing:
            try:
                count = self.sock.sendmsg([outgoing[at][0] for at in range(min(len(outgoing), _GATHER))])
            except BlockingIOError:
                return False
            self.backlog -= count
            while count:
                part, sent = outgoing[0]
                if count < part.nbytes:
                    outgoing[0] = (part[count:], sent)
                    break
                count -= part.nbytes
                outgoing.popleft()
                if sent is not None:
                    sent()
        return True

    def receive(self) -> int:
        """Takes what one system call gives; returns how many bytes, 0 at the end of the stream.

        Raises:
            BlockingIOError: nothing is there.
            OSError: the connection is broken.
            StreamError: the stream cannot be followed.
        """
        staging = memoryview(self._staging)[self._end :]
        waiting = self._data[self._filled :]
        count: int = self.sock.recvmsg_into([waiting, staging] if waiting else [staging])[0]
        self.arrived(count)
        return count

    def arrived(self, count: int) -> None:
        """Goes on after `count` bytes were put into place.

        Raises:
            StreamError: the stream cannot be followed.
        """
        direct = min(count, self._data.nbytes - self._filled)
        self._filled += direct
        self._end += count - direct
        while self._next():
            pass
        if self._start:
            rest = self._end - self._start
            self._staging[:rest] = self._staging[self._start : self._end]
            self._start, self._end = 0, rest

    def terminate(self, error: StreamError, *, to_host: bool) -> None:
        """Queues a termination that says why, behind what waits: a PDU that was begun cannot be cut."""
        if error.status is not None:
            self.push(Terminate(to_host, error.status, error.information))

    def drop(self) -> None:
        """Forgets what waits to be sent and where data would go; the socket is closed."""
        self._outgoing.clear()
        self.backlog = 0
        self._data, self._filled, self._start, self._end = _NONE, 0, 0, 0
        self.sock.close()

    def _next(self) -> bool:
        """Goes one PDU further; returns whether it did."""
        if self._frame is None and not self._open():
            return False
        if self._filled < self._data.nbytes or self._frame is None or self._pdu is None:
            return False
        if self._frame.data_digest:
            if self._end - self._start < DIGEST_BYTES:
                return False
            self._check(self._data, self._start, None)
            self._start += DIGEST_BYTES
        pdu, data = self._pdu, self._data
        self._frame = self._pdu = None
        self._data, self._filled = _NONE, 0
        self.sink.take(pdu, data)
        return True

    def _open(self) -> bool:
        """Reads a header; returns whether it is whole."""
        start, held = self._start, self._end - self._start
        if held < COMMON_BYTES:
            return False
        frame = read_frame(memoryview(self._staging)[start : start + COMMON_BYTES], self.digests)
        if held < frame.data_start:
            return False
        header_end = start + frame.hlen
        if frame.header_digest:
            self._check(memoryview(self._staging)[start:header_end], header_end, FatalStatus.HEADER_DIGEST)
        raw = bytes(self._staging[start + COMMON_BYTES : header_end])
        pdu = _parse(frame, raw)
        self._start += frame.data_start
        self._frame, self._pdu = frame, pdu
        if frame.data_length:
            self._begin_data(pdu, frame.data_length)
        return True

    def _begin_data(self, pdu: Pdu, length: int) -> None:
        self._data = self.sink.place(pdu, length)
        early = min(self._end - self._start, length)
        self._data[:early] = memoryview(self._staging)[self._start : self._start + early]
        self._filled = early
        self._start += early

    def _check(self, covered: memoryview, at: int, status: FatalStatus | None) -> None:
        found = int.from_bytes(self._staging[at : at + DIGEST_BYTES], "little")
        expected = self.checksum(covered)
        if found != expected:
            what = "data" if status is None else "header"
            raise StreamError(f"a {what} digest is wrong", status, information=found, found=f"0x{found:08x}")


def _parse(frame: Frame, raw: bytes) -> Pdu:
    try:
        pdu = parse_header(frame.kind, frame.flags, raw)
    except RemoteProtocolError as error:
        # the one field of a header that parsing judges: PFV of ICReq and ICResp, at 8, and what goes with it
        status = FatalStatus.UNSUPPORTED_PARAMETER
        raise StreamError(error.what, status, information=COMMON_BYTES, found=error.found) from error
    if isinstance(pdu, DataPdu) and pdu.length != frame.data_length:
        what = "a data PDU has another length"
        raise StreamError(what, FatalStatus.INVALID_HEADER, information=4, found=str(frame.data_length))
    return pdu
