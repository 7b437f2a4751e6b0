"""One end of a reliable connection with go-back-N, counting events. Which driver's counter each is, `endpoint` knows.

Call sites as hosts.md 5.1 has them: a gap counts once an episode at the responder, a NAK once when it advances, every
retry is counted, a duplicate counts each.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.verify_plant.frames import ACK, CM, CNP, READ_REQUEST, READ_RESPONSE, SEND, WRITE, Framer, Packet

RETRY_NS = 4_000_000
RETRIES = 7
WINDOW = 64
ACK_EVERY = 8
NAK = 1


@dataclass(slots=True)
class Request:
    """One packet of the send queue; responses: of a READ, how many packet numbers it takes."""

    opcode: int
    psn: int
    payload: bytes
    last: bool
    responses: int = 0

    @property
    def end(self) -> int:
        return self.psn + (self.responses or 1)


class QueuePair:
    """Send queue and receive queue of one end.

    Args:
        number: of the connection, the same at both ends.
        framer: of the direction away from here.
        emit: sends a frame. wake: asks for `timer` at a time.
        got: called with the payload of each SEND that is accepted.
        placed: called with the payload of each WRITE or READ response.
        clock: the time.
    """

    def __init__(
        self,
        number: int,
        framer: Framer,
        emit: Callable[[bytes], None],
        wake: Callable[["QueuePair", int], None],
        got: Callable[["QueuePair", bytes], None],
        placed: Callable[["QueuePair", bytes], None],
        clock: Callable[[], int],
    ) -> None:
        self.number = number
        self.events: Counter[str] = Counter()
        self.dead = False
        self.context: object = None
        self._framer, self._emit, self._wake, self._got, self._placed = framer, emit, wake, got, placed
        self._clock = clock
        self._queue: list[Request] = []
        self._base = 0  # index of the oldest that is not acknowledged
        self._next = 0
        self._psn = 0
        self._retries = 0
        self._since_ns = 0
        self._deadline_ns: int | None = None
        self._read_gap = False
        self._expected = 0
        self._nak_sent = False
        self._last_cnp_ns = -1_000_000

    # Requests.

    def post(self, opcode: int, payloads: list[bytes], *, responses: int = 0) -> None:
        for index, payload in enumerate(payloads):
            last = index == len(payloads) - 1
            self._queue.append(Request(opcode, self._psn, payload, last, responses))
            self._psn += responses or 1
        self._pump()

    @property
    def is_idle(self) -> bool:
        return self._base == len(self._queue)

    def _pump(self) -> None:
        while not self.dead and self._next < len(self._queue) and self._next - self._base < WINDOW:
            if self._next > self._base and self._queue[self._next - 1].opcode == READ_REQUEST:
                return  # what follows a READ waits for it
            one = self._queue[self._next]
            wants = one.last or one.psn % ACK_EVERY == ACK_EVERY - 1
            self._next += 1
            self._arm()
            self._send(one.opcode, one.psn, wants_ack=wants, word=one.responses, payload=one.payload)

    def _arm(self) -> None:
        if self._deadline_ns is None:
            self._since_ns = self._clock()
            self._deadline_ns = self._since_ns + RETRY_NS
            self._wake(self, self._deadline_ns)

    def timer(self, at_ns: int) -> None:
        if at_ns != self._deadline_ns:
            return
        self._deadline_ns = None
        if self.dead or self._base >= self._next:
            return
        if at_ns - self._since_ns < RETRY_NS:
            self._deadline_ns = self._since_ns + RETRY_NS
            self._wake(self, self._deadline_ns)
            return
        self._retries += 1
        if self._retries > RETRIES:
            self.dead = True
            self.events["dead"] += 1
            return
        self.events["timeout"] += 1
        self._go_back()

    def _go_back(self) -> None:
        self._next = self._base
        self._deadline_ns = None
        self._pump()

    def _done_below(self, psn: int) -> bool:
        before = self._base
        while self._base < self._next and self._queue[self._base].end <= psn:
            if self._queue[self._base].opcode == READ_REQUEST:
                break  # responses acknowledge it
            self._base += 1
        if self._base > before:
            self._progress()
        return self._base > before

    def _progress(self) -> None:
        self._retries = 0
        self._since_ns = self._clock()

    # What comes.

    def receive(self, packet: Packet) -> None:
        if self.dead:
            return
        if packet.is_marked:
            self._marked()
        match packet.opcode:
            case 0x11:
                self._acknowledged(packet)
            case 0x0E:
                self._response(packet)
            case 0x81:
                self.events["cnp-handled"] += 1
            case _:
                self._request(packet)

    def _marked(self) -> None:
        self.events["ce"] += 1
        if self._clock() - self._last_cnp_ns >= 50_000:
            self._last_cnp_ns = self._clock()
            self.events["cnp-wanted"] += 1

    def send_cnp(self) -> None:
        self.events["cnp-sent"] += 1
        self._send(CNP, 0)

    def _acknowledged(self, packet: Packet) -> None:
        if packet.word != NAK:
            self._done_below(packet.psn + 1)
            self._pump()
            return
        advanced = self._done_below(packet.psn)
        base = self._base
        if base < self._next and self._queue[base].psn == packet.psn:
            self.events["nak"] += 1
            self._progress()
            self._go_back()
        elif advanced:
            self._pump()

    def _response(self, packet: Packet) -> None:
        if self._base >= self._next:
            return
        one = self._queue[self._base]
        if one.opcode != READ_REQUEST or packet.psn < one.psn:
            return
        if packet.psn > one.psn:
            if not self._read_gap:
                self._read_gap = True
                self.events["read-gap"] += 1
                self._go_back()
            return
        self._read_gap = False
        self._placed(self, packet.payload)
        self._progress()
        one.psn += 1
        one.responses -= 1
        if one.responses == 0:
            self._base += 1
            self._pump()

    def _request(self, packet: Packet) -> None:
        if packet.psn > self._expected:
            if not self._nak_sent:
                self._nak_sent = True
                self.events["gap"] += 1
                self._send(ACK, self._expected, word=NAK)
            return
        if packet.psn < self._expected:
            self.events["duplicate"] += 1
            if packet.opcode == READ_REQUEST:
                self._respond(packet)
            elif packet.wants_ack:
                self._send(ACK, self._expected - 1)
            return
        self._nak_sent = False
        if packet.opcode == READ_REQUEST:
            self._expected += packet.word
            self._respond(packet)
            return
        self._expected += 1
        if packet.wants_ack:
            self._send(ACK, packet.psn)
        (self._got if packet.opcode == SEND else self._placed)(self, packet.payload)

    def _respond(self, packet: Packet) -> None:
        for index in range(packet.word):
            psn = packet.psn + index
            self._send(READ_RESPONSE, psn, payload=self.response_payload(psn))

    def response_payload(self, psn: int) -> bytes:
        return psn.to_bytes(4, "big") * 128

    def _send(self, opcode: int, psn: int, *, wants_ack: bool = False, word: int = 0, payload: bytes = b"") -> None:
        self._emit(self._framer.frame(opcode, self.number, psn, wants_ack=wants_ack, word=word, payload=payload))


__all__ = ("CM", "CNP", "READ_REQUEST", "WRITE", "QueuePair")
