"""The target role: one `Target` serves subsystems to any number of hosts, with the checks of nvmet or of SPDK."""

from fabric.engine.nvmeof.target.machine import Target
from fabric.engine.nvmeof.target.model import Address, Subsystem
from fabric.engine.nvmeof.target.outputs import (
    Accept,
    Drop,
    FetchData,
    Output,
    PeerId,
    PushData,
    Reject,
    Respond,
    SetTimer,
    StorageFlush,
    StorageRead,
    StorageWrite,
    StorageZero,
    TaskId,
)
from fabric.engine.nvmeof.target.profile import NVMET, SPDK, Refusal, TargetProfile

__all__ = (
    "NVMET",
    "SPDK",
    "Accept",
    "Address",
    "Drop",
    "FetchData",
    "Output",
    "PeerId",
    "PushData",
    "Refusal",
    "Reject",
    "Respond",
    "SetTimer",
    "StorageFlush",
    "StorageRead",
    "StorageWrite",
    "StorageZero",
    "Subsystem",
    "Target",
    "TargetProfile",
    "TaskId",
)
