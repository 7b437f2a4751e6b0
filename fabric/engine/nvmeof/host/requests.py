"""What a caller may ask of a queue, and how each becomes a command with its data described. Knows no slot.

| request | data |
|---|---|
| Read | a registered region that the target writes |
| Write | a registered region that the target reads, or bytes inside the capsule |
| Deallocate | its ranges: inside the capsule, else through scratch |
| Flush, WriteZeroes | none |
| Admin | through scratch, in either direction |

Read and Write are named tuples, as what is made once a command is here.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from fabric.engine.nvmeof.host.outputs import QueueMemory, Region
from fabric.engine.nvmeof.wire import io
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.sgl import KEYED_MAX_BYTES, NULL_KEYED, NULL_TRANSPORT, Sgl, SglKind
from fabric.errors import LocalProtocolError

__all__ = (
    "Admin",
    "Body",
    "Deallocate",
    "Flush",
    "IoRequest",
    "Limits",
    "Placed",
    "Read",
    "Write",
    "WriteZeroes",
    "place",
    "prepare",
    "region_transfer",
)

_READ, _WRITE = int(io.IoOpcode.READ), int(io.IoOpcode.WRITE)


class Read(NamedTuple):
    """Read `blocks` blocks from `slba` into `region`, which has exactly their length."""

    nsid: int
    slba: int
    blocks: int
    region: Region


class Write(NamedTuple):
    """Write `blocks` blocks at `slba` from a region, or from bytes that travel in the capsule."""

    nsid: int
    slba: int
    blocks: int
    source: Region | bytes
    force_unit_access: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """Make every completed write of the namespace durable."""

    nsid: int


@dataclass(frozen=True, slots=True)
class WriteZeroes:
    """Make `blocks` blocks at `slba` read as zeroes."""

    nsid: int
    slba: int
    blocks: int
    deallocate: bool = False


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Say that the ranges hold nothing of worth."""

    nsid: int
    ranges: tuple[io.LbaRange, ...]


@dataclass(frozen=True, slots=True)
class Admin:
    """Any admin command; `incoming_bytes` are given back with its completion."""

    command: Command
    outgoing: bytes = b""
    incoming_bytes: int = 0


IoRequest: TypeAlias = Read | Write | Flush | WriteZeroes | Deallocate


