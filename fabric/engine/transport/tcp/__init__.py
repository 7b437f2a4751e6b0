"""NVMe/TCP over sockets: `TcpTransport` is the host's side, `TcpServer` the target's.

| module | holds |
|---|---|
| framing, channel | PDUs on a non-blocking socket: data goes straight to and from where it belongs |
| connection, host | one queue of a host, and all of them |
| peer, server | one queue at a target, and all of them |
| checksum | the fastest CRC-32C that is installed |
| address | IP addresses, type of service, socket errors |
"""

from fabric.engine.nvmeof.tcp import Digests
from fabric.engine.transport.tcp.checksum import checksum_for, fast_checksum
from fabric.engine.transport.tcp.host import TcpConfig, TcpTransport
from fabric.engine.transport.tcp.server import ServerConfig, TcpServer, serve

__all__ = (
    "Digests",
    "ServerConfig",
    "TcpConfig",
    "TcpServer",
    "TcpTransport",
    "checksum_for",
    "fast_checksum",
    "serve",
)
