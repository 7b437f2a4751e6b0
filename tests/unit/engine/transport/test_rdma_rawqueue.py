"""Completions from a C array, and what of a C structure leads to them."""

import ctypes
import struct

import pytest

from fabric.engine.transport.rdma.layouts import CMD_FD_OFFSET, POLL_CQ_OFFSET
from fabric.engine.transport.rdma.rawqueue import WC, RawQueue

# struct ibv_wc of rdma-core 44.0, field by field
FULL = struct.Struct("=QIIIIIIIIHHBBxx")
POLL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def test_a_completion_is_48_bytes() -> None:
    assert WC.size == FULL.size == 48


def test_completions_are_read_from_the_array_that_the_provider_filled() -> None:
    waiting = [FULL.pack(at << 40 | 3, at, 128, 0, 16 + at, 0, 7, 8, 1, 0, 0, 0, 0) for at in range(5)]
    asked: list[tuple[int, int]] = []

    def poll(handle: int, most: int, array: int) -> int:
        asked.append((handle, most))
        batch, waiting[:] = waiting[:most], waiting[most:]
        ctypes.memmove(array, b"".join(batch), 48 * len(batch))
        return len(batch)

    one = RawQueue(77, poll, OSError, batch=3)

    assert one.poll() == [(at << 40 | 3, at, 16 + at) for at in range(3)]
    assert one.poll() == [(at << 40 | 3, at, 16 + at) for at in (3, 4)]
    assert one.poll() == []
    assert asked == [(77, 3)] * 3


def test_a_provider_that_fails_raises() -> None:
    one = RawQueue(77, lambda _handle, _most, _array: -5, OSError)
    with pytest.raises(OSError, match="-5"):
        one.poll()


def test_the_function_is_found_through_the_context_that_has_the_right_descriptor() -> None:
    context = ctypes.create_string_buffer(512)
    queue = ctypes.c_void_p(ctypes.addressof(context))
    function = POLL(lambda _handle, _most, _array: 0)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    struct.pack_into("=Q", context, POLL_CQ_OFFSET, address)
    struct.pack_into("=i", context, CMD_FD_OFFSET, 9)

    found = RawQueue.of(ctypes.addressof(queue), 9, OSError)

    assert found is not None
    assert found.poll() == []
    assert RawQueue.of(ctypes.addressof(queue), 8, OSError) is None
