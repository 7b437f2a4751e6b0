"""A verdict beside the truth: what is wrong with it, and the figures of many runs."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fabric.verify import Verdict, VerdictStatus, judge
from tests.verify_plant.scenario import Run
from tests.verify_plant.truth import CAUSE, Fault, Truth

RUNS = int(os.environ.get("FABRIC_VERIFY_RUNS", "200"))
ON_ONE_CABLE = frozenset({Fault.NTH, Fault.RANDOM, Fault.FLAP})
DISORDER = frozenset({Fault.REORDERED})


@dataclass(frozen=True, slots=True)
class Trial:
    seed: int
    truth: Truth
    verdict: Verdict

    @property
    def is_harmed(self) -> bool:
        return self.truth.lost > 0 or self.truth.flaws > 0

    @property
    def is_false_pass(self) -> bool:
        void = self.truth.fault in {Fault.RESET, Fault.REBOOT}  # what was lost there, nobody counted
        return self.verdict.status is VerdictStatus.PASS and (self.is_harmed or void)

    @property
    def is_false_fail(self) -> bool:
        harmless = not self.is_harmed and self.truth.fault not in DISORDER
        return self.verdict.status is VerdictStatus.FAIL and harmless

    def wrong(self) -> tuple[str, ...]:
        """Returns what is wrong with the verdict; () for nothing."""
        checks = {
            "false PASS": self.is_false_pass,
            "false FAIL": self.is_false_fail,
            "harm that is no FAIL": self._is_missed(),
            "clean run that is no PASS": self._is_doubted(),
            "void that is not INVALID": self._is_void_missed(),
            "gone counters that are not listed": self._is_gap_missed(),
            "slow host that is no INVALID": self._is_slowness_missed(),
            "wrong cause": self._has_wrong_cause(),
            "wrong place": self._has_wrong_place(),
            "more than one place": self._is_vague(),
        }
        return tuple(name for name, is_wrong in checks.items() if is_wrong)

    def _is_missed(self) -> bool:
        return self.is_harmed and self.verdict.status is not VerdictStatus.FAIL

    def _is_doubted(self) -> bool:
        clean = self.truth.fault in {Fault.NONE, Fault.NTH, Fault.RANDOM, Fault.CORRUPT, Fault.PFC_OFF}
        return clean and not self.is_harmed and self.verdict.status is not VerdictStatus.PASS

    def _is_void_missed(self) -> bool:
        if self.truth.fault not in {Fault.RESET, Fault.REBOOT} or self.is_harmed:
            return False
        named = any(one.startswith(self.truth.device) for one in self.verdict.invalid)
        return self.verdict.status is not VerdictStatus.INVALID or not named

    def _is_slowness_missed(self) -> bool:
        late = any(moved.meaning == "ack-timeout" for one in self.verdict.per_device for moved in one.moved)
        return self.truth.fault is Fault.SLOW and late and self.verdict.status is not VerdictStatus.INVALID

    def _is_gap_missed(self) -> bool:
        if self.truth.fault is not Fault.UNAVAILABLE:
            return False
        device = self.truth.device
        named = any(one.startswith(device) for one in self.verdict.unobservable)
        # without a switch the ends still see every loss; without an end they do not (hosts.md 5.2)
        wanted = VerdictStatus.PASS if device.startswith("s") else VerdictStatus.INVALID
        as_wanted = self.is_harmed or self.verdict.status is wanted
        return not named or not as_wanted or self.verdict.grade.value == "A"

    def _has_wrong_cause(self) -> bool:
        cause = CAUSE.get(self.truth.fault)
        return self._is_located() and (not self.verdict.findings or self.verdict.findings[0].cause != cause)

    def _has_wrong_place(self) -> bool:
        found = self.verdict.findings[0].place.split(" or ") if self.verdict.findings else []
        return self._is_located() and not any(one in found for one in self.truth.places)

    def _is_vague(self) -> bool:
        """Where every port's frames are counted, a lost packet has one place."""
        first = self.verdict.findings[0].place if self.verdict.findings else ""
        is_exact = self.truth.counts_ports and self.truth.fault in ON_ONE_CABLE
        return is_exact and self._is_located() and first not in self.truth.places

    def _is_located(self) -> bool:
        return self.truth.fault in CAUSE and (self.is_harmed or self.truth.fault in DISORDER)


def trial(seed: int, *, fault: Fault | None = None) -> Trial:
    """Returns one seeded run, judged."""
    evidence, truth = Run(seed, fault=fault).go()
    return Trial(seed, truth, judge(evidence))


def table(trials: Iterable[Trial]) -> str:
    """Returns how many runs of each fault came to which verdict."""
    rows: Counter[tuple[str, str, str, str]] = Counter()
    for one in trials:
        truth = "packets lost" if one.truth.lost else ("bytes wrong" if one.truth.flaws else "nothing lost")
        rows[one.truth.fault.value, truth, one.verdict.status.value.upper(), one.verdict.grade.value] += 1
    lines = [f"{count:5}  {' | '.join(key)}" for key, count in sorted(rows.items())]
    return "\n".join(["runs   fault | truth | verdict | grade", *lines])
