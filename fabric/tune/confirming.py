"""The end of a search: finalists and the best default, interleaved over equal seeds at full fidelity.

| what stands in doubt | until how many trials |
|---|---|
| whoever leads, whoever follows, the best default | 3 |
| whether the leader is ahead of the default by what is worth it | 5 |
| whether pauses or marks of the leader hold their limits, where they come near | 12 |
| whether the leader never loses, where other settings of this study lost | 8, and 24 where as many are left besides |

When a finalist falls and enough trials are left, the search looks for another one. The last trials are for a setting
well inside the limits as long as nothing else could be deployed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fabric.tune.asking import FIRST_SEED, FULL, Ask, defaults
from fabric.tune.knobs import Knobs, Space
from fabric.tune.path import PathModel
from fabric.tune.standing import WORTH, Book, Standing, are_level, are_twins
from fabric.tune.student import paired_gain

__all__ = ("PAIRS", "WORTH", "Confirmation")

FINALISTS: Final = 2
PAIRS, MOST_PAIRS = 3, 5
# a setting that loses in every tenth trial passes 3 of them in 73 of 100 cases, 8 in 43, 24 in 8
CLEAN, CLEANEST = 8, 24
TRIES: Final = 2  # that another search has to have, besides its confirmation


@dataclass(slots=True)
class Confirmation:
    """The last phase, entered anew after each return to the search."""

    space: Space
    model: PathModel
    book: Book
    budget: int

    def asks(self) -> Iterator[Ask]:
        """Yields each measurement; returns early when a finalist fell and another may be looked for."""
        while self.left > 0 and (one := self._next()) is not None:
            yield Ask(one.knobs, FULL, FIRST_SEED + len(one.at(FULL)), "confirmation")
            if self.book[one.knobs].has_fallen(self.book.limits) and self.may_search:
                return

    @property
    def left(self) -> int:
        """Returns how many trials are left."""
        return self.budget - len(self.book.told)

    @property
    def may_search(self) -> bool:
        """Returns whether another setting could still be found and confirmed."""
        return self.left >= TRIES + self._least()

    def needed(self) -> int:
        """Returns how many trials it would take now, if none falls and all is clear at once."""
        finalists = self.finalists()
        counts = [self._least(), *(PAIRS for _ in finalists[1:])]
        return sum(_lacks(one, count) for one, count in zip(finalists, counts, strict=False))

    def spare(self, *, is_first: bool) -> int:
        """Returns the trials to keep besides: at first so many that another search is possible when one falls."""
        return TRIES + PAIRS if is_first else PAIRS

    def is_settled(self, one: Standing) -> bool:
        """Returns whether enough was measured to deploy it."""
        return len(one.at(FULL)) >= self._least() and not one.is_open(self.book.limits)

    def finalists(self) -> list[Standing]:
        """Returns the leader, who follows it where the trials that are left allow, and the best default."""
        default = self._default()
        others = [one for one in self.book.ranked() if one is not default]
        able = [one for one in others if len(one.at(FULL)) + self.left >= self._least()] or others
        begun = [one for one in able if one.at(FULL)]
        chosen = self._first(begun, default) if begun else able[:1]
        known = [*chosen, *([] if default is None else [default])]
        room = self.left - sum(_lacks(one, PAIRS) for one in known)
        fresh = [one for one in able if not any(_are_kin(one.knobs, other.knobs) for other in chosen)]
        for one in (*begun, *fresh, *able):
            is_other = not any(one is other or are_twins(one, other) or self._are_level(one, other) for other in known)
            if len(chosen) < FINALISTS and is_other and _lacks(one, PAIRS) <= room:
                chosen.append(one)
                known.append(one)
        return chosen if default is None else [*chosen, default]

    def _next(self) -> Standing | None:
        """Returns whoever needs another trial and has had the fewest."""
        calm = self._calm()
        if calm is not None and self.left <= _lacks(calm, self._least()):
            return calm  # the last moment for something that can be deployed
        finalists = self.finalists()
        leader = self.book.leader()  # the first of the finalists, or the default
        late = [one for place, one in enumerate(finalists) if self._needs(one, is_first=place == 0 or one is leader)]
        if not late and len(finalists) > 1 and self._default() is not None and not self._is_certain():
            pair = (finalists[0], finalists[-1])
            late = [one for one in pair if len(one.at(FULL)) < MOST_PAIRS]
        if not late and self._least() == CLEAN and self.left > CLEAN:  # what is left besides is for who would follow
            late = [one for one in finalists[:1] if len(one.at(FULL)) < CLEANEST]
        return min(late, key=lambda one: len(one.at(FULL)), default=None)

    def _first(self, begun: list[Standing], default: Standing | None) -> list[Standing]:
        """Returns whom to confirm first: of those that are level with the leader whoever was measured most.

        Else none of many equals is ever done. Nobody where that is level with the default and as near to a limit.
        """
        level = [one for one in begun if one is begun[0] or self._are_level(one, begun[0])]
        first = max(level, key=lambda one: len(one.at(FULL)))
        is_default = default is not None and first.is_near(self.book.limits) and self._are_level(first, default)
        return [] if is_default else [first]

    def _calm(self) -> Standing | None:
        """Returns the best setting that did nothing like one near a limit, as long as nothing could be deployed."""
        ranked = self.book.ranked()
        if any(self.is_settled(one) for one in ranked):
            return None
        near = [one for one in ranked if one.is_near(self.book.limits)]
        return next((one for one in ranked if not any(one is other or are_twins(one, other) for other in near)), None)

    def _are_level(self, one: Standing, other: Standing) -> bool:
        return are_level(one, other, self.book.goal)

    def _needs(self, one: Standing, *, is_first: bool) -> bool:
        return not self.is_settled(one) if is_first else len(one.at(FULL)) < PAIRS

    def _least(self) -> int:
        """Returns how many trials at full fidelity a setting needs that is to be deployed."""
        lost = any(one.has_lost for one in self.book.standings())
        return CLEAN if lost else PAIRS

    def _default(self) -> Standing | None:
        """Returns the best default, and whoever has begun to be measured for that stays it."""
        named = defaults(self.space, self.model)
        found = [one for one in self.book.ranked() if one.knobs in named]
        return max(found, key=lambda one: len(one.at(FULL)), default=None)

    def _is_certain(self) -> bool:
        """Returns whether the leader is ahead of the default by what is worth it, or is not, for certain."""
        last = self.finalists()
        low, high = paired_gain(last[0].by_seed(self.book.goal), last[-1].by_seed(self.book.goal))
        return low > WORTH or high < WORTH


def _lacks(one: Standing, count: int) -> int:
    """Returns how many trials at full fidelity it lacks of so many."""
    return max(0, count - len(one.at(FULL)))


def _are_kin(one: Knobs, other: Knobs) -> bool:
    """Returns whether the two differ in queues, depth and dealing alone."""
    return all(
        getattr(one, name) == getattr(other, name) for name in ("transfer_bytes", "target_bytes", "receiver_bytes")
    )
