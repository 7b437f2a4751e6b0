"""The queues, targets and receiving ports that the dealer deals to, and the account of what flies between them."""

from collections import deque
from collections.abc import Callable, Container, Iterator

from fabric.engine.queues.commands import Issue
from fabric.engine.queues.dealing import Dealing
from fabric.engine.queues.lane import Lane
from fabric.engine.queues.load import LivePath, LiveQueue, Path, Queue, Window
from fabric.engine.queues.request import Op, QueueId, RequestId, Transfer
from fabric.errors import LocalProtocolError
from fabric.policy import ShardPolicy

__all__ = ("Fleet", "LiveTarget")


class LiveTarget:
    """One subsystem: its window, its paths, its lanes, and the policy that deals to its queues."""

    __slots__ = ("_paths", "dealing", "name", "reads", "window", "writes")

    def __init__(
        self, name: str, policy: ShardPolicy, dealing: Dealing, live: Container[RequestId], ready: deque[Lane]
    ) -> None:
        self.name = name
        self.window = Window(policy.target_bytes)
        self.dealing = dealing
        self.reads = Lane(Op.READ, policy, self.window, dealing, live, ready)
        self.writes = Lane(Op.WRITE, policy, self.window, dealing, live, ready)
        self._paths: dict[Path, LivePath] = {}

    def lane(self, op: Op) -> Lane:
        """Returns the lane of that direction."""
        return self.reads if op is Op.READ else self.writes

    def wake(self) -> None:
        """Has the dealer try both lanes again, as far as something waits in them."""
        if not self.reads.is_ready:
            self.reads.wake()
        if not self.writes.is_ready:
            self.writes.wake()

    def path(self, path: Path, make: Callable[[Path], LivePath]) -> LivePath:
        """Returns the state of a path, made when it is new."""
        live = self._paths.get(path)
        if live is None:
            live = self._paths[path] = make(path)
        return live

    def reroute(self) -> None:
        """Tells the lanes which paths have open queues."""
        paths = [path for path in self._paths.values() if path.queues]
        self.reads.routes(paths)
        self.writes.routes(paths)


