"""From a URL to an open engine: makes the transport and the machine, and steps them until they can be used."""

import socket
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from fabric.engine.client.address import (
    Address,
    AddressError,
    BlockAddress,
    FabricsAddress,
    MemoryAddress,
    RdmaAddress,
    TcpAddress,
    parse_address,
)
from fabric.engine.client.blocklink import BlockLink, Place
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.link import Link, LinkLost, News, Usable
from fabric.engine.client.measuredlink import MeasuredLink
from fabric.engine.client.settings import Settings, host_identity
from fabric.engine.metrics.meter import Meter
from fabric.engine.nvmeof.host import Controller, HostConfig, PostSend
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.tcp import Digests
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.queues import Path
from fabric.engine.transport.base import Transport
from fabric.engine.transport.block import BlockConfig, BlockTransport
from fabric.engine.transport.driver import wait
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.storage import RamStorage
from fabric.engine.transport.tcp import TcpConfig, TcpTransport, checksum_for
from fabric.errors import LocalProtocolError, TransportError
from fabric.policy import ShardPolicy, checked, fit

__all__ = (
    "SETTINGS",
    "Carry",
    "enter",
    "fabrics_transport",
    "host_config",
    "look_up",
    "make_link",
    "measured",
    "open_engine",
    "open_link",
)

SETTINGS: Final = Settings()
_POLICY: Final = ShardPolicy()
_SHIFT: Final = 9  # blocks of 512 bytes
_NS_PER_MS: Final = 1_000_000
_ASK_NS: Final = 200 * _NS_PER_MS  # how long a connection that was given up may go on
_MOST_ENTRIES: Final = 128  # nvmet takes no longer queue (NVMET_QUEUE_SIZE)

PostT = TypeVar("PostT")


class Carry(Protocol):
    """Puts something around a transport."""

    def __call__(self, transport: Transport[PostT], /) -> Transport[PostT]:
        """Returns what is to be used in its place."""
        ...


def _plain(transport: Transport[PostT], /) -> Transport[PostT]:
    return transport


def open_engine(
    url: str,
    *,
    policy: ShardPolicy = _POLICY,
    settings: Settings = SETTINGS,
    service: Service | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
    given_up: Callable[[], bool] | None = None,
) -> Engine:
    """Returns an engine on what the URL names, connected; waits for that up to `settings.open_ns`.

    Args:
        url: `nvme+tcp://HOST:PORT/NQN?nsid=1`, the same with `nvme+rdma`, `file:///PATH`, `block:///dev/NAME` or
            `memory://?bytes=N`.
        policy: how reads are cut and dealt; lowered to what the other side grants.
        settings: patience and sizes.
        service: what `memory://` reaches, in place of a new target; with the NQN and nsid of `MemoryAddress`.
        clock: monotonic nanoseconds.
        given_up: asked some times a second while it waits, where no trace is written; true ends the waiting.

    Raises:
        AddressError: the URL cannot be opened.
        IntentError: the policy may not be used.
        EnvironmentMissingError: the file or device cannot be opened.
        EngineError: there is no connection, no such namespace, or the target refused; the class says who must act.
    """
    address, asked = parse_address(url), checked(policy)
    if settings.trace is not None:
        from fabric.engine.trace.recording import open_recorded  # lazy: who records nothing pays nothing

        if settings.keep_alive_thread:
            raise LocalProtocolError("a trace has the calls of one thread, so no keep-alive thread beside it")
        return open_recorded(settings.trace, address, asked, settings, service, clock)
    link = measured(_kept(make_link(address, asked, settings, service), settings, clock), settings, clock)
    try:
        news, fitted = enter(link, asked, settings, clock, given_up)
        return Engine(link, news, fitted, settings, clock)
    except BaseException:  # Ctrl-C too must leave no thread and no descriptor
        link.close()
        raise


def measured(link: Link, settings: Settings, clock: Callable[[], int]) -> Link:
    """Returns the link, with a meter on it if the settings want one."""
    return MeasuredLink(link, Meter(), clock) if settings.metrics else link


def _kept(link: ControllerLink | BlockLink, settings: Settings, clock: Callable[[], int]) -> Link:
    wanted = settings.keep_alive_thread and settings.keep_alive_ms and isinstance(link, ControllerLink)
    if not wanted:
        return link
    from fabric.engine.client.keptlink import KeptLink  # lazy: who wants no thread imports none

    return KeptLink(link, settings.keep_alive_ms * _NS_PER_MS, clock)


def enter(
    link: Link,
    policy: ShardPolicy,
    settings: Settings,
    clock: Callable[[], int],
    given_up: Callable[[], bool] | None = None,
) -> tuple[list[News], ShardPolicy]:
    """Returns what a link told until it was usable, and the policy lowered to what the other side granted.

    Raises:
        IntentError: what is left is no policy.
        EngineError: there is no connection, no such namespace, or the target refused.
    """
    news = open_link(link, settings, clock, given_up)
    link.namespace()  # that there is one
    (usable,) = [one for one in news if isinstance(one, Usable)]
    return news, fit(policy, usable.limits)[0]


