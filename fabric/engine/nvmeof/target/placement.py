"""Where a command's data is: in the capsule, still at the host, or nowhere. Knows no connection.

Source: Linux target/rdma.c (nvmet_rdma_map_sgl, _map_sgl_inline), target/tcp.c (nvmet_tcp_map_data); SPDK
lib/nvmf/rdma.c (nvmf_rdma_request_parse_sgl).
"""

import enum

from fabric.engine.nvmeof.target.profile import Refusal, TargetProfile
from fabric.engine.nvmeof.wire.command import FABRICS_OPCODE, DataDirection, Sqe
from fabric.engine.nvmeof.wire.sgl import SglKind
from fabric.engine.nvmeof.wire.status import DNR, Status

__all__ = ("Placement", "place_data")

_TCP_ADMIN_CAPSULE_BYTES = 8192  # Linux nvme-tcp.h, NVME_TCP_ADMIN_CCSZ
_REMOTE = {"rdma": (SglKind.KEYED, SglKind.KEYED_INVALIDATE), "tcp": (SglKind.TRANSPORT,)}


class Placement(enum.Enum):
    """Where data is, when it is not in the capsule."""

    NONE = enum.auto()  # or it goes to the host
    FETCH = enum.auto()


def place_data(
    sqe: Sqe, behind: bytes, profile: TargetProfile, transport: str, *, qid: int
) -> Placement | bytes | Refusal:
    """Returns the data of a command if the capsule holds it, else where it is, or why the SGL is refused.

    Args:
        sqe: the entry.
        behind: what follows it in the capsule.
        profile: the target's ways.
        transport: "rdma" or "tcp".
        qid: the queue.
    """
    kind, inward = sqe.sgl.kind, sqe.command.direction is DataDirection.TO_CONTROLLER
    if kind in _REMOTE[transport]:
        return Placement.FETCH if inward and sqe.sgl.length else Placement.NONE
    if kind == SglKind.IN_CAPSULE:
        return _in_capsule(sqe, behind, _room(sqe, profile, transport, qid), inward=inward)
    return profile.sgl_subtype if kind >> 4 in (0, SglKind.KEYED >> 4) else profile.sgl_unknown


def _room(sqe: Sqe, profile: TargetProfile, transport: str, qid: int) -> int:
    if transport == "tcp" and (qid == 0 or sqe.command.opcode == FABRICS_OPCODE):
        return _TCP_ADMIN_CAPSULE_BYTES
    return profile.in_capsule_bytes if qid else 0  # an RDMA admin capsule holds 64 bytes


def _in_capsule(sqe: Sqe, behind: bytes, room: int, *, inward: bool) -> bytes | Refusal:
    start, end = sqe.sgl.address, sqe.sgl.address + sqe.sgl.length
    if not inward:
        return Refusal(Status.INVALID_FIELD | DNR)
    if end > room:
        return Refusal(Status.SGL_OFFSET_INVALID | DNR)
    if end > len(behind):
        return Refusal(Status.DATA_TRANSFER_ERROR | DNR)
    return behind[start:end]
