"""NICs: settings, links, addresses, RDMA devices, modules, and what sets them at boot. Changes nothing itself.

A setting whose value nobody can read is written once: when the boot files that write it too are not in place. Modules
that were loaded stay loaded on the way back: others may use them by then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fabric.errors import HostError
from fabric.host import names
from fabric.host.actions import Action, Disruption, RemoveFolder, Run, Stage, Write
from fabric.host.batch import Question, ask, foreseeing, read_many
from fabric.host.boot import BootChange, boot_change, setting_lines
from fabric.host.change import HostIntent, Part, PartChange, Thing
from fabric.host.executor import Executor
from fabric.host.families.catalog import driver
from fabric.host.families.common import cm_folder
from fabric.host.families.others import RDMA_MTU, rxe_name
from fabric.host.observe import discover_all, discovery_questions, observe_nics
from fabric.host.settings import Difference, NicFacts, differences
from fabric.host.units import SYSCTLS, boot_modules, nic_files
from fabric.plan.model import HostNicPlan
from fabric.qos import UNKNOWN
from fabric.state.host import NicState

__all__ = ("design_nic",)

_CM_ROOT: Final = "/sys/kernel/config/rdma_cm"
_CM_SETTINGS: Final = frozenset({"roce-mode", "default-tos"})
# the values are the device's; the folder is a handle on them, made for the look and taken away again (hosts.md 4.2)
_CM_LOOK: Final = (
    'test ! -e "$1" && mkdir -- "$1" || exit 3; p="$1/ports/$2"; '
    'cat -- "$p/default_roce_mode" "$p/default_roce_tos"; s=$?; rmdir -- "$1"; exit $s'
)


@dataclass(frozen=True, slots=True)
class _Nic:
    """One NIC as it was read. cm_folder: its folder in configfs if that is not there yet, else ""."""

    plan: HostNicPlan
    facts: NicFacts
    state: NicState
    cm_folder: str
    found: tuple[Difference, ...]


def design_nic(intent: HostIntent, executor: Executor) -> PartChange:
    """Returns what brings the NICs about.

    Raises:
        UnsupportedFeatureError: a family cannot do the plan.
        HostError: a netdev is not there, a fact is missing, or the host cannot be reached.
    """
    plan = intent.plan
    modules = boot_modules(plan)
    executor = foreseeing(executor, (*discovery_questions([one.netdev for one in plan.nics]), _loading(modules)))
    nics = _read(plan.nics, executor)
    steps = [step for one in nics for step in driver(one.plan.family, one.facts.flavour).steps(one.plan, one.facts)]
    files = nic_files(steps, plan.nics, modules=modules)
    gone = [SYSCTLS] if SYSCTLS not in {one.path for one in files} else []  # there were several NICs
    boot = boot_change(files, executor, gone=gone)
    load = _missing(modules, executor)
    sysctls = _sysctls(plan.nics, executor)
    is_new = bool(boot.changed or boot.stopped)
    meant = [(one, difference) for one in nics for difference in one.found if difference.is_known or is_new]
    forward = (*load, *_steps(meant), *(Write(path, wanted) for path, (_, wanted) in sysctls.items()), *boot.forward)
    start = (Run(("systemctl", "start", *boot.stopped)),) if boot.stopped else ()
    return PartChange(
        intent.host,
        Part.NIC,
        (*forward, *start),
        _backward(meant, sysctls, boot) if forward or start else (),
        "\n".join(_lines(meant, load, sysctls, boot)),
        disruptive=tuple(_disruptive(meant)),
        cannot_restore=tuple(_lost(meant)),
        unconfirmed=tuple(dict.fromkeys(one.unconfirmed for _, one in meant if one.unconfirmed)),
        things=(*_things(meant, sysctls), *boot.things),
    )


# --- reading --------------------------------------------------------------------------------------------------------


def _read(plans: Sequence[HostNicPlan], executor: Executor) -> list[_Nic]:
    facts = discover_all([plan.netdev for plan in plans], executor)
    readings = observe_nics(plans, facts, executor)
    states = [one.state for one in readings]
    for plan, reading in zip(plans, readings, strict=True):
        if reading.state.mtu_bytes is UNKNOWN:
            found = "; ".join(line for line in reading.unread if line.startswith(("ip ", "/sys/class/net/")))
            raise HostError("the host has no such netdev, or it cannot be read", where=plan.netdev, found=found)
        # what a tool did not show is not absent: an address, a device
        missed = [line for line in reading.unread if line.startswith(("ip -j ", "rdma -j link "))]
        if missed:
            raise HostError("the host's links cannot be read", where=plan.netdev, found="; ".join(missed))
    folders = _absent_folders(facts, states, executor)
    looked = [_looked(one, state, folder, executor) for one, state, folder in zip(facts, states, folders, strict=True)]
    rows = zip(plans, facts, looked, folders, strict=True)
    return [_Nic(*row, found=tuple(_differences(*row[:3]))) for row in rows]


def _absent_folders(facts: Sequence[NicFacts], states: Sequence[NicState], executor: Executor) -> list[str]:
    """The folder of each NIC's CM in configfs where it is not there yet, else ""."""
    named = [one if one.rdma_device else replace(one, rdma_device=rxe_name(one)) for one in facts]
    unread = [state.default_tos is UNKNOWN or state.default_mode is UNKNOWN for state in states]
    folders = [cm_folder(one) for one in named]
    questions: list[Question] = [("test", "-e", folder) for folder in folders]
    there = [one.ok for one in ask(executor, questions)] if any(unread) else [True] * len(folders)
    return ["" if found else folder for folder, found in zip(folders, there, strict=True)]


