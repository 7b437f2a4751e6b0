"""Prints the figures of n seeded runs: `python -m tests.verify_plant 1000 [first seed]`; exits with 1 where one is wrong."""

import sys

from tests.verify_plant.trial import RUNS, table, trial


def main(runs: int, first: int) -> int:
    trials = [trial(seed) for seed in range(first, first + runs)]
    print(table(trials))
    wrong = [one for one in trials if one.wrong()]
    for one in wrong:
        print(f"seed {one.seed}: {one.truth.fault.value}: {', '.join(one.wrong())}")
    packets = sum(one.verdict.packets for one in trials if isinstance(one.verdict.packets, int))
    false_pass, false_fail = sum(one.is_false_pass for one in trials), sum(one.is_false_fail for one in trials)
    print(
        f"{runs} runs, {packets:,} packets: {false_pass} false PASS, {false_fail} false FAIL, {len(wrong)} wrong in all"
    )
    return bool(wrong)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(numbers[0] if numbers else RUNS, numbers[1] if len(numbers) > 1 else 0))
