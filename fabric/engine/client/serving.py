"""A soft target over NVMe/TCP: one subsystem, one namespace in memory or in a file, as slow as asked.

What is measured on it is a model's result, and has to be titled so.
"""

import contextlib
import ipaddress
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric.clock import Clock
from fabric.engine.nvmeof.target import Address, Subsystem, Target
from fabric.engine.nvmeof.tcp import crc32c
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.logs import AddressFamily, TransportType
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.engine.transport.storage import FileStorage, RamStorage
from fabric.engine.transport.tcp import ServerConfig, TcpServer, fast_checksum, serve
from fabric.errors import EnvironmentMissingError, LocalProtocolError

__all__ = ("DEFAULT_NQN", "SoftTarget", "TargetSpec", "soft_target")

DEFAULT_NQN: Final = "nqn.2026-11.io.fabricctl:soft"
_SECTOR: Final = 512


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """What to serve.

    Attributes:
        length: bytes of the namespace; of a file that exists: None.
        path: the file that holds it, made when it is absent; None: memory, zeroed.
        nqn: the subsystem.
        listen: IP address to listen on.
        port: 0 takes a free one.
        read_only: writes fail; the file has to exist.
        tos: type of service of what it sends, all data of reads among it; None: the system's default.
        shape: how slow, and what goes wrong.
    """

    length: int | None = None
    path: Path | None = None
    nqn: str = DEFAULT_NQN
    listen: str = "127.0.0.1"
    port: int = 0
    read_only: bool = False
    tos: int | None = None
    shape: Shape = UNSHAPED

    @property
    def is_loopback(self) -> bool:
        """Only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.listen).is_loopback
        except ValueError:
            return False  # it is refused when the server is made


@dataclass(frozen=True, slots=True)
class SoftTarget:
    """A target that listens.

    Attributes:
        server: to serve.
        url: what an engine opens.
        length: bytes of the namespace.
    """

    server: TcpServer
    url: str
    length: int

    def serve(self, clock: Clock, until: Callable[[], bool]) -> None:
        """Serves until `until` says so; see `transport.tcp.serve`."""
        serve(self.server, clock, until)


@contextlib.contextmanager
def soft_target(spec: TargetSpec) -> Iterator[SoftTarget]:
    """Yields the target, listening; closes its sockets and its file in the end.

    Raises:
        EnvironmentMissingError: the file cannot be opened.
        LocalProtocolError: the length is no whole number of blocks, or not that of the file; or the address is none.
        TransportError: it cannot be listened on.
    """
    length = _length(spec)
    key = (spec.nqn, 1)
    with contextlib.ExitStack() as stack:
        storage: RamStorage | FileStorage
        if spec.path is None:
            storage = RamStorage({key: length})
        else:
            try:
                storage = stack.enter_context(
                    contextlib.closing(FileStorage({key: spec.path}, read_only=spec.read_only))
                )
            except OSError as error:
                raise _unusable(spec.path, error) from error
        config = ServerConfig(spec.listen, spec.port, spec.tos, checksum=fast_checksum() or crc32c)
        server = TcpServer(Service(Target(transport="tcp"), storage), config)
        stack.callback(server.close)
        subsystem = Subsystem(spec.nqn, {1: IdentifyNamespace(length // _SECTOR, 9, write_protected=spec.read_only)})
        target = Target(subsystems=[subsystem], addresses=[_address(spec, server.port)], transport="tcp")
        server.service = Service(target, storage, spec.shape)  # only now is the port of its discovery log known
        host = f"[{spec.listen}]" if ":" in spec.listen else spec.listen
        yield SoftTarget(server, f"nvme+tcp://{host}:{server.port}/{spec.nqn}?nsid=1", length)


def _address(spec: TargetSpec, port: int) -> Address:
    family = AddressFamily.IPV6 if ":" in spec.listen else AddressFamily.IPV4
    return Address(spec.listen, str(port), TransportType.TCP, family)


def _length(spec: TargetSpec) -> int:
    length = spec.length
    if spec.path is not None:
        length = _file_length(spec.path, spec)
    if length is None or length < _SECTOR or length % _SECTOR:
        where = str(spec.path or "memory")
        found, expected = "none" if length is None else f"{length} bytes", f"a multiple of {_SECTOR} bytes"
        raise LocalProtocolError("this cannot be a namespace", where=where, found=found, expected=expected)
    return length


def _file_length(path: Path, spec: TargetSpec) -> int:
    try:
        if spec.length is not None and not spec.read_only and not path.exists():
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            with contextlib.closing(os.fdopen(descriptor, "wb")) as file:
                file.truncate(spec.length)
        with path.open("rb") as file:
            found = file.seek(0, os.SEEK_END)  # of a block device too, whose status has no size
    except OSError as error:
        raise _unusable(path, error) from error
    if spec.length not in (None, found):
        raise LocalProtocolError(
            "the file has another length", where=str(path), found=f"{found}", expected=f"{spec.length}"
        )
    return found


def _unusable(path: Path, error: OSError) -> EnvironmentMissingError:
    remedy = "Check path and permissions; a file that does not exist is made when a length is given."
    return EnvironmentMissingError(
        "the file cannot be served", where=str(path), found=error.strerror or "", remedy=remedy
    )
