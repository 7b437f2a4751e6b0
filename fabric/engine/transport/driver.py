"""Drives a host machine over a transport, one step at a time. Reads no clock and blocks only in `wait`.

A step polls, delivers what has arrived, lets the machine act on the time, and hands its orders to the transport; what
is left are the events for the caller. What arrived before a deadline is delivered before that deadline is judged:
otherwise a stall of this process would look like a timeout of the target.
"""

import select
from collections.abc import Iterable

from fabric.engine.nvmeof.host import Completed, Connect, Controller, Disconnect, Output, PostSend, SetTimer
from fabric.engine.transport.base import (
    Broken,
    Connected,
    DeviceRemoved,
    Disconnected,
    Event,
    Received,
    Rejected,
    Sent,
    Transport,
)
from fabric.errors import LocalProtocolError

__all__ = ("HostDriver", "wait")

_NS_PER_MS = 1_000_000


class HostDriver:
    """One controller on one transport.

    Args:
        controller: the machine; its caller starts it, submits to it and then calls `step`.
        transport: carries its capsules.
    """

    def __init__(self, controller: Controller, transport: Transport[PostSend]) -> None:
        self.controller = controller
        self.transport = transport
        self._timer_ns: int | None = None

    def step(self, now_ns: int) -> list[Output]:
        """Returns the events for the caller; the rest is done."""
        happened = self.transport.poll(now_ns)
        self._deliver(happened, now_ns)
        if self._timer_ns is not None and self._timer_ns <= now_ns:
            while happened:
                happened = self.transport.poll(now_ns)
                self._deliver(happened, now_ns)
            self.controller.tick(now_ns)
        return self.flush(now_ns)

    def flush(self, now_ns: int) -> list[Output]:
        """Hands the machine's orders to the transport; returns the events for the caller."""
        events: list[Output] = []
        batch: list[PostSend] = []
        for output in self.controller.drain():
            if type(output) is PostSend:
                batch.append(output)
            elif type(output) is Completed:
                events.append(output)
            else:
                self._obey(output, batch, events, now_ns)
        if batch:
            self.transport.post(batch, now_ns)
        return events

    def next_timer_ns(self) -> int | None:
        """Returns when to step although the transport's descriptor is not readable."""
        due = [at for at in (self._timer_ns, self.transport.next_timer_ns()) if at is not None]
        return min(due) if due else None

    def _obey(self, output: Output, batch: list[PostSend], events: list[Output], now_ns: int) -> None:
        match output:
            case SetTimer(at_ns):
                self._timer_ns = at_ns
            case Connect():
                self.transport.connect(output, now_ns)
            case Disconnect(connection):
                if batch:  # what was ordered before it goes out before it
                    self.transport.post(tuple(batch), now_ns)
                    batch.clear()
                self.transport.disconnect(connection, now_ns)
            case _:
                events.append(output)

    def _deliver(self, happened: list[Event], now_ns: int) -> None:
        sent, received = self.controller.sent, self.controller.received
        for event in happened:
            if type(event) is Sent:
                connection, slot = event
                sent(connection, slot)
            elif type(event) is Received:
                connection, response, payload = event
                received(connection, response, now_ns, payload=payload)
            else:
                self._tell(event, now_ns)

    def _tell(self, event: Event, now_ns: int) -> None:
        host = self.controller
        match event:
            case Connected(connection, private_data, memory):
                host.connected(connection, private_data, memory, now_ns)
            case Rejected(connection, private_data, stale):
                host.rejected(connection, private_data, now_ns, stale=stale)
            case Broken(connection, error):
                host.failed(connection, error, now_ns)
            case Disconnected(connection, reason):
                host.disconnected(connection, now_ns, reason=reason)
            case DeviceRemoved(reason):
                host.device_removed(now_ns, reason=reason)
            case _:
                raise LocalProtocolError("a transport of blocks cannot carry capsules", found=str(event))


def wait(descriptors: Iterable[int], timeout_ns: int | None) -> bool:
    """Blocks until a descriptor is readable; returns False when the time is over. None waits for ever."""
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    # rounded up: waking a little early would spin until the timer is due
    return bool(poller.poll(None if timeout_ns is None else max(0, -(-timeout_ns // _NS_PER_MS))))
