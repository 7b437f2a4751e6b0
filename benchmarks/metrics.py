"""What counting costs an engine: CPU time of a measured link less that of the bare one, for each transfer.

    python -m benchmarks.metrics

A link that does nothing is given transfers and says that they landed, one request a transfer, in batches of 1, 16 and
64. The two take turns; the least of the rounds counts. The last line is one JSON object.
"""

import gc
import json
import time
from collections.abc import Callable, Sequence

from fabric.engine.client.link import Described, Landed, Link, News
from fabric.engine.client.measuredlink import MeasuredLink
from fabric.engine.client.orders import Order
from fabric.engine.metrics.meter import Meter
from fabric.engine.queues import (
    Issue,
    Namespace,
    Op,
    Path,
    Queue,
    QueueId,
    RequestId,
    Transfer,
    TransferId,
    View,
)

TRANSFERS = 2_000
ROUNDS = 40
QUEUE = QueueId(1)
SPACE = Namespace(1, "target", 512)


class Idle:
    """A link on which everything lands at the next step."""

    def __init__(self) -> None:
        self.news: list[News] = []

    def start(self, now_ns: int) -> None: ...

    def namespace(self) -> Described:
        return Described(SPACE, 8)

    def register(self, memory: memoryview) -> int:
        return memory.nbytes

    def issue(self, batch: Sequence[Issue], now_ns: int, wanted: Callable[[RequestId], bool]) -> list[News]:
        del batch, now_ns, wanted
        return []

    def order(
        self, batch: Sequence[tuple[QueueId, Order]], now_ns: int, wanted: Callable[[RequestId], bool]
    ) -> list[News]:
        del batch, now_ns, wanted
        return []

    def step(self, now_ns: int) -> list[News]:
        del now_ns
        return self.news

    def next_timer_ns(self) -> int | None:
        return None

    def fileno(self) -> int:
        return -1

    def stop(self, now_ns: int) -> bool:
        return now_ns > 0

    def close(self) -> None: ...


def transfer(number: int) -> Transfer:
    view = View(0, 0, 4096)
    return Transfer(TransferId(number), RequestId(number), Op.READ, SPACE, 0, 8, 4096, (view,), 0, "")


def cost_us(batch: int) -> float:
    """CPU time that counting takes for a transfer, microseconds."""
    bare, meter = Idle(), Meter()
    meter.opened(Queue(QUEUE, "target", Path("here", "there"), 128))
    measured = MeasuredLink(bare, meter, time.monotonic_ns)
    made = [transfer(number) for number in range(TRANSFERS)]
    groups = [made[at : at + batch] for at in range(0, TRANSFERS, batch)]
    issues = [[Issue(QUEUE, one) for one in group] for group in groups]
    landed: list[list[News]] = [[Landed(QUEUE, one) for one in group] for group in groups]

    def pass_all(link: Link, counted: Meter | None) -> int:
        began_ns = time.thread_time_ns()
        for issue, news in zip(issues, landed, strict=True):
            if counted is not None:
                for one in issue:
                    counted.submitted[one.transfer.request] = began_ns
            link.issue(issue, 0, bool)
            bare.news = news
            link.step(0)
            if counted is not None:
                for one in issue:
                    counted.ended(one.transfer.request, None)
        return time.thread_time_ns() - began_ns

    gc.disable()
    pairs = [(pass_all(measured, meter), pass_all(bare, None)) for _ in range(ROUNDS)]
    gc.enable()
    with_ns, without_ns = min(one for one, _ in pairs), min(one for _, one in pairs)
    return (with_ns - without_ns) / TRANSFERS / 1000


def main() -> None:
    found = {f"batch_{batch}_us": round(cost_us(batch), 2) for batch in (1, 16, 64)}
    print(json.dumps({"benchmark": "metrics", "transfers": TRANSFERS, "rounds": ROUNDS, **found}))


if __name__ == "__main__":
    main()