def _looked(facts: NicFacts, state: NicState, folder: str, executor: Executor) -> NicState:
    """The state with the CM's defaults, where a look at them needs a handle."""
    if not folder or not facts.rdma_device:
        return state
    done = executor.run(["sh", "-c", _CM_LOOK, "sh", folder, str(facts.rdma_port)])
    mode, _, tos = done.stdout.strip().partition("\n")
    if not done.ok or not tos.strip().isdecimal():
        return state
    return replace(state, default_mode=mode.strip(), default_tos=int(tos))


def _differences(plan: HostNicPlan, facts: NicFacts, state: NicState) -> Iterable[Difference]:
    found = differences(driver(plan.family, facts.flavour), plan, state, facts)
    # the path MTU follows the netdev's, and a device that is made now takes it at once
    follows = any(one.setting in {"mtu", "rdma-link"} for one in found)
    return (one for one in found if one.setting != RDMA_MTU or not follows)


def _loading(modules: Sequence[str]) -> tuple[str, ...]:
    return ("modprobe", "-a", "-n", "-v", "--", *modules)


def _missing(modules: Sequence[str], executor: Executor) -> tuple[Action, ...]:
    done = executor.run(_loading(modules))
    if not done.ok:
        raise HostError("a kernel module is not there", found=done.stderr.strip()[:200], expected=", ".join(modules))
    wanted = any(line.startswith("insmod ") for line in done.stdout.splitlines())
    return (Run(("modprobe", "-a", "--", *modules)),) if wanted else ()


def _sysctls(nics: Sequence[HostNicPlan], executor: Executor) -> dict[str, tuple[str, str]]:
    # path → (found, wanted) of those that differ; they are those of the file that `nic_files` makes
    if len(nics) < 2:
        return {}
    wanted = {
        f"/proc/sys/net/ipv4/conf/{names.netdev(nic.netdev)}/{name}": value
        for nic in nics
        for name, value in (("arp_announce", "2"), ("arp_ignore", "1"), ("rp_filter", "2"))
    }
    found = {path: (text or "").strip() for path, text in read_many(executor, tuple(wanted)).items()}
    return {path: (found[path], value) for path, value in wanted.items() if found[path] != value}


# --- there and back -------------------------------------------------------------------------------------------------


def _steps(meant: Sequence[tuple[_Nic, Difference]]) -> Iterable[Action]:
    every = [step for _, difference in meant for step in difference.steps]
    return tuple(dict.fromkeys(step.action for stage in Stage for step in every if step.stage is stage))


def _backward(
    meant: Sequence[tuple[_Nic, Difference]], sysctls: Mapping[str, tuple[str, str]], boot: BootChange
) -> tuple[Action, ...]:
    backs = [step for _, one in reversed(meant) for step in one.back or ()]
    settings = [step.action for stage in reversed(Stage) for step in backs if step.stage is stage]
    made = [RemoveFolder(nic.cm_folder) for nic, one in meant if nic.cm_folder and one.setting in _CM_SETTINGS]
    return (
        *boot.before_back,
        *settings,
        *dict.fromkeys(made),
        *(Write(path, found) for path, (found, _) in sysctls.items() if found),
        *boot.after_back,
    )


def _is_made(nic: _Nic) -> bool:
    """Whether the RDMA device is made by this change, so that its values go with it."""
    return any(one.setting == "rdma-link" and one.is_known for one in nic.found)


def _lost(meant: Sequence[tuple[_Nic, Difference]]) -> Iterable[str]:
    for nic, one in meant:
        if one.back is None and not (one.setting in _CM_SETTINGS and _is_made(nic)):
            yield f"{one.netdev} {one.setting}"


def _disruptive(meant: Sequence[tuple[_Nic, Difference]]) -> Iterable[str]:
    """A link that is down, or that has no RDMA device, carries no RDMA traffic that would feel it."""
    for nic, one in meant:
        quiet = nic.state.link_up is False or not nic.facts.rdma_device
        if one.disruption is Disruption.FIRMWARE_RESET:
            yield f"{one.netdev} {one.setting}: takes effect after a reset of the firmware or a reboot"
        elif one.disruptive and not quiet:
            yield f"{one.netdev} {one.setting}: the link stops for a moment"


def _things(meant: Sequence[tuple[_Nic, Difference]], sysctls: Mapping[str, tuple[str, str]]) -> Iterable[Thing]:
    for _, one in meant:
        if one.is_known:  # what nothing shows cannot be compared later
            yield Thing(f"{one.netdev} {one.setting}", one.found, one.wanted)
    for path, (found, wanted) in sysctls.items():
        yield Thing(path, found, wanted)


def _lines(
    meant: Sequence[tuple[_Nic, Difference]],
    load: Sequence[Action],
    sysctls: Mapping[str, tuple[str, str]],
    boot: BootChange,
) -> Iterable[str]:
    for _, one in meant:
        yield from setting_lines(f"{one.netdev} {one.setting}", one.found, one.wanted)
    for action in load:
        if isinstance(action, Run):
            yield f"+modules: {' '.join(action.argv[3:])}"
    for path, (found, wanted) in sysctls.items():
        yield from setting_lines(path, found or UNKNOWN.value, wanted)
    yield from boot.diff
