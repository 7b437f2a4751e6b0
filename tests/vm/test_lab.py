"""The lab as a whole: up from an inventory, used through its verbs, broken, and taken down with nothing left.

Machines come from warm states after the first run; a test that boots says so.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabric.errors import HostError
from fabric.lab.site import LabFolder, Site
from fabric.lab.vm import Image, Machine, processes
from fabric.lab.wire.pcap import read_pcap
from fabric.workflow import Environment
from fabric.workflow.lab import design_lab, lab_down, lab_status, lab_up, opened_lab, running_lab, topology

pytestmark = pytest.mark.vm

QUIET = Environment()
FABRICCTL = (sys.executable, "-c", "from fabric.cli import main; main()")
NQN = "nqn.2026-11.net.example:target1"
NVMET = "/sys/kernel/config/nvmet"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a folder with a path short enough for sockets, and takes down what the test left in it."""
    base = Path(tempfile.mkdtemp(prefix="lab", dir="/tmp"))
    yield base / "lab"
    lab_down(base / "lab")
    shutil.rmtree(base)


def sh(machine: Machine, script: str, *, timeout_s: float = 120) -> str:
    with machine.login() as session:
        done = session.exec(["sh", "-euc", script], timeout_s=timeout_s)
    assert done.ok, f"{machine.spec.name}: {script}: {done.stdout}{done.stderr}"
    return done.stdout


def address(machine: Machine, last: int) -> None:
    sh(machine, f"ip link set data0 mtu 4200 up; ip address add 10.10.0.{last}/24 dev data0")


def soft_roce(machine: Machine) -> None:
    sh(machine, "modprobe -a rdma_rxe rdma_ucm; rdma link add rxe0 type rxe netdev data0")


def ping(machine: Machine, last: int, *, size: int = 4000, count: int = 5) -> bool:
    with machine.login() as session:
        argv = ["ping", "-c", str(count), "-i", "0.2", "-W", "10", "-M", "do", "-s", str(size), f"10.10.0.{last}"]
        return session.exec(argv, timeout_s=120).ok


