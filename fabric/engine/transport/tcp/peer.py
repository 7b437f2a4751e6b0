"""One connection at a target on NVMe/TCP: greets, hands capsules and fetched data to the service, sends its outputs.

| state | ends with |
|---|---|
| GREETING | ICReq |
| LIVE | a broken stream, a termination, the end of the connection |
| CLOSING | the host's end of the stream: a termination that we sent must not be lost to a reset |

What a host can make it keep is bounded: commands by the longest queue, capsules by the in-capsule size, fetched data
by `FETCH_BYTES` (further writes wait their turn), unsent data by `BACKLOG_BYTES` (no more is read until it is sent).

Source: NVMe/TCP 1.0 section 3; Linux target/tcp.c.
"""

import enum
import itertools
from collections import deque
from dataclasses import dataclass, field

from fabric.engine.nvmeof.target import FetchData, PeerId, PushData, Respond
from fabric.engine.nvmeof.tcp import (
    CapsuleCommand,
    CapsuleResponse,
    DataPdu,
    Digests,
    FatalStatus,
    IcRequest,
    IcResponse,
    Pdu,
    ReadyToTransfer,
    Terminate,
)
from fabric.engine.transport.service import Service
from fabric.engine.transport.tcp.channel import Channel
from fabric.engine.transport.tcp.framing import MAX_TERMINATE_BYTES, StreamError
from fabric.errors import TransportError

__all__ = ("PeerState", "TargetPeer")

BACKLOG_BYTES = 4 << 20
FETCH_BYTES = 8 << 20
MAX_H2C_BYTES = 128 << 10  # ours; nvmet says 4 MiB (NVMET_TCP_MAXH2CDATA, unconfirmed)
_CAPSULE_DATA_BYTES = 8192  # Linux nvme-tcp.h, NVME_TCP_ADMIN_CCSZ; an I/O queue's own limit is the machine's to judge
_TAGS = 1 << 16


class PeerState(enum.Enum):
    """Where a connection is."""

    GREETING = enum.auto()
    LIVE = enum.auto()
    CLOSING = enum.auto()
    CLOSED = enum.auto()


@dataclass(slots=True)
class _Fetch:
    order: FetchData
    data: bytearray
    came: int = 0


