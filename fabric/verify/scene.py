"""What the counters of both ends say together: was anything lost, between whom, and on which cables may it have been.

A pair is (sender, receiver) of packets, whoever asked for them. Source: hosts.md 5.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fabric.qos import UNKNOWN, known
from fabric.state import SourceKind
from fabric.verify.cables import CableBook, cable_books
from fabric.verify.conserve import DROPS, Book, Part, books
from fabric.verify.events import Event
from fabric.verify.facts import Facts, Reading, add, is_above
from fabric.verify.meanings import AGAIN, IN_SEEN
from fabric.verify.model import Hop, LinkPath

__all__ = ("Scene", "hop_text", "look", "part_text")


@dataclass(frozen=True, slots=True)
class Scene:
    """The evidence, the books, and what follows from both ends.

    Attributes:
        pairs: (sender, receiver) between which packets were lost, by the counters of the two.
        late: pairs for which only a timer speaks: a lost packet, or a host that was slow.
        switch_drops: counters of drops of a lossless class at switches that moved.
        frames: of every class, by cable and direction; they narrow a place and prove nothing.
        misplaced: (switch, port, packets): left through another queue than the class's.
    """

    facts: Facts
    books: tuple[Book, ...]
    pairs: tuple[tuple[str, str], ...]
    late: tuple[tuple[str, str], ...]
    switch_drops: tuple[Reading, ...]
    misplaced: tuple[tuple[str, str, int], ...]
    frames: tuple[CableBook, ...] = ()

    @property
    def whole(self) -> tuple[Book, ...]:
        """Returns the books of the whole, by class."""
        return tuple(one for one in self.books if one.part is Part.WHOLE)

    @property
    def missing(self) -> int:
        """Returns the packets that are proven to have been sent and not received, drops of switches with them."""
        exact = (one for one in self.whole if one.is_exact and one.lost is not UNKNOWN)
        return sum(one.dropped + one.lost for one in exact if one.lost is not UNKNOWN)

    @property
    def missing_in_part(self) -> int:
        """Returns the packets missing on parts where both ends count the class and it was silent without load.

        A cable has two ends: whoever else takes part, what left one end and did not reach the other is lost.
        """
        if self.misplaced or self.facts.idle is None:
            return 0
        parts = (one for one in self.books if one.part is not Part.WHOLE and one.is_exact)
        return sum(one.lost for one in parts if one.lost is not UNKNOWN)

    @property
    def is_whole_known(self) -> bool:
        """Returns whether the books of every class are closed and exact."""
        return bool(self.whole) and all(one.is_exact and one.lost is not UNKNOWN for one in self.whole)

    @property
    def is_all_there(self) -> bool:
        """Returns whether the books of every class prove that nothing is missing but what switches say they dropped."""
        return bool(self.whole) and all(one.is_all_there for one in self.whole)

    @property
    def excused(self) -> frozenset[Event]:
        """Returns what may have moved although nothing was lost: what is sent again, where it is proven that all came.

        That takes exact books over readings that are one moment each. A timer may run out early, or an end be slow.
        """
        evidence = self.facts.evidence
        is_one_moment = evidence.before.is_settled and evidence.after.is_settled
        is_undropped = self.is_all_there and not any(one.dropped for one in self.whole)
        return AGAIN if is_one_moment and is_undropped and not self.is_loss_seen else frozenset()

    @property
    def is_late_by_itself(self) -> bool:
        """Returns whether timers ran out at an end whose timers do so although nothing is late.

        Soft-RoCE leaves its timer armed when all is acknowledged; what is sent just before it runs out is sent again
        (Linux drivers/infiniband/sw/rxe/rxe_comp.c: "we still might get spurious timeouts").
        """
        return any(
            one.source.family == "rxe" and one.event is Event.ACK_TIMEOUT and is_above(one.value)
            for one in self.facts.readings
        )

    @property
    def is_loss_seen(self) -> bool:
        """Returns whether a packet of a lossless class is proven lost, or overtaken: a gap, a drop, or the books."""
        counted = bool(self.pairs) or bool(self.switch_drops) or self._gaps()
        return counted or self.missing > 0 or self.missing_in_part > 0

    def _gaps(self) -> bool:
        devices = {end.device for end in self.facts.ends}
        return any(is_above(self.facts.count(one, *IN_SEEN, Event.GAP_NAKED)) for one in devices)

    def cables(self, pairs: tuple[tuple[str, str], ...]) -> tuple[Hop, ...]:
        """Returns the cables, in the direction of the packets, that all of these pairs use, else any uses."""
        ways = [{_key(hop): hop for hop in self.directed(*pair)} for pair in pairs]
        common = set(ways[0]).intersection(*ways[1:]) if ways else set()
        every = {key: hop for way in ways for key, hop in way.items()}
        return tuple(every[key] for key in sorted(common or every))

    def suspects(self) -> tuple[Hop, ...]:
        """Returns the cables on which a packet may have been lost: by gaps, else by timers; () when neither tells.

        Each pair with a gap has lost something, so they share the cause; a timer leaves open which peer it was about.
        """
        if self.pairs:
            return self.cables(self.pairs)
        keys = {_key(hop): hop for pair in self.late for hop in self.directed(*pair)}
        return tuple(keys[key] for key in sorted(keys))

    def directed(self, sender: str, receiver: str) -> Iterator[Hop]:
        """Yields the cables of all ways from sender to receiver, in that direction."""
        for path in self.facts.ways.get((sender, receiver), ()):
            yield from path.hops
        for path in self.facts.ways.get((receiver, sender), ()):
            yield from (Hop(hop.far, hop.near) for hop in reversed(path.hops))


def hop_text(hop: Hop) -> str:
    """Returns `h1/data0 -> leaf1/Ethernet4`."""
    return f"{hop.near} -> {hop.far}"


def part_text(book: Book) -> str:
    """Returns which part of the way a book is about, `into leaf1`."""
    return f"into {book.device}" if book.part is Part.INTO else f"from {book.device}/{book.port} to {book.peer}"


def look(facts: Facts) -> Scene:
    """Returns what follows from the counters of all together."""
    directions = sorted({pair for path in facts.evidence.links for pair in _both(path)})
    pairs = tuple(pair for pair in directions if _is_lossy(facts, *pair))
    late = () if pairs else tuple(sorted({found for pair in directions for found in _late(facts, *pair)}))
    drops = tuple(
        one
        for one in facts.readings
        if one.source.kind is SourceKind.SWITCH and one.event in DROPS and facts.must_stand(one) and is_above(one.value)
    )
    found = books(facts)
    return Scene(facts, found, pairs, late, drops, tuple(_misplaced(facts, found)), cable_books(facts))


def _both(path: LinkPath) -> tuple[tuple[str, str], tuple[str, str]]:
    return (path.host, path.target), (path.target, path.host)


def _key(hop: Hop) -> str:
    return hop_text(hop)


def _is_lossy(facts: Facts, sender: str, receiver: str) -> bool:
    """Whether packets from one to the other were lost or overtaken, by a gap that the one or the other counted."""
    told, seen = facts.count(sender, Event.GAP_NAKED), facts.count(receiver, Event.GAP_SEEN)
    if is_above(told):
        return seen is UNKNOWN or seen > 0
    if is_above(seen) and told is UNKNOWN:
        return True
    again = facts.count(sender, Event.DUPLICATE)
    return is_above(facts.count(receiver, Event.READ_GAP)) and (again is UNKNOWN or again > 0)


def _late(facts: Facts, sender: str, receiver: str) -> Iterator[tuple[str, str]]:
    """A timer of the sender: its packet was lost, or the answer when the receiver had seen the packet already.

    Of several timers some may be about the one and some about the other: duplicates are counted by packets.
    """
    timeouts = facts.count(sender, Event.ACK_TIMEOUT)
    if not is_above(timeouts):
        return
    is_again = is_above(facts.count(receiver, Event.DUPLICATE))
    if is_again:
        yield receiver, sender
    elsewhere = any(is_above(facts.count(one, Event.DUPLICATE)) for one in facts.peers(sender))
    if is_above(timeouts, 1) or not (is_again or elsewhere):
        yield sender, receiver


def _misplaced(facts: Facts, found: tuple[Book, ...]) -> Iterator[tuple[str, str, int]]:
    """More of the class arrived than left through its queue, and nothing but that port leads there."""
    for book in found:
        if book.part is not Part.OUT_OF or book.sent is UNKNOWN or book.received is UNKNOWN:
            continue
        extra = book.received - book.sent
        queues = facts.pick(book.device, Event.QUEUE_SENT, place=book.port)
        passed = known(add(one.value for one in queues if not facts.matters(one)), 0)
        if extra > max(1, book.received // 100) and passed >= extra:
            yield book.device, book.port, extra
