"""Cutting a shell line into words and operators, quotes as POSIX has them. Knows no program.

What would need a real shell is refused: substitutions, variables other than `$?`, patterns, here-documents, jobs.
Source: POSIX.1-2017, Shell Command Language, sections 2.2 and 2.3.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ("LAST_STATUS", "ShellSyntaxError", "Word", "cut")

LAST_STATUS: Final = "\0?"  # stands for `$?` until the command runs; a shell line has no NUL
_OPERATORS: Final = (";", "&&", "||", "|", ">>", ">&", ">", "<")  # longest first where one starts another
_OPERATOR_LETTERS: Final = ";&|<>"
_PATTERN_LETTERS: Final = "*?"


class ShellSyntaxError(Exception):
    """The line is no shell line, or one that is not emulated."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word, quotes taken off, or one operator."""

    text: str
    is_operator: bool = False


def cut(line: str, home: str) -> tuple[Word, ...]:
    """Returns the words of the line, `~` replaced by `home`.

    Raises:
        ShellSyntaxError: it cannot be cut, or needs a real shell.
    """
    return tuple(_Cutter(line, home).words())


class _Cutter:
    def __init__(self, line: str, home: str) -> None:
        self._line = line
        self._home = home
        self._at = 0

    def words(self) -> list[Word]:
        found: list[Word] = []
        while self._at < len(self._line):
            letter = self._line[self._at]
            if letter.isspace():
                self._at += 1
            elif letter in _OPERATOR_LETTERS:
                found.append(self._operator())
            else:
                found.append(self._word())
        return found

    def _operator(self) -> Word:
        rest = self._line[self._at :]
        if rest.startswith("<<"):
            raise ShellSyntaxError("here-documents are not emulated")
        found = next((one for one in _OPERATORS if rest.startswith(one)), "")
        if not found:
            raise ShellSyntaxError(f'"{rest[0]}" unexpected')
        self._at += len(found)
        return Word(found, is_operator=True)

    def _word(self) -> Word:
        text = ""
        if self._line.startswith("~", self._at) and self._line[self._at + 1 : self._at + 2] in {"", "/", " "}:
            text, self._at = self._home, self._at + 1
        while self._at < len(self._line):
            letter = self._line[self._at]
            if letter.isspace() or letter in _OPERATOR_LETTERS:
                break
            if letter in _PATTERN_LETTERS:
                raise ShellSyntaxError("patterns are not emulated")
            text += self._piece()
        return Word(text)

    def _piece(self) -> str:
        letter = self._line[self._at]
        self._at += 1
        match letter:
            case "'":
                return self._until("'")
            case '"':
                return self._double()
            case "\\":
                self._at += 1
                return self._line[self._at - 1 : self._at]
            case "$" | "`":
                return self._dollar(letter)
        return letter

    def _until(self, end: str) -> str:
        stop = self._line.find(end, self._at)
        if stop < 0:
            raise ShellSyntaxError("Unterminated quoted string")
        text, self._at = self._line[self._at : stop], stop + 1
        return text

    def _double(self) -> str:
        text = ""
        while self._at < len(self._line):
            letter = self._line[self._at]
            self._at += 1
            if letter == '"':
                return text
            if letter == "\\" and self._line[self._at : self._at + 1] in {"$", "`", '"', "\\"}:
                text += self._line[self._at]
                self._at += 1
            elif letter in "$`":
                text += self._dollar(letter)
            else:
                text += letter
        raise ShellSyntaxError("Unterminated quoted string")

    def _dollar(self, letter: str) -> str:
        following = self._line[self._at : self._at + 1]
        if letter == "$" and following == "?":
            self._at += 1
            return LAST_STATUS
        if letter == "$" and not (following.isalnum() or following in {"(", "{", "_", "@", "*", "#", "$", "!"}):
            return letter
        raise ShellSyntaxError("substitutions are not emulated")
