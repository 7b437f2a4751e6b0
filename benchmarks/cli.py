"""How long the command line takes: `fabricctl --help`, and `fabricctl plan` on the demo over real SSH.

    python benchmarks/cli.py [--repeats N] [--max-help S] [--max-plan-rest S]

Every figure is of a fresh process, from start to end, on stock switches (so that every one has changes). `plan` is told
in two parts: the inventory, which is Ansible's own loader in a process of its own, and the rest. With limits it ends
with 1 when the median is above one of them. JSON is the last line.
"""

import argparse
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fabric.cli.exits import Exit
from fabric.workflow import Environment
from fabric.workflow.demo import demo_lab

FABRICCTL = [sys.executable, "-c", "from fabric.cli import main; main()"]


def timed(arguments: Sequence[str], accepted: Sequence[int]) -> tuple[float, str]:
    """Returns the wall time of one `fabricctl` in seconds, and what it printed."""
    start_s = time.perf_counter()
    done = subprocess.run([*FABRICCTL, *arguments], capture_output=True, text=True, check=False)
    took_s = time.perf_counter() - start_s
    if done.returncode not in accepted:
        sys.exit(f"fabricctl {' '.join(arguments)} ended with {done.returncode}: {done.stderr or done.stdout}")
    return took_s, done.stdout


def plan_once(sources: Sequence[Path], runs: Path) -> dict[str, float]:
    """Returns the seconds of one plan: whole, its stages, and what is left without the inventory."""
    arguments = ["plan", *(word for source in sources for word in ("-i", str(source))), "--runs", str(runs), "--json"]
    whole_s, text = timed(arguments, (Exit.OK, Exit.FINDINGS))
    summary = json.loads(text)
    idle = [one["device"] for one in summary["devices"] if not one["changes"]]
    if idle or not summary["devices"]:
        sys.exit(f"nothing to plan for: {idle}")
    stages = {one["stage"]: float(one["seconds"]) for one in summary["timings"]}
    return {"whole": whole_s, "rest": whole_s - stages["inventory"], **stages}


def medians(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Returns the median of each column, in milliseconds' precision."""
    return {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--max-help", type=float, default=float("inf"), metavar="S")
    parser.add_argument("--max-plan-rest", type=float, default=float("inf"), metavar="S")
    limits = parser.parse_args()

    # The emulated switches live in this process; that a client which ends hangs up on them is no news.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())

    timed(["--help"], (Exit.OK,))  # the first one writes byte code
    helps_s = [timed(["--help"], (Exit.OK,))[0] for _ in range(limits.repeats)]
    with tempfile.TemporaryDirectory() as folder, demo_lab(Path(folder), Environment()) as lab:
        plan_once(lab.request.sources, Path(folder))
        plans = [plan_once(lab.request.sources, Path(folder)) for _ in range(limits.repeats)]
    result = {
        "benchmark": "cli",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "repeats": limits.repeats,
        "help_s": round(statistics.median(helps_s), 3),
        "help_s_min_max": [round(min(helps_s), 3), round(max(helps_s), 3)],
        "plan_s": medians(plans),
        "plan_rest_s_min_max": [
            round(min(row["rest"] for row in plans), 3),
            round(max(row["rest"] for row in plans), 3),
        ],
    }
    print(json.dumps(result))
    return int(result["help_s"] > limits.max_help or result["plan_s"]["rest"] > limits.max_plan_rest)


if __name__ == "__main__":
    sys.exit(main())
