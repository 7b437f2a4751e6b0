"""A completion queue polled by ctypes into one preallocated array.

pyverbs makes an object for every completion, with a logger of its own: a microsecond and more each. It shows no pointer
to the queue either, but a notice does: the kernel hands back the address of struct ibv_cq as libibverbs gave it.

Source: rdma-core libibverbs/verbs.h (struct ibv_cq, ibv_context_ops, ibv_wc) and verbs.c (ibv_get_cq_event).
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Final

from fabric.engine.transport.rdma.layouts import CMD_FD_OFFSET, POLL_CQ_OFFSET
from fabric.engine.transport.rdma.ports import Completion

__all__ = ("WC", "RawQueue", "acknowledger")

WC: Final = struct.Struct("=QI8xI24x")  # struct ibv_wc: wr_id, status, byte_len
_BATCH: Final = 64
_VOID: Final = ctypes.c_void_p
_POLL: Final = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_int, _VOID)  # it never blocks: the lock is kept


def acknowledger() -> Callable[[int, int], None]:
    """Returns ibv_ack_cq_events: takes a queue's address and a count of notices. Without it no queue is destroyed."""
    library = ctypes.PyDLL("libibverbs.so.1")  # pyverbs has loaded it
    call = library.ibv_ack_cq_events
    call.argtypes = (_VOID, ctypes.c_uint)
    call.restype = None
    return call


class RawQueue:
    """One struct ibv_cq, of which somebody else takes care.

    Args:
        handle: its address.
        poll: the provider's function for it.
        failure: what to raise when it fails.
    """

    def __init__(
        self, handle: int, poll: Callable[[int, int, int], int], failure: type[Exception], batch: int = _BATCH
    ) -> None:
        self._handle = handle
        self._poll = poll
        self._failure = failure
        self._batch = batch
        self._array = ctypes.create_string_buffer(batch * WC.size)
        self._address = ctypes.addressof(self._array)
        self._view = memoryview(self._array)

    @classmethod
    def of(cls, handle: int, commands: int, failure: type[Exception]) -> "RawQueue | None":
        """Returns the queue behind a notice; None when its structures are not the ones that are known here.

        Args:
            handle: what the notice held.
            commands: the descriptor of its device, which has to be found there.
            failure: what to raise when polling fails.
        """
        context = _VOID.from_address(handle).value  # its first field
        if not context or ctypes.c_int.from_address(context + CMD_FD_OFFSET).value != commands:
            return None
        return cls(handle, _POLL(_VOID.from_address(context + POLL_CQ_OFFSET).value or 0), failure)

    def poll(self) -> list[Completion]:
        """Returns completions that are there."""
        count = self._poll(self._handle, self._batch, self._address)
        if count < 0:
            raise self._failure(f"polling completions failed: {count}")
        return list(WC.iter_unpack(self._view[: count * WC.size])) if count else []
