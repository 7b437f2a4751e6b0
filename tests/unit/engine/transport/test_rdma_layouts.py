"""C structures: offsets and sizes as the headers of rdma-core 44.0 give them on x86-64; and numbers that are sent."""

import ctypes
import socket
import struct

import pytest

from fabric.engine.transport.rdma.address import local_address, pack_address
from fabric.engine.transport.rdma.config import RdmaConfig
from fabric.engine.transport.rdma.layouts import AhAttr, ConnParam, QpAttr, QpBit, RawCmEvent, RawCmId
from fabric.errors import LocalProtocolError, TransportError

# hosts.md 2.3, by offsetof and sizeof of the C compiler
EXPECTED: dict[type[ctypes.Structure], tuple[int, dict[str, int]]] = {
    RawCmId: (
        416,
        {
            "verbs": 0,
            "channel": 8,
            "context": 16,
            "qp": 24,
            "route": 32,
            "ps": 344,
            "port_num": 348,
            "event": 352,
            "pd": 400,
            "qp_type": 408,
        },
    ),
    RawCmEvent: (80, {"id": 0, "listen_id": 8, "event": 16, "status": 20, "conn": 24}),
    ConnParam: (
        24,
        {
            "private_data": 0,
            "private_data_len": 8,
            "responder_resources": 9,
            "initiator_depth": 10,
            "flow_control": 11,
            "retry_count": 12,
            "rnr_retry_count": 13,
            "srq": 14,
            "qp_num": 16,
        },
    ),
    QpAttr: (
        144,
        {
            "qp_state": 0,
            "path_mtu": 8,
            "rq_psn": 20,
            "sq_psn": 24,
            "dest_qp_num": 28,
            "qp_access_flags": 32,
            "ah_attr": 56,
            "pkey_index": 120,
            "max_rd_atomic": 126,
            "max_dest_rd_atomic": 127,
            "min_rnr_timer": 128,
            "port_num": 129,
            "timeout": 130,
            "retry_cnt": 131,
            "rnr_retry": 132,
        },
    ),
    AhAttr: (
        32,
        {
            "dgid": 0,
            "flow_label": 16,
            "sgid_index": 20,
            "hop_limit": 21,
            "traffic_class": 22,
            "dlid": 24,
            "sl": 26,
            "static_rate": 28,
            "is_global": 29,
            "port_num": 30,
        },
    ),
}


@pytest.mark.parametrize("structure", EXPECTED, ids=lambda one: one.__name__)
def test_a_structure_lies_as_the_compiler_lays_it(structure: type[ctypes.Structure]) -> None:
    size, offsets = EXPECTED[structure]
    assert ctypes.sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name in offsets} == offsets


def test_the_bits_of_a_state_change_are_those_of_the_abi() -> None:
    # what rdma_init_qp_attr gave for RTR of an RC queue pair over RoCE on Linux 6.1
    rtr = QpBit.STATE | QpBit.AV | QpBit.PATH_MTU | QpBit.DEST_QPN | QpBit.RQ_PSN
    assert int(rtr | QpBit.MAX_DEST_RD_ATOMIC | QpBit.MIN_RNR_TIMER) == 0x129181


def test_an_ipv4_address_is_packed_as_c_wants_it() -> None:
    packed = pack_address("10.0.0.1", 4420)
    assert len(packed) == 16
    assert packed == struct.pack("=H", socket.AF_INET) + bytes([0x11, 0x44, 10, 0, 0, 1]) + bytes(8)


def test_an_ipv6_address_is_packed_with_its_scope() -> None:
    packed = pack_address("fe80::1%lo", 4420)
    assert len(packed) == 28
    assert packed[8:24] == socket.inet_pton(socket.AF_INET6, "fe80::1")
    assert struct.unpack("=I", packed[24:]) == (socket.if_nametoindex("lo"),)


def test_a_name_is_no_address() -> None:
    with pytest.raises(LocalProtocolError, match="no IP address"):
        pack_address("target1", 4420)


def test_the_route_tells_where_packets_leave_from() -> None:
    assert local_address("127.0.0.1", 4420) == "127.0.0.1"
    with pytest.raises(TransportError, match="no route"):
        local_address("255.255.255.255", 4420)  # a broadcast needs a permission that a datagram socket has not


@pytest.mark.parametrize(
    "wrong", [{"tos": 256}, {"ack_timeout": 32}, {"retry_count": 8}, {"rnr_retry_count": -1}], ids=str
)
def test_a_number_that_does_not_fit_its_field_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        RdmaConfig("10.0.0.1", **wrong)  # type: ignore[arg-type]  # a dictionary of any field
