"""What a host connects to, and the nvme-cli command of each connection. Runs nothing.

The type of service is given with each connection: a target's queue pairs inherit it, so without it every read of the
fabric is in the lossy class. The RDMA transport takes the host's address, never its interface.
Source: hosts.md section 0 fact 3, 3.1, 3.4.
"""

import ipaddress
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fabric.errors import HostError, PlanError, UnsupportedFeatureError
from fabric.host import names
from fabric.host.actions import Action, ControllerAttribute, PutFile, Run
from fabric.host.nvme.identity import HostIdentity
from fabric.intent.model import ConnectPolicy, Host, NvmeTarget
from fabric.plan.model import HostPlan

__all__ = (
    "DHCHAP_KEY",
    "VERSION_3_OPTIONS",
    "ConnectPolicy",
    "Connection",
    "NvmeCli",
    "config_file",
    "connect_actions",
    "connect_argv",
    "connections",
    "disconnect_actions",
    "read_connect",
    "read_version",
    "unconfirmed_options",
)

_ALREADY: Final = "already connected"  # nvme-cli 2.3 then ends with 1 as for any failure: seen on Debian 12
_OWNER: Final = "fabric"
VERSION_3_OPTIONS: Final = "nvme-cli 3: options --owner and --idempotent, from its release notes, hosts.md 3.4"
DHCHAP_KEY: Final = "nvme-cli 2: dhchap_key in config.json, from libnvme's schema, hosts.md 3.5"
_LONG: Final[Mapping[str, str]] = {
    "-t": "transport", "-a": "traddr", "-s": "trsvcid", "-n": "nqn", "-w": "host-traddr", "-f": "host-iface",
    "-q": "hostnqn", "-I": "hostid", "-i": "nr-io-queues", "-Q": "queue-size", "-k": "keep-alive-tmo",
    "-c": "reconnect-delay", "-l": "ctrl-loss-tmo", "-F": "fast_io_fail_tmo", "-T": "tos", "-S": "dhchap-secret",
}  # fmt: skip  # nvme-cli fabrics.c NVMF_ARGS

Address: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class Connection:
    """One controller that a host shall have.

    Attributes:
        host_traddr, tos: "" and -1 leave the choice to routing and to the device: only to give back what others made.
    """

    nqn: str
    traddr: str
    trsvcid: int
    host_traddr: str
    netdev: str
    tos: int
    policy: ConnectPolicy = field(default_factory=ConnectPolicy)


@dataclass(frozen=True, slots=True, order=True)
class NvmeCli:
    """The version of nvme-cli on a host."""

    major: int
    minor: int = 0


def read_version(text: str) -> NvmeCli:
    """Returns the version from `nvme version`.

    Raises:
        HostError: the text is of another program.
    """
    found = re.search(r"nvme(?:-cli)? version v?([0-9]{1,4})\.([0-9]{1,4})", text)
    if found is None:
        raise HostError("nvme shows no version", found=repr(text.strip()[:60]))
    return NvmeCli(int(found[1]), int(found[2]))


# --- which ----------------------------------------------------------------------------------------------------------


def connections(
    host: Host, plan: HostPlan, targets: Iterable[NvmeTarget], policy: ConnectPolicy | None = None
) -> tuple[Connection, ...]:
    """Returns the connections of a host, by subsystem, then by its NICs.

    An address of a target that lies in a NIC's subnet is reached from that NIC. The rest, which is routed, is dealt
    out so that each NIC and each address is used, and none more than once more than needed. They behave as the host's
    own policy says, unless another one is given.

    Raises:
        PlanError: a subsystem has no target, or no NIC has an address of the target's family.
    """
    policy = policy or host.connect_policy
    published = {subsystem.nqn: target for target in targets for subsystem in target.subsystems}
    found: list[Connection] = []
    for nqn in host.connect:
        target = published.get(nqn)
        if target is None or not target.ports:
            raise PlanError("no target publishes this subsystem", where=host.name, found=nqn)
        ways = _ways(plan, [names.ip_address(port.traddr) for port in target.ports])
        if not ways:
            raise PlanError(
                "no NIC of this host can reach the subsystem",
                where=host.name,
                found=f"{nqn} at {', '.join(port.traddr for port in target.ports)}",
                remedy="Give a RoCE NIC of this host an address of the same family.",
            )
        ports = {port.traddr: port.trsvcid for port in target.ports}
        tos = {nic.netdev: nic.tos for nic in plan.nics}
        found += [
            Connection(names.nqn(nqn), traddr, ports[traddr], source, netdev, tos[netdev], policy)
            for netdev, source, traddr in ways
        ]
    return tuple(found)


