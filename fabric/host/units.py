"""Files that make a host's settings outlast a boot: systemd units, action files, modules, sysctls. Writes none itself.

Order at boot: QoS, then links, then connections or the target. The order matters: a connection that starts before the
QoS is in the lossy class, and one before the MTU has a path MTU of 1024. Source: hosts.md 3.5. Each unit is tried again
until it succeeds, so that a NIC that comes late, or a target that boots later, holds nothing up for good.
"""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fabric.errors import HostError
from fabric.host import names
from fabric.host.actions import Action, ControllerAttribute, Disruption, PutFile, Stage, Step, agent_text
from fabric.host.batch import agent_source
from fabric.host.nvme.connect import Connection, NvmeCli, connect_argv, disconnect_actions
from fabric.host.nvme.identity import HostIdentity
from fabric.plan.model import HostNicPlan, HostPlan
from fabric.resources import data_path

if TYPE_CHECKING:
    import jinja2

__all__ = (
    "AGENT_PATH",
    "IOPOLICY_RULES",
    "LINK_UNIT",
    "QOS_UNIT",
    "SYSCTLS",
    "TARGET_ACTIONS",
    "TARGET_UNIT",
    "boot_modules",
    "connection_files",
    "connection_unit",
    "connection_unit_files",
    "nic_files",
    "target_files",
)

QOS_UNIT: Final = "fabricctl-qos.service"
LINK_UNIT: Final = "fabricctl-link.service"
TARGET_UNIT: Final = "fabricctl-target.service"
IOPOLICY_RULES: Final = "/etc/udev/rules.d/71-fabricctl-iopolicy.rules"
SYSCTLS: Final = "/etc/sysctl.d/90-fabricctl.conf"
TARGET_ACTIONS: Final = "/etc/fabricctl/target.json"
AGENT_PATH: Final = "/usr/local/lib/fabricctl/agent.py"
_UNITS: Final = "/etc/systemd/system"
_ACTIONS: Final = "/etc/fabricctl"
_PYTHON: Final = "/usr/bin/python3"
_NVME: Final = "/usr/sbin/nvme"
_QOS_IS_SET: Final = f"/usr/bin/systemctl is-active --quiet {QOS_UNIT}"
_LINK_IS_UP: Final = f"/usr/bin/systemctl is-active --quiet {LINK_UNIT}"


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2  # 0.1 s: only when files are rendered

    loader = jinja2.FileSystemLoader(data_path("templates", "host"))
    return jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # unit files, no markup; every word is checked by names
    )


def _filled(template: str, **words: object) -> str:
    return _environment().get_template(f"{template}.j2").render(**words)


def _command(*words: str) -> str:
    return " ".join(names.unit_word(word) for word in words)


def _agent(file: str) -> str:
    return _command(_PYTHON, AGENT_PATH, file)


def _action_file(name: str, actions: Iterable[Action]) -> PutFile:
    return PutFile(f"{_ACTIONS}/{name}.json", agent_text(actions))


def _agent_file() -> PutFile:
    return PutFile(AGENT_PATH, agent_source(), mode=0o755)


def nic_files(
    steps: Sequence[Step], nics: Sequence[HostNicPlan], *, modules: Sequence[str] = ()
) -> tuple[PutFile, ...]:
    """Returns the files that set the NICs at boot. Steps in firmware are left out: they persist by themselves.

    Args:
        steps: of all NICs.
        nics: their plans; several in one subnet get sysctls.
        modules: to load at boot, `nvme-rdma`.

    Raises:
        HostError: a name is none.
    """
    volatile = [step for step in steps if step.disruption is not Disruption.FIRMWARE_RESET]
    staged = {stage: [step.action for step in volatile if step.stage is stage] for stage in Stage}
    qos, link = _action_file("qos", staged[Stage.QOS]), _action_file("link", staged[Stage.LINK])
    files = [
        _agent_file(),
        qos,
        link,
        PutFile(f"{_UNITS}/{QOS_UNIT}", _filled("qos.service", link_unit=LINK_UNIT, command=_agent(qos.path))),
        PutFile(f"{_UNITS}/{LINK_UNIT}", _link_unit(_agent(link.path))),
        PutFile("/etc/security/limits.d/fabricctl.conf", _filled("limits.conf")),
    ]
    if modules:
        checked = [names.module(module) for module in modules]
        files.append(PutFile("/etc/modules-load.d/fabricctl.conf", _filled("modules.conf", modules=checked)))
    if len(nics) > 1:
        # a dot in a netdev's name would be a level of sysctl: it is written as a slash (sysctl.d(5))
        netdevs = [names.netdev(nic.netdev).replace(".", "/") for nic in nics]
        files.append(PutFile(SYSCTLS, _filled("sysctl.conf", netdevs=netdevs)))
    return tuple(files)


