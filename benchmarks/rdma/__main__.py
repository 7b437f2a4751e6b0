"""Our host over Soft-RoCE against Linux nvmet, in two virtual machines joined directly. Needs the lab's image.

python -m benchmarks.rdma throughput [--rounds N] [--seconds S] [--cpus N] [--judge]
python -m benchmarks.rdma headline [--rounds N] [--seconds S] [--cpus N] [--judge]

JSON is the last line; with --judge it ends with 1 where the bar does not hold.
"""

import argparse
import json
import sys

from benchmarks.rdma import headline, throughput


def main() -> int:
    """Measures one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throughput", "headline"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of one measurement")
    parser.add_argument("--cpus", type=int, default=4, help="of the host")
    parser.add_argument("--judge", action="store_true", help="end with 1 where the bar does not hold")
    given = parser.parse_args()
    if given.what == "throughput":
        said = throughput.measure(pairs=given.rounds, seconds=given.seconds, cpus=given.cpus)
    else:
        said = headline.measure(rounds=given.rounds, seconds=given.seconds, cpus=given.cpus)
    print(json.dumps(said))
    return 0 if (said["holds"] and not said["wrong"]) or not given.judge else 1


if __name__ == "__main__":
    sys.exit(main())