def _ways(plan: HostPlan, traddrs: Sequence[str]) -> list[tuple[str, str, str]]:
    """(netdev, host address, target address), the NICs in the plan's order."""
    sources = [(nic.netdev, _interface(address)) for nic in plan.nics for address in nic.addresses]
    ways: set[tuple[int, str]] = set()
    for version in (4, 6):
        own = [at for at, (_, address) in enumerate(sources) if address.version == version]
        wanted = [traddr for traddr in traddrs if _bare(traddr).version == version]
        near = {(at, traddr) for at in own for traddr in wanted if _bare(traddr) in sources[at][1].network}
        ways |= near
        far = [traddr for traddr in wanted if traddr not in {reached for _, reached in near}]
        idle = [at for at in own if at not in {at for at, _ in near}] or own
        if far and idle:
            rounds = range(max(len(far), len(idle)))
            ways |= {(idle[turn % len(idle)], far[turn % len(far)]) for turn in rounds}
    ordered = sorted(ways, key=lambda way: (way[0], traddrs.index(way[1])))
    return [(sources[at][0], _scoped(sources[at][1], sources[at][0]), traddr) for at, traddr in ordered]


def _interface(text: str) -> Address:
    try:
        return ipaddress.ip_interface(text)
    except ValueError as error:
        raise HostError("this is no address with a prefix length", found=repr(text)) from error


