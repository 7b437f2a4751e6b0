"""What a device says, made fit for people, files and terminals: no control characters, no secrets, no flood."""

import re
from typing import Final

__all__ = ("hide_secrets", "plain", "refused_control")

_LIMIT: Final = 2000
_SECRET: Final = re.compile(
    r"""(?ix) (["']?\b(?:secret|password|passwd|passphrase|passkey|community|key|auth_key|key-string|snmp_rocommunity)
        \b["']?) ([\s:=]+) \S.*"""
)


def plain(text: str, *, limit: int = _LIMIT) -> str:
    """Returns `text` without control characters except line ends, stripped, cut at `limit` characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    clean = "\n".join("".join(c if c.isprintable() else " " for c in line).rstrip() for line in lines).strip()
    return clean if len(clean) <= limit else f"{clean[:limit]} … ({len(clean) - limit} characters more)"


def hide_secrets(text: str) -> str:
    """Returns `text` with what follows a word like `password` or `secret` hidden, line by line."""
    return "\n".join(_SECRET.sub(r"\1\2<hidden>", line) for line in text.split("\n"))


def refused_control(line: str) -> str:
    """Returns why a line must not be typed into a command line, or "".

    A control character would end the line or move the cursor; `?` asks the CLI for help instead of being part of it.
    """
    for character in line:
        if not character.isprintable():
            return f"it holds the character U+{ord(character):04X}"
        if character == "?":
            return "it holds a question mark, which the command line takes as a request for help"
    return ""
