"""Names that come from outside, checked before they stand in a path, an argument or a unit file. Knows no tool."""

import ipaddress
import re
from typing import Final

from fabric.errors import HostError

__all__ = (
    "block_device",
    "configfs_nqn",
    "hostid",
    "ip_address",
    "ip_interface",
    "module",
    "netdev",
    "nqn",
    "pci_address",
    "rdma_device",
    "setting_name",
    "unit_word",
)

_NETDEV: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # Linux IFNAMSIZ: 15 characters
_RDMA: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")  # Linux IB_DEVICE_NAME_MAX: 63 characters
_MODULE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,55}")  # Linux MODULE_NAME_LEN
_PCI: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
# NVM Express Base Specification 2.0, section 4.5; a comma would end the kernel's option, a space our argument
_NQN: Final = re.compile(r"nqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[A-Za-z0-9][A-Za-z0-9.-]*(:[A-Za-z0-9._:/+=@-]+)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SETTING: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_BLOCK: Final = re.compile(r"/[A-Za-z0-9._/:+-]+")
_NQN_BYTES: Final = 223
_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def _checked(pattern: re.Pattern[str], text: str, what: str, expected: str) -> str:
    if pattern.fullmatch(text) is None:
        raise HostError(f"this is no {what}", found=repr(text), expected=expected)
    return text


def netdev(text: str) -> str:
    """Returns `text`, the name of a network device.

    Raises:
        HostError: it is none.
    """
    return _checked(_NETDEV, text, "network device", "a name such as ens1f0np0")


def rdma_device(text: str) -> str:
    """Returns `text`, the name of an RDMA device.

    Raises:
        HostError: it is none.
    """
    return _checked(_RDMA, text, "RDMA device", "a name such as mlx5_0")


def module(text: str) -> str:
    """Returns `text`, the name of a kernel module.

    Raises:
        HostError: it is none.
    """
    return _checked(_MODULE, text, "kernel module", "a name such as nvme-rdma")


def pci_address(text: str) -> str:
    """Returns `text`, a PCI address.

    Raises:
        HostError: it is none.
    """
    return _checked(_PCI, text, "PCI address", "0000:3b:00.0")


def nqn(text: str) -> str:
    """Returns `text`, a qualified name.

    Raises:
        HostError: it is none.
    """
    expected = "a name such as nqn.2026-01.net.example:kv1, at most 223 bytes"
    if len(text) > _NQN_BYTES:  # of a text that fits the pattern each character is a byte
        raise HostError("this NQN is too long", found=f"{len(text)} characters", expected=expected)
    return _checked(_NQN, text, "NQN", expected)


def configfs_nqn(text: str) -> str:
    """Returns `text`, a qualified name that can be a folder of the kernel's target.

    Raises:
        HostError: it is none, or has a slash.
    """
    if "/" in text:
        raise HostError("the kernel's target has one folder an NQN", found=repr(text), expected="no slash in it")
    return nqn(text)


def hostid(text: str) -> str:
    """Returns `text`, a host identifier: a UUID in lower case.

    Raises:
        HostError: it is none.
    """
    return _checked(_UUID, text, "host identifier", "a UUID in lower case")


def setting_name(text: str) -> str:
    """Returns `text`, a driver's name of one DCQCN value.

    Raises:
        HostError: it is none.
    """
    return _checked(_SETTING, text, "driver setting", "lower-case letters, digits and _")


def block_device(text: str) -> str:
    """Returns `text`, an absolute path that does not climb.

    Raises:
        HostError: it is none.
    """
    if ".." in text.split("/"):
        raise HostError("this path climbs", found=repr(text), expected="an absolute path such as /dev/ram0")
    return _checked(_BLOCK, text, "block device", "an absolute path such as /dev/ram0")


def ip_address(text: str) -> str:
    """Returns `text`, an IP address, an IPv6 one perhaps with its scope (`fe80::1%ens1f0np0`).

    Raises:
        HostError: it is none.
    """
    address, percent, scope = text.partition("%")
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        raise HostError("this is no IP address", found=repr(text)) from error
    if percent and version == 4:
        raise HostError("an IPv4 address has no scope", found=repr(text))
    if percent:
        netdev(scope)
    return text


def ip_interface(text: str) -> str:
    """Returns `text`, an address with prefix length, as the kernel prints it.

    Raises:
        HostError: it is none, or has a scope.
    """
    try:
        found = ipaddress.ip_interface(text)
    except ValueError as error:
        raise HostError("this is no address with a prefix length", found=repr(text)) from error
    if "%" in text or "/" not in text:
        raise HostError("this is no address with a prefix length", found=repr(text), expected="192.0.2.21/26")
    return str(found)


def unit_word(text: str) -> str:
    """Returns `text` as one word of a unit file's command line.

    Source: systemd.service(5) "Command lines": `%` and `$` are doubled, the rest is quoted.

    Raises:
        HostError: it holds a control character.
    """
    if not text.isprintable():
        raise HostError("a control character cannot stand in a unit file", found=repr(text))
    if _PLAIN_WORD.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
