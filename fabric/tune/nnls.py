"""Least squares with coefficients that may not be negative, for a handful of columns.

Every subset of columns is solved and the best that is not negative wins: the optimum is the plain least-squares
solution on its own support, so nothing is missed. 2^k solutions, and k is 3 here.
"""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

__all__ = ("nnls",)

MOST_COLUMNS = 8
DEPENDENT = 1e-9  # of a column's length: what is left of it beside the others is rounding


def nnls(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> tuple[tuple[float, ...], float]:
    """Returns (x, residual) with x ≥ 0 and the length of A x - b least.

    Args:
        rows: A, m rows of at most 8 columns each.
        wanted: b, m numbers.

    Raises:
        ValueError: the shapes do not fit, or there are too many columns.
    """
    width = len(rows[0]) if rows else 0
    if not 0 < width <= MOST_COLUMNS or len(rows) != len(wanted) or any(len(row) != width for row in rows):
        raise ValueError(f"{len(rows)} rows of {width} columns do not fit {len(wanted)} numbers")
    columns = [[float(row[index]) for row in rows] for index in range(width)]
    best, least = (0.0,) * width, _length(wanted)
    for count in range(1, width + 1):
        for support in combinations(range(width), count):
            found = _solve([columns[index] for index in support], wanted)
            if found is None or min(found) < 0:
                continue
            whole = [0.0] * width
            for index, value in zip(support, found, strict=True):
                whole[index] = value
            residual = _length([_dot(row, whole) - one for row, one in zip(rows, wanted, strict=True)])
            if residual < least:
                best, least = tuple(whole), residual
    return best, least


def _solve(columns: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float] | None:
    """Returns the least-squares solution by modified Gram-Schmidt, None when columns depend on each other."""
    axes: list[list[float]] = []
    upper: list[list[float]] = []
    for column in columns:
        rest, shares = list(column), []
        for axis in axes:
            share = _dot(axis, rest)
            shares.append(share)
            rest = [one - share * along for one, along in zip(rest, axis, strict=True)]
        size = _length(rest)
        if size <= DEPENDENT * _length(column):
            return None
        axes.append([one / size for one in rest])
        upper.append([*shares, size])
    right, left = [], list(wanted)
    for axis in axes:
        share = _dot(axis, left)
        right.append(share)
        left = [one - share * along for one, along in zip(left, axis, strict=True)]
    found = [0.0] * len(axes)
    for index in reversed(range(len(axes))):
        later = sum(upper[other][index] * found[other] for other in range(index + 1, len(axes)))
        found[index] = (right[index] - later) / upper[index][index]
    return found


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _length(vector: Sequence[float]) -> float:
    return sqrt(_dot(vector, vector))
