"""From a URL to what it names. Pure; opens nothing and looks no name up.

| URL | reaches |
|---|---|
| `nvme+tcp://HOST:PORT/NQN?nsid=1` | a namespace over NVMe/TCP; without the NQN: the target's discovery service |
| …`&digest=header,data` | with CRC-32C over headers, over data, or over both |
| `nvme+rdma://HOST:PORT/NQN?nsid=1` | the same over RDMA |
| `file:///PATH`, `block:///dev/NAME` | a file or block device |
| `memory://?bytes=N` | a target in this process, zeroed |
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from fabric.errors import LocalProtocolError

__all__ = (
    "DEFAULT_PORT",
    "Address",
    "AddressError",
    "BlockAddress",
    "FabricsAddress",
    "MemoryAddress",
    "RdmaAddress",
    "TcpAddress",
    "parse_address",
)

DEFAULT_PORT: Final = 4420  # IANA nvme; discovery listens on 8009, or on this one too, as nvmet does
_MEMORY_BYTES: Final = 64 << 20
_MEMORY_NQN: Final = "nqn.2026-11.io.fabricctl:memory"
_FORMS: Final = "nvme+tcp://HOST:PORT/NQN?nsid=1, nvme+rdma://…, file:///PATH, block:///dev/NAME or memory://?bytes=N"

_DIGESTS: Final = frozenset({"header", "data"})

T = TypeVar("T")


class AddressError(LocalProtocolError):
    """A URL that names nothing that can be opened."""


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A namespace behind NVMe/TCP.

    Attributes:
        host, port: name or IP address of the target.
        nqn: the subsystem; "" stands for the discovery service.
        nsid: the namespace.
        hostnqn: who connects, for targets that allow some hosts only; "" is the engine's choice.
        header_digest, data_digest: CRC-32C over PDU headers, over data; the target has to offer it.
    """

    host: str
    port: int = DEFAULT_PORT
    nqn: str = ""
    nsid: int = 1
    hostnqn: str = ""
    header_digest: bool = False
    data_digest: bool = False


@dataclass(frozen=True, slots=True)
class RdmaAddress:
    """A namespace behind NVMe/RDMA.

    Attributes:
        host, port: name or IP address of the target.
        nqn: the subsystem; "" stands for the discovery service.
        nsid: the namespace.
        hostnqn: who connects, for targets that allow some hosts only; "" is the engine's choice.
    """

    host: str
    port: int = DEFAULT_PORT
    nqn: str = ""
    nsid: int = 1
    hostnqn: str = ""


@dataclass(frozen=True, slots=True)
class BlockAddress:
    """A file or block device."""

    path: Path


@dataclass(frozen=True, slots=True)
class MemoryAddress:
    """A target in this process, with one namespace of `length` bytes in blocks of 512."""

    length: int = _MEMORY_BYTES
    nqn: str = _MEMORY_NQN
    nsid: int = 1


FabricsAddress: TypeAlias = TcpAddress | RdmaAddress
Address: TypeAlias = FabricsAddress | BlockAddress | MemoryAddress


def parse_address(url: str) -> Address:
    """Returns what a URL names.

    Raises:
        AddressError: it has another form, or an argument that is not known.
    """
    try:
        parts = urlsplit(url)
        return _PARSERS[parts.scheme](parts, _arguments(parts))
    except KeyError as error:
        raise AddressError("this URL cannot be opened", found=url, expected=_FORMS) from error
    except ValueError as error:
        raise AddressError(f"this URL cannot be read: {error}", found=url, expected=_FORMS) from error


def _arguments(parts: SplitResult) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    arguments = dict(pairs)
    if len(arguments) < len(pairs):
        raise ValueError("an argument is given twice")
    return arguments


def _tcp(parts: SplitResult, arguments: dict[str, str]) -> TcpAddress:
    header, data = _digests(arguments)
    return TcpAddress(*_fabrics(parts, arguments), header, data)


def _digests(arguments: dict[str, str]) -> tuple[bool, bool]:
    named = arguments.pop("digest", None)
    digests = [] if named is None else named.split(",")
    if not set(digests) <= _DIGESTS or len(set(digests)) < len(digests):
        raise ValueError("digest is header, data, or both with a comma between")
    return "header" in digests, "data" in digests


def _rdma(parts: SplitResult, arguments: dict[str, str]) -> RdmaAddress:
    return RdmaAddress(*_fabrics(parts, arguments))


def _fabrics(parts: SplitResult, arguments: dict[str, str]) -> tuple[str, int, str, int, str]:
    if not parts.hostname or parts.fragment or parts.username:
        raise ValueError("HOST:PORT is missing, or more than that stands there")
    nsid = _take(arguments, "nsid", int, 1)
    hostnqn = _take(arguments, "hostnqn", str, "")
    _nothing_left(arguments)
    if nsid < 1:
        raise ValueError("nsid is 1 or more")
    port = DEFAULT_PORT if parts.port is None else parts.port
    return parts.hostname, port, unquote(parts.path.removeprefix("/")), nsid, hostnqn


def _block(parts: SplitResult, arguments: dict[str, str]) -> BlockAddress:
    _nothing_left(arguments)
    if parts.netloc or not parts.path.startswith("/"):
        raise ValueError("the path is not absolute: three slashes")
    return BlockAddress(Path(unquote(parts.path)))


def _memory(parts: SplitResult, arguments: dict[str, str]) -> MemoryAddress:
    length = _take(arguments, "bytes", int, _MEMORY_BYTES)
    _nothing_left(arguments)
    if parts.netloc or parts.path.strip("/"):
        raise ValueError("it takes no host and no path")
    if length < 1 or length % 512:
        raise ValueError("bytes is a multiple of 512")
    return MemoryAddress(length)


def _take(arguments: dict[str, str], name: str, make: Callable[[str], T], default: T) -> T:
    return make(arguments.pop(name)) if name in arguments else default


def _nothing_left(arguments: dict[str, str]) -> None:
    if arguments:
        raise ValueError(f"there is no argument {', '.join(sorted(arguments))}")


_PARSERS: Mapping[str, Callable[[SplitResult, dict[str, str]], Address]] = MappingProxyType(
    {"nvme+tcp": _tcp, "nvme+rdma": _rdma, "file": _block, "block": _block, "memory": _memory}
)
