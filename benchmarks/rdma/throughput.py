"""Bar 2: MiB/s and CPU of our host over Soft-RoCE, beside the kernel's host with fio, PyPI's `nvmeof`, and the link.

Ours runs in plain Python and with its hot modules compiled (`make compiled`); the bar wants one of the two to hold at
both sizes. Each round runs all of them at both sizes, in an order drawn anew. The ceiling is the best that the kernel's
host reaches over depths and sizes in the same boot, and what the emulated link carries in frames of the same size with
nothing else running: a row near it says that the link was measured, not the host.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from benchmarks.rdma.intervals import ratio
from benchmarks.rdma.machines import FAST, Pair, pair

__all__ = ("SIZES", "measure")

KIB, MIB = 1024, 1 << 20
SIZES: Final = (64 * KIB, MIB)
READERS: Final = 16
QUEUES: Final = 4
OURS: Final = ("ours", "compiled")
WAYS: Final = ("ours", "compiled", "kernel", "nvmeof")
BLOCKS: Final = (64 * KIB, 256 * KIB, MIB)  # the kernel's best of three is shown beside
CEILING: Final = tuple((size, depth) for size in (128 * KIB, 512 * KIB) for depth in (4, 32))
LEAST_PEER: Final = 2.0
LEAST: Final = {64 * KIB: 1.0, MIB: 1.1}  # ours over the kernel's host; 1.1 is asked for at 1 MiB with 4 queues


def measure(*, pairs: int, seconds: float, cpus: int) -> dict[str, Any]:
    """Returns the figures, and whether they hold."""
    with pair(cpus=cpus) as machines:
        kernel_queues = machines.connect_kernel(QUEUES)
        rows = _rounds(machines, pairs, seconds)
        best = _ceiling(machines, seconds)
        raw = machines.raw_mib_s(seconds)
    for size in SIZES:
        best[f"{size // KIB} KiB x {READERS}"] = median(one["mib_s"] for one in rows["kernel", size])
    ceiling = max(best.values())
    table = [_row(rows, size, ceiling, raw) for size in SIZES]
    return {
        "benchmark": "rdma throughput",
        "pairs": pairs,
        "seconds": seconds,
        "cpus": cpus,
        "queues": QUEUES,
        "readers": READERS,
        "kernel_queues": kernel_queues,
        "kernel_best_mib_s": {name: round(value, 2) for name, value in best.items()},
        "link_mib_s": round(raw, 2),
        "rows": table,
        "wrong": sum(one.get("wrong", 0) for values in rows.values() for one in values),
        "holds": any(all(row["holds"][way] for row in table) for way in OURS),
    }


def _rounds(machines: Pair, pairs: int, seconds: float) -> dict[tuple[str, int], list[Any]]:
    rows: dict[tuple[str, int], list[Any]] = defaultdict(list)
    chance = random.Random(3)
    for number in range(pairs):
        for size in SIZES:
            ways = list(WAYS)
            chance.shuffle(ways)
            for way in ways:
                rows[way, size].append(_once(machines, way, size, seconds))
            _tell(f"round {number + 1} of {pairs}, {size // KIB} KiB: {_said(rows, size)}")
    return rows


def _once(machines: Pair, way: str, size: int, seconds: float) -> Any:
    if way in ("ours", "compiled"):
        is_compiled = way == "compiled"
        return machines.ours(FAST, size=size, readers=READERS, queues=QUEUES, seconds=seconds, is_compiled=is_compiled)
    if way == "kernel":
        return machines.kernel(FAST, size=size, readers=READERS, seconds=seconds)
    return machines.peer(FAST, size=size, seconds=seconds)


def _ceiling(machines: Pair, seconds: float) -> dict[str, float]:
    """Returns MiB/s of the kernel's host at other sizes and depths."""
    asked = [*CEILING, *((size, READERS) for size in BLOCKS if size not in SIZES)]
    return {
        f"{size // KIB} KiB x {depth}": machines.kernel(FAST, size=size, readers=depth, seconds=seconds)["mib_s"]
        for size, depth in asked
    }


def _row(rows: dict[tuple[str, int], list[Any]], size: int, ceiling: float, raw: float) -> dict[str, Any]:
    rates = {way: [one["mib_s"] for one in rows[way, size]] for way in WAYS}
    kernels = {way: ratio(rates[way], rates["kernel"]) for way in OURS}
    peers = {way: ratio(rates[way], rates["nvmeof"]) for way in OURS}
    cpu = {way: round(median(one["guest_cpu_s_per_gib"] for one in rows[way, size]), 2) for way in (*OURS, "kernel")}
    ours = max(median(rates[way]) for way in OURS)
    return {
        "size": size,
        "mib_s": {way: round(median(values), 2) for way, values in rates.items()},
        "guest_cpu_s_per_gib": cpu,
        "to_kernel": {way: str(one) for way, one in kernels.items()},
        "to_nvmeof": {way: str(one) for way, one in peers.items()},
        "of_kernel_best": round(ours / ceiling, 3),
        "of_link": round(ours / raw, 3),
        "holds": {way: kernels[way].low >= LEAST[size] and peers[way].low >= LEAST_PEER for way in OURS},
    }


def _said(rows: dict[tuple[str, int], list[Any]], size: int) -> str:
    return ", ".join(_last(rows, size))


def _last(rows: dict[tuple[str, int], list[Any]], size: int) -> Iterator[str]:
    for way in WAYS:
        yield f"{way} {rows[way, size][-1]['mib_s']:.1f} MiB/s"


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
