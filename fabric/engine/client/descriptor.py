"""One descriptor for two things to wait on: the transport's own, and futures that ended outside of a step."""

import select

from fabric.engine.transport.signal import Signal

__all__ = ("Descriptor",)


class Descriptor:
    """An epoll descriptor, which can itself be polled.

    Args:
        transport: the descriptor of the transport.
    """

    def __init__(self, transport: int) -> None:
        self._signal = Signal()
        self._epoll = select.epoll()
        self._epoll.register(transport, select.EPOLLIN)
        self._epoll.register(self._signal.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Returns the descriptor."""
        return self._epoll.fileno()

    def set(self) -> None:
        """Makes it readable until `clear`."""
        self._signal.set()

    def clear(self) -> None:
        """Takes that back; the transport's own state is not touched."""
        self._signal.clear()

    def close(self) -> None:
        """Gives both back."""
        self._epoll.close()
        self._signal.close()