def open_link(
    link: Link, settings: Settings, clock: Callable[[], int], given_up: Callable[[], bool] | None = None
) -> list[News]:
    """Returns what a link told until it was usable.

    Raises:
        EngineError: it cannot be used, or not in time, or it was given up.
    """
    now_ns = clock()
    end_ns = now_ns + settings.open_ns
    link.start(now_ns)
    news: list[News] = []
    while True:
        news += link.step(now_ns)
        for one in news:
            if isinstance(one, LinkLost):
                raise one.error
        if any(isinstance(one, Usable) for one in news):
            return news
        if now_ns >= end_ns:
            raise TransportError("there was no connection in time", remedy="Check the address, and that a target runs.")
        if given_up is not None and given_up():
            raise TransportError("it was given up before there was a connection")
        due_ns = link.next_timer_ns()
        until_ns = min(end_ns, end_ns if due_ns is None else due_ns)
        if given_up is not None:
            until_ns = min(until_ns, now_ns + _ASK_NS)
        wait([link.fileno()], max(0, until_ns - now_ns))
        now_ns = clock()


def fabrics_transport(address: FabricsAddress, settings: Settings) -> Transport[PostSend]:
    """Returns a transport of capsules to a target; nothing is connected yet.

    Raises:
        AddressError: nobody knows the host.
        EnvironmentMissingError: there is no RDMA here.
        TransportError: there is no route to the target.
    """
    host, port = look_up(address.host, address.port), address.port
    if isinstance(address, TcpAddress):
        digests = Digests(address.header_digest, address.data_digest)
        return TcpTransport(TcpConfig(host, port, tos=settings.tos, digests=digests, checksum=checksum_for(digests)))
    from fabric.engine.transport.rdma import RdmaConfig, RdmaTransport  # lazy: ctypes, which no other transport needs

    return RdmaTransport(RdmaConfig(host, port, tos=settings.tos))


def host_config(address: FabricsAddress, policy: ShardPolicy, settings: Settings) -> HostConfig:
    """Returns what a controller over TCP or RDMA is told."""
    identity = host_identity(address.hostnqn)
    return HostConfig(
        subnqn=address.nqn,
        hostnqn=identity.hostnqn,
        hostid=identity.hostid,
        transport="rdma" if isinstance(address, RdmaAddress) else "tcp",
        io_queues=policy.queues,
        io_depth=min(policy.depth + 1, _MOST_ENTRIES),
        kato_ms=settings.keep_alive_ms,
        io_timeout_ns=_command_ns(policy, settings),
        controller_loss_ns=settings.loss_ns,
    )


def look_up(host: str, port: int) -> str:
    """Returns an IP address of a host; may ask a name server, and waits for it.

    Raises:
        AddressError: nobody knows the name.
    """
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        remedy = "Check the name, or give an IP address."
        raise AddressError("this host is not known", found=host, remedy=remedy) from error


def make_link(
    address: Address, policy: ShardPolicy, settings: Settings, service: Service | None, carry: Carry = _plain
) -> ControllerLink | BlockLink:
    """Returns the way to what an address names, not started; `carry` may put something around its transport.

    Raises:
        AddressError: nobody knows the host, or no subsystem is named.
        EnvironmentMissingError: the file or device cannot be opened, or there is no RDMA here.
    """
    match address:
        case TcpAddress(nqn="") | RdmaAddress(nqn=""):
            raise AddressError("the URL names no subsystem", expected="nvme+tcp://HOST:PORT/NQN, or nvme+rdma")
        case TcpAddress(host, port) | RdmaAddress(host, port):
            controller = Controller(host_config(address, policy, settings))
            transport = fabrics_transport(address, settings)
            return ControllerLink(controller, carry(transport), address.nsid, Path("any", f"{host}:{port}"))
        case BlockAddress(path):
            block = BlockTransport(BlockConfig(path, settings.threads, settings.direct, depth=settings.device_depth))
            place = Place(str(path), block.device.length, block.device.alignment)
            return BlockLink(carry(block), place, policy, _command_ns(policy, settings))
        case MemoryAddress(length, nqn, nsid):
            reached = TcpAddress("", 0, nqn, nsid)
            controller = Controller(host_config(reached, policy, settings))
            memory = MemoryTransport(service or _service(length, nqn, nsid), keyed=False)
            return ControllerLink(controller, carry(memory), nsid, Path("any", "memory"))


def _command_ns(policy: ShardPolicy, settings: Settings) -> int:
    return policy.deadline_ns if settings.command_ns is None else settings.command_ns


def _service(length: int, nqn: str, nsid: int) -> Service:
    subsystem = Subsystem(nqn, {nsid: IdentifyNamespace(length >> _SHIFT, _SHIFT)})
    return Service(Target(subsystems=[subsystem], transport="tcp"), RamStorage({(nqn, nsid): length}))
