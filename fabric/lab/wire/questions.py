"""How other threads come into the forwarding thread: what they want done waits here, and a socket wakes the thread."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from fabric.errors import FabricError

__all__ = ("Questions",)

T = TypeVar("T")


class Questions:
    """What is to be done in the forwarding thread; `end` becomes readable when there is something."""

    def __init__(self) -> None:
        self._waker, self.end = socket.socketpair()
        for one in (self._waker, self.end):
            one.setblocking(False)
        self._waiting: deque[tuple[Future[object], Callable[[], object]]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    # From any thread.

    def ask(self, act: Callable[[], T], timeout_s: float) -> T:
        """Returns what `act` returns in the forwarding thread.

        Raises:
            TimeoutError: the thread did not come to it in time, and will not; or forwarding has ended.
            FabricError: or LookupError or ValueError, when `act` raises it.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise TimeoutError("the wiring does not run any more")
            self._waiting.append((future, act))  # type: ignore[arg-type]  # Future is invariant; each has its act
        self.wake()
        try:
            return future.result(timeout_s)
        except TimeoutError:
            if not future.done() and future.cancel():
                raise TimeoutError(f"the forwarding thread did not come to it within {timeout_s:g} s") from None
            return future.result()  # it has begun, and no question takes long; or it failed by itself

    def wake(self) -> None:
        """Makes `end` readable."""
        try:
            self._waker.send(b"\0")
        except OSError:
            return  # it is readable already, or closed

    # In the forwarding thread.

    def drain(self) -> None:
        """Makes `end` unreadable."""
        try:
            while self.end.recv(4096):
                pass
        except BlockingIOError:
            return

    def answer(self) -> None:
        """Does all that waits."""
        while self._waiting:
            future, act = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                found = act()
            except (FabricError, LookupError, ValueError) as error:  # a wrong name or configuration is the asker's
                future.set_exception(error)
            else:
                future.set_result(found)

    def close(self) -> None:
        """Lets everybody who waits know that there will be no answer."""
        with self._lock:
            self._closed = True
        for future, _ in self._waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(TimeoutError("the wiring does not run any more"))
        self._waker.close()
        self.end.close()