def _bare(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _scoped(address: Address, netdev: str) -> str:
    bare = str(address.ip).partition("%")[0]
    return f"{bare}%{netdev}" if address.is_link_local and address.version == 6 else bare


# --- how ------------------------------------------------------------------------------------------------------------


def connect_argv(one: Connection, who: HostIdentity, cli: NvmeCli) -> tuple[str, ...]:
    """Returns the command that makes the connection. It holds no secret.

    Raises:
        HostError: a name or address is none.
    """
    policy = one.policy
    argv = [
        "nvme",
        "connect",
        "--transport=rdma",
        f"--traddr={names.ip_address(one.traddr)}",
        f"--trsvcid={one.trsvcid}",  # early 2.0 versions refuse a missing one
        f"--nqn={names.nqn(one.nqn)}",
        *((f"--host-traddr={names.ip_address(one.host_traddr)}",) if one.host_traddr else ()),
        f"--hostnqn={names.nqn(who.hostnqn)}",
        f"--hostid={names.hostid(who.hostid)}",
        f"--nr-io-queues={policy.nr_io_queues}",
        f"--queue-size={policy.queue_size}",
        f"--keep-alive-tmo={policy.keep_alive_s}",
        f"--reconnect-delay={policy.reconnect_delay_s}",
        f"--ctrl-loss-tmo={policy.ctrl_loss_tmo_s}",
    ]
    argv += [f"--tos={one.tos}"] if one.tos >= 0 else []
    if _takes_fast_io_fail(cli):
        argv.append(f"--fast_io_fail_tmo={policy.fast_io_fail_tmo_s}")  # nvme-cli spells this one with underscores
    if cli.major >= 3:
        argv += [f"--owner={_OWNER}", "--idempotent"]  # unconfirmed: VERSION_3_OPTIONS
    return tuple(argv)


def unconfirmed_options(cli: NvmeCli) -> tuple[str, ...]:
    """Returns what of the command for that version nobody here has seen work."""
    return (VERSION_3_OPTIONS,) if cli.major >= 3 else ()


def _takes_fast_io_fail(cli: NvmeCli) -> bool:
    return cli >= NvmeCli(2, 9)


def connect_actions(one: Connection, who: HostIdentity, cli: NvmeCli) -> tuple[Action, ...]:
    """Returns the command, and the write to sysfs for what older versions have no option for."""
    run = Run(connect_argv(one, who, cli), accepted_words=_ALREADY)
    if _takes_fast_io_fail(cli):
        return (run,)
    text = str(one.policy.fast_io_fail_tmo_s)
    return run, ControllerAttribute(one.nqn, one.traddr, "fast_io_fail_tmo", text, one.host_traddr)


def disconnect_actions(found: Iterable[Connection]) -> tuple[ControllerAttribute, ...]:
    """Returns the removal of exactly these controllers; others to the same subsystem stay."""
    return tuple(ControllerAttribute(one.nqn, one.traddr, "delete_controller", "1", one.host_traddr) for one in found)


def config_file(
    found: Sequence[Connection], who: HostIdentity, cli: NvmeCli, *, path: str, secrets: Mapping[str, str] | None = None
) -> PutFile:
    """Returns nvme-cli 2's own configuration of these connections, readable by root only: the way for secrets.

    Args:
        found: the connections, of one host.
        who: that host.
        cli: its nvme-cli.
        path: where the file shall lie.
        secrets: NQN → DH-HMAC-CHAP secret. They stand in this file and in no command; repr does not show it.

    Raises:
        UnsupportedFeatureError: nvme-cli 3 reads another format.
        HostError: a secret is not of the form `DHHC-1:…`.
    """
    if cli.major != 2:
        raise UnsupportedFeatureError(
            "the JSON configuration is that of nvme-cli 2",
            found=f"version {cli.major}.{cli.minor}",
            remedy="Convert it on the host: nvme config convert.",
        )
    secrets = secrets or {}
    for nqn, secret in secrets.items():
        if not re.fullmatch(r"DHHC-1:0[0-3]:[A-Za-z0-9+/=]+:", secret):
            raise HostError("a secret has not the form DHHC-1:…", where=nqn)
    nqns = dict.fromkeys(one.nqn for one in found)
    subsystems = [{"nqn": nqn, "ports": [_port(one, secrets) for one in found if one.nqn == nqn]} for nqn in nqns]
    root = [{"hostnqn": names.nqn(who.hostnqn), "hostid": names.hostid(who.hostid), "subsystems": subsystems}]
    return PutFile(path, json.dumps(root, indent=2) + "\n", mode=0o600)


def _port(one: Connection, secrets: Mapping[str, str]) -> dict[str, str | int]:
    policy = one.policy
    port: dict[str, str | int] = {
        "transport": "rdma",
        "traddr": one.traddr,
        "trsvcid": str(one.trsvcid),
        "host_traddr": one.host_traddr,
        "nr_io_queues": policy.nr_io_queues,
        "queue_size": policy.queue_size,
        "keep_alive_tmo": policy.keep_alive_s,
        "reconnect_delay": policy.reconnect_delay_s,
        "ctrl_loss_tmo": policy.ctrl_loss_tmo_s,
        "fast_io_fail_tmo": policy.fast_io_fail_tmo_s,
        "tos": one.tos,
    }
    return port | ({"dhchap_key": secrets[one.nqn]} if one.nqn in secrets else {})  # unconfirmed: DHCHAP_KEY


def read_connect(text: str) -> dict[str, str]:
    """Returns the options of an `nvme connect` command line by their long names; `-` in a name stays.

    Raises:
        HostError: the text is no such command.
    """
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed
        words = []
    if "connect" not in words:
        raise HostError("this is no nvme connect command", found=repr(text.strip()[:60]))
    found: dict[str, str] = {}
    words = words[words.index("connect") + 1 :]
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            found[name[2:]] = value if equals else _value(words)
        elif word[:2] in _LONG:
            found[_LONG[word[:2]]] = word[2:] or _value(words)
    return found


def _value(words: list[str]) -> str:
    """Takes the next word if it is a value; an option that stands alone, `--idempotent`, has none."""
    if not words or re.fullmatch(r"-\D.*", words[0]):
        return ""
    return words.pop(0)
