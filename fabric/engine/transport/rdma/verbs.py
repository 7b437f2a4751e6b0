"""pyverbs behind `ports.Adapter`: one context, protection domain, pair of completion queues and their channel.

pyverbs is untyped and comes in two layouts (enums in `pyverbs.enums` up to rdma-core 55, in `libibverbs_enums` later);
the numbers of the stable ABI stand in `layouts`, so no layout matters here. It is imported when a device is opened.
Requests are built once and posted again: every SGE, SendWR and RecvWR that is made leaks 32 bytes (fixed upstream in
2026-07, in no release yet).
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from fabric.engine.transport.rdma.layouts import (
    ACCESS,
    EVENT_FILE,
    QpAttr,
    QpBit,
    QpState,
)
from fabric.engine.transport.rdma.ports import Completion, Keys, QueuePair, RecvRequest, Resize, SendRequest, Verbs
from fabric.engine.transport.rdma.rawqueue import RawQueue, acknowledger
from fabric.errors import EnvironmentMissingError

__all__ = ("PyverbsAdapter", "explain_import", "open_adapter")

_RXE_VENDOR: Final = 0xFFFFFF  # Linux drivers/infiniband/sw/rxe/rxe_param.h, RXE_VENDOR_ID
_SIGNALLED: Final = 2  # IBV_SEND_SIGNALED
_RC: Final = 2  # IBV_QPT_RC
_HANDLE_BYTES: Final = 8  # struct ib_uverbs_comp_event_desc: the handle that libibverbs gave the kernel
_LENGTH_OFFSET: Final = 8  # of struct ibv_sge: address u64, length u32, key u32
_TRIES: Final = 5
_DISTRIBUTION: Final = "apt-get install -y python3-pyverbs, and make the environment with --system-site-packages"
_FIELDS: Final = {
    QpBit.PKEY_INDEX: "pkey_index",
    QpBit.PORT: "port_num",
    QpBit.PATH_MTU: "path_mtu",
    QpBit.TIMEOUT: "timeout",
    QpBit.RETRY_CNT: "retry_cnt",
    QpBit.RNR_RETRY: "rnr_retry",
    QpBit.RQ_PSN: "rq_psn",
    QpBit.SQ_PSN: "sq_psn",
    QpBit.MAX_QP_RD_ATOMIC: "max_rd_atomic",
    QpBit.MAX_DEST_RD_ATOMIC: "max_dest_rd_atomic",
    QpBit.MIN_RNR_TIMER: "min_rnr_timer",
    QpBit.DEST_QPN: "dest_qp_num",
}


def explain_import(error: ImportError) -> EnvironmentMissingError:
    """Returns what a failed import of pyverbs means here, with the remedy for that case."""
    text = str(error)
    if "IBVERBS_PRIVATE_" in text or "MLX5_1." in text:
        return EnvironmentMissingError(
            "pyverbs was built for another rdma-core than this machine's",
            found=text,
            expected="the same private ABI: one for rdma-core up to 55, one for 57-58, one for 59-63, one for 64",
            remedy=f"take the distribution's own: {_DISTRIBUTION}; or install the pyverbs of the running rdma-core",
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "pyverbs":
        return EnvironmentMissingError(
            "RDMA needs pyverbs",
            remedy=f"{_DISTRIBUTION}; with rdma-core 59 to 63 also: pip install 'pyverbs==59.0' 'cython<3.2'",
        )
    return EnvironmentMissingError(
        "pyverbs cannot be loaded",
        found=text,
        remedy=f"it must be built for this Python and find libibverbs.so.1: {_DISTRIBUTION}",
    )


def open_adapter(name: str, capacity: int) -> "PyverbsAdapter":
    """Returns an open device; see `Verbs`.

    Raises:
        EnvironmentMissingError: pyverbs cannot be used, or the device cannot be opened.
    """
    try:
        # optional, and loads libibverbs: only who opens an RDMA device needs it
        from pyverbs.pyverbs_error import PyverbsError  # type: ignore[import-not-found, unused-ignore]  # it has no types
    except ImportError as error:
        raise explain_import(error) from error
    try:
        return PyverbsAdapter(name, capacity, PyverbsError)
    except ImportError as error:
        raise explain_import(error) from error
    except PyverbsError as error:
        remedy = "check `ibv_devinfo`, that /dev/infiniband is there and may be opened, and `ulimit -l`"
        raise EnvironmentMissingError(
            "the RDMA device cannot be opened", where=name, found=str(error), remedy=remedy
        ) from error


class PyverbsAdapter:
    """One device. Satisfies `Adapter`.

    Args:
        name: of the device.
        capacity: completions wanted.
        failure: the root of pyverbs' exceptions.
    """

    def __init__(self, name: str, capacity: int, failure: type[Exception]) -> None:
        # lazy: see open_adapter
        from pyverbs import addr, cq, device, mr, pd, qp, wr  # type: ignore[import-not-found, unused-ignore]  # likewise

        self.name = name
        self.failures: tuple[type[Exception], ...] = (failure,)
        self._addr, self._mr, self._qp, self._wr = addr, mr, qp, wr
        self._context, self._async_fd = _with_descriptor(lambda: device.Context(name=name))
        attributes = self._context.query_device()
        self.max_reads = max(1, min(int(attributes.max_qp_rd_atom), 255))
        self.is_soft = int(attributes.vendor_id) == _RXE_VENDOR
        self.capacity = min(capacity, int(attributes.max_cqe))
        self._domain: Any = pd.PD(self._context)
        self._channel, self._notice_fd = _with_descriptor(lambda: cq.CompChannel(self._context))
        self._cq: Any = cq.CQ(self._context, self.capacity, None, self._channel, 0)
        self._sends: Any = cq.CQ(self._context, self.capacity, None, self._channel, 0)
        self._acknowledge = acknowledger()
        self._handle = 0  # of the queue of receives; known from its first notice, before sends are ever armed
        self._raw: RawQueue | None = None
        self._raw_sends: RawQueue | None = None
        self._regions: list[Any] = []

    def register(self, address: int, length: int) -> Keys:
        """See `Adapter`."""
        region = self._mr.MR(self._domain, length, ACCESS, address=address)
        self._regions.append(region)
        return Keys(region.lkey, region.rkey, address)

    def register_dmabuf(self, descriptor: int, offset: int, length: int) -> Keys:
        """See `Adapter`. pyverbs makes the offset the address of the first byte: no address of another device counts.

        unconfirmed on any GPU.
        """
        region = self._mr.DmaBufMR(self._domain, length, ACCESS, dmabuf=descriptor, offset=offset)
        self._regions.append(region)
        return Keys(region.lkey, region.rkey, offset)

    def queue_pair(self, depth: int) -> QueuePair:
        """See `Adapter`."""
        room = self._qp.QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=1, max_recv_sge=1)
        pair: QueuePair = self._qp.QP(
            self._domain, self._qp.QPInitAttr(qp_type=_RC, scq=self._sends, rcq=self._cq, cap=room, sq_sig_all=0)
        )
        return pair

    def move(self, pair: QueuePair, attr: QpAttr, mask: int) -> None:
        """See `Adapter`."""
        wanted = self._qp.QPAttr(qp_state=attr.qp_state)
        wanted.qp_state = attr.qp_state
        for bit, field in _FIELDS.items():
            if mask & bit:
                setattr(wanted, field, getattr(attr, field))
        if mask & QpBit.ACCESS_FLAGS:
            # before the connect the manager knows of no reads by the peer, and leaves that permission out
            wanted.qp_access_flags = attr.qp_access_flags | ACCESS
        if mask & QpBit.AV:
            wanted.ah_attr = self._path(attr)
        self._modify(pair, wanted, mask)

    def fail(self, pair: QueuePair) -> None:
        """See `Adapter`."""
        wanted = self._qp.QPAttr()
        wanted.qp_state = int(QpState.ERR)
        self._modify(pair, wanted, int(QpBit.STATE))

    def has_failed(self, pair: QueuePair) -> bool:
        """See `Adapter`."""
        asked: Any = pair
        attr, _init = asked.query(int(QpBit.STATE))
        return bool(attr.qp_state == QpState.ERR)

    def send_request(self, address: int, length: int, lkey: int, *, signalled: bool) -> tuple[SendRequest, Resize]:
        """See `Adapter`."""
        part = self._wr.SGE(address, length, lkey)
        flags = _SIGNALLED if signalled else 0
        request: Any = self._wr.SendWR(num_sge=1, sg=[part], send_flags=flags)  # opcode: IBV_WR_SEND
        try:
            at = int(request.sg_list) + _LENGTH_OFFSET
        except AttributeError:
            # older: it cannot be read and can be set, and an SGE never frees what it holds, so the request alone does
            request.sg_list = part
            return request, lambda count: setattr(part, "length", count)
        return request, lambda count: _set_length(at, count)

    def recv_request(self, address: int, length: int, lkey: int) -> RecvRequest:
        """See `Adapter`."""
        request: RecvRequest = self._wr.RecvWR(num_sge=1, sg=[self._wr.SGE(address, length, lkey)])
        return request

    def poll(self, most: int) -> Sequence[Completion]:
        """See `Adapter`."""
        return self._raw.poll() if self._raw is not None else _polled(self._cq, most)

    def poll_sends(self, most: int) -> Sequence[Completion]:
        """See `Adapter`."""
        return self._raw_sends.poll() if self._raw_sends is not None else _polled(self._sends, most)

    def arm(self) -> None:
        """See `Adapter`."""
        self._cq.req_notify()

    def arm_sends(self) -> None:
        """See `Adapter`. Before the first notice of receives it does nothing: the two could not be told apart."""
        if self._handle:
            self._sends.req_notify()

    def take_notice(self) -> bool:
        """See `Adapter`."""
        handle = int.from_bytes(os.read(self._notice_fd, _HANDLE_BYTES), sys.byteorder)
        self._acknowledge(handle, 1)
        if not self._handle:
            self._handle, self._raw = handle, RawQueue.of(handle, self._context.cmd_fd, self.failures[0])
            self._sends.req_notify()  # once, to learn where that queue is
        elif handle != self._handle and self._raw_sends is None:
            self._raw_sends = RawQueue.of(handle, self._context.cmd_fd, self.failures[0])
        return handle == self._handle

    @property
    def notice_fd(self) -> int:
        """See `Adapter`."""
        return self._notice_fd

    @property
    def async_fd(self) -> int:
        """See `Adapter`."""
        return self._async_fd

    def take_async(self) -> int:
        """See `Adapter`. It holds the interpreter lock and does not block, since there is one."""
        event = self._context.get_async_event()
        event.ack()  # at once: what it is about could not be destroyed before
        return int(event.event_type)

    def close(self) -> None:
        """See `Adapter`."""
        self._raw = self._raw_sends = None
        closing = [self._cq, self._sends, self._channel, *self._regions, self._domain, self._context]
        self._regions.clear()
        for one in closing:
            with contextlib.suppress(*self.failures):  # of a device that was removed; there is no other way back
                one.close()

    def _path(self, attr: QpAttr) -> Any:
        one = attr.ah_attr
        raw = bytes(one)[:16].hex()
        gid = self._addr.GID(":".join(raw[at : at + 4] for at in range(0, 32, 4)))  # takes eight full groups only
        route = self._addr.GlobalRoute(
            dgid=gid,
            flow_label=one.flow_label,
            sgid_index=one.sgid_index,
            hop_limit=one.hop_limit,
            traffic_class=one.traffic_class,
        )
        return self._addr.AHAttr(
            gr=route,
            port_num=one.port_num,
            is_global=one.is_global,
            sl=one.sl,
            dlid=one.dlid,
            src_path_bits=one.src_path_bits,
            static_rate=one.static_rate,
        )

    @staticmethod
    def _modify(pair: QueuePair, wanted: Any, mask: int) -> None:
        asked: Any = pair
        asked.modify(wanted, mask)


def _polled(queue: Any, most: int) -> list[Completion]:
    return [(one.wr_id, one.status, one.byte_len) for one in queue.poll(most)[1]]


def _set_length(address: int, count: int) -> None:
    ctypes.c_uint32.from_address(address).value = count


def _with_descriptor(make: Callable[[], Any]) -> tuple[Any, int]:
    """Returns what was made and the descriptor of its events: the one that is new. No release of pyverbs shows it."""
    for _ in range(_TRIES):
        before = _event_files()
        made = make()
        new = _event_files() - before
        if len(new) == 1:
            return made, new.pop()
        made.close()  # another thread opened one at the same time
    remedy = "open RDMA devices from one thread at a time"
    raise EnvironmentMissingError("the descriptor of a device's events was not found", remedy=remedy)


def _event_files() -> set[int]:
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        try:
            if str(one.readlink()) == EVENT_FILE:
                found.add(int(one.name))
        except OSError:  # the one that listed the folder, or another thread's that is closed by now
            continue
    return found


_IS_VERBS: Verbs = open_adapter
