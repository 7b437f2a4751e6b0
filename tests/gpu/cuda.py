"""As much of the CUDA driver API as copies need, over ctypes: no package, no compiler, libcuda.so.1 alone.

Names and types are those of NVIDIA's cuda.h (read in its 9.0 and 11.4 versions): the header's macros lead `cuMemAlloc`
and its kind to the `_v2` symbols, which are named here. CUdeviceptr is an unsigned long long, handles are pointers,
CUresult and CUdevice are int. ROCm has the same calls in libamdhip64 (hipInit, hipHostRegister, hipMemcpyHtoDAsync,
hipEventQuery, hipErrorNotReady 600); nothing of that was ever run.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from types import MappingProxyType

__all__ = ("LIBRARY", "Cuda", "CudaError", "NoCudaError", "load")

LIBRARY = "libcuda.so.1"
NOT_READY = 600  # cuda.h: CUDA_ERROR_NOT_READY
_PORTABLE = 0x01  # cuda.h: CU_MEMHOSTREGISTER_PORTABLE
_NON_BLOCKING = 0x1  # cuda.h: CU_STREAM_NON_BLOCKING
_NO_TIMING = 0x2  # cuda.h: CU_EVENT_DISABLE_TIMING
_NAME_BYTES = 128

PROTOTYPES = MappingProxyType(
    {
        "cuInit": (c_uint,),
        "cuGetErrorName": (c_int, POINTER(c_char_p)),
        "cuDriverGetVersion": (POINTER(c_int),),
        "cuDeviceGetCount": (POINTER(c_int),),
        "cuDeviceGet": (POINTER(c_int), c_int),
        "cuDeviceGetName": (c_char_p, c_int, c_int),
        "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
        "cuDevicePrimaryCtxRelease_v2": (c_int,),
        "cuCtxSetCurrent": (c_void_p,),
        "cuMemAlloc_v2": (POINTER(c_ulonglong), c_size_t),
        "cuMemFree_v2": (c_ulonglong,),
        "cuMemHostRegister_v2": (c_void_p, c_size_t, c_uint),
        "cuMemHostUnregister": (c_void_p,),
        "cuMemsetD8_v2": (c_ulonglong, c_ubyte, c_size_t),
        "cuCtxSynchronize": (),
        "cuMemcpyHtoDAsync_v2": (c_ulonglong, c_void_p, c_size_t, c_void_p),
        "cuMemcpyDtoH_v2": (c_void_p, c_ulonglong, c_size_t),
        "cuStreamCreate": (POINTER(c_void_p), c_uint),
        "cuStreamSynchronize": (c_void_p,),
        "cuStreamDestroy_v2": (c_void_p,),
        "cuEventCreate": (POINTER(c_void_p), c_uint),
        "cuEventRecord": (c_void_p, c_void_p),
        "cuEventQuery": (c_void_p,),
        "cuEventDestroy_v2": (c_void_p,),
    }
)


class NoCudaError(Exception):
    """There is no driver or no device: nothing can be said."""


class CudaError(Exception):
    """A call failed."""


def address_of(memory: memoryview) -> int:
    """Returns where writable memory begins."""
    return ctypes.addressof(c_ubyte.from_buffer(memory))


def load(path: str = LIBRARY) -> ctypes.CDLL:
    """Returns the driver, its functions typed, after cuInit.

    Raises:
        NoCudaError: no driver, or no device.
    """
    try:
        library = ctypes.CDLL(path)
        for name, types in PROTOTYPES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, c_int
    except (OSError, AttributeError) as error:
        raise NoCudaError(f"no CUDA driver ({error})") from error
    count = c_int()
    for call, arguments in (("cuInit", (0,)), ("cuDeviceGetCount", (count,))):
        if code := getattr(library, call)(*arguments):
            raise NoCudaError(f"no CUDA device ({call} says {name_of(library, code)})")
    if not count.value:
        raise NoCudaError("no CUDA device")
    return library


def name_of(library: ctypes.CDLL, code: int) -> str:
    """Returns a CUresult for a message."""
    text = c_char_p()
    library.cuGetErrorName(code, text)
    return f"{(text.value or b'unknown').decode('ascii', 'replace')} ({code})"


class Cuda:
    """One device, its primary context current on this thread; streams and events by index.

    Args:
        library: from `load`.
        length: bytes of device memory to have.
        pinned: host memory that is copied from.
        streams: how many.
        events: how many.

    Raises:
        CudaError: a call failed.
    """

    def __init__(self, library: ctypes.CDLL, length: int, pinned: memoryview, *, streams: int, events: int) -> None:
        self.length = length
        self._library = library
        self._undo: list[tuple[str, tuple[object, ...]]] = []
        try:
            self._open(pinned, streams, events)
        except CudaError:
            self.close()
            raise

    def copy(self, event: int, stream: int, offset: int, memory: memoryview) -> None:
        """Begins a copy from pinned memory to `offset`, and records the event behind it."""
        self._call(
            "cuMemcpyHtoDAsync_v2", self._base + offset, address_of(memory), memory.nbytes, self._streams[stream]
        )
        self._call("cuEventRecord", self._events[event], self._streams[stream])

    def ended(self, event: int) -> bool:
        """Returns whether what came before the event has ended; its host memory is free again then."""
        code = self._library.cuEventQuery(self._events[event])
        if code == NOT_READY:
            return False
        self._check("cuEventQuery", code)
        return True

    def synchronize(self) -> None:
        """Waits for every stream."""
        for stream in self._streams:
            self._call("cuStreamSynchronize", stream)

    def clear(self) -> None:
        """Makes all device memory 0, and waits for that: what was copied before cannot pass for a new copy."""
        self._call("cuMemsetD8_v2", self._base, 0, self.length)
        self._call("cuCtxSynchronize")

    def fetch(self, offset: int, into: memoryview) -> None:
        """Copies device memory back."""
        self._call("cuMemcpyDtoH_v2", address_of(into), self._base + offset, into.nbytes)

    def close(self) -> None:
        """Gives everything back, the last first."""
        while self._undo:
            name, arguments = self._undo.pop()
            self._call(name, *arguments)

    def _open(self, pinned: memoryview, streams: int, events: int) -> None:
        device, context, base = c_int(), c_void_p(), c_ulonglong()
        version, name = c_int(), ctypes.create_string_buffer(_NAME_BYTES)
        self._call("cuDeviceGet", device, 0)
        self._call("cuDeviceGetName", name, _NAME_BYTES, device)
        self._call("cuDriverGetVersion", version)
        self.device, self.version = name.value.decode("ascii", "replace"), version.value
        self._call("cuDevicePrimaryCtxRetain", context, device)
        self._undo.append(("cuDevicePrimaryCtxRelease_v2", (device,)))
        self._call("cuCtxSetCurrent", context)
        self._call("cuMemAlloc_v2", base, self.length)
        self._undo.append(("cuMemFree_v2", (base,)))
        self._base = base.value
        address = address_of(pinned)
        self._call("cuMemHostRegister_v2", address, pinned.nbytes, _PORTABLE)
        self._undo.append(("cuMemHostUnregister", (address,)))
        self._streams = [self._handle("cuStreamCreate", _NON_BLOCKING, "cuStreamDestroy_v2") for _ in range(streams)]
        self._events = [self._handle("cuEventCreate", _NO_TIMING, "cuEventDestroy_v2") for _ in range(events)]

    def _handle(self, create: str, flags: int, destroy: str) -> c_void_p:
        handle = c_void_p()
        self._call(create, handle, flags)
        self._undo.append((destroy, (handle,)))
        return handle

    def _call(self, name: str, *arguments: object) -> None:
        # ctypes passes an object by reference where the prototype has a pointer to its type
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, code: int) -> None:
        if code:
            raise CudaError(f"{name} failed: {name_of(self._library, code)}")
