"""From a URL to an open engine: makes the transport and the machine, and steps them until they can be used."""

import socket
import time
from collections.abc import Callable
from typing import Final

from fabric.engine.client.address import Address, AddressError, BlockAddress, MemoryAddress, TcpAddress, parse_address
from fabric.engine.client.blocklink import BlockLink
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.link import Link, LinkLost, News, Usable
from fabric.engine.client.settings import Settings, host_identity
from fabric.engine.nvmeof.host import Controller, HostConfig
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.queues import Path
from fabric.engine.transport.block import BlockConfig
from fabric.engine.transport.driver import wait
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.storage import RamStorage
from fabric.engine.transport.tcp import TcpConfig, TcpTransport
from fabric.errors import TransportError
from fabric.policy import ShardPolicy, checked, fit

__all__ = ("SETTINGS", "host_config", "look_up", "open_engine", "open_link")

SETTINGS: Final = Settings()
_POLICY: Final = ShardPolicy()
_SHIFT: Final = 9  # blocks of 512 bytes
_MOST_ENTRIES: Final = 128  # nvmet takes no longer queue (NVMET_QUEUE_SIZE)


def open_engine(
    url: str,
    *,
    policy: ShardPolicy = _POLICY,
    settings: Settings = SETTINGS,
    service: Service | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Engine:
    """Returns an engine on what the URL names, connected; waits for that up to `settings.open_ns`.

    Args:
        url: `nvme+tcp://HOST:PORT/NQN?nsid=1`, `file:///PATH`, `block:///dev/NAME` or `memory://?bytes=N`.
        policy: how reads are cut and dealt; lowered to what the other side grants.
        settings: patience and sizes.
        service: what `memory://` reaches, in place of a new target; with the NQN and nsid of `MemoryAddress`.
        clock: monotonic nanoseconds.

    Raises:
        AddressError: the URL cannot be opened.
        IntentError: the policy may not be used.
        EnvironmentMissingError: the file or device cannot be opened.
        EngineError: there is no connection, no such namespace, or the target refused; the class says who must act.
    """
    link = _link(parse_address(url), checked(policy), settings, service)
    try:
        news = open_link(link, settings, clock)
        link.namespace()  # that there is one
        (usable,) = [one for one in news if isinstance(one, Usable)]
        fitted, _notes = fit(policy, usable.limits)
        return Engine(link, news, fitted, settings, clock)
    except BaseException:  # Ctrl-C too must leave no thread and no descriptor
        link.close()
        raise


def open_link(link: Link, settings: Settings, clock: Callable[[], int]) -> list[News]:
    """Returns what a link told until it was usable.

    Raises:
        EngineError: it cannot be used, or not in time.
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
        due_ns = link.next_timer_ns()
        wait([link.fileno()], max(0, min(end_ns, end_ns if due_ns is None else due_ns) - now_ns))
        now_ns = clock()


def host_config(address: TcpAddress, policy: ShardPolicy, settings: Settings) -> HostConfig:
    """Returns what a controller over TCP is told."""
    identity = host_identity(address.hostnqn)
    return HostConfig(
        subnqn=address.nqn,
        hostnqn=identity.hostnqn,
        hostid=identity.hostid,
        transport="tcp",
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


def _link(address: Address, policy: ShardPolicy, settings: Settings, service: Service | None) -> Link:
    match address:
        case TcpAddress(nqn=""):
            raise AddressError("the URL names no subsystem", expected="nvme+tcp://HOST:PORT/NQN")
        case TcpAddress(host, port):
            controller = Controller(host_config(address, policy, settings))
            transport = TcpTransport(TcpConfig(look_up(host, port), port, tos=settings.tos))
            return ControllerLink(controller, transport, address.nsid, Path("any", f"{host}:{port}"))
        case BlockAddress(path):
            config = BlockConfig(path, settings.threads, settings.direct)
            return BlockLink(config, policy, _command_ns(policy, settings))
        case MemoryAddress(length, nqn, nsid):
            reached = TcpAddress("", 0, nqn, nsid)
            controller = Controller(host_config(reached, policy, settings))
            memory = MemoryTransport(service or _service(length, nqn, nsid), keyed=False)
            return ControllerLink(controller, memory, nsid, Path("any", "memory"))


def _command_ns(policy: ShardPolicy, settings: Settings) -> int:
    return policy.deadline_ns if settings.command_ns is None else settings.command_ns


def _service(length: int, nqn: str, nsid: int) -> Service:
    subsystem = Subsystem(nqn, {nsid: IdentifyNamespace(length >> _SHIFT, _SHIFT)})
    return Service(Target(subsystems=[subsystem], transport="tcp"), RamStorage({(nqn, nsid): length}))
