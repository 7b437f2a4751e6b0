"""Connections that a host shall have against those that it has. Runs nothing.

The kernel shows no type of service of a connection, so none is compared here: the definition that made it, or the
counters of NIC and switch, must tell. The number of queues is what the kernel made of the wish, so fewer is no fault.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fabric.host.actions import Action, ControllerAttribute, Write
from fabric.host.nvme.connect import Connection, NvmeCli, connect_actions, disconnect_actions
from fabric.host.nvme.identity import HostIdentity
from fabric.qos import UNKNOWN, Known
from fabric.state.host import NvmePath, NvmeSubsystem

__all__ = ("ConnectionDifference", "connection_differences")


@dataclass(frozen=True, slots=True)
class ConnectionDifference:
    """One thing about one connection that is not as planned.

    Attributes:
        what: `missing`, `state`, or the kernel's name of a timer.
        actions: what brings it about; () where only waiting helps.
        disruptive: the connection is made anew.
    """

    connection: Connection
    what: str
    wanted: str
    found: str
    actions: tuple[Action, ...] = ()
    disruptive: bool = False


def connection_differences(
    wanted: Iterable[Connection], found: Known[tuple[NvmeSubsystem, ...]], who: HostIdentity, cli: NvmeCli
) -> tuple[ConnectionDifference, ...]:
    """Returns what must change; () when every connection stands, lives and has its timers."""
    result: list[ConnectionDifference] = []
    for one in wanted:
        if found is UNKNOWN:
            result.append(
                ConnectionDifference(one, "missing", "connected", UNKNOWN.value, connect_actions(one, who, cli))
            )
            continue
        result += _differences(one, _paths(one, found), who, cli)
    return tuple(result)


def _paths(one: Connection, found: tuple[NvmeSubsystem, ...]) -> list[NvmePath]:
    return [
        path
        for subsystem in found
        if subsystem.nqn == one.nqn and subsystem.paths is not UNKNOWN
        for path in subsystem.paths
        if path.traddr == one.traddr and path.trsvcid in {one.trsvcid, UNKNOWN}
    ]


def _differences(
    one: Connection, paths: list[NvmePath], who: HostIdentity, cli: NvmeCli
) -> Iterable[ConnectionDifference]:
    own = next((path for path in paths if path.host_traddr == one.host_traddr), None)
    if own is not None:
        yield from _timers(one, own, (*disconnect_actions((one,)), *connect_actions(one, who, cli)))
        if own.state != "live":
            yield ConnectionDifference(one, "state", "live", str(own.state))
        return
    unpinned = next((path for path in paths if path.host_traddr is UNKNOWN), None)
    connect = connect_actions(one, who, cli)
    if unpinned is None:
        yield ConnectionDifference(one, "missing", "connected", "no controller", connect)
        return
    # by its name: an attribute written by address would take the other NICs' controllers too
    anew = (Write(f"/sys/class/nvme/{unpinned.controller}/delete_controller", "1", optional=True), *connect)
    yield ConnectionDifference(one, "host_traddr", one.host_traddr, "chosen by routing", anew, disruptive=True)


def _timers(one: Connection, path: NvmePath, anew: tuple[Action, ...]) -> Iterable[ConnectionDifference]:
    policy = one.policy
    rows = (
        ("ctrl_loss_tmo", policy.ctrl_loss_tmo_s, path.ctrl_loss_tmo_s),
        ("reconnect_delay", policy.reconnect_delay_s, path.reconnect_delay_s),
        ("fast_io_fail_tmo", policy.fast_io_fail_tmo_s, path.fast_io_fail_tmo_s),
    )
    for name, wanted, found in rows:
        if found is UNKNOWN or found != wanted:
            text = UNKNOWN.value if found is UNKNOWN else f"{found} s"
            write = ControllerAttribute(one.nqn, one.traddr, name, str(wanted), one.host_traddr)
            yield ConnectionDifference(one, name, f"{wanted} s", text, (write,))
    if path.keep_alive_s is not UNKNOWN and path.keep_alive_s != policy.keep_alive_s:
        what = ("keep_alive_tmo", f"{policy.keep_alive_s} s", f"{path.keep_alive_s} s")
        yield ConnectionDifference(one, *what, actions=anew, disruptive=True)
