"""Text that came from a device or a user, made fit for XML and HTML. Knows no format beyond its character set."""

__all__ = ("printable",)

_REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """Returns `text` with each character that XML 1.0 (section 2.2, Char) lacks replaced: escape codes, surrogates."""
    return "".join(one if _allowed(one) else _REPLACEMENT for one in text)


def _allowed(one: str) -> bool:
    return (
        one in "\t\n\r"
        or " " <= one < "\x7f"
        or "\xa0" <= one < "\ud800"
        or "\ue000" <= one < "\ufffe"
        or one > "\uffff"
    )