@dataclass(slots=True)
class TargetPeer:
    """One connection.

    Attributes:
        identifier: its id at the service.
        service: where commands go.
        allowed: digests that this side is able to make.
        deadline_ns: until when it must have greeted, or is closed for good.
        now_ns: the time of this turn.
    """

    identifier: PeerId
    service: Service
    allowed: Digests
    deadline_ns: int | None
    now_ns: int
    state: PeerState = PeerState.GREETING
    _channel: Channel | None = None
    _fetches: dict[int, _Fetch] = field(default_factory=dict)
    _waiting: deque[FetchData] = field(default_factory=deque)
    _fetching_bytes: int = 0
    _open_commands: int = 0
    _tags: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def channel(self) -> Channel:
        """The bytes."""
        if self._channel is None:
            raise TransportError("there is no connection", where=f"peer {self.identifier}")
        return self._channel

    @property
    def may_read(self) -> bool:
        """It is not behind with taking what it is sent."""
        return self.channel.backlog < BACKLOG_BYTES

    def attach(self, channel: Channel) -> None:
        """Takes the socket."""
        self._channel = channel

    def place(self, pdu: Pdu, length: int) -> memoryview:
        """Returns where a host's data goes; see `Sink`."""
        match pdu:
            case CapsuleCommand() if length <= _CAPSULE_DATA_BYTES:
                return memoryview(bytearray(length))
            case Terminate() if length <= MAX_TERMINATE_BYTES:
                return memoryview(bytearray(length))
            case DataPdu(to_host=False) if length <= MAX_H2C_BYTES:
                fetch = self._fetch(pdu)
                return memoryview(fetch.data)[pdu.offset : pdu.offset + length]
        raise StreamError("more data than was allowed", FatalStatus.LIMIT_EXCEEDED, found=str(length))

    def take(self, pdu: Pdu, data: memoryview) -> None:
        """Takes a PDU; see `Sink`."""
        match pdu:
            case IcRequest() if self.state is PeerState.GREETING:
                self._greet(pdu)
            case CapsuleCommand(sqe) if self.state is PeerState.LIVE:
                self._begin_command(sqe + data.tobytes())
            case DataPdu(to_host=False) if self.state is PeerState.LIVE:
                self._take_data(pdu)
            case Terminate(to_host=False):
                raise TransportError("the host ended the connection", found=f"status {pdu.status}")
            case _:
                raise StreamError("a PDU out of turn", FatalStatus.SEQUENCE_ERROR, found=pdu.pdu_type.name.lower())

    def carry(self, output: FetchData | PushData | Respond) -> None:
        """Queues an output of the service."""
        match output:
            case FetchData():
                self._waiting.append(output)
                self._ask()
            case PushData(_peer, cid, _address, _key, data):
                self.channel.push(DataPdu(True, cid, 0, 0, len(data)), memoryview(data))
            case Respond(_peer, response):
                self._open_commands = max(0, self._open_commands - 1)
                self.channel.push(CapsuleResponse(response))

    def _greet(self, request: IcRequest) -> None:
        allowed, wanted = self.allowed, request.digests
        digests = Digests(allowed.header and wanted.header, allowed.data and wanted.data)
        channel = self.channel
        channel.push(IcResponse(MAX_H2C_BYTES, digests))
        channel.digests = channel.writer.digests = digests
        channel.writer.alignment = request.alignment
        self.state, self.deadline_ns = PeerState.LIVE, None
        self.service.connect_request(self.identifier, b"", self.now_ns)

    def _begin_command(self, capsule: bytes) -> None:
        if self._open_commands >= self.service.target.profile.max_depth:
            raise StreamError("more commands than a queue has entries", FatalStatus.LIMIT_EXCEEDED)
        self._open_commands += 1
        self.service.capsule(self.identifier, capsule, self.now_ns)

    def _ask(self) -> None:
        """Sends Ready To Transfer for what fits; one command always does."""
        while self._waiting and (not self._fetches or self._fetching_bytes + self._waiting[0].length <= FETCH_BYTES):
            order = self._waiting.popleft()
            if order.length > self.service.max_transfer_bytes:
                found = f"{order.length} bytes"
                raise StreamError("a command has more data than MDTS", FatalStatus.LIMIT_EXCEEDED, found=found)
            tag = next(tag for tag in (one % _TAGS for one in self._tags) if tag not in self._fetches)
            self._fetches[tag] = _Fetch(order, bytearray(order.length))
            self._fetching_bytes += order.length
            self.channel.push(ReadyToTransfer(order.cid, tag, 0, order.length))

    def _fetch(self, pdu: DataPdu) -> _Fetch:
        fetch = self._fetches.get(pdu.tag)
        if fetch is None or fetch.order.cid != pdu.cid or pdu.offset != fetch.came:
            found = f"tag {pdu.tag}, offset {pdu.offset}"
            raise StreamError("data that nobody asked for", FatalStatus.OUT_OF_RANGE, information=8, found=found)
        if pdu.offset + pdu.length > fetch.order.length:
            raise StreamError("data beyond what was asked for", FatalStatus.OUT_OF_RANGE, information=16)
        return fetch

    def _take_data(self, pdu: DataPdu) -> None:
        fetch = self._fetch(pdu)
        fetch.came += pdu.length
        if fetch.came < fetch.order.length:
            return
        del self._fetches[pdu.tag]
        self._fetching_bytes -= fetch.order.length
        self.service.data_fetched(self.identifier, fetch.order.task, bytes(fetch.data), self.now_ns)
        self._ask()