class Fleet:
    """All queues by id, all targets by name, all receiving ports.

    Args:
        policy: bounds.
        make_dealing: makes the dealing policy of one target.
        live: requests that have not ended; the dealer's own.
        ready: lanes that the dealer tries next; the dealer's own.
    """

    def __init__(
        self,
        policy: ShardPolicy,
        make_dealing: Callable[[], Dealing],
        live: Container[RequestId],
        ready: deque[Lane],
    ) -> None:
        self._policy = policy
        self._make_dealing = make_dealing
        self._live = live
        self._ready = ready
        self._targets: dict[str, LiveTarget] = {}
        self._receivers: dict[tuple[Op, str], Window] = {}
        self._queues: dict[QueueId, LiveQueue] = {}
        self._idle: list[LiveQueue] = []  # closed, and nothing flies
        self._landed: dict[LiveQueue, None] = {}  # queues on which something has landed since `settle`

    def target(self, name: str) -> LiveTarget:
        """Returns the target, made when it is new."""
        target = self._targets.get(name)
        if target is None:
            target = LiveTarget(name, self._policy, self._make_dealing(), self._live, self._ready)
            self._targets[name] = target
        return target

    def lanes(self) -> Iterator[Lane]:
        """Yields every lane."""
        for target in self._targets.values():
            yield target.reads
            yield target.writes

    def queues(self) -> tuple[LiveQueue, ...]:
        """Returns every queue that was added and not forgotten."""
        return tuple(self._queues.values())

    def windows(self) -> Iterator[tuple[str, str, Window]]:
        """Yields kind, name and state of every bound: kind is target, host-port or target-port."""
        for target in self._targets.values():
            yield "target", target.name, target.window
        for (op, port), window in self._receivers.items():
            yield "host-port" if op is Op.READ else "target-port", port, window

    def queue(self, queue: QueueId) -> LiveQueue:
        """Returns the queue.

        Raises:
            LocalProtocolError: it was never added, or is forgotten.
        """
        live = self._queues.get(queue)
        if live is None:
            raise LocalProtocolError("no such queue", where=f"queue {queue}", expected="one that was added")
        return live

    def add(self, queue: Queue) -> None:
        """Adds a queue.

        Raises:
            LocalProtocolError: its id is in use, or its depth is below 1.
        """
        if queue.id in self._queues:
            raise LocalProtocolError("this queue was added before", where=f"queue {queue.id}")
        if queue.depth < 1:
            raise _no_depth(queue.id, queue.depth, "1 or more")
        target = self.target(queue.target)
        live = LiveQueue(queue, target.path(queue.path, self._make_path), min(queue.depth, self._policy.depth))
        self._queues[queue.id] = live
        target.dealing.added(live)
        target.reroute()

    def close(self, queue: QueueId) -> None:
        """Deals nothing more to the queue; what flies on it keeps flying.

        Raises:
            LocalProtocolError: there is no such queue, or it is closed already.
        """
        live = self.queue(queue)
        if not live.is_open:
            raise LocalProtocolError("this queue was removed or lost before", where=f"queue {queue}")
        live.close()
        target = self._targets[live.queue.target]
        target.dealing.removed(live)
        target.reroute()
        if not live.flying:
            self._idle.append(live)

    def forget(self, queue: LiveQueue) -> None:
        """Drops a closed queue on which nothing flies."""
        del self._queues[queue.id]

    def idle(self) -> list[QueueId]:
        """Drops removed queues on which nothing flies, and returns their ids. One that was lost since is not idle."""
        if not self._idle:
            return []
        idle = [queue for queue in self._idle if not queue.is_lost]
        self._idle.clear()
        for queue in idle:
            self.forget(queue)
        return [queue.id for queue in idle]

    def limit(self, queue: QueueId, depth: int) -> None:
        """Lets at most `depth` commands fly on the queue; its own depth restores it.

        Raises:
            LocalProtocolError: there is no such queue, or the depth is not 0 to the queue's own.
        """
        live = self.queue(queue)
        if not 0 <= depth <= live.queue.depth:
            raise _no_depth(queue, depth, f"0 to {live.queue.depth}")
        live.limit = min(depth, self._policy.depth)
        live.recount()
        self._changed(live, self._targets[live.queue.target])

    def flying(self, request: RequestId) -> tuple[Issue, ...]:
        """Returns what flies of a request, in its order. It looks at all that flies: ask for those that fail."""
        found = [
            Issue(queue.id, transfer)
            for queue in self._queues.values()
            for transfer in queue.flying.values()
            if transfer.request == request
        ]
        return tuple(sorted(found, key=lambda issue: issue.transfer.id))

    def launch(self, queue: LiveQueue, transfer: Transfer) -> None:
        """Takes note that the transfer flies on the queue; the lane has filled the windows."""
        flying = queue.flying
        flying[transfer.id] = transfer
        queue.bytes += transfer.length
        if len(flying) >= queue.limit:
            queue.recount()
        else:
            self._targets[queue.queue.target].dealing.changed(queue)

    def settle(self) -> None:
        """Wakes who waits for the room of what has landed, and tells the dealing policies: once for a batch."""
        for queue in self._landed:
            self._changed(queue, self._targets[queue.queue.target])
        self._landed.clear()

    def land(self, qid: QueueId, transfer: Transfer) -> None:
        """Takes note that the transfer flies no more; `settle` is due before the next dealing.

        Raises:
            LocalProtocolError: there is no such queue, or the transfer does not fly on it.
        """
        queue = self._queues.get(qid) or self.queue(qid)
        if queue.flying.pop(transfer.id, None) is None:
            where = f"queue {qid}, transfer {transfer.id}"
            raise LocalProtocolError("what did not fly has completed", where=where)
        length = transfer.length
        target = self._targets[queue.queue.target]
        queue.bytes -= length
        window = target.window
        window.used -= length
        if window.waiters:
            window.wake_first()
        window = queue.path.read if transfer.op is Op.READ else queue.path.write
        window.used -= length
        if window.waiters:
            window.wake_first()
        self._landed[queue] = None

    def _changed(self, queue: LiveQueue, target: LiveTarget) -> None:
        if not queue.room:
            queue.recount()
        if queue.room:
            target.dealing.changed(queue)
            target.wake()
        elif not queue.is_open and not queue.flying and queue not in self._idle:
            self._idle.append(queue)

    def _make_path(self, path: Path) -> LivePath:
        return LivePath(path, self._receiver(Op.READ, path.host_port), self._receiver(Op.WRITE, path.target_port))

    def _receiver(self, op: Op, port: str) -> Window:
        window = self._receivers.get((op, port))
        if window is None:
            window = self._receivers[(op, port)] = Window(self._policy.receiver_bytes)
        return window


def _no_depth(queue: QueueId, depth: int, expected: str) -> LocalProtocolError:
    return LocalProtocolError("no such depth", where=f"queue {queue}", found=str(depth), expected=expected)
