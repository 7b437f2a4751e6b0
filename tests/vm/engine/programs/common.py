"""What the programs share: links with transports of their own settings, talk with the test, patterns that name blocks.

A program prints `at PLACE` and may wait until the test answers with a line; its last line is its JSON object. Imports
the engine and the standard library: a guest has nothing else.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from fabric.engine.client.address import FabricsAddress, RdmaAddress, parse_address
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.opening import enter, host_config
from fabric.engine.client.settings import Settings
from fabric.engine.client.work import Future
from fabric.engine.nvmeof.host import Controller, PostSend
from fabric.engine.nvmeof.tcp import Digests
from fabric.engine.queues import Path as Way
from fabric.engine.transport.base import Transport
from fabric.engine.transport.tcp import TcpConfig, TcpTransport
from fabric.policy import ShardPolicy

__all__ = (
    "ACK_TIMEOUT",
    "SECOND",
    "TOS",
    "at",
    "block",
    "controller_of",
    "emit",
    "fabrics",
    "link_to",
    "names",
    "open_descriptors",
    "opened",
    "transport_to",
    "wait_for_answer",
)

SECOND: Final = 1_000_000_000
TOS: Final = 104  # DSCP 26
ACK_TIMEOUT: Final = 15  # 134 ms a try: the kernel's 2.15 s would make each lost packet a test of patience
_RETRIES: Final = 6  # on Soft-RoCE 7 is for ever


def emit(**result: object) -> None:
    """Prints the program's result."""
    print(json.dumps(result), flush=True)


def at(place: str) -> None:
    """Tells the test where the program is."""
    print(f"at {place}", flush=True)


def wait_for_answer() -> str:
    """Returns the line that the test says."""
    return sys.stdin.readline().strip()


def fabrics(url: str) -> FabricsAddress:
    """Returns the address of a URL of NVMe over a network."""
    address = parse_address(url)
    assert isinstance(address, FabricsAddress)
    return address


def transport_to(
    address: FabricsAddress, *, digests: Digests | None = None, ack_timeout: int = ACK_TIMEOUT
) -> Transport[PostSend]:
    """Returns a transport that marks DSCP 26 and sends lost packets again soon."""
    if not isinstance(address, RdmaAddress):
        return TcpTransport(TcpConfig(address.host, address.port, tos=TOS, digests=digests or Digests()))
    from fabric.engine.transport.rdma import RdmaConfig, RdmaTransport  # lazy: a run over TCP needs no verbs

    config = RdmaConfig(address.host, address.port, tos=TOS, ack_timeout=ack_timeout, retry_count=_RETRIES)
    return RdmaTransport(config)


def link_to(
    url: str, policy: ShardPolicy, settings: Settings, *, digests: Digests | None = None, ack_timeout: int = ACK_TIMEOUT
) -> ControllerLink:
    """Returns a link that is not started."""
    address = fabrics(url)
    controller = Controller(host_config(address, policy, settings))
    transport = transport_to(address, digests=digests, ack_timeout=ack_timeout)
    return ControllerLink(controller, transport, address.nsid, Way("any", f"{address.host}:{address.port}"))


def opened(link: ControllerLink, policy: ShardPolicy, settings: Settings) -> Engine:
    """Returns an engine on a link; it is closed where that fails."""
    try:
        news, fitted = enter(link, policy, settings, time.monotonic_ns)
    except BaseException:
        link.close()
        raise
    return Engine(link, news, fitted, settings, time.monotonic_ns)


def controller_of(engine: Engine) -> Controller:
    """Returns the machine below an engine that `opened` made."""
    assert isinstance(engine.link, ControllerLink)
    return engine.link.controller


def block(lba: int, length: int, turn: int = 0) -> bytes:
    """Returns what a test stores from a block on: of every length another beginning of the same bytes."""
    return hashlib.shake_128(f"{turn} {lba}".encode()).digest(length)


def names(
    futures: Iterable[Future], known: Callable[[BaseException], str] = lambda one: type(one).__name__
) -> list[str]:
    """Returns the classes of the errors among futures that have ended, each once."""
    return sorted({known(one.error) for one in futures if one.error is not None})


def open_descriptors() -> int:
    """Returns how many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
