"""The C structures of librdmacm and libibverbs that are read or filled here, as ctypes, and the numbers that go in.

x86-64 and every other LP64 ABI; `tests/unit/engine/transport/test_rdma_layouts.py` holds offsets and sizes to what the
headers of rdma-core 44.0 give. Imports no library. Source: rdma-core librdmacm/rdma_cma.h, libibverbs/verbs.h.
"""

import ctypes
import enum
from typing import Final

__all__ = (
    "ACCESS",
    "CMD_FD_OFFSET",
    "EVENT_FILE",
    "OPTION_ACK_TIMEOUT",
    "OPTION_TOS",
    "POLL_CQ_OFFSET",
    "PORT_SPACE_TCP",
    "AhAttr",
    "AsyncKind",
    "CmEventKind",
    "ConnParam",
    "QpAttr",
    "QpBit",
    "QpState",
    "RawCmEvent",
    "RawCmId",
    "WcStatus",
)

PORT_SPACE_TCP: Final = 0x0106  # RDMA_PS_TCP
OPTION_TOS: Final = 0  # RDMA_OPTION_ID_TOS
OPTION_ACK_TIMEOUT: Final = 3  # RDMA_OPTION_ID_ACK_TIMEOUT
ACCESS: Final = 0b111  # IBV_ACCESS_LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ: the target reads what we write, and writes

CMD_FD_OFFSET: Final = 264  # of struct ibv_context: device, 32 function pointers, cmd_fd, async_fd
POLL_CQ_OFFSET: Final = 96  # of struct ibv_context: its twelfth function pointer
EVENT_FILE: Final = "anon_inode:[infinibandevent]"  # what /proc/self/fd says of a channel of events


class CmEventKind(enum.IntEnum):
    """enum rdma_cm_event_type, without multicast."""

    ADDR_RESOLVED = 0
    ADDR_ERROR = 1
    ROUTE_RESOLVED = 2
    ROUTE_ERROR = 3
    CONNECT_REQUEST = 4
    CONNECT_RESPONSE = 5
    CONNECT_ERROR = 6
    UNREACHABLE = 7
    REJECTED = 8
    ESTABLISHED = 9
    DISCONNECTED = 10
    DEVICE_REMOVAL = 11
    MULTICAST_JOIN = 12
    MULTICAST_ERROR = 13
    ADDR_CHANGE = 14
    TIMEWAIT_EXIT = 15


class QpState(enum.IntEnum):
    """enum ibv_qp_state, those that are used."""

    INIT = 1
    RTR = 2
    RTS = 3
    ERR = 6


class QpBit(enum.IntFlag):
    """enum ibv_qp_attr_mask, those that the connection manager sets for RC."""

    STATE = 1 << 0
    ACCESS_FLAGS = 1 << 3
    PKEY_INDEX = 1 << 4
    PORT = 1 << 5
    AV = 1 << 7
    PATH_MTU = 1 << 8
    TIMEOUT = 1 << 9
    RETRY_CNT = 1 << 10
    RNR_RETRY = 1 << 11
    RQ_PSN = 1 << 12
    MAX_QP_RD_ATOMIC = 1 << 13
    MIN_RNR_TIMER = 1 << 15
    SQ_PSN = 1 << 16
    MAX_DEST_RD_ATOMIC = 1 << 17
    DEST_QPN = 1 << 20


class WcStatus(enum.IntEnum):
    """enum ibv_wc_status."""

    SUCCESS = 0
    LOC_LEN_ERR = 1
    LOC_QP_OP_ERR = 2
    LOC_EEC_OP_ERR = 3
    LOC_PROT_ERR = 4
    WR_FLUSH_ERR = 5
    MW_BIND_ERR = 6
    BAD_RESP_ERR = 7
    LOC_ACCESS_ERR = 8
    REM_INV_REQ_ERR = 9
    REM_ACCESS_ERR = 10
    REM_OP_ERR = 11
    RETRY_EXC_ERR = 12
    RNR_RETRY_EXC_ERR = 13
    LOC_RDD_VIOL_ERR = 14
    REM_INV_RD_REQ_ERR = 15
    REM_ABORT_ERR = 16
    INV_EECN_ERR = 17
    INV_EEC_STATE_ERR = 18
    FATAL_ERR = 19
    RESP_TIMEOUT_ERR = 20
    GENERAL_ERR = 21


