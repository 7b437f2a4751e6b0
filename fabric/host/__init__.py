"""Hosts and targets: NIC settings, NVMe connections, the kernel's target, and how a host is reached.

Theory of operation: everything but `executor`, `observe` and `agent` is pure. A plan becomes data: steps with their
price. They are performed over an executor now, or by the agent at boot; both do the same.

| step | function |
|---|---|
| what does the host say | `observe_host` → `HostState` and facts of its NICs |
| what must change on a NIC | `driver(family, flavour)`, `differences` |
| what must change in connections | `connections`, `connection_differences` |
| what must change on a target | `planned_target`, `target_actions` |
| what must outlast a boot | `nic_files`, `connection_files`, `target_files`, `changed_files`, `enabling` |
| do it | `perform_all`; the way back of files: `disabling`, `restoring`; of a target: `removal_actions` |
"""

from fabric.host.actions import Action, Disruption, PutFile, Stage, Step
from fabric.host.executor import Executor, LocalExecutor, RecordedExecutor, SshExecutor, perform_all
from fabric.host.families.catalog import driver
from fabric.host.files import FileChange, changed_files, restoring
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
from fabric.host.settings import Difference, NicFacts, differences, held
from fabric.host.units import (
    boot_modules,
    connection_files,
    connection_unit,
    disabling,
    enabling,
    nic_files,
    target_files,
)

__all__ = (
    "Action",
    "ConnectPolicy",
    "Connection",
    "ConnectionDifference",
    "Difference",
    "Disruption",
    "Executor",
    "FileChange",
    "HostIdentity",
    "HostReading",
    "LocalExecutor",
    "NicFacts",
    "NvmeCli",
    "PutFile",
    "RecordedExecutor",
    "SshExecutor",
    "Stage",
    "Step",
    "boot_modules",
    "changed_files",
    "connect_actions",
    "connection_differences",
    "connection_files",
    "connection_unit",
    "connections",
    "differences",
    "disabling",
    "disconnect_actions",
    "discover",
    "driver",
    "enabling",
    "held",
    "identity",
    "identity_actions",
    "nic_files",
    "observe_host",
    "perform_all",
    "planned_target",
    "read_target",
    "read_version",
    "removal_actions",
    "restoring",
    "standing_part",
    "target_actions",
    "target_files",
)