def cli(folder: Path, *words: str) -> Any:
    argv = [*FABRICCTL, "lab", *words, "--json"]
    done = subprocess.run(
        argv, env={**os.environ, "FABRICCTL_LAB": str(folder)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def is_clean(folder: Path, token: str) -> bool:
    """Returns whether neither a file nor a process of the lab is left."""
    return not folder.exists() and not list(processes.with_token(f"fabric-{token}"))


def token_of(folder: Path) -> str:
    record = LabFolder(folder).record()
    assert record is not None
    return record.token


@pytest.mark.usefixtures("image")
def test_lab_goes_up_carries_large_frames_is_captured_and_goes_down(folder: Path, tmp_path: Path) -> None:
    start = time.monotonic()
    shown = cli(folder, "up", "--topology", "lab")
    print(f"lab up: {time.monotonic() - start:.1f} s")
    assert shown["state"] == "running"
    assert [one["name"] for one in shown["devices"] if one["running"]] == ["leaf1", "host1", "host2", "target1"]
    assert all(one["login"]["password"] is None for one in shown["devices"])
    token = token_of(folder)
    site = opened_lab(QUIET, folder)
    host, target = site.machine("host1"), site.machine("target1")
    for machine in (host, target):
        assert "mtu 1500" in sh(machine, "ip link show data0")
        assert "state DOWN" in sh(machine, "ip link show data0")
        assert "inet" not in sh(machine, "ip address show data0")
    assert site.ask("status")["connected"] == ["leaf1:Ethernet0", "leaf1:Ethernet16", "leaf1:Ethernet8"]
    address(host, 1)
    address(target, 11)

    with subprocess.Popen(
        [*FABRICCTL, "lab", "pcap", "leaf1:Ethernet16", "-o", str(tmp_path / "port.pcap")],
        env={**os.environ, "FABRICCTL_LAB": str(folder)},
    ) as capture:
        end = time.monotonic() + 30
        while not (tmp_path / "port.pcap").exists() or (tmp_path / "port.pcap").stat().st_size == 0:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert ping(host, 11)
        capture.send_signal(signal.SIGINT)

    with (tmp_path / "port.pcap").open("rb") as file:
        frames = list(read_pcap(file))
    assert len([frame for _, frame in frames if len(frame) == 14 + 20 + 8 + 4000]) == 10  # 5 requests, 5 replies
    assert all(abs(unix_ns / 1e9 - time.time()) < 300 for unix_ns, _ in frames)
    counted = cli(folder, "counters", "leaf1")["leaf1"]
    assert counted["Ethernet0"]["dscp_received"]["0"] >= 5
    assert cli(folder, "ssh", "host1", "hostname") == {"status": 0, "stdout": "host1\n", "stderr": ""}
    assert "SONiC" in cli(folder, "ssh", "leaf1", "show version")["stdout"]
    with pytest.raises(HostError, match="runs here already"):
        lab_up(site.spec, QUIET, folder=folder)

    assert cli(folder, "down") == ["host1", "host2", "leaf1", "target1"]

    assert is_clean(folder, token)
    assert cli(folder, "down") == []


@pytest.mark.bar  # in CI, tests/vm/lab reboots, tests/vm/engine cuts cables
@pytest.mark.usefixtures("image")
def test_a_reboot_and_a_cable_that_is_cut_and_mended(folder: Path) -> None:
    """Boots one machine."""
    spec = design_lab([topology("two-leaves")], QUIET)
    with running_lab(spec, folder, environment=QUIET) as site:
        host, target = site.machine("host1"), site.machine("target1")
        address(target, 11)
        address(host, 1)
        assert ping(host, 11, size=1000), "across a SONiC leaf, and an EOS leaf with its MTU of 1500"
        number = site.ask("fault-add", kind="down", switch="leaf1", port="Ethernet240")
        assert not ping(host, 11, size=1000, count=2)
        site.ask("fault-remove", number=number)
        assert ping(host, 11, size=1000)
        sh(host, "touch /root/kept")

        start = time.monotonic()
        site.reboot("host1")

        print(f"reboot: {time.monotonic() - start:.1f} s")
        assert sh(host, "ls /root") == "kept\n"
        assert "state DOWN" in sh(host, "ip link show data0")
        address(host, 1)
        assert ping(host, 11, size=1000), "the port's socket survives a reboot"


def serve_and_connect(site: Site) -> None:
    host, target = site.machine("host1"), site.machine("target1")
    for machine, last in ((target, 11), (host, 1)):
        address(machine, last)
        soft_roce(machine)
    subsystem, port = f"{NVMET}/subsystems/{NQN}", f"{NVMET}/ports/1"
    lines = ["modprobe nvmet-rdma", f"mkdir {subsystem}", f"mkdir {subsystem}/namespaces/1", f"mkdir {port}"]
    lines += [f"echo 1 >{subsystem}/attr_allow_any_host", f"echo /dev/ram0 >{subsystem}/namespaces/1/device_path"]
    lines += [f"echo 1 >{subsystem}/namespaces/1/enable"]
    lines += [
        f"echo {value} >{port}/addr_{name}"
        for name, value in (("trtype", "rdma"), ("adrfam", "ipv4"), ("traddr", "10.10.0.11"), ("trsvcid", "4420"))
    ]
    lines += [f"ln -s {subsystem} {port}/subsystems/{NQN}"]
    sh(target, "\n".join(lines))
    sh(host, f"modprobe nvme-rdma; nvme connect -t rdma -a 10.10.0.11 -s 4420 -n {NQN} -i 1 -T 104")


@pytest.mark.bar  # in CI, tests/vm/lab saves a lab with connections, and comes back to it
@pytest.mark.usefixtures("image")
def test_lab_with_live_rdma_comes_back_from_a_saved_state_more_than_once(folder: Path) -> None:
    saved = folder.parent / "saved"
    spec = design_lab([topology("lab")], QUIET)
    with running_lab(spec, folder, environment=QUIET) as first:
        site = first
        serve_and_connect(site)
        host = site.machine("host1")
        sh(
            host,
            "dd if=/dev/urandom of=/root/pattern bs=64k count=16; dd if=/root/pattern of=/dev/nvme0n1 oflag=direct bs=64k",
        )
        start = time.monotonic()
        site.save_all(saved)
        print(f"save with live RDMA: {time.monotonic() - start:.1f} s")
        for turn in range(2):
            start = time.monotonic()
            site = site.restore_all(saved)
            print(f"restore {turn}: {time.monotonic() - start:.1f} s")
            host = site.machine("host1")
            assert "live" in sh(host, "cat /sys/class/nvme/nvme0/state")
            sh(host, "dd if=/dev/nvme0n1 of=/root/back bs=64k count=16 iflag=direct && cmp /root/back /root/pattern")
            sh(host, "dd if=/dev/zero of=/dev/nvme0n1 bs=64k count=16 oflag=direct")  # the next turn must not see it
            assert int(site.ask("counters")["leaf1"]["Ethernet16"]["dscp_received"]["26"]) > 0


@pytest.mark.usefixtures("image")
def test_machines_cabled_directly_reach_each_other(folder: Path) -> None:
    with running_lab(design_lab([topology("direct")], QUIET), folder, environment=QUIET) as site:
        address(site.machine("target1"), 11)
        address(site.machine("host1"), 1)
        assert ping(site.machine("host1"), 11)


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("victim", ["process", "machine"])
def test_whatever_is_killed_the_next_down_leaves_nothing(folder: Path, victim: str) -> None:
    site = lab_up(design_lab([topology("direct")], QUIET), QUIET, folder=folder)
    token = token_of(folder)
    place = (
        LabFolder(folder).path / "process.json"
        if victim == "process"
        else site.machine("host1").folder / "process.json"
    )
    record = processes.read_record(place)
    assert record is not None
    records = [processes.read_record(one.folder / "process.json") for one in site.machines.values()]
    os.kill(record.pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while processes.is_running(record):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert lab_status(QUIET, folder).state == "dead"

    lab_down(folder)

    assert is_clean(folder, token)
    assert not [one for one in records if one is not None and processes.is_running(one)]


def test_up_that_is_killed_halfway_leaves_nothing_after_the_next_down(folder: Path, image: Image) -> None:
    """Boots, as far as it comes."""
    assert image.digest
    argv = [*FABRICCTL, "lab", "up", "--topology", "direct", "--fresh"]
    process = subprocess.Popen(argv, env={**os.environ, "FABRICCTL_LAB": str(folder)}, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not (folder / "machines" / "target1" / "machine.json").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        token = token_of(folder)
    finally:
        process.kill()
        process.wait()

    assert lab_down(folder) == ("host1", "target1")

    assert is_clean(folder, token)
