"""`show priority-group …` and `show headroom-pool watermark`. Text in, bytes and packets out."""

import re
from typing import Final

from fabric.nos.sonic.show.table import count, tables
from fabric.qos import Known

__all__ = ("drops", "headroom_pool", "watermarks")

_NAMESPACE: Final = re.compile(r"\(Namespace (\S+)\)")


def drops(text: str) -> dict[str, tuple[Known[int], ...]]:
    """Returns port → packets dropped on ingress by priority group: headroom overflow where it is lossless."""
    return {
        port: tuple(count(cell) for cell in cells)
        for table in tables(text)
        if table.columns[:2] == ("Port", "PG0")
        for port, *cells in table.rows
    }


def watermarks(text: str) -> dict[str, dict[str, tuple[Known[int], ...]]]:
    """Returns namespace ("" where there is one) → port → largest bytes by priority group."""
    out: dict[str, dict[str, tuple[Known[int], ...]]] = {}
    for table in tables(text):
        if table.columns[:2] == ("Port", "PG0"):
            match = _NAMESPACE.search(table.title)
            rows = out.setdefault(match[1] if match else "", {})
            rows.update({port: tuple(count(cell) for cell in cells) for port, *cells in table.rows})
    return out


def headroom_pool(text: str) -> dict[str, Known[int]]:
    """Returns pool → largest bytes of shared headroom in use."""
    return {
        pool: count(used) for table in tables(text) if table.columns == ("Pool", "Bytes") for pool, used in table.rows
    }