@dataclass(frozen=True, slots=True)
class Limits:
    """What a controller takes.

    Attributes:
        max_transfer_bytes: MDTS, or None.
        in_capsule_bytes: data that fits into a capsule of this queue.
    """

    max_transfer_bytes: int | None = None
    in_capsule_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """A command with its data, before a slot is known.

    Attributes:
        command: what is asked.
        region: registered memory, or None.
        outgoing: bytes to send, in the capsule when they fit, else through scratch.
        incoming_bytes: bytes to receive in scratch.
    """

    command: Command
    region: Region | None = None
    outgoing: bytes = b""
    incoming_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the data of a command lies: its descriptor, and what travels behind the entry or through scratch."""

    sgl: Sgl
    in_capsule: bytes = b""
    scratch: bytes = b""


def prepare(request: IoRequest, namespace: IdentifyNamespace, limits: Limits) -> Body:
    """Returns the command of `request`, checked against its namespace and controller.

    nvmet and SPDK answer an SGL of another length with 0x0F; here it does not leave the host.

    Raises:
        LocalProtocolError: blocks outside the namespace, a wrong length, a transfer that is too long, or data that
            does not fit into the capsule.
    """
    match request:
        case Read(nsid, slba, blocks, region):
            _check_blocks(slba, blocks, namespace)
            _check_transfer(region.length, blocks, namespace, limits)
            return Body(io.read(nsid, slba, blocks), region)
        case Write(nsid, slba, blocks, source, force):
            _check_blocks(slba, blocks, namespace)
            length = source.length if isinstance(source, Region) else len(source)
            _check_transfer(length, blocks, namespace, limits)
            command = io.write(nsid, slba, blocks, force_unit_access=force)
            if isinstance(source, Region):
                return Body(command, source)
            _check_capsule(length, limits)
            return Body(command, outgoing=source)
        case Flush(nsid):
            return Body(io.flush(nsid))
        case WriteZeroes(nsid, slba, blocks, deallocate):
            _check_blocks(slba, blocks, namespace)
            return Body(io.write_zeroes(nsid, slba, blocks, deallocate=deallocate))
        case Deallocate(nsid, ranges):
            for one in ranges:
                _check_blocks(one.slba, one.blocks, namespace)
            return Body(io.deallocate(nsid, len(ranges)), outgoing=io.pack_ranges(ranges))


def region_transfer(
    request: IoRequest, namespace: IdentifyNamespace, limits: Limits
) -> tuple[tuple[int, int, int, int], Region] | None:
    """Returns opcode, namespace, first block and CDW12 of a Read or Write of a region, and the region; else None.

    The checks are those of `prepare`; 65536 blocks of the smallest size are more than a transfer may have.

    Raises:
        LocalProtocolError: blocks outside the namespace, a wrong length, or a transfer that is too long.
    """
    if type(request) is Read:
        nsid, slba, blocks, region = request
        opcode, flags = _READ, 0
    elif type(request) is Write and isinstance(request.source, Region):
        nsid, slba, blocks, force = request.nsid, request.slba, request.blocks, request.force_unit_access
        region = request.source
        opcode, flags = _WRITE, io.FORCE_UNIT_ACCESS if force else 0
    else:
        return None
    length, most = region.length, limits.max_transfer_bytes or KEYED_MAX_BYTES
    fits = length == blocks << namespace.block_shift and length <= most and length <= KEYED_MAX_BYTES
    if not fits or slba < 0 or blocks < 1 or slba + blocks > namespace.blocks:
        _check_blocks(slba, blocks, namespace)
        _check_transfer(length, blocks, namespace, limits)
    return (opcode, nsid, slba, blocks - 1 | flags), region


def place(
    body: Body, transport: Literal["rdma", "tcp"], memory: QueueMemory, slot: int, in_capsule_bytes: int
) -> Placed:
    """Returns where the data of `body` lies when it goes out from `slot`.

    Args:
        body: the command.
        transport: how a region is described: by key, or by command id.
        memory: the queue's scratch.
        slot: whose scratch to use.
        in_capsule_bytes: what fits behind the entry.

    Raises:
        LocalProtocolError: the data does not fit into a slot's scratch.
    """
    size = len(body.outgoing)
    if size and size <= in_capsule_bytes:
        return Placed(Sgl(SglKind.IN_CAPSULE, 0, size), body.outgoing)
    through_scratch = max(size, body.incoming_bytes)
    if through_scratch > memory.slot_bytes:
        raise LocalProtocolError(
            "data does not fit a slot's scratch", expected=f"at most {memory.slot_bytes}", found=str(through_scratch)
        )
    length = body.region.length if body.region else through_scratch
    if transport == "tcp":
        return Placed(Sgl(SglKind.TRANSPORT, 0, length) if length else NULL_TRANSPORT, scratch=body.outgoing)
    if body.region:
        return Placed(Sgl(SglKind.KEYED, body.region.address, length, body.region.key))
    if not through_scratch:
        return Placed(NULL_KEYED)
    sgl = Sgl(SglKind.KEYED, memory.address + slot * memory.slot_bytes, length, memory.key)
    return Placed(sgl, scratch=body.outgoing)


def _check_blocks(slba: int, blocks: int, namespace: IdentifyNamespace) -> None:
    if slba < 0 or blocks < 1 or slba + blocks > namespace.blocks:
        raise LocalProtocolError(
            "blocks outside the namespace", expected=f"below {namespace.blocks}", found=f"{blocks} at {slba}"
        )


def _check_transfer(length: int, blocks: int, namespace: IdentifyNamespace, limits: Limits) -> None:
    wanted = blocks << namespace.block_shift
    if length != wanted:
        raise LocalProtocolError("the memory has not the length of its blocks", expected=str(wanted), found=str(length))
    most = limits.max_transfer_bytes or KEYED_MAX_BYTES
    if length > most or length > KEYED_MAX_BYTES:
        most = min(most, KEYED_MAX_BYTES)
        raise LocalProtocolError("a transfer is too long", expected=f"at most {most} bytes", found=str(length))


def _check_capsule(length: int, limits: Limits) -> None:
    if length > limits.in_capsule_bytes:
        raise LocalProtocolError(
            "data does not fit into a capsule", expected=f"at most {limits.in_capsule_bytes} bytes", found=str(length)
        )
