"""How many transfers a second the dealer deals on one core: cut, queue, issue, complete. No I/O.

    python benchmarks/dealer.py [--policy NAME] [--transfers N] [--queues N] [--tenants N] [--repeats N] [--min RATE]

Closed loop: 16 requests of 64 transfers wait or fly at any time, and responses come back in batches of 16, as from a
completion queue, in the order of issue. Rates are per second of CPU time. The best of the repeats counts, since others
may use the machine; all are printed, and beside them what one turn of an empty loop took, to compare machines by. With
a limit it ends with 1 when a policy is below it. JSON is the last line.
"""

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections import deque

from fabric.engine.queues import (
    Dealer,
    Extent,
    Issue,
    Namespace,
    Path,
    Queue,
    QueueId,
    Request,
    RequestDone,
    RequestId,
    View,
)
from fabric.engine.queues.dealing import catalog
from fabric.policy import ShardPolicy

KIB = 1024
BLOCK, TRANSFER, IN_REQUEST, READERS, BATCH = 4 * KIB, 128 * KIB, 64, 16, 16
NAMESPACE = Namespace(1, "target", BLOCK)


def request(number: int, tenants: int) -> Request:
    """Returns a read of 64 transfers into 64 pages that do not touch, as a KV cache has them."""
    blocks = TRANSFER // BLOCK
    views = tuple(View(0, 2 * TRANSFER * page, TRANSFER) for page in range(IN_REQUEST))
    extents = (Extent(NAMESPACE, number * blocks * IN_REQUEST, blocks * IN_REQUEST),)
    return Request(RequestId(number), extents, views, tenant=f"t{number % tenants}", key=b"%d" % number)


def rate(policy: str, transfers: int, queues: int, tenants: int) -> float:
    """Returns transfers a second of one run."""
    dealer = Dealer(ShardPolicy(queues=queues, depth=32, transfer_bytes=TRANSFER, dealing=policy))
    for index in range(queues):
        dealer.add_queue(Queue(QueueId(index), "target", Path(f"host{index % 2}", f"target{index % 2}"), 32))
    requests = [request(number, tenants) for number in range(transfers // IN_REQUEST)]
    flying: deque[Issue] = deque()
    submitted = done = 0
    gc.collect()
    start_s = time.process_time()
    for one in requests[:READERS]:
        dealer.submit(one, 0)
        submitted += 1
    now_ns = 0
    while done < len(requests):
        now_ns += 1000
        for command in dealer.commands(now_ns):
            if type(command) is Issue:
                flying.append(command)
            elif type(command) is RequestDone:
                done += 1
                if submitted < len(requests):
                    dealer.submit(requests[submitted], now_ns)
                    submitted += 1
        for _ in range(min(BATCH, len(flying))):
            queue, transfer = flying.popleft()
            dealer.completed(queue, transfer)
    return len(requests) * IN_REQUEST / (time.process_time() - start_s)


def empty_turn_ns() -> float:
    """Returns nanoseconds of one turn of `for` with one addition, the best of five."""
    best_s = float("inf")
    for _ in range(5):
        total, start_s = 0, time.process_time()
        for index in range(200_000):
            total += index
        best_s = min(best_s, time.process_time() - start_s)
    return round(best_s / 200_000 * 1e9, 1)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--policy", choices=catalog.names(), action="append")
    parser.add_argument("--transfers", type=int, default=65536)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--tenants", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--min", type=float, default=0.0, metavar="RATE")
    given = parser.parse_args()
    runs = {
        policy: [round(rate(policy, given.transfers, given.queues, given.tenants)) for _ in range(given.repeats)]
        for policy in given.policy or catalog.names()
    }
    best = {policy: max(rates) for policy, rates in runs.items()}
    result = {
        "benchmark": "dealer",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "empty_turn_ns": empty_turn_ns(),
        "queues": given.queues,
        "tenants": given.tenants,
        "transfers": given.transfers,
        "transfers_per_s": best,
        "runs": runs,
    }
    print(json.dumps(result))
    return int(min(best.values()) < given.min)


if __name__ == "__main__":
    sys.exit(main())
