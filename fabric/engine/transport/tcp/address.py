"""IP addresses, type of service and socket errors: what both sides of NVMe/TCP need of the socket library."""

import errno
import socket
from typing import TypeAlias, cast

from fabric.errors import LocalProtocolError, TransportError

__all__ = ("SocketAddress", "mark", "open_socket", "path_error", "resolve")

SocketAddress: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
_REMEDIES = {
    errno.ECONNREFUSED: "nothing listens there: check address and service of the target",
    errno.ENETUNREACH: "there is no route: check address and interface",
    errno.EHOSTUNREACH: "there is no route, or no neighbour: check address and cable",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EADDRINUSE: "something listens there already",
    errno.ETIMEDOUT: "no packet came back: check the path and its firewalls",
}


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, SocketAddress]:
    """Returns family and socket address of an IP address. Names are the caller's to look up: that would block here.

    Raises:
        LocalProtocolError: it is no IP address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror as error:
        raise LocalProtocolError("this is no IP address", found=host, remedy="Look the name up first.") from error
    # of an IP address there is one, and its parts are those of its family; typeshed knows also those of none
    family, _kind, _protocol, _name, address = found[0]
    return family, cast("SocketAddress", address)


def open_socket(family: socket.AddressFamily, tos: int | None, source: SocketAddress | None = None) -> socket.socket:
    """Returns a non-blocking socket that marks its packets from the first one on.

    Raises:
        OSError: `source` is not this machine's.
    """
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        mark(sock, tos)
        if source is not None:
            sock.bind(source)
    except OSError:
        sock.close()
        raise
    return sock


def mark(sock: socket.socket, tos: int | None) -> None:
    """Sets the type of service (DSCP x 4; None: the system's default), and sends small PDUs without delay."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tos is None:
        return
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)


def path_error(error: OSError, where: str) -> TransportError:
    """Returns what a socket error means, with what to do."""
    known = errno.errorcode.get(error.errno or 0, "")
    text = TransportError(
        "the connection failed", where=where, found=known or str(error), remedy=_REMEDIES.get(error.errno or 0, "")
    )
    text.__cause__ = error
    return text
