"""UNKNOWN: the text cannot tell. It is neither zero, nor absent (None), nor a pass."""

import enum
from typing import Final, Literal, TypeAlias, TypeVar

__all__ = ("UNKNOWN", "Known", "Unknown", "known")

T = TypeVar("T")


class Unknown(enum.Enum):
    """The one value that says "cannot be told from what was read"."""

    UNKNOWN = "UNKNOWN"

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("UNKNOWN is neither true nor false; compare with `is UNKNOWN`")


UNKNOWN: Final = Unknown.UNKNOWN
Known: TypeAlias = T | Literal[Unknown.UNKNOWN]


def known(value: Known[T], default: T) -> T:
    """Returns `value`, or `default` when it is UNKNOWN."""
    return default if value is UNKNOWN else value
