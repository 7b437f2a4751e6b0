"""How one value of an inventory is read: text, numbers with bounds, speeds, names. The words of every refusal.

pydantic calls these and collects what they refuse. Nothing here knows which variable it reads.
"""

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

from pydantic import BeforeValidator, PlainValidator
from pydantic_core import PydanticCustomError

from fabric.intent.ranges import RangeError, expand
from fabric.policy import ShardProfile, problems
from fabric.qos.keeping import ALL_ASPECTS, Aspect
from fabric.serial import SerialError, from_json
from fabric.units import parse_cable, parse_speed

__all__ = (
    "Address",
    "Aspects",
    "BlockDevice",
    "ByteCount",
    "Cable",
    "Dscp",
    "Dscps",
    "Ends",
    "FilePath",
    "Flag",
    "HostAddress",
    "Milliseconds",
    "Mtu",
    "Names",
    "NamespaceIds",
    "Netdevs",
    "Nqn",
    "Nqns",
    "PatternedText",
    "Percent",
    "Priority",
    "Profile",
    "Secret",
    "Speed",
    "SshHost",
    "Word",
    "Words",
    "choice",
    "whole",
)

T = TypeVar("T")

DEVICE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # a hostname label and what people make of it
PORT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9/:._-]{0,62}")
NETDEV_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,14}")  # IFNAMSIZ 16, linux/if.h
# NVM Express Base Specification 2.0, section 4.5: nqn.yyyy-mm.reverse-domain:text, at most 223 bytes
NQN: Final = re.compile(r"nqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[A-Za-z0-9][A-Za-z0-9.-]*(:[A-Za-z0-9._:/+=@-]+)?")
NQN_LENGTH: Final = 223
TEXT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()+:/-]{0,62}")
WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
BLOCK_DEVICE: Final = re.compile(r"/[A-Za-z0-9/._:+-]{1,200}")
SSH_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,252}")
FILE_PATH: Final = re.compile(r"[A-Za-z0-9/~._+@ -]{1,1000}")

# Port speeds that Ethernet has and somebody ships: IEEE 802.3, Mb/s.
SPEEDS: Final = frozenset({1_000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000})
LONGEST_CABLE_M: Final = 40_000  # 400GBASE-ER8; PFC gives up far earlier
SMALLEST_MTU, LARGEST_MTU = 1280, 9600  # RFC 8200 section 5; no switch of switches.md takes more

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BYTES: Final = re.compile(r"([0-9]+)\s*(B|KB|MB|KiB|MiB)?", re.IGNORECASE | re.ASCII)
_BYTE_UNITS: Final = {"b": 1, "kb": 1000, "mb": 1_000_000, "kib": 1024, "mib": 1_048_576}
_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})


def _refuse(what: str, expected: str, remedy: str = "") -> NoReturn:
    raise PydanticCustomError("fabric", "{what}", {"what": what, "expected": expected, "remedy": remedy})


def text(value: object, expected: str) -> str:
    """Returns the text; refuses what YAML 1.1 made a boolean or number of."""
    if isinstance(value, bool):
        _refuse("YAML reads an unquoted on, off, yes or no as a boolean", expected, "Quote it.")
    if isinstance(value, int | float):
        _refuse("YAML reads this as a number, not as text", expected, "Quote it.")
    if not isinstance(value, str):
        _refuse(f"found {_kind(value)} where text belongs", expected)
    return value


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "a value"


def matching(pattern: re.Pattern[str], expected: str, what: str) -> Callable[[object], str]:
    """Returns a reader of text that fits the pattern wholly."""

    def read(value: object) -> str:
        found = text(value, expected)
        if pattern.fullmatch(found) is None:
            _refuse(what, expected)
        return found

    return read


def whole(low: int, high: int, unit: str = "") -> PlainValidator:
    """Returns a reader of integers from low to high; digits in quotes count, since Jinja gives them."""
    expected = f"a whole number from {low} to {high}{f' {unit}' if unit else ''}"

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            _refuse("this is no whole number", expected)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value) is None:
            _refuse("this is no whole number", expected)
        number = int(value)
        if not low <= number <= high:
            _refuse("the number is out of range", expected)
        return number

    return PlainValidator(read)


def choice(*options: str) -> PlainValidator:
    """Returns a reader of one word out of a closed set."""
    expected = f"one of {', '.join(options)}"

    def read(value: object) -> str:
        found = text(value, expected)
        if found not in options:
            _refuse("this is none of the known words", expected)
        return found

    return PlainValidator(read)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    _refuse("this is neither true nor false", "true or false")


