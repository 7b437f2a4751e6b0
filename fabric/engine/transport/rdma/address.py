"""IP addresses as C socket addresses, and which of this machine's own a route would take. Sends nothing."""

import socket
import struct

from fabric.errors import LocalProtocolError, TransportError

__all__ = ("local_address", "pack_address")


def pack_address(host: str, port: int) -> bytes:
    """Returns struct sockaddr_in or sockaddr_in6 of an IP address. Names are the caller's to look up.

    Raises:
        LocalProtocolError: it is no IP address.
    """
    try:
        family, _kind, _protocol, _name, found = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
        )[0]
    except socket.gaierror as error:
        raise LocalProtocolError("this is no IP address", found=host, remedy="Look the name up first.") from error
    number = str(found[0]).partition("%")[0]
    head = struct.pack("=H", family) + struct.pack(">H", port)
    if family == socket.AF_INET6:
        scope = int(found[3]) if len(found) == 4 else 0
        return head + bytes(4) + socket.inet_pton(family, number) + struct.pack("=I", scope)
    return head + socket.inet_pton(family, number) + bytes(8)


def local_address(host: str, port: int) -> str:
    """Returns the address of this machine that packets to `host` leave from.

    Raises:
        TransportError: there is no route.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.connect((host, port))  # a datagram socket asks the routing table and sends nothing
        except OSError as error:
            raise TransportError("there is no route to the target", where=f"{host}:{port}", found=str(error)) from error
        return str(sock.getsockname()[0])
