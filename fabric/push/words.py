"""What a device says, made fit for people, files and terminals: no control characters, no secrets, no flood."""

import re
from typing import Final

__all__ = ("hide_secrets", "plain", "refused_control", "safe")

_LIMIT: Final = 2000
_TERMINAL: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)"
)  # ECMA-48 CSI, OSC, others
_SECRET: Final = re.compile(
    r"""(?ix) (["']? (?: [\w-]* (?:secret|passw(?:or)?d|passphrase|passkey|community)
                       | (?<!\bhost[ ]) \b (?:[\w-]*[_-])? key (?:-string)? ) \b ["']?)
        ([\s:=]+) \S.*"""
)


def plain(text: str, *, limit: int = _LIMIT) -> str:
    """Returns `text` without terminal sequences and control characters except line ends, cut at `limit` characters."""
    lines = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    clean = "\n".join("".join(c if c.isprintable() else " " for c in line).rstrip() for line in lines).strip()
    return clean if len(clean) <= limit else f"{clean[:limit]} … ({len(clean) - limit} characters more)"


def hide_secrets(text: str) -> str:
    """Returns `text` with what follows a word like `password` or `secret` hidden, line by line."""
    return "\n".join(_SECRET.sub(r"\1\2<hidden>", line) for line in text.split("\n"))


def safe(text: str, *, limit: int = _LIMIT) -> str:
    """Returns `text` as `plain` leaves it, secrets hidden: in this order, or a terminal sequence would hide them."""
    return hide_secrets(plain(text, limit=limit))


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
