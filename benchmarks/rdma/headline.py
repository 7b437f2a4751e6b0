"""Bar 3: what sharding gains where each command takes 20 ms, on parts that nobody here wrote.

The target is the kernel's nvmet over null_blk with a completion delay, over Soft-RoCE. Sixteen cold reads at a time,
over four queues, against one command in flight, and against one queue at full depth; fio with the kernel's host gives
its own gain in the same rounds. Latency is split: the device as fio in the target sees it alone, the transport on top
of that for one read alone, and queueing as what sixteen at a time add.
"""

import random
import sys
from collections import defaultdict
from statistics import median
from typing import Any, Final

from benchmarks.rdma.intervals import ratio
from benchmarks.rdma.machines import SLOW, SLOW_NS, Pair, pair

__all__ = ("measure",)

KIB, MIB = 1024, 1 << 20
SIZES: Final = (64 * KIB, 256 * KIB)
READERS: Final = 16
QUEUES: Final = 4
TOKENS: Final = (1024, 4096, 16384, 65536, 131072)
# Qwen2.5-0.5B: 24 layers x 2 (key, value) x 2 heads x 64 x 2 B: small enough for what an emulated link carries
TOKEN_BYTES: Final = 24 * 2 * 2 * 64 * 2
LEAST_GAIN, LEAST_OF_FIO = 4.0, 0.9
_WAYS: Final = ("sharded", "one command", "one queue", "fio", "fio one command")


def measure(*, rounds: int, seconds: float, cpus: int) -> dict[str, Any]:
    """Returns the figures, and whether they hold."""
    with pair(cpus=cpus, is_compiled=False) as machines:
        kernel_queues = machines.connect_kernel(QUEUES)
        rows = _rounds(machines, rounds, seconds)
        local = {size: machines.local("/dev/slow", size=size, readers=1, seconds=seconds) for size in SIZES}
        loads = {flying: _load(machines, flying) for flying in (READERS, 1)}
    table = [_row(rows, size, local[size]) for size in SIZES]
    return {
        "benchmark": "rdma headline",
        "rounds": rounds,
        "seconds": seconds,
        "cpus": cpus,
        "kernel_queues": kernel_queues,
        "device_ms": SLOW_NS / 1e6,
        "rows": table,
        "contexts": _contexts(rows, loads),
        "wrong": sum(one.get("wrong", 0) for values in rows.values() for one in values)
        + sum(one["wrong"] for one in loads.values()),
        "holds": table[0]["holds"],
    }


def _rounds(machines: Pair, rounds: int, seconds: float) -> dict[tuple[str, int], list[Any]]:
    rows: dict[tuple[str, int], list[Any]] = defaultdict(list)
    chance = random.Random(5)
    for number in range(rounds):
        for size in SIZES:
            ways = list(_WAYS)
            chance.shuffle(ways)
            for way in ways:
                rows[way, size].append(_once(machines, way, size, seconds))
            said = ", ".join(f"{way} {rows[way, size][-1]['mib_s']:.1f}" for way in _WAYS)
            sys.stderr.write(f"round {number + 1} of {rounds}, {size // KIB} KiB, MiB/s: {said}\n")
            sys.stderr.flush()
    return rows


def _once(machines: Pair, way: str, size: int, seconds: float) -> Any:
    if way.startswith("fio"):
        readers = READERS if way == "fio" else 1
        return machines.kernel(SLOW, size=size, readers=readers, seconds=seconds)
    readers = 1 if way == "one command" else READERS
    queues = QUEUES if way == "sharded" else 1
    return machines.ours(SLOW, size=size, readers=readers, queues=queues, seconds=seconds)


def _load(machines: Pair, flying: int) -> Any:
    """Returns how long 16 contexts of 1k tokens took."""
    queues = QUEUES if flying > 1 else 1
    asked = {"bytes": TOKENS[0] * TOKEN_BYTES, "readers": READERS, "size": SIZES[0], "queues": queues}
    return machines.contexts(SLOW, {**asked, "depth": 32, "flying": flying, "seconds": 300})


def _row(rows: dict[tuple[str, int], list[Any]], size: int, local: Any) -> dict[str, Any]:
    rates = {way: [one["mib_s"] for one in rows[way, size]] for way in _WAYS}
    gain = ratio(rates["sharded"], rates["one command"])
    fio = ratio(rates["fio"], rates["fio one command"])
    beside = ratio(
        [one / other for one, other in zip(rates["sharded"], rates["one command"], strict=True)],
        [one / other for one, other in zip(rates["fio"], rates["fio one command"], strict=True)],
    )
    device = local["p50_ms"]
    alone = median(one["p50_ms"] for one in rows["one command", size])
    loaded = median(one["p50_ms"] for one in rows["sharded", size])
    return {
        "size": size,
        "mib_s": {way: round(median(values), 2) for way, values in rates.items()},
        "gain": str(gain),
        "fio_gain": str(fio),
        "gain_of_fio_gain": str(beside),
        "against_one_queue": str(ratio(rates["sharded"], rates["one queue"])),
        "latency_ms": {
            "device": round(device, 2),
            "transport": round(alone - device, 2),
            "queueing": round(loaded - alone, 2),
        },
        "holds": gain.low >= LEAST_GAIN and beside.median >= LEAST_OF_FIO,
    }


def _contexts(rows: dict[tuple[str, int], list[Any]], loads: dict[int, Any]) -> dict[str, Any]:
    """Returns seconds until the last of 16 contexts is there: measured at 1k tokens, from the rates above beyond."""
    rates = {way: median(one["mib_s"] for one in rows[way, SIZES[0]]) for way in ("sharded", "one command")}
    computed = {
        tokens: {way: round(READERS * tokens * TOKEN_BYTES / MIB / rate, 1) for way, rate in rates.items()}
        for tokens in TOKENS
    }
    return {
        "bytes_per_token": TOKEN_BYTES,
        "readers": READERS,
        "measured_s": {
            "tokens": TOKENS[0],
            "sharded": round(loads[READERS]["last_s"], 2),
            "one command": round(loads[1]["last_s"], 2),
        },
        "computed_s": computed,
    }
