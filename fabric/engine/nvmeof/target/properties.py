"""Property Get and Set, as each target takes them. Knows no connection.

Source: Linux target/fabrics-cmd.c (nvmet_execute_prop_get, _set); SPDK lib/nvmf/ctrlr.c (nvmf_props, find_prop).
"""

from fabric.engine.nvmeof.target.association import Association, cap_of
from fabric.engine.nvmeof.target.profile import Refusal
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.registers import Register

__all__ = ("get_property", "set_property")

_VERSION = 0x10300  # NVMe 1.3, as nvmet's default


def get_property(association: Association, command: Command) -> int | Refusal:
    """Returns the value of the property that `command` names, or why not."""
    profile = association.profile
    offset, eight = command.cdw11, bool(command.cdw10 & 7)
    cap = cap_of(profile).raw
    if offset == Register.CAP and eight:
        return cap
    words = {Register.VS: _VERSION, Register.CC: association.cc, Register.CSTS: association.csts}
    if not profile.eight_bytes_only:
        words |= {Register.CAP: cap & 0xFFFFFFFF, Register.CAP + 4: cap >> 32}
    if eight or offset not in words:
        return profile.property_unknown
    return words[offset]


def set_property(association: Association, command: Command) -> Refusal | None:
    """Carries out a Property Set; returns why not, or None."""
    if command.cdw10 & 7 or command.cdw11 != Register.CC:
        return association.profile.property_unknown
    association.configure(command.cdw12)
    return None
