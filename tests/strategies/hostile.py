"""Text that tries to be more than text: to a command line, a shell, a template, a terminal, a reader."""

from typing import Final

from hypothesis import strategies as st

__all__ = ("PIECES", "hostile_lines", "hostile_text", "spoilt")

PIECES: Final = (
    "\n", "\r", "\r\n", "\nreload now\n", "\n!\nno service-profile X\n", ";", "; reload", "!", "! ", "?", "%", "^", "|",
    "'", '"', "`id`", "$(id)", "$HOME", "${IFS}", "&& id", "|| id", "> /etc/passwd", "*", "~", "\\", "\\n",
    "{{ 7 * 7 }}", "{% raw %}", "{# x #}", "{{ lookup('pipe', 'id') }}", "!!python/object", "!unsafe", "&a", "*a",
    "\x1b[2J", "\x1b]0;x\x07", "\x1b[31mPASS", "\x9b2J", "\x9d0;x\x9c", "\x08", "\x07", "\x7f", "\x00", "\x0b", "\x0c",
    "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u2029", "\u0085", "\u0430dmin", "\uff1b", "\u037e", "\ud800",
    "<script>alert(1)</script>", "<img src=x onerror=y>", "]]>", "&amp;", "&#10;", "-->", "a" * 5000, " ", "\t", "-", "--",
    "%H", "%%", "$$", "[Service]", "\nExecStart=/bin/id\n", "..", "../../etc/passwd", "/", ",", "=", ":", "@", "#", "# x",
)  # fmt: skip

_any = st.one_of(st.sampled_from(PIECES), st.text(max_size=12), st.characters(exclude_categories=()))
hostile_text: Final = st.lists(_any, min_size=1, max_size=4).map("".join)
"""Any such text, with and without ordinary words in it."""

hostile_lines: Final = hostile_text.map(lambda text: "".join(one for one in text if one not in "\r\n")).filter(bool)
"""One line of it: what a device can print in one line of its configuration."""


@st.composite
def spoilt(draw: st.DrawFn, harmless: str) -> str:
    """Returns a harmless value with something hostile put in, before, behind or instead of it."""
    bad = draw(hostile_text)
    at = draw(st.integers(0, len(harmless)))
    return draw(st.sampled_from((harmless[:at] + bad + harmless[at:], harmless + bad, bad + harmless, bad)))
