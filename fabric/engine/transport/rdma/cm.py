"""librdmacm by ctypes: the connection manager that pyverbs cannot be (it sets no type of service and shows no status).

Asynchronous throughout: the event channel is non-blocking, and an event is copied and acknowledged at once, because
destroying an id waits for events that are not. ctypes releases the interpreter lock during every call.

Source: rdma-core librdmacm/rdma_cma.h and cma.c; its tests/base_rdmacm.py for the external queue pair.
"""

import contextlib
import ctypes
import errno
import os
from pathlib import Path
from typing import Final

from fabric.engine.transport.rdma import layouts
from fabric.engine.transport.rdma.layouts import EVENT_FILE, ConnParam, QpAttr, QpState, RawCmEvent, RawCmId
from fabric.engine.transport.rdma.ports import CmEvent, CmId, Dial
from fabric.errors import EnvironmentMissingError

__all__ = ("LibCm", "open_cm")

_VOID: Final = ctypes.c_void_p
_INT: Final = ctypes.c_int
_SIGNATURES: Final = {
    "rdma_create_id": (_VOID, ctypes.POINTER(_VOID), _VOID, _INT),
    "rdma_destroy_id": (_VOID,),
    "rdma_bind_addr": (_VOID, _VOID),
    "rdma_resolve_addr": (_VOID, _VOID, _VOID, _INT),
    "rdma_resolve_route": (_VOID, _INT),
    "rdma_set_option": (_VOID, _INT, _INT, _VOID, ctypes.c_size_t),
    "rdma_init_qp_attr": (_VOID, ctypes.POINTER(QpAttr), ctypes.POINTER(_INT)),
    "rdma_connect": (_VOID, ctypes.POINTER(ConnParam)),
    "rdma_establish": (_VOID,),
    "rdma_disconnect": (_VOID,),
    "rdma_get_cm_event": (_VOID, ctypes.POINTER(ctypes.POINTER(RawCmEvent))),
    "rdma_ack_cm_event": (ctypes.POINTER(RawCmEvent),),
}
_UVERBS: Final = "/dev/infiniband/uverbs"
_DELETED: Final = " (deleted)"
_OPTION_LEVEL_ID: Final = 0  # RDMA_OPTION_ID
_REMEDY_LIBRARY: Final = "apt-get install -y librdmacm1 libibverbs1 ibverbs-providers, or your distribution's names"
_REMEDY_DEVICE: Final = (
    "check `rdma link`; load the adapter's driver with ib_uverbs and rdma_ucm, or make a Soft-RoCE device:"
    " rdma link add rxe0 type rxe netdev DEV"
)


def open_cm() -> "LibCm":
    """Returns the connection manager of this machine.

    Raises:
        EnvironmentMissingError: librdmacm, or an RDMA device, is missing.
    """
    try:
        library = ctypes.CDLL("librdmacm.so.1", use_errno=True)
        verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError as error:
        raise EnvironmentMissingError("RDMA needs librdmacm", found=str(error), remedy=_REMEDY_LIBRARY) from error
    return LibCm(library, verbs)


class LibCm:
    """One event channel. Satisfies `ConnectionManager`.

    Args:
        library, verbs: librdmacm and libibverbs.

    Raises:
        EnvironmentMissingError: this machine has no RDMA device.
    """

    def __init__(self, library: ctypes.CDLL, verbs: ctypes.CDLL) -> None:
        for name, signature in _SIGNATURES.items():
            getattr(library, name).argtypes = signature
        library.rdma_create_event_channel.restype = _VOID
        library.rdma_destroy_event_channel.argtypes = (_VOID,)
        library.rdma_destroy_event_channel.restype = None
        verbs.ibv_get_device_name.restype = ctypes.c_char_p
        verbs.ibv_get_device_name.argtypes = (_VOID,)
        self.library = library
        self._opened: set[tuple[int, int]] = set()  # descriptors of adapters that librdmacm opened
        self._name_of = verbs.ibv_get_device_name
        channel = library.rdma_create_event_channel()
        if not channel:
            code = ctypes.get_errno()
            raise EnvironmentMissingError(
                "this machine has no RDMA device", found=errno.errorcode.get(code, str(code)), remedy=_REMEDY_DEVICE
            )
        self._channel = _VOID(channel)
        self._fd = _INT.from_address(channel).value  # the one field of struct rdma_event_channel
        os.set_blocking(self._fd, False)

    def fileno(self) -> int:
        """See `ConnectionManager`."""
        return self._fd

    def check(self, result: int) -> None:
        """Raises OSError when a call returned an error."""
        if result:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def device_name(self, verbs: int | None) -> str:
        """Returns the name of the device behind a struct ibv_context, "" for none."""
        if not verbs:
            return ""
        device = _VOID.from_address(verbs).value  # its first field
        commands, events = (_INT * 2).from_address(verbs + layouts.CMD_FD_OFFSET)
        self._opened.add((commands, events))
        return str(self._name_of(device).decode())

    def device_of(self, source: bytes) -> str:
        """See `ConnectionManager`."""
        one = self.create()
        try:
            self.check(self.library.rdma_bind_addr(one.pointer, ctypes.c_char_p(source)))
            return one.device_name()
        finally:
            one.destroy()

    def create(self) -> "LibCmId":
        """See `ConnectionManager`."""
        pointer = _VOID()
        self.check(self.library.rdma_create_id(self._channel, ctypes.byref(pointer), None, layouts.PORT_SPACE_TCP))
        return LibCmId(self, pointer)

    def next_event(self) -> CmEvent | None:
        """See `ConnectionManager`."""
        raw = ctypes.POINTER(RawCmEvent)()
        try:
            self.check(self.library.rdma_get_cm_event(self._channel, ctypes.byref(raw)))
        except BlockingIOError:
            return None
        event = raw.contents
        conn = event.conn
        data = ctypes.string_at(conn.private_data, conn.private_data_len) if conn.private_data else b""
        told = CmEvent(event.id or 0, event.event, event.status, data)
        self.check(self.library.rdma_ack_cm_event(raw))
        return told

    def forget_removed(self) -> bool:
        """See `ConnectionManager`.

        librdmacm keeps each adapter open for itself until it lists all of them again, and never lets go of the last
        one. The kernel waits for that where a driver cannot take a device from under a process, as Soft-RoCE's cannot.
        So its descriptors are put out of use; librdmacm closes what stands in their place.
        """
        left = False
        for commands, events in list(self._opened):
            name = _file_of(commands)
            if name.startswith(_UVERBS) and not name.endswith(_DELETED):
                left = True
                continue
            self._opened.discard((commands, events))
            if name.startswith(_UVERBS) and _file_of(events) == EVENT_FILE:
                _blank(commands)
                _blank(events)
        return left

    def close(self) -> None:
        """See `ConnectionManager`."""
        self.library.rdma_destroy_event_channel(self._channel)