def _speed(value: object) -> int:
    expected = "a port speed such as 25G, 100G, 400G"
    if isinstance(value, bool) or not isinstance(value, int | str):
        _refuse("this is no speed", expected)
    try:
        speed = parse_speed(value)
    except ValueError:
        _refuse("this is no speed", expected)
    if speed not in SPEEDS:
        _refuse("no Ethernet port has this speed", expected)
    return speed


def _cable(value: object) -> int:
    expected = f"a length in metres from 1m to {LONGEST_CABLE_M}m"
    if isinstance(value, bool) or not isinstance(value, int | str):
        _refuse("this is no cable length", expected)
    try:
        length = parse_cable(value)
    except ValueError:
        _refuse("this is no cable length", expected)
    if not 1 <= length <= LONGEST_CABLE_M:
        _refuse("the cable length is out of range", expected)
    return length


def _byte_count(value: object) -> int:
    expected = "bytes, such as 150KB (1000 B each), 128KiB or 150000"
    if isinstance(value, bool) or not isinstance(value, int | str):
        _refuse("this is no number of bytes", expected)
    match = _BYTES.fullmatch(str(value).strip())
    if match is None:
        _refuse("this is no number of bytes", expected)
    return int(match[1]) * _BYTE_UNITS[(match[2] or "B").lower()]


def _address(value: str) -> str:
    try:
        if "/" not in value:
            raise ValueError(value)
        return str(ipaddress.ip_interface(value))
    except ValueError:
        _refuse("this is no address with a prefix length", "IPv4 or IPv6 such as 192.0.2.21/26 or 2001:db8::21/64")


def _host_address(value: object) -> str:
    expected = "an IPv4 or IPv6 address"
    try:
        return str(ipaddress.ip_address(text(value, expected)))
    except ValueError:
        _refuse("this is no IP address", expected)


def _nqn(value: object) -> str:
    expected = "an NQN such as nqn.2026-01.net.example:kv1, at most 223 bytes"
    found = text(value, expected)
    if NQN.fullmatch(found) is None or len(found) > NQN_LENGTH:
        _refuse("this is no NVMe qualified name", expected)
    return found


def _file_path(value: object) -> str:
    expected = "the path of a file"
    found = matching(FILE_PATH, expected, _UNSAFE)(value)
    try:
        Path(found).expanduser()
    except RuntimeError:
        _refuse("nobody here has this home folder", expected)
    return found


def _secret(value: object) -> str:
    found = text(value, "text, in quotes")
    # it is typed at a prompt: what follows a line end would be a command
    if _CONTROL.search(found):
        _refuse("a control character or line end stands in this secret", "one line of text", _CHOMP)
    return found


def ranges(read: Callable[[str], T], expected: str) -> Callable[[object], tuple[T, ...]]:
    """Returns a reader of a name, a range of names, or a list of those."""

    def expand_all(value: object) -> tuple[T, ...]:
        items = value if isinstance(value, list) else [value]
        names = [name for item in items for name in _expanded(text(item, expected), expected)]
        if not names:
            _refuse("the list is empty", expected)
        return tuple(read(name) for name in names)

    return expand_all


def _expanded(found: str, expected: str) -> tuple[str, ...]:
    try:
        return expand(found)
    except RangeError as error:
        _refuse(str(error), expected)


def _profile(value: object) -> ShardProfile:
    expected = "a mapping as `fabricctl tune` writes it"
    if isinstance(value, ShardProfile):
        return value
    try:
        found = from_json(ShardProfile, value)  # type: ignore[arg-type]  # what is no JSON is refused there
    except SerialError as error:
        _refuse(f"this is no shard profile: {error}", expected)
    for one in problems(found.policy):
        _refuse(f"{one.what}: policy.{one.field} is {one.found}", one.expected)
    return found


def _aspects(value: object) -> frozenset[Aspect]:
    expected = f"all, or some of {', '.join(Aspect)}"
    names = [text(one, expected) for one in (value if isinstance(value, list) else [value])]
    if names == [_EVERYTHING]:
        return ALL_ASPECTS
    if any(name not in list(Aspect) for name in names):
        _refuse("this is none of the parts that can be kept", expected)
    return frozenset(Aspect(name) for name in names)


def _listed(value: object) -> object:
    """Returns a lone value as a list of one."""
    return [value] if isinstance(value, str | int) and not isinstance(value, bool) else value


