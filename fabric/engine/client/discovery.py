"""Reads the discovery log of a target: one short-lived controller of its discovery service."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from fabric.engine.client.address import AddressError, RdmaAddress, TcpAddress, parse_address
from fabric.engine.client.opening import SETTINGS, fabrics_transport, host_config
from fabric.engine.client.settings import Settings
from fabric.engine.nvmeof.host import Controller, DiscoveryLog, Failed, Lost, Output, Ready, Reconnecting
from fabric.engine.nvmeof.wire.fabrics import DISCOVERY_NQN
from fabric.engine.nvmeof.wire.logs import DiscoveryEntry
from fabric.engine.transport.driver import HostDriver, wait
from fabric.errors import TransportError
from fabric.policy import ShardPolicy

__all__ = ("discover",)


def discover(
    url: str, *, settings: Settings = SETTINGS, clock: Callable[[], int] = time.monotonic_ns
) -> tuple[DiscoveryEntry, ...]:
    """Returns what a target offers to this host; waits for the answer up to `settings.open_ns`. One try.

    Args:
        url: `nvme+tcp://HOST:PORT` or `nvme+rdma://HOST:PORT`, with `?hostnqn=` for targets that show some hosts more.
        settings: patience.
        clock: monotonic nanoseconds.

    Raises:
        AddressError: the URL is none of NVMe over fabrics.
        EnvironmentMissingError: there is no RDMA here.
        EngineError: there is no connection, or the target refused.
    """
    address = parse_address(url)
    if not isinstance(address, TcpAddress | RdmaAddress):
        expected = "nvme+tcp://HOST:PORT or nvme+rdma://HOST:PORT"
        raise AddressError("there is a discovery service on a network only", found=url, expected=expected)
    config = host_config(replace(address, nqn=DISCOVERY_NQN), ShardPolicy(), settings)
    transport = fabrics_transport(address, settings)
    driver = HostDriver(Controller(replace(config, io_queues=0)), transport)
    try:
        return _read(driver, settings.open_ns, clock)
    finally:
        transport.close()


def _read(driver: HostDriver, open_ns: int, clock: Callable[[], int]) -> tuple[DiscoveryEntry, ...]:
    now_ns = clock()
    end_ns = now_ns + open_ns
    driver.controller.start(now_ns)
    while now_ns < end_ns:
        entries = _take(driver, driver.step(now_ns), now_ns)
        if entries is not None:
            return entries
        due_ns = driver.next_timer_ns()
        wait([driver.transport.fileno()], max(0, min(end_ns, end_ns if due_ns is None else due_ns) - now_ns))
        now_ns = clock()
    raise TransportError("the discovery log did not come in time")


def _take(driver: HostDriver, outputs: Sequence[Output], now_ns: int) -> tuple[DiscoveryEntry, ...] | None:
    for output in outputs:
        match output:
            case DiscoveryLog(_generation, entries):
                return entries
            case Ready():
                driver.controller.read_discovery_log(now_ns)
                return _take(driver, driver.flush(now_ns), now_ns)
            case Failed(error=error) | Lost(error) | Reconnecting(error=error):
                raise error
            case _:
                pass
    return None