class LibCmId:
    """One struct rdma_cm_id. Satisfies `CmId`."""

    def __init__(self, manager: LibCm, pointer: ctypes.c_void_p) -> None:
        self._manager = manager
        self._library = manager.library
        self.pointer = pointer
        self.key = pointer.value or 0

    def set_tos(self, tos: int) -> None:
        """See `CmId`."""
        self._set(layouts.OPTION_TOS, tos)

    def set_ack_timeout(self, exponent: int) -> None:
        """See `CmId`."""
        self._set(layouts.OPTION_ACK_TIMEOUT, exponent)

    def resolve_addr(self, source: bytes, destination: bytes, timeout_ms: int) -> None:
        """See `CmId`."""
        given = ctypes.c_char_p(source) if source else None
        self._check(self._library.rdma_resolve_addr(self.pointer, given, ctypes.c_char_p(destination), timeout_ms))

    def resolve_route(self, timeout_ms: int) -> None:
        """See `CmId`."""
        self._check(self._library.rdma_resolve_route(self.pointer, timeout_ms))

    def device_name(self) -> str:
        """See `CmId`."""
        return self._manager.device_name(RawCmId.from_address(self.key).verbs)

    def qp_attr(self, state: QpState) -> tuple[QpAttr, int]:
        """See `CmId`."""
        attr, mask = QpAttr(qp_state=state), _INT()
        self._check(self._library.rdma_init_qp_attr(self.pointer, ctypes.byref(attr), ctypes.byref(mask)))
        return attr, mask.value

    def connect(self, dial: Dial) -> None:
        """See `CmId`."""
        data = ctypes.create_string_buffer(dial.private_data, len(dial.private_data))  # lives until the call is over
        wanted = ConnParam(
            private_data=ctypes.addressof(data),
            private_data_len=len(dial.private_data),
            responder_resources=dial.responder_resources,
            initiator_depth=0,  # a host never reads; SPDK warns of anything else
            flow_control=1,
            retry_count=dial.retry_count,
            rnr_retry_count=dial.rnr_retry_count,
            qp_num=dial.qp_num,
        )
        self._check(self._library.rdma_connect(self.pointer, ctypes.byref(wanted)))

    def establish(self) -> None:
        """See `CmId`."""
        self._check(self._library.rdma_establish(self.pointer))

    def disconnect(self) -> None:
        """See `CmId`."""
        self._check(self._library.rdma_disconnect(self.pointer))

    def destroy(self) -> None:
        """See `CmId`."""
        with contextlib.suppress(OSError):  # what the kernel forgot already, with a device that was removed
            self._check(self._library.rdma_destroy_id(self.pointer))

    def _set(self, option: int, value: int) -> None:
        held = ctypes.c_uint8(value)
        self._check(self._library.rdma_set_option(self.pointer, _OPTION_LEVEL_ID, option, ctypes.byref(held), 1))

    def _check(self, result: int) -> None:
        self._manager.check(result)


def _file_of(descriptor: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:  # closed by now
        return ""


def _blank(descriptor: int) -> None:
    empty = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(empty, descriptor, inheritable=False)
    os.close(empty)


_IS_CM_ID: type[CmId] = LibCmId
