"""Real virtual machines: one alone, and two joined directly with NVMe over Soft-RoCE between them."""

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.alarms import WallClock
from fabric.lab.vm import Accelerator, Image, Machine, MachineSpec, Nic, create, processes, restore, sweep
from fabric.lab.vm.accelerator import boots
from fabric.remote.ssh import SshClient

pytestmark = pytest.mark.vm

Boot = Callable[..., list[Machine]]
NQN = "nqn.2026-11.io.fabricctl:lab"
NVMET = "/sys/kernel/config/nvmet"


def run(session: SshClient, *argv: str, stdin: bytes = b"") -> str:
    result = session.exec(argv, stdin=stdin, timeout_s=120)
    assert result.ok, f"{argv}: {result.stdout}{result.stderr}"
    return result.stdout


def write(session: SshClient, path: str, text: str) -> None:
    run(session, "tee", path, stdin=text.encode())


def rxe(session: SshClient, nic: str) -> None:
    run(session, "modprobe", "-a", "rdma_rxe", "ib_uverbs", "rdma_ucm")
    run(session, "rdma", "link", "add", "rxe0", "type", "rxe", "netdev", nic)


def test_probe_recognises_a_kernel_that_boots(image: Image) -> None:
    assert boots(image, Accelerator.TCG, limit_s=60)


def test_machine_has_soft_roce_and_leaves_nothing(boot: Boot, lab: Path, tmp_path: Path) -> None:
    wire = tmp_path / "wire"
    start = time.monotonic()
    (machine,) = boot(MachineSpec("host1", nics=(Nic("data0", "02:00:00:00:00:01", str(wire), is_server=True),)))
    print(f"cold boot to SSH: {time.monotonic() - start:.1f} s")
    with machine.login() as session:
        assert run(session, "hostname").strip() == "host1"
        assert run(session, "systemctl", "is-system-running").strip() == "running"
        run(session, "modprobe", "-a", "nvmet-rdma", "nvme-rdma")
        rxe(session, "data0")
        assert "netdev data0" in run(session, "rdma", "link", "show")
    print(f"memory of a machine of {machine.spec.memory_mib} MiB: {machine.memory_bytes() >> 20} MiB")
    record = processes.read_record(machine.folder / "process.json")
    assert record is not None

    assert sweep(lab) == ("host1",)

    assert not processes.is_running(record)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.bar  # in CI, tests/vm/lab reboots machines
def test_disk_survives_a_power_cut_and_a_reboot_gives_the_keys_back(boot: Boot, accelerator: Accelerator) -> None:
    (machine,) = boot(MachineSpec("host1"))
    with machine.login() as session:
        write(session, "/root/mark", "kept")
        write(session, "/etc/systemd/network/10-mgmt0.link", "changed by its owner")
        run(session, "sync")
    machine.kill()
    assert not machine.is_running()

    machine.start(accelerator)
    machine.wait()

    with machine.login() as session:
        assert run(session, "cat", "/root/mark") == "kept"
        assert run(session, "cat", "/etc/systemd/network/10-mgmt0.link") == "changed by its owner"
    machine.power_off()
    assert not machine.is_running()


@pytest.mark.bar  # in CI, tests/vm/lab saves machines, and comes back to them
def test_saved_machine_comes_back_as_it_was_more_than_once(
    boot: Boot, lab: Path, image: Image, accelerator: Accelerator, tmp_path: Path
) -> None:
    (machine,) = boot(MachineSpec("host1"))
    with machine.login() as session:
        run(session, "modprobe", "rdma_rxe")
        write(session, "/run/mark", "in memory")
        write(session, "/root/mark", "on disk")
        boot_id = run(session, "cat", "/proc/sys/kernel/random/boot_id")
    machine.save(tmp_path / "state")

    for turn in range(2):
        start = time.monotonic()
        again = restore(lab, tmp_path / "state", image, accelerator=accelerator, clock=WallClock())
        seconds = time.monotonic() - start
        print(f"restore {turn}: {seconds:.1f} s")
        with again.login() as session:
            assert run(session, "cat", "/run/mark", "/root/mark") == "in memoryon disk"
            assert run(session, "cat", "/proc/sys/kernel/random/boot_id") == boot_id
            assert abs(float(run(session, "date", "+%s")) - time.time()) < 30
            write(session, "/root/mark", "written after")
        again.remove()