class AsyncKind(enum.IntEnum):
    """enum ibv_event_type, those that say that something broke."""

    CQ_ERR = 0
    QP_FATAL = 1
    QP_REQ_ERR = 2
    QP_ACCESS_ERR = 3
    DEVICE_FATAL = 8
    PORT_ERR = 10


class ConnParam(ctypes.Structure):
    """struct rdma_conn_param."""

    _fields_ = (
        ("private_data", ctypes.c_void_p),
        ("private_data_len", ctypes.c_uint8),
        ("responder_resources", ctypes.c_uint8),
        ("initiator_depth", ctypes.c_uint8),
        ("flow_control", ctypes.c_uint8),
        ("retry_count", ctypes.c_uint8),
        ("rnr_retry_count", ctypes.c_uint8),
        ("srq", ctypes.c_uint8),
        ("qp_num", ctypes.c_uint32),
    )


class RawCmEvent(ctypes.Structure):
    """struct rdma_cm_event; of its union the connection's part."""

    _fields_ = (
        ("id", ctypes.c_void_p),
        ("listen_id", ctypes.c_void_p),
        ("event", ctypes.c_int),
        ("status", ctypes.c_int),
        ("conn", ConnParam),
        ("_rest", ctypes.c_uint64 * 4),  # rdma_ud_param is longer
    )


class RawCmId(ctypes.Structure):
    """struct rdma_cm_id."""

    _fields_ = (
        ("verbs", ctypes.c_void_p),
        ("channel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("qp", ctypes.c_void_p),
        ("route", ctypes.c_uint64 * 39),
        ("ps", ctypes.c_int),
        ("port_num", ctypes.c_uint8),
        ("event", ctypes.c_void_p),
        ("_channels", ctypes.c_void_p * 5),
        ("pd", ctypes.c_void_p),
        ("qp_type", ctypes.c_int),
    )


class AhAttr(ctypes.Structure):
    """struct ibv_ah_attr with its struct ibv_global_route."""

    _fields_ = (
        ("dgid", ctypes.c_uint64 * 2),
        ("flow_label", ctypes.c_uint32),
        ("sgid_index", ctypes.c_uint8),
        ("hop_limit", ctypes.c_uint8),
        ("traffic_class", ctypes.c_uint8),
        ("_grh_end", ctypes.c_uint8),
        ("dlid", ctypes.c_uint16),
        ("sl", ctypes.c_uint8),
        ("src_path_bits", ctypes.c_uint8),
        ("static_rate", ctypes.c_uint8),
        ("is_global", ctypes.c_uint8),
        ("port_num", ctypes.c_uint8),
    )


class QpAttr(ctypes.Structure):
    """struct ibv_qp_attr."""

    _fields_ = (
        ("qp_state", ctypes.c_int),
        ("cur_qp_state", ctypes.c_int),
        ("path_mtu", ctypes.c_int),
        ("path_mig_state", ctypes.c_int),
        ("qkey", ctypes.c_uint32),
        ("rq_psn", ctypes.c_uint32),
        ("sq_psn", ctypes.c_uint32),
        ("dest_qp_num", ctypes.c_uint32),
        ("qp_access_flags", ctypes.c_uint32),
        ("cap", ctypes.c_uint32 * 5),
        ("ah_attr", AhAttr),
        ("alt_ah_attr", AhAttr),
        ("pkey_index", ctypes.c_uint16),
        ("alt_pkey_index", ctypes.c_uint16),
        ("en_sqd_async_notify", ctypes.c_uint8),
        ("sq_draining", ctypes.c_uint8),
        ("max_rd_atomic", ctypes.c_uint8),
        ("max_dest_rd_atomic", ctypes.c_uint8),
        ("min_rnr_timer", ctypes.c_uint8),
        ("port_num", ctypes.c_uint8),
        ("timeout", ctypes.c_uint8),
        ("retry_cnt", ctypes.c_uint8),
        ("rnr_retry", ctypes.c_uint8),
        ("alt_port_num", ctypes.c_uint8),
        ("alt_timeout", ctypes.c_uint8),
        ("rate_limit", ctypes.c_uint32),
    )
