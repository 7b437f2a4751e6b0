"""Takes secrets out of what leaves this machine: known ones in every form they may stand in, others by their shape.

Shapes and words err on the side of hiding: a line that says `key …` loses its rest. Knows no file and no inventory.
"""

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

from fabric.push.words import hide_secrets
from fabric.serial import Json

__all__ = ("HIDDEN", "SHORTEST", "Redactor", "forms_of", "names_a_secret")

HIDDEN: Final = "<hidden>"
SHORTEST: Final = 4  # a secret of three characters or fewer would take words and numbers apart
_LINE: Final = 8  # a line of a longer secret, a private key for one, is a secret alone from this length on
_MARKS: Final = (HIDDEN, "***", "-")

_NAME: Final = re.compile(
    r"""(?ix) secret | passw(or)?d | passphrase | passkey | community | credential | token | ^psk$
        | (^|[_-])pass$ | (^|[_-])(auth|private|api|ssh|tls|psk|dhchap|access|encryption|host|md5)[_-]?key$ | ^key$"""
)
_FILE_NAME: Final = re.compile(r"(?i)_file$|_files$")  # says where a secret lies
_SHAPES: Final = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"\$ANSIBLE_VAULT;[^\n]*(?:\s+[0-9a-f]{16,})*"),
    re.compile(r"""\$(?:\d\w?|y|gy|sha1|apr1|scrypt|argon2\w*|pbkdf2[\w-]*)\$[^\s"'<>,;]+"""),  # crypt(5)
    re.compile(r"DHHC-1:\d\d:[A-Za-z0-9+/=]+:?"),  # NVMe base specification, secret of DH-HMAC-CHAP
    re.compile(r"NVMeTLSkey-1:\d\d:[A-Za-z0-9+/=]+:?"),  # NVMe/TCP, pre-shared key
    re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=://)[^\s/@]+(?=@)"),
    re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"),  # JSON Web Token
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA)[\w-]{12,}"),
)


def names_a_secret(name: str) -> bool:
    """Returns whether a variable or field of that name holds a secret."""
    return bool(_NAME.search(name)) and not _FILE_NAME.search(name)


def forms_of(secret: str) -> frozenset[str]:
    """Returns what a secret may look like in a file: plain, escaped once or twice, quoted, in base64, in hex.

    In base64 it may begin at any byte: what does not depend on its neighbours is looked for.
    """
    raw = secret.encode("utf-8", "surrogatepass")
    once = _escaped(secret)
    encoded = {raw.hex(), raw.hex().upper()}
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw).decode()
        start, end = (before * 8 + 5) // 6, (before + len(raw)) * 8 // 6
        encoded |= {whole[start:end], whole[start:end].replace("+", "-").replace("/", "_")}
    twice = {form for one in once for form in _escaped(one)}
    return frozenset(form for form in once | twice | encoded if len(form) >= SHORTEST)


def _escaped(text: str) -> set[str]:
    quoted = shlex.quote(text)
    found = {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
        html.escape(text, quote=False),
        quoted[1:-1] if quoted != text else text,
        text.replace("'", "''"),  # YAML
    }
    try:
        return found | {quote(text), quote(text, safe=""), quote_plus(text)}
    except UnicodeEncodeError:  # a lone surrogate has no place in a URL
        return found


class Redactor:
    """Hides secrets.

    Args:
        secrets: known by value; those shorter than `SHORTEST` are hidden by their names alone.

    Attributes:
        hidden: how many were hidden so far.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {part for secret in secrets for part in _parts(secret)}
        forms = sorted({form for one in known for form in forms_of(one)}, key=len, reverse=True)
        self._by_head: dict[str, list[str]] = {}
        for form in forms:
            self._by_head.setdefault(form[:SHORTEST], []).append(form)
        self._mark = next((mark for mark in _MARKS if not any(form in mark for form in forms)), "")
        self.hidden = 0

    def text(self, text: str) -> str:
        """Returns text for people without secrets."""
        shaped = self._known(text)
        for shape in _SHAPES:
            shaped, count = shape.subn(self._mark, shaped)
            self.hidden += count
        worded = hide_secrets(shaped)
        if worded != shaped:
            self.hidden += 1
            worded = worded.replace(HIDDEN, self._mark)
        return self._known(worded)  # what stood apart may have been joined

    def json(self, data: Json) -> Json:
        """Returns the same document with each value hidden whose name says that it is a secret, or that shows one."""
        if isinstance(data, dict):
            return {self._known(key): self._value(key, one) for key, one in data.items()}
        if isinstance(data, list):
            if len(data) == 2 and (name := _last_name(data[0])):  # a leaf of a tree with its path, a pair
                return [self.json(data[0]), self._value(name, data[1])]
            return [self.json(one) for one in data]
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, bool) or data is None:
            return data
        return data if self._known(json.dumps(data)) == json.dumps(data) else self._hide()

    def leaks(self, text: str) -> bool:
        """Returns whether a known secret stands in `text` in any form."""
        return self._find(text, 0) is not None

    def _value(self, name: str, data: Json) -> Json:
        says_nothing = data is None or isinstance(data, bool) or data in ("", [], {})
        return self.json(data) if says_nothing or not names_a_secret(name) else self._hide()

    def _hide(self) -> str:
        self.hidden += 1
        return self._mark

    def _known(self, text: str) -> str:
        if not self._by_head:
            return text
        parts: list[str] = []
        start = 0
        while (found := self._find(text, start)) is not None:
            at, length = found
            parts += [text[start:at], self._hide()]
            start = at + length
        return "".join([*parts, text[start:]])

    def _find(self, text: str, start: int) -> tuple[int, int] | None:
        heads = self._by_head
        if not heads:
            return None
        for at in range(start, len(text) - SHORTEST + 1):
            forms = heads.get(text[at : at + SHORTEST])
            if forms:
                for form in forms:
                    if text.startswith(form, at):
                        return at, len(form)
        return None


def _parts(secret: str) -> set[str]:
    lines = {line.strip() for line in secret.splitlines()} if "\n" in secret else set()
    whole = {secret, secret.strip()}
    return {one for one in whole if len(one) >= SHORTEST} | {line for line in lines if len(line) >= _LINE}


def _last_name(data: Json) -> str:
    """Returns the name of a pair: a string, or the end of a path."""
    last = data[-1] if isinstance(data, list) and data else data
    return last if isinstance(last, str) else ""