def _link_unit(command: str) -> str:
    # without the QoS the link would come up, and connections over it start in the lossy class
    return _filled("link.service", qos_unit=QOS_UNIT, qos_command=_QOS_IS_SET, command=command)


def boot_modules(plan: HostPlan) -> tuple[str, ...]:
    """Returns the kernel modules that this host or target loads at boot."""
    soft = ("rdma_rxe",) if any(nic.family == "rxe" for nic in plan.nics) else ()
    own = ("nvmet", "nvmet-rdma") if plan.role == "target" else ("nvme-rdma",)
    return ("rdma_ucm", *soft, *own)  # rdma_ucm: userspace connects too


def target_files(make: Sequence[Action], remove: Sequence[Action]) -> tuple[PutFile, ...]:
    """Returns the files that publish the kernel's target at boot and take it back when the unit stops."""
    start, stop = _action_file("target", make), _action_file("target-stop", remove)
    unit = _filled(
        "target.service",
        qos_unit=QOS_UNIT,
        link_unit=LINK_UNIT,
        link_command=_LINK_IS_UP,
        command=_agent(start.path),
        stop_command=_agent(stop.path),
    )
    return _agent_file(), start, stop, PutFile(f"{_UNITS}/{TARGET_UNIT}", unit)


def connection_unit(one: Connection) -> str:
    """Returns the name of a connection's unit: the same for the same subsystem, address and source."""
    place = f"{one.nqn} {one.traddr} {one.trsvcid} {one.host_traddr}"
    digest = hashlib.sha256(place.encode(errors="surrogatepass")).hexdigest()  # what is no name is refused elsewhere
    return f"fabricctl-nvme-{digest[:12]}.service"


def connection_files(
    found: Sequence[Connection], who: HostIdentity, cli: NvmeCli, *, iopolicy: str = "round-robin"
) -> tuple[PutFile, ...]:
    """Returns one unit a connection, what each needs, and the rule for the multipath policy.

    Raises:
        HostError: a name or address is none.
    """
    files = [_agent_file()] if found else []
    for one in found:
        files += _connection(one, who, cli)
    nqns = sorted({names.nqn(one.nqn) for one in found})
    if iopolicy not in {"numa", "round-robin", "queue-depth"}:
        raise HostError("this is no multipath policy", found=repr(iopolicy), expected="numa, round-robin, queue-depth")
    rules = _filled("iopolicy.rules", nqns=nqns, iopolicy=iopolicy)
    return (*files, PutFile(IOPOLICY_RULES, rules))


def connection_unit_files(unit: str) -> tuple[str, ...]:
    """Returns the paths of a connection's unit and of what only it needs."""
    base = f"{_ACTIONS}/{unit.removesuffix('.service')}"
    return f"{_UNITS}/{unit}", f"{base}.json", f"{base}-stop.json"


def _connection(one: Connection, who: HostIdentity, cli: NvmeCli) -> list[PutFile]:
    # nvme-cli ends with 1 for a connection that stands already, as for a failure: so its exit code decides nothing,
    # and the second line does, which finds the controller or fails
    unit = connection_unit(one)
    timer = str(one.policy.fast_io_fail_tmo_s)
    proof = ControllerAttribute(one.nqn, one.traddr, "fast_io_fail_tmo", timer, one.host_traddr)
    name = unit.removesuffix(".service")
    actions = _action_file(name, (proof,))
    stop = _action_file(f"{name}-stop", (replace(one, optional=True) for one in disconnect_actions((one,))))
    text = _filled(
        "connect.service",
        nqn=names.nqn(one.nqn),
        traddr=names.ip_address(one.traddr).replace("%", "%%"),
        qos_unit=QOS_UNIT,
        link_unit=LINK_UNIT,
        link_command=_LINK_IS_UP,
        command=_command(_NVME, *connect_argv(one, who, cli)[1:]),
        proof_command=_agent(actions.path),
        stop_command=_agent(stop.path),
    )
    return [actions, stop, PutFile(f"{_UNITS}/{unit}", text)]
