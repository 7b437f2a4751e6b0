"""Gives names and addresses other ones, the same one each time. Knows what they look like, and no file.

Addresses keep what they have in common: two of one subnet are in one subnet afterwards, and private ones stay private.
Netmasks, loopback and multicast stay.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from fabric.serial import Json

__all__ = ("PseudonymMap", "Pseudonyms")

_SHORTEST: Final = 3  # a shorter name is replaced only where it stands alone: it is part of too many words
_KEEPING: Final = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv6Network("fe80::/10"),
    IPv6Network("fc00::/7"),
)
_FIRST_BITS: Final = 4  # of other addresses: multicast stays apart from unicast
_V4: Final = r"(?<![\w.])(?P<v4>\d{1,3}(?:\.\d{1,3}){3})(?![\w]|\.\d)"
_V6: Final = r"(?<![\w:.])(?P<v6>(?=[0-9A-Fa-f]*:)[0-9A-Fa-f:]{2,39}(?:\d*(?:\.\d{1,3}){3})?)(?![\w:]|\.\d)"
_MAC: Final = (
    r"(?<![\w:.-])(?P<mac>[0-9A-Fa-f]{2}(?P<sep>[:-])[0-9A-Fa-f]{2}(?:(?P=sep)[0-9A-Fa-f]{2}){4}"
    r"|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w:-]|\.\w)"
)
_UUID: Final = r"(?<![\w-])(?P<uuid>[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})(?![\w-])"
_NQN: Final = r"(?P<nqn>nqn\.\d{4}-\d\d\.(?!org\.nvmexpress)[A-Za-z0-9.-]+(?::[\w.:-]+)?)"


@dataclass(frozen=True, slots=True)
class PseudonymMap:
    """What stands for what; it undoes the work, so it stays here.

    Attributes:
        key: hexadecimal, what addresses are made with.
        pairs: original → pseudonym.
    """

    key: str = field(repr=False)
    pairs: Mapping[str, str] = field(default_factory=dict)


class Pseudonyms:
    """Replaces names and addresses.

    Args:
        names: of devices, groups, users, machines, domains; each with the word that its pseudonym begins with.
        known: from an earlier bundle, to go on with.
    """

    def __init__(self, names: Mapping[str, str], known: PseudonymMap | None = None) -> None:
        self._key = bytes.fromhex(known.key) if known else secrets.token_bytes(32)
        self._pairs = dict(known.pairs) if known else {}
        for name, kind in sorted(names.items()):
            if name:
                self._of_name(name.casefold(), kind)
        self._names = {one.casefold(): self._pairs[one.casefold()] for one in names if one}
        self._pattern = re.compile("|".join((_UUID, _NQN, *self._of_names(), _MAC, _V6, _V4)), re.IGNORECASE)

    def map(self) -> PseudonymMap:
        """Returns what was given so far."""
        return PseudonymMap(self._key.hex(), dict(sorted(self._pairs.items())))

    def text(self, text: str) -> str:
        """Returns the text with pseudonyms."""
        alone = self._names.get(text.casefold())
        return alone if alone is not None else self._pattern.sub(self._replaced, text)

    def json(self, data: Json) -> Json:
        """Returns the document with pseudonyms, in its keys too."""
        if isinstance(data, dict):
            return {self.text(key): self.json(one) for key, one in data.items()}
        if isinstance(data, list):
            return [self.json(one) for one in data]
        return self.text(data) if isinstance(data, str) else data

    def _of_names(self) -> Iterable[str]:
        long = sorted((one for one in self._names if len(one) >= _SHORTEST), key=lambda one: (-len(one), one))
        if long:
            yield rf"(?<![A-Za-z0-9])(?P<name>{'|'.join(map(re.escape, long))})(?![A-Za-z0-9])"

    def _replaced(self, found: re.Match[str]) -> str:
        text = found[0]
        match found.lastgroup:
            case "name":
                return self._names.get(text.casefold(), text)
            case "uuid":
                return self._paired(text.lower(), _as_uuid(self._digest(text.lower())))
            case "nqn":
                return self._of_name(text.lower(), "nqn.2014-08.org.example:name")
            case "v4" | "v6":
                return self._address(text)
            case _:
                return self._mac(text)

    def _of_name(self, name: str, kind: str) -> str:
        if name not in self._pairs:
            taken = sum(one.startswith(kind) and one[len(kind) :].isdigit() for one in self._pairs.values())
            self._pairs[name] = f"{kind}{taken + 1}"
        return self._pairs[name]

    def _paired(self, original: str, pseudonym: str) -> str:
        return self._pairs.setdefault(original, pseudonym)

    def _mac(self, text: str) -> str:
        digits = re.sub(r"[^0-9a-f]", "", text.lower())
        fresh = digits[:6] + self._digest(digits).hex()[:6]  # the first half names the vendor
        new = fresh if digits.strip("0f") else digits
        letters = iter(self._paired(digits, new))
        return "".join(next(letters) if one.isalnum() else one for one in text)

    def _address(self, text: str) -> str:
        try:
            address = IPv6Address(text) if ":" in text else IPv4Address(text)
        except ValueError:
            return text
        if _tells_nothing(address):
            return text
        kept = next((one.prefixlen for one in _KEEPING if address in one), _FIRST_BITS)
        return self._paired(str(address), str(type(address)(self._mixed(int(address), address.max_prefixlen, kept))))

    def _mixed(self, number: int, width: int, kept: int) -> int:
        """Returns another number; two that begin alike do so afterwards, bit by bit (as Crypto-PAn)."""
        mixed = number >> (width - kept)
        for bit in range(kept, width):
            flip = self._digest(f"{width}/{bit}/{number >> (width - bit)}")[0] & 1
            mixed = mixed << 1 | (number >> (width - bit - 1) & 1) ^ flip
        return mixed

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), hashlib.sha256)


def _tells_nothing(address: IPv4Address | IPv6Address) -> bool:
    """Returns whether the address is the same everywhere, or a netmask."""
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        return True
    return isinstance(address, IPv4Address) and (int(address) >> 24 in {0, 255})


def _as_uuid(digest: bytes) -> str:
    digits = digest.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
