"""Exit codes: 0 ok, 1 findings, 2 usage, 3 inventory, 4 device or host, 5 environment, 10 changes, 130 Ctrl-C."""

from enum import IntEnum

from fabric.errors import (
    DeviceError,
    EngineError,
    EnvironmentMissingError,
    FabricError,
    HostError,
    IntentError,
    LocalProtocolError,
    PlanError,
    UnsupportedFeatureError,
)
from fabric.workflow import Verdict
from fabric.workflow.importing.model import ImportRefusedError

__all__ = ("Exit", "exit_of_error", "exit_of_verdict")


class Exit(IntEnum):
    """What the shell sees."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    INVENTORY = 3
    DEVICE = 4
    ENVIRONMENT = 5
    CHANGES = 10  # only with --detailed-exitcode
    INTERRUPTED = 130  # as a shell has it for SIGINT: neither findings nor a failure


def exit_of_error(error: FabricError) -> Exit:
    """Returns the code of an error, by who must act."""
    match error:
        case EnvironmentMissingError():
            return Exit.ENVIRONMENT
        case IntentError() | PlanError() | UnsupportedFeatureError() | ImportRefusedError():
            return Exit.INVENTORY
        case LocalProtocolError():  # an EngineError too: what was asked for cannot be right
            return Exit.USAGE
        case DeviceError() | HostError() | EngineError():
            return Exit.DEVICE
        case _:
            return Exit.USAGE


def exit_of_verdict(verdict: Verdict) -> Exit:
    """Returns the code of a run that came to its end."""
    match verdict:
        case Verdict.OK:
            return Exit.OK
        case Verdict.FINDINGS:
            return Exit.FINDINGS
        case Verdict.FAILED:
            return Exit.DEVICE