def test_machine_that_a_killed_program_left_is_swept(lab: Path, image: Image, accelerator: Accelerator) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from fabric.lab.alarms import WallClock\n"
        "from fabric.lab.vm import *\n"
        "machine = create(Path(sys.argv[1]), MachineSpec('host1'), find_image(Path(sys.argv[2])), clock=WallClock())\n"
        "machine.start(Accelerator(sys.argv[3]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    argv = [sys.executable, "-c", code, str(lab), str(image.folder.parent), str(accelerator)]
    assert subprocess.run(argv, check=False).returncode == -9
    record = processes.read_record(lab / "host1" / "process.json")
    assert record is not None
    assert processes.is_running(record)
    (lab / "host1" / "process.json").unlink()  # as if it had died before it could write it

    assert sweep(lab) == ("host1",)

    assert not processes.is_running(record)
    assert not lab.exists()


def test_second_machine_of_a_name_is_refused(lab: Path, image: Image) -> None:
    create(lab, MachineSpec("host1"), image, clock=WallClock())
    with pytest.raises(HostError, match="has a machine of this name"):
        create(lab, MachineSpec("host1"), image, clock=WallClock())


def serve_brd(session: SshClient, address: str) -> None:
    """Serves /dev/ram0 over RDMA: hosts.md 7.3."""
    run(session, "modprobe", "-a", "nvmet-rdma")
    run(session, "modprobe", "brd", "rd_nr=1", "rd_size=65536")
    subsystem, port = f"{NVMET}/subsystems/{NQN}", f"{NVMET}/ports/1"
    run(session, "mkdir", subsystem)
    write(session, f"{subsystem}/attr_allow_any_host", "1")
    run(session, "mkdir", f"{subsystem}/namespaces/1")
    write(session, f"{subsystem}/namespaces/1/device_path", "/dev/ram0")
    write(session, f"{subsystem}/namespaces/1/enable", "1")
    run(session, "mkdir", port)
    for name, value in (("trtype", "rdma"), ("adrfam", "ipv4"), ("traddr", address), ("trsvcid", "4420")):
        write(session, f"{port}/addr_{name}", value)
    run(session, "ln", "-s", subsystem, f"{port}/subsystems/{NQN}")


def pair(wire: Path) -> Sequence[MachineSpec]:
    return (
        MachineSpec(
            "target1", nics=(Nic("data0", "02:00:00:00:00:01", str(wire), is_server=True, address="10.0.0.1/24"),)
        ),
        MachineSpec("host1", nics=(Nic("data0", "02:00:00:00:00:02", str(wire), address="10.0.0.2/24"),)),
    )


@pytest.mark.bar  # in CI, tests/vm/lab reads back what it wrote
def test_host_reads_back_over_rdma_what_it_wrote_and_again_after_a_restore(
    boot: Boot, tmp_path: Path, lab: Path, image: Image, accelerator: Accelerator
) -> None:
    target, host = boot(*pair(tmp_path / "wire"))
    pattern = os.urandom(1 << 20)
    with target.login() as at_target, host.login() as at_host:
        rxe(at_target, "data0")
        rxe(at_host, "data0")
        assert re.search(r"active_mtu:\s+4096", run(at_host, "ibv_devinfo", "-d", "rxe0"))
        serve_brd(at_target, "10.0.0.1")
        run(at_host, "modprobe", "nvme-rdma")
        connect = ("nvme", "connect", "-t", "rdma", "-a", "10.0.0.1", "-s", "4420", "-n", NQN, "-i", "1", "-T", "104")
        run(at_host, *connect)
        run(at_host, "dd", "of=/dev/nvme0n1", "bs=64k", "oflag=direct", "iflag=fullblock", stdin=pattern)
        run(at_host, "dd", "if=/dev/nvme0n1", "of=/root/back", "bs=64k", "count=16", "iflag=direct")
        written = run(at_target, "sha256sum", "/dev/ram0")
        run(at_host, "dd", "if=/dev/nvme0n1", "of=/root/whole", "bs=1M", "iflag=direct")
        assert run(at_host, "sha256sum", "/root/whole").split()[0] == written.split()[0]
        assert run(at_host, "sha256sum", "/root/back").split()[0] == hashlib.sha256(pattern).hexdigest()
        run(at_host, "nvme", "disconnect-all")

    target.save(tmp_path / "target")
    host.save(tmp_path / "host")
    wire = {"data0": str(tmp_path / "other")}
    target = restore(lab, tmp_path / "target", image, accelerator=accelerator, clock=WallClock(), sockets=wire)
    host = restore(lab, tmp_path / "host", image, accelerator=accelerator, clock=WallClock(), sockets=wire)

    with host.login() as at_host:
        run(at_host, *connect)
        run(at_host, "dd", "if=/dev/nvme0n1", "of=/root/again", "bs=64k", "count=16", "iflag=direct")
        assert run(at_host, "sha256sum", "/root/again").split()[0] == hashlib.sha256(pattern).hexdigest()
    assert sweep(lab) == ("host1", "target1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host", "target"]
