"""A path with known caps, played in virtual time: each queue passes so many bytes a second, then the link so many.

Deterministic: the only clock is the loop's. A transfer waits for its queue, then for the link, then its response comes.
"""

from collections.abc import Mapping
from heapq import heappop, heappush

from fabric.engine.queues import Dealer, Issue, Path, Queue, QueueId, Request, RequestDone


class ShapedPath:
    """One target behind one link.

    Args:
        queue_mb_per_s: cap of each queue, by number.
        link_mb_per_s: cap of the link.
    """

    def __init__(self, queue_mb_per_s: Mapping[int, int], link_mb_per_s: int) -> None:
        self._queues = queue_mb_per_s
        self._link = link_mb_per_s
        self._queue_free_ns = dict.fromkeys(queue_mb_per_s, 0)
        self._link_free_ns = 0
        self._coming: list[tuple[int, int, bool, Issue]] = []  # what leaves its queue, or the link, and when

    def connect(self, dealer: Dealer, depth: int) -> None:
        for number in self._queues:
            dealer.add_queue(Queue(QueueId(number), "t0", Path("h0", "p0"), depth))

    def run(self, dealer: Dealer, requests: list[Request]) -> int:
        """Returns the nanoseconds until every request is done."""
        for request in requests:
            dealer.submit(request, 0)
        now_ns = done = 0
        while done < len(requests):
            for command in dealer.commands(now_ns):
                if isinstance(command, Issue):
                    self._post(command, now_ns)
                done += isinstance(command, RequestDone)
            while self._coming:
                now_ns, number, has_passed_link, issue = heappop(self._coming)
                if has_passed_link:
                    dealer.completed(issue.queue, issue.transfer)
                    break
                self._link_free_ns = max(now_ns, self._link_free_ns) + issue.transfer.length * 1000 // self._link
                heappush(self._coming, (self._link_free_ns, number, True, issue))
        return now_ns

    def _post(self, issue: Issue, now_ns: int) -> None:
        queue, length = issue.queue, issue.transfer.length
        start_ns = max(now_ns, self._queue_free_ns[queue])
        self._queue_free_ns[queue] = start_ns + length * 1000 // self._queues[queue]
        heappush(self._coming, (self._queue_free_ns[queue], issue.transfer.id, False, issue))