def _endpoint(value: str) -> tuple[str, str]:
    device, colon, port = value.partition(":")
    if not colon:
        _refuse("this names no port", _ENDPOINT_EXPECTED)
    if DEVICE_NAME.fullmatch(device) is None or PORT_NAME.fullmatch(port) is None:
        _refuse(_UNSAFE, _ENDPOINT_EXPECTED)
    return device, port


def _numbers(value: object) -> tuple[int, ...]:
    expected = "a number from 1 to 4294967294, or a range such as [1:8]"
    if isinstance(value, bool) or not isinstance(value, int | str):
        _refuse("this is no number", expected)
    names = _expanded(str(value), expected)
    if any(re.fullmatch(r"[0-9]{1,10}", name) is None or not 1 <= int(name) < 2**32 - 1 for name in names):
        _refuse("the number is out of range", expected)
    return tuple(int(name) for name in names)


_EVERYTHING: Final = "all"
_CHOMP: Final = "A vaulted value that was read from a pipe may end in a line end: use printf, not echo."
_UNSAFE: Final = "the name has characters that a device would take for something else"
_ENDPOINT_EXPECTED: Final = "DEVICE:PORT or a range of it, such as leaf[1:4]:Ethernet64"
_PORTS_EXPECTED: Final = "a port name or range such as Ethernet[0:252:4] or Ethernet1/[1:4]"
_NETDEV_EXPECTED: Final = "a Linux network device such as ens1f0np0, at most 15 characters"
_TEXT_EXPECTED: Final = "letters, digits, spaces and ._()+:/-"

Aspects = Annotated[frozenset[Aspect], PlainValidator(_aspects)]
Flag = Annotated[bool, PlainValidator(_flag)]
Dscp = Annotated[int, whole(0, 63)]
Priority = Annotated[int, whole(0, 7)]
Percent = Annotated[int, whole(0, 100, "percent")]
Milliseconds = Annotated[int, whole(1, 600_000, "ms")]
Mtu = Annotated[int, whole(SMALLEST_MTU, LARGEST_MTU, "bytes")]
Speed = Annotated[int, PlainValidator(_speed)]
Cable = Annotated[int, PlainValidator(_cable)]
ByteCount = Annotated[int, PlainValidator(_byte_count)]
PatternedText = Annotated[str, PlainValidator(matching(TEXT, _TEXT_EXPECTED, _UNSAFE))]
Word = Annotated[str, PlainValidator(matching(WORD, "a word of letters, digits and _.-", _UNSAFE))]
Words = Annotated[tuple[Word, ...], BeforeValidator(_listed)]
Dscps = Annotated[tuple[Dscp, ...], BeforeValidator(_listed)]
Names = Annotated[
    tuple[str, ...], PlainValidator(ranges(matching(PORT_NAME, _PORTS_EXPECTED, _UNSAFE), _PORTS_EXPECTED))
]
Netdevs = Annotated[
    tuple[str, ...], PlainValidator(ranges(matching(NETDEV_NAME, _NETDEV_EXPECTED, _UNSAFE), _NETDEV_EXPECTED))
]
Address = Annotated[
    tuple[str, ...], PlainValidator(ranges(_address, "IPv4 or IPv6 such as 192.0.2.21/26 or 2001:db8::21/64"))
]
HostAddress = Annotated[str, PlainValidator(_host_address)]
Nqn = Annotated[str, PlainValidator(_nqn)]
BlockDevice = Annotated[
    tuple[str, ...],
    PlainValidator(
        ranges(matching(BLOCK_DEVICE, "a path such as /dev/nvme0n1", _UNSAFE), "a path such as /dev/nvme0n1")
    ),
]
Nqns = Annotated[tuple[Nqn, ...], BeforeValidator(_listed)]
Ends = Annotated[tuple[tuple[str, str], ...], PlainValidator(ranges(_endpoint, _ENDPOINT_EXPECTED))]
# NVM Express Base Specification 2.0, section 3.2.1.2: 0 is no namespace, FFFFFFFFh is all of them
NamespaceIds = Annotated[tuple[int, ...], PlainValidator(_numbers)]
SshHost = Annotated[str, PlainValidator(matching(SSH_HOST, "a host name or address", _UNSAFE))]
FilePath = Annotated[str, PlainValidator(_file_path)]
Secret = Annotated[str, PlainValidator(_secret)]
Profile = Annotated[ShardProfile, PlainValidator(_profile)]
