"""The three parts of a host on two bare machines joined directly: there, again, through a boot, and back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.host import HostIntent, Part, PartChange, SshExecutor, apply_part, design_part, read_host, revert_part
from fabric.host.change import change_from_json, change_to_json
from fabric.host.nvme.connect import Connection
from fabric.lab.vm import Disk, DiskKind, Machine, MachineSpec, Nic
from fabric.lab.vm.qemu import Accelerator
from fabric.plan.model import HostNicPlan, HostPlan
from fabric.qos import UNKNOWN
from fabric.remote.ssh import SshClient
from fabric.state.host import NvmetPort, NvmetState, NvmetSubsystem

pytestmark = pytest.mark.vm

UUID = "00000000-0000-4000-8000-000000000001"
NQN = "nqn.2026-11.io.fabricctl:parts"


def nic(address: str) -> HostNicPlan:
    return HostNicPlan(
        netdev="data0",
        family="rxe",
        mtu_bytes=4200,
        rdma_mtu_bytes=4096,
        dscp_to_priority=((26, 3), (48, 6)),
        pfc_priorities=(3,),
        prio_tc=(0, 0, 0, 3, 0, 0, 6, 0),
        ets_percent=(50, 0, 0, 50, 0, 0, 0, 0),
        tos=106,
        cnp_dscp=48,
        cnp_priority=6,
        rp_enabled=True,
        np_enabled=True,
        addresses=(address,),
    )


TARGET = HostIntent(
    "target1",
    "target",
    HostPlan("target1", "target", (nic("10.10.0.1/24"),)),
    target=NvmetState(
        (NvmetSubsystem(NQN, True, (), ((1, "/dev/ram0", True),)),),
        (NvmetPort(1, "rdma", "10.10.0.1", "4420", (NQN,)),),
    ),
)
ONE = Connection(NQN, "10.10.0.1", 4420, "10.10.0.2", "data0", 106)
HOST = HostIntent("host1", "host", HostPlan("host1", "host", (nic("10.10.0.2/24"),)), (ONE,))
# modules stay loaded on the way back, and a link that was up once keeps its queue: these are no difference
STATE = (
    "cd /; for f in /etc/fabricctl /etc/systemd/system /usr/local/lib /etc/nvme /etc/modules-load.d /etc/sysctl.d "
    "/etc/security/limits.d /etc/udev/rules.d; do find $f -exec stat -c '%A %U %n %N' {} + 2>/dev/null; "
    "find $f -type f -exec sha256sum {} + 2>/dev/null; done; ip -o addr show data0 | cut -d' ' -f1-7; "
    "ip -o link show data0 | cut -d' ' -f2-5,8-9; rdma link; ls /sys/class/nvme 2>/dev/null; "
    "find /sys/kernel/config -mindepth 2 | grep -v -E '/nvmet/(hosts|ports|subsystems)$'; "
    "systemctl list-units --all --plain --no-legend 'fabricctl*'; systemctl --failed --plain --no-legend"
)


@contextmanager
def at(machine: Machine) -> Iterator[tuple[SshExecutor, SshClient]]:
    with machine.login() as session:
        yield SshExecutor(session, machine.spec.name, timeout_s=180), session


def design(part: Part, intent: HostIntent, executor: SshExecutor) -> PartChange:
    return design_part(part, intent, executor, new_uuid=UUID)


def apply(part: Part, intent: HostIntent, executor: SshExecutor) -> PartChange:
    start = time.monotonic()
    change = design(part, intent, executor)
    print(f"{intent.host} {part}: designed in {time.monotonic() - start:.1f} s, {len(change.forward)} actions")
    start = time.monotonic()
    apply_part(change, executor, redesign=lambda: design(part, intent, executor))
    print(f"{intent.host} {part}: applied in {time.monotonic() - start:.1f} s")
    return change_from_json(change_to_json(change))


def state(session: SshClient) -> list[str]:
    return sorted(session.exec(["sh", "-c", STATE], timeout_s=120).stdout.splitlines())


def same(found: list[list[str]], wanted: list[list[str]]) -> None:
    for now, before in zip(found, wanted, strict=True):
        assert ("more", sorted(set(now) - set(before)), "less", sorted(set(before) - set(now))) == (
            "more",
            [],
            "less",
            [],
        )


def tos(session: SshClient) -> str:
    done = session.exec(["sh", "-c", "systemctl cat 'fabricctl-nvme-*' | grep -o -e '--tos=[0-9]*'"], timeout_s=60)
    return done.stdout.strip()


def test_parts_come_stay_survive_a_boot_and_go(
    boot: Callable[..., list[Machine]], tmp_path: Path, accelerator: Accelerator
) -> None:
    wire = str(tmp_path / "wire")
    target, host = boot(
        MachineSpec(
            "target1",
            nics=(Nic("data0", "02:00:00:00:00:01", wire, is_server=True, is_bare=True),),
            disks=(Disk(DiskKind.RAM, "ram0", 64),),
        ),
        MachineSpec("host1", nics=(Nic("data0", "02:00:00:00:00:02", wire, is_bare=True),)),
    )
    with at(target) as (at_target, t_session), at(host) as (at_host, h_session):
        bare = [state(t_session), state(h_session)]
        changes = [
            (at_target, apply(Part.NIC, TARGET, at_target)),
            (at_target, apply(Part.TARGET, TARGET, at_target)),
            (at_host, apply(Part.NIC, HOST, at_host)),
            (at_host, apply(Part.CONNECT, HOST, at_host)),
        ]
        for intent, executor in ((TARGET, at_target), (HOST, at_host)):
            for part in Part:
                assert design(part, intent, executor).is_empty
        check(at_host, h_session)
        as_set = [state(t_session), state(h_session)]
        t_session.exec(["sync"])
        h_session.exec(["sync"])

    for machine in (host, target):
        machine.power_off()
    for machine in (target, host):
        machine.start(accelerator)
    for machine in (target, host):
        machine.wait()

    with at(target) as (at_target, t_session), at(host) as (at_host, h_session):
        wait = "for i in $(seq 60); do systemctl is-system-running --wait && break; sleep 1; done; udevadm settle"
        for session in (t_session, h_session):
            session.exec(["sh", "-c", wait], timeout_s=180)
        change = design(Part.CONNECT, HOST, at_host)
        apply_part(change, at_host, redesign=lambda: design(Part.CONNECT, HOST, at_host))
        assert change.forward == ()
        for intent, executor in ((TARGET, at_target), (HOST, at_host)):
            for part in Part:
                assert design(part, intent, executor).is_empty, design(part, intent, executor).diff
        check(at_host, h_session)
        same([state(t_session), state(h_session)], as_set)
        for old, change in reversed(changes):
            revert_part(change, at_host if old.host == "host1" else at_target)
        same([state(t_session), state(h_session)], bare)


def check(executor: SshExecutor, session: SshClient) -> None:
    """What the host says of itself: live, pinned, with its timers and the type of service of the plan."""
    report = read_host(HOST, executor)
    nics, subsystems, definitions = report.reading.state.nics, report.reading.state.subsystems, report.definitions
    assert (nics[0].mtu_bytes, nics[0].rdma_mtu_bytes, nics[0].default_tos) == (4200, 4096, 106)
    assert subsystems is not UNKNOWN
    assert definitions is not UNKNOWN
    (path,) = subsystems[0].paths if subsystems[0].paths is not UNKNOWN else ()
    assert (path.state, path.host_traddr, path.fast_io_fail_tmo_s) == ("live", "10.10.0.2", 15)
    assert [(one.nqn, one.tos) for one in definitions] == [(NQN, 106)]
    assert tos(session) == "--tos=106"
    policy = session.exec(["sh", "-c", "cat /sys/class/nvme-subsystem/*/iopolicy"], timeout_s=60).stdout
    assert policy.strip() == "round-robin"
