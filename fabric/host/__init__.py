"""Hosts and targets: NIC settings, NVMe connections, the kernel's target, and how a host is reached.

Theory of operation: a plan becomes data, steps with their price. They are performed over an executor now, or by the
agent at boot; both do the same. A part of a host (NICs, target, connections) is read and becomes a `PartChange`, whose
way back is complete before anything is performed.

| step | function |
|---|---|
| what does the host say | `observe_host` → `HostState` and facts of its NICs |
| what must change on a NIC | `driver(family, flavour)`, `differences` |
| what must change in connections | `connections`, `connection_differences` |
| what must change on a target | `planned_target`, `target_actions` |
| what must outlast a boot | `nic_files`, `connection_files`, `target_files`, `boot_change` |
| all of it for one part of a host, with the way back | `design_part` → `PartChange`; `apply_part`, `revert_part` |
| what is left to judge | `read_host` → `HostReport` |
"""

from fabric.host.actions import Action, Disruption, PutFile, Stage, Step
from fabric.host.apply import apply_part, design_part, revert_part
from fabric.host.boot import boot_change
from fabric.host.change import HostIntent, Part, PartChange, change_from_json, change_to_json, intent_from_json
from fabric.host.executor import Executor, LocalExecutor, RecordedExecutor, SshExecutor, perform_all
from fabric.host.families.catalog import driver
from fabric.host.files import FileChange, changed_files, restoring, standing
from fabric.host.intents import host_intent
from fabric.host.nvme.compare import ConnectionDifference, connection_differences
from fabric.host.nvme.connect import (
    Connection,
    ConnectPolicy,
    NvmeCli,
    connect_actions,
    connections,
    disconnect_actions,
    read_version,
)
from fabric.host.nvme.identity import HostIdentity, identity, identity_actions
from fabric.host.nvme.target import planned_target, read_target, removal_actions, standing_part, target_actions
from fabric.host.observe import HostReading, discover, observe_host
from fabric.host.report import Definition, HostReport, read_host, report_from_json
from fabric.host.settings import Difference, NicFacts, differences, held
from fabric.host.units import (
    boot_modules,
    connection_files,
    connection_unit,
    nic_files,
    target_files,
)

__all__ = (
    "Action",
    "ConnectPolicy",
    "Connection",
    "ConnectionDifference",
    "Definition",
    "Difference",
    "Disruption",
    "Executor",
    "FileChange",
    "HostIdentity",
    "HostIntent",
    "HostReading",
    "HostReport",
    "LocalExecutor",
    "NicFacts",
    "NvmeCli",
    "Part",
    "PartChange",
    "PutFile",
    "RecordedExecutor",
    "SshExecutor",
    "Stage",
    "Step",
    "apply_part",
    "boot_change",
    "boot_modules",
    "change_from_json",
    "change_to_json",
    "changed_files",
    "connect_actions",
    "connection_differences",
    "connection_files",
    "connection_unit",
    "connections",
    "design_part",
    "differences",
    "disconnect_actions",
    "discover",
    "driver",
    "held",
    "host_intent",
    "identity",
    "identity_actions",
    "intent_from_json",
    "nic_files",
    "observe_host",
    "perform_all",
    "planned_target",
    "read_host",
    "read_target",
    "read_version",
    "removal_actions",
    "report_from_json",
    "restoring",
    "revert_part",
    "standing",
    "standing_part",
    "target_actions",
    "target_files",
)
