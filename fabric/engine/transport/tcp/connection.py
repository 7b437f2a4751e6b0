"""One queue of a host on NVMe/TCP: greets, turns posts into PDUs, and PDUs into data in memory and events.

| state | ends with |
|---|---|
| CONNECTING | the TCP handshake |
| GREETING | ICResp |
| LIVE | Broken |
| BROKEN | `disconnect` |

A command's data goes where its command id says: the post's region, or its slot's scratch. An answer is handed over only
when all its data came (a good answer without all data breaks the connection), and when none of the command's own
data still waits to be sent: after it, the memory is the caller's.

Source: NVMe/TCP 1.0 section 3; Linux host/tcp.c; SPDK lib/nvme/nvme_tcp.c for the order of data (expected_datao,
unconfirmed).
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from fabric.engine.nvmeof.host import Connect, ConnectionId, PostSend, QueueMemory
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
from fabric.engine.nvmeof.wire.command import FABRICS_OPCODE, SQE_BYTES, DataDirection
from fabric.engine.nvmeof.wire.completion import SQHD_DISABLED, Cqe
from fabric.engine.transport.base import Connected, Event, Received, Sent
from fabric.engine.transport.tcp.channel import Channel
from fabric.engine.transport.tcp.framing import MAX_TERMINATE_BYTES, StreamError
from fabric.errors import IntegrityError, TransportError

__all__ = ("HostConnection", "LinkState")

_STATUS_MASK = 0xFFFE  # of a CQE's last word; bit 0 is the phase


class LinkState(enum.Enum):
    """Where a connection is."""

    CONNECTING = enum.auto()
    GREETING = enum.auto()
    LIVE = enum.auto()
    BROKEN = enum.auto()


@dataclass(slots=True)
class _Command:
    """A command in flight.

    Attributes:
        slot: whose it is.
        memory: where its data lies or goes.
        incoming: bytes that a good answer must have brought.
        payload: bytes of memory to hand over with the answer.
        outgoing: bytes that the target may ask for.
        moved: bytes that came, or were asked for.
        unsent: PDUs with data that still wait to be sent.
        answer: came before they were.
    """

    slot: int
    memory: memoryview
    incoming: int = 0
    payload: int = 0
    outgoing: int = 0
    moved: int = 0
    unsent: int = 0
    answer: bytes = b""


@dataclass(slots=True)
class HostConnection:
    """One connection.

    Attributes:
        order: what asked for it.
        memory: its scratch.
        digests: what the host wants; the target must want the same.
        deadline_ns: when it must be live.
        say: where events go.
        where: the queue, for messages.
    """

    order: Connect
    memory: QueueMemory
    digests: Digests
    deadline_ns: int
    say: Callable[[Event], None]
    where: str
    state: LinkState = LinkState.CONNECTING
    _channel: Channel | None = None
    _commands: dict[int, _Command] = field(default_factory=dict)
    _max_h2c_bytes: int = 0

    @property
    def identifier(self) -> ConnectionId:
        """The connection's id."""
        return self.order.connection

    @property
    def channel(self) -> Channel:
        """The bytes."""
        if self._channel is None:
            raise TransportError("there is no connection", where=self.where)
        return self._channel

    @property
    def is_attached(self) -> bool:
        """There is a socket."""
        return self._channel is not None

    def attach(self, channel: Channel) -> None:
        """Takes the socket; the TCP handshake is on its way."""
        self._channel = channel

    def greet(self) -> None:
        """Sends ICReq; the TCP handshake is done."""
        self.state = LinkState.GREETING
        self.channel.push(IcRequest(1, self.digests))

    def post(self, post: PostSend, scratch: memoryview, region: memoryview | None) -> None:
        """Queues a capsule. `scratch` is the slot's; `region` the post's own memory."""
        capsule = post.capsule
        command = _Command(post.slot, scratch if region is None else region)
        if post.outgoing:
            scratch[: len(post.outgoing)] = post.outgoing
        length = len(post.outgoing) if region is None else region.nbytes
        kind = capsule[4] if capsule[0] == FABRICS_OPCODE else capsule[0]
        if kind & DataDirection.TO_HOST:
            command.payload = post.incoming_bytes
            command.incoming = post.incoming_bytes if region is None else length
        elif region is not None and post.carries_region:
            self._commands[int.from_bytes(capsule[2:4], "little")] = command
            command.unsent = 1
            self.channel.push(CapsuleCommand(capsule), region, lambda: self._capsule_sent(command))
            return
        elif len(capsule) == SQE_BYTES and kind & DataDirection.TO_CONTROLLER:
            command.outgoing = length
        self._commands[int.from_bytes(capsule[2:4], "little")] = command
        sent = Sent(self.identifier, post.slot)
        self.channel.push(CapsuleCommand(capsule[:SQE_BYTES]), capsule[SQE_BYTES:], lambda: self.say(sent))

    def place(self, pdu: Pdu, length: int) -> memoryview:
        """Returns where C2HData goes; see `Sink`."""
        if isinstance(pdu, Terminate) and length <= MAX_TERMINATE_BYTES:
            return memoryview(bytearray(length))
        if not isinstance(pdu, DataPdu) or not pdu.to_host or self.state is not LinkState.LIVE:
            raise StreamError("data that a target cannot send", FatalStatus.SEQUENCE_ERROR)
        command = self._commands.get(pdu.cid)
        if command is None or pdu.offset != command.moved or pdu.offset + length > command.incoming:
            found = f"{length} bytes at {pdu.offset} of command 0x{pdu.cid:04x}"
            raise StreamError("data that nobody asked for", FatalStatus.OUT_OF_RANGE, information=8, found=found)
        return command.memory[pdu.offset : pdu.offset + length]

    def take(self, pdu: Pdu, data: memoryview) -> None:
        """Takes a PDU; see `Sink`. What it brought is in its place already."""
        del data
        match pdu:
            case DataPdu(to_host=True) if self.state is LinkState.LIVE:
                self._take_data(pdu)
            case CapsuleResponse(cqe) if self.state is LinkState.LIVE:
                self._answer(cqe)
            case ReadyToTransfer() if self.state is LinkState.LIVE:
                self._send_data(pdu)
            case IcResponse() if self.state is LinkState.GREETING:
                self._greeted(pdu)
            case Terminate(to_host=True):
                names = {one.value: one.name for one in FatalStatus}
                found = names.get(pdu.status, f"status {pdu.status}").lower().replace("_", " ")
                raise TransportError("the target ended the connection", where=self.where, found=found)
            case _:
                raise StreamError("a PDU out of turn", FatalStatus.SEQUENCE_ERROR, found=pdu.pdu_type.name.lower())

    def _greeted(self, answer: IcResponse) -> None:
        if answer.digests != self.digests:
            raise StreamError(
                "the target does not take the digests that were asked for",
                FatalStatus.UNSUPPORTED_PARAMETER,
                information=11,  # DGST (NVMe/TCP 1.0 section 3.6.2.3)
                found=f"0x{answer.digests.bits:x}",
            )
        channel = self.channel
        channel.digests = channel.writer.digests = answer.digests
        channel.writer.alignment = answer.alignment
        self._max_h2c_bytes = answer.max_h2c_bytes
        self.state = LinkState.LIVE
        self.say(Connected(self.identifier, b"", self.memory))

    def _take_data(self, pdu: DataPdu) -> None:
        command = self._commands.get(pdu.cid)
        if command is None:
            raise StreamError("data that nobody asked for", FatalStatus.OUT_OF_RANGE, information=8)
        command.moved += pdu.length
        if pdu.success:
            self._answer(Cqe(pdu.cid, 0, 0, SQHD_DISABLED, 0).pack())

    def _send_data(self, ready: ReadyToTransfer) -> None:
        command = self._commands.get(ready.cid)
        end = ready.offset + ready.length
        if command is None or not ready.length or ready.offset != command.moved or end > command.outgoing:
            found = f"{ready.length} bytes at {ready.offset} of command 0x{ready.cid:04x}"
            raise StreamError("data is asked for that is not there", FatalStatus.OUT_OF_RANGE, found=found)
        command.moved = end
        for start in range(ready.offset, end, self._max_h2c_bytes):
            stop = min(start + self._max_h2c_bytes, end)
            pdu = DataPdu(False, ready.cid, ready.tag, start, stop - start, last=stop == end)
            command.unsent += 1
            self.channel.push(pdu, command.memory[start:stop], lambda: self._data_sent(command))

    def _capsule_sent(self, command: _Command) -> None:
        self.say(Sent(self.identifier, command.slot))
        self._data_sent(command)

    def _data_sent(self, command: _Command) -> None:
        command.unsent -= 1
        if not command.unsent and command.answer:
            self._hand_over(command, command.answer)

    def _answer(self, cqe: bytes) -> None:
        command = self._commands.pop(int.from_bytes(cqe[12:14], "little"), None)
        if command is None:
            # the machine knows what an answer to no open command means
            self.say(Received(self.identifier, cqe))
            return
        failed = int.from_bytes(cqe[14:16], "little") & _STATUS_MASK
        if not failed and command.moved != command.incoming + command.outgoing:
            expected, found = command.incoming + command.outgoing, command.moved
            raise IntegrityError(
                "a good answer without all of its data", where=self.where, expected=str(expected), found=str(found)
            )
        if command.unsent:
            command.answer = cqe
        else:
            self._hand_over(command, cqe)

    def _hand_over(self, command: _Command, cqe: bytes) -> None:
        payload = bytes(command.memory[: command.payload]) if command.payload else b""
        self.say(Received(self.identifier, cqe, payload))
