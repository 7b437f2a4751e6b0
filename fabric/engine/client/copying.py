"""Runs of blocks between a namespace and what takes or gives bytes; and what a person wants to know of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.engine import Engine
from fabric.engine.client.work import Read, Write
from fabric.errors import LocalProtocolError

__all__ = ("Description", "describe", "pull", "push")

_PART_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Description:
    """What an engine is connected to. Fields of the controller are None where there is none (a file, a device).

    Attributes:
        target: subsystem or path. nsid, block_bytes, blocks, bytes: the namespace.
        queues: I/O queues in use. depth, transfer_bytes: what the policy became.
        mdts_bytes: longest transfer that the controller takes, None when it states none.
        model, serial, firmware, cntlid: of the controller.
        namespaces: ids of all that it shows.
    """

    target: str
    nsid: int
    block_bytes: int
    blocks: int
    bytes: int
    queues: int
    depth: int
    transfer_bytes: int
    mdts_bytes: int | None = None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    cntlid: int | None = None
    namespaces: tuple[int, ...] = ()


def describe(engine: Engine) -> Description:
    """Returns what the engine is connected to."""
    space, blocks = engine.namespace[:2]
    controller = engine.link.controller if isinstance(engine.link, ControllerLink) else None
    identity = controller.identity if controller else None
    return Description(
        space.target,
        space.nsid,
        space.block_bytes,
        blocks,
        blocks * space.block_bytes,
        len(engine.load().queues),
        engine.policy.depth,
        engine.policy.transfer_bytes,
        space.mdts_bytes,
        identity.model if identity else None,
        identity.serial if identity else None,
        identity.firmware if identity else None,
        identity.cntlid if identity else None,
        tuple(controller.namespaces) if controller else (),
    )


def pull(engine: Engine, lba: int, length: int, take: Callable[[memoryview], object]) -> None:
    """Reads `length` bytes from block `lba` on and hands them over in order, in parts that `take` must not keep.

    Raises:
        EngineError: they cannot be read; the class says who must act. Nothing wrong is ever handed over.
    """
    unit = engine.namespace.namespace.block_bytes
    _need_whole(length, unit)
    buffer = engine.allocate(min(length, _PART_BYTES // unit * unit))
    for at in range(0, length, buffer.memory.nbytes):
        part = min(buffer.memory.nbytes, length - at)
        futures = engine.submit([Read(lba + at // unit, (buffer.view(0, part),))])
        engine.wait(futures)
        futures[0].result()
        take(buffer.memory[:part])


def push(engine: Engine, lba: int, length: int, give: Callable[[memoryview], int | None]) -> None:
    """Writes `length` bytes to block `lba` and on, as `give` fills them in (`readinto` of a file does).

    Raises:
        LocalProtocolError: `give` has fewer bytes.
        EngineError: they cannot be written; what was written before stays.
    """
    unit = engine.namespace.namespace.block_bytes
    _need_whole(length, unit)
    buffer = engine.allocate(min(length, _PART_BYTES // unit * unit))
    for at in range(0, length, buffer.memory.nbytes):
        part = min(buffer.memory.nbytes, length - at)
        filled = 0
        while filled < part:
            more = give(buffer.memory[filled:part])
            if not more:
                raise LocalProtocolError("the source ended early", found=f"{at + filled} bytes", expected=f"{length}")
            filled += more
        futures = engine.submit([Write(lba + at // unit, (buffer.view(0, part),))])
        engine.wait(futures)
        futures[0].result()


def _need_whole(length: int, unit: int) -> None:
    if length < 1 or length % unit:
        raise LocalProtocolError("this is no whole number of blocks", found=f"{length}", expected=f"n x {unit} bytes")
