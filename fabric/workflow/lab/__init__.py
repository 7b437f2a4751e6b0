"""The lab as a verb: from an inventory to running machines, switches and cables, and back to nothing.

It brings QEMU and SSH servers, so `fabric.workflow` does not import it.
"""

from fabric.workflow.lab.access import Done, console_log, run_console, run_ssh
from fabric.workflow.lab.building import RATE_BPS, SEED, lab_spec, stock_front
from fabric.workflow.lab.running import (
    TOPOLOGIES,
    DeviceStatus,
    LabStatus,
    design_lab,
    lab_down,
    lab_status,
    lab_up,
    opened_lab,
    running_lab,
    topology,
)

__all__ = (
    "RATE_BPS",
    "SEED",
    "TOPOLOGIES",
    "DeviceStatus",
    "Done",
    "LabStatus",
    "console_log",
    "design_lab",
    "lab_down",
    "lab_spec",
    "lab_status",
    "lab_up",
    "opened_lab",
    "run_console",
    "run_ssh",
    "running_lab",
    "stock_front",
    "topology",
)
