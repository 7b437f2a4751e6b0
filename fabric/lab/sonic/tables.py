"""Tables as `tabulate` prints them in SONiC's tools. Text alone."""

from collections.abc import Sequence

__all__ = ("grid",)


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: bool = False) -> str:
    """Returns a table under a line of dashes, cells to the right, or to the left as tabulate has text by default."""
    columns = zip(*rows, strict=True) if rows else [() for _ in heads]
    widths = [
        max([len(head) + 2, *map(len, column)])  # tabulate pads a head by two
        for head, column in zip(heads, columns, strict=True)
    ]
    lines = [
        "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (heads, *rows)
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*(line.rstrip() for line in lines), ""])
