"""Whether a read or write can be right, and the dealer's request made of it: a batch is taken whole or not at all."""

from collections.abc import Sequence

from fabric.engine.client.link import Described
from fabric.engine.client.work import Buffer, Work
from fabric.engine.queues import Extent, Request, RequestId
from fabric.errors import LocalProtocolError

__all__ = ("checked_length", "request_of")


def checked_length(work: Work, described: Described, buffers: Sequence[Buffer]) -> int:
    """Returns how many bytes a read or write moves.

    Raises:
        LocalProtocolError: memory that is not registered, views that hold no whole blocks, or blocks outside.
    """
    unit = described.namespace.block_bytes
    length = 0
    for buffer, offset, size in work.views:
        if not 0 <= buffer < len(buffers):
            raise LocalProtocolError("memory that is not registered here", found=f"buffer {buffer}")
        most = buffers[buffer].memory.nbytes
        if offset < 0 or size < 1 or offset + size > most or size % unit:
            found, expected = f"{size} bytes at {offset}", f"whole blocks of {unit} within {most} bytes"
            raise LocalProtocolError("a view cannot be used", where=f"buffer {buffer}", found=found, expected=expected)
        length += size
    blocks = length // unit
    if not blocks or work.lba < 0 or work.lba + blocks > described.blocks:
        found, expected = f"{blocks} at {work.lba}", f"1 or more within {described.blocks} blocks"
        raise LocalProtocolError(
            "blocks outside the namespace", where=described.namespace.target, found=found, expected=expected
        )
    if work.deadline_ns is not None and work.deadline_ns < 0:
        raise LocalProtocolError("a deadline in the past", found=f"{work.deadline_ns} ns from now")
    return length


def request_of(number: int, work: Work, length: int, described: Described, now_ns: int) -> Request:
    """Returns the request of a checked read or write."""
    namespace = described.namespace
    return Request(
        RequestId(number),
        (Extent(namespace, work.lba, length // namespace.block_bytes),),
        work.views,
        work.op,
        tenant=work.tenant,
        urgency=work.urgency,
        deadline_ns=None if work.deadline_ns is None else now_ns + work.deadline_ns,
        key=work.key,
    )
