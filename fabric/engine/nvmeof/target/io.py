"""NVM commands: checks each against its namespace and says what storage is to do. Knows no transport.

Source: Linux target/io-cmd-bdev.c and core.c (nvmet_check_transfer_len); SPDK lib/nvmf/ctrlr_bdev.c.
"""

from fabric.engine.nvmeof.target.association import Association, Task
from fabric.engine.nvmeof.target.outputs import StorageFlush, StorageRead, StorageWrite, StorageZero
from fabric.engine.nvmeof.target.profile import Refusal
from fabric.engine.nvmeof.wire import io
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.errors import RemoteProtocolError

__all__ = ("StorageWork", "execute_io")

StorageWork = StorageRead | StorageWrite | StorageZero | StorageFlush
_OUT_OF_RANGE = Refusal(Status.LBA_OUT_OF_RANGE | DNR)
_READ_ONLY = Refusal(Status.NAMESPACE_WRITE_PROTECTED | DNR)
_FORCE_UNIT_ACCESS = 1 << 30
_WRITES = frozenset({io.IoOpcode.WRITE, io.IoOpcode.WRITE_ZEROES, io.IoOpcode.DATASET_MANAGEMENT})


def execute_io(task: Task, association: Association) -> StorageWork | Refusal:
    """Returns what storage is to do for a command on an I/O queue, or why not."""
    command, subsystem = task.command, association.subsystem
    namespace = subsystem.namespaces.get(command.nsid) if subsystem else None
    if subsystem is None or namespace is None:
        return Refusal(Status.INVALID_NAMESPACE | DNR)
    if command.opcode in _WRITES and namespace.write_protected:
        return _READ_ONLY
    where = (task.identifier, subsystem.nqn, command.nsid)
    match command.opcode:
        case io.IoOpcode.READ | io.IoOpcode.WRITE | io.IoOpcode.WRITE_ZEROES:
            return _blocks(task, association, namespace, where)
        case io.IoOpcode.FLUSH:
            return StorageFlush(*where)
        case io.IoOpcode.DATASET_MANAGEMENT:
            return _deallocate(task, association, namespace, where)
    return Refusal(Status.INVALID_OPCODE | DNR)


def _blocks(
    task: Task, association: Association, namespace: IdentifyNamespace, where: tuple[int, str, int]
) -> StorageWork | Refusal:
    one = io.block_range(task.command)
    if one.slba + one.blocks > namespace.blocks:
        return _OUT_OF_RANGE
    offset, length = one.slba * namespace.block_bytes, one.blocks * namespace.block_bytes
    opcode = task.command.opcode
    wrong = _wrong_length(task, association, 0 if opcode == io.IoOpcode.WRITE_ZEROES else length)
    if wrong is not None:
        return wrong
    identifier, nqn, nsid = task.identifier, where[1], where[2]
    if opcode == io.IoOpcode.READ:
        return StorageRead(identifier, nqn, nsid, offset, length)
    if opcode == io.IoOpcode.WRITE:
        durable = bool(task.command.cdw12 & _FORCE_UNIT_ACCESS)
        return StorageWrite(identifier, nqn, nsid, offset, task.data[:length], durable)
    return StorageZero(identifier, nqn, nsid, ((offset, length),), bool(task.command.cdw12 >> 25 & 1))


def _deallocate(
    task: Task, association: Association, namespace: IdentifyNamespace, where: tuple[int, str, int]
) -> StorageWork | Refusal:
    count = io.range_count(task.command)
    wrong = _wrong_length(task, association, count * io.DSM_RANGE_BYTES)
    if wrong is not None:
        return wrong
    try:
        ranges = io.parse_ranges(task.data, count)
    except RemoteProtocolError:
        return association.profile.sgl_length
    if any(one.slba + one.blocks > namespace.blocks for one in ranges):
        return _OUT_OF_RANGE
    extents = tuple((one.slba * namespace.block_bytes, one.blocks * namespace.block_bytes) for one in ranges)
    return StorageZero(task.identifier, where[1], where[2], extents, discard=True)


def _wrong_length(task: Task, association: Association, wanted: int) -> Refusal | None:
    """Why the SGL does not fit: nvmet wants the exact length, SPDK at least so much."""
    found = task.sgl.length
    if found == wanted or (found > wanted and association.profile.sgl_may_be_longer):
        return None
    return association.profile.sgl_length
