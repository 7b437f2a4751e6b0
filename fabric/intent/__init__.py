"""What is wanted: models, and the loader that reads them from an Ansible inventory."""

from fabric.intent.access import DeviceAccess
from fabric.intent.example import example
from fabric.intent.load import Loaded, VaultOptions, load
from fabric.intent.model import (
    ConnectPolicy,
    DcqcnSetting,
    EcnOverride,
    Endpoint,
    EtsShare,
    Fabric,
    Host,
    HostNic,
    Link,
    Namespace,
    NicPolicy,
    NvmePort,
    NvmeTarget,
    PortRole,
    RocePolicy,
    Subsystem,
    Switch,
    SwitchPort,
    SwitchRole,
)

__all__ = (
    "ConnectPolicy",
    "DcqcnSetting",
    "DeviceAccess",
    "EcnOverride",
    "Endpoint",
    "EtsShare",
    "Fabric",
    "Host",
    "HostNic",
    "Link",
    "Loaded",
    "Namespace",
    "NicPolicy",
    "NvmePort",
    "NvmeTarget",
    "PortRole",
    "RocePolicy",
    "Subsystem",
    "Switch",
    "SwitchPort",
    "SwitchRole",
    "VaultOptions",
    "example",
    "load",
)
