"""The fastest CRC-32C that is installed, for digests. Plain Python does a few MiB a second."""

import logging

from fabric.engine.nvmeof.tcp import Digests, crc32c
from fabric.engine.nvmeof.tcp.stream import Checksum

__all__ = ("checksum_for", "fast_checksum")

_log = logging.getLogger(__name__)


def fast_checksum() -> Checksum | None:
    """Returns the CRC-32C of the package `crc32c`, None where it is not installed. It reads any memory in place."""
    try:
        # optional, and an engine without digests needs none: pip install 'fabricctl[fast]'
        from crc32c import crc32c as fast
    except ImportError:
        return None
    return fast


def checksum_for(digests: Digests) -> Checksum:
    """Returns what to make these digests with; warns, once a call, when that is plain Python."""
    fast = fast_checksum()
    if fast is not None:
        return fast
    if digests.header or digests.data:
        _log.warning("digests are computed in plain Python, a few MiB a second: install the package crc32c")
    return crc32c
