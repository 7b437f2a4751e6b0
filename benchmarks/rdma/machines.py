"""Two virtual machines joined directly, Soft-RoCE on both, a Linux NVMe target in one: what is measured stands here.

The kernel's host and ours connect with the same type of service to the same namespaces. `nvmeof` sets none; there is no
switch between the two machines that would treat it otherwise.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fabric.errors import EnvironmentMissingError
from fabric.lab.alarms import WallClock
from fabric.lab.vm import Machine, MachineSpec, Nic, build_image, cache_folder, create, pick_accelerator, sweep
from fabric.remote.ssh import SshClient
from tests.vm.engine.guest import FOLDER, install
from tests.vm.traffic import run

__all__ = ("FAST", "NQN", "SLOW", "SLOW_NS", "TOS", "Pair", "pair")

NQN: Final = "nqn.2026-11.io.fabricctl:bench"
TOS: Final = 104  # DSCP 26
FAST, SLOW = 1, 2  # namespaces: a RAM disk; null_blk with a completion delay
SLOW_NS: Final = 20_000_000
_TARGET, _HOST = "10.10.0.11", "10.10.0.1"
_PROGRAMS: Final = Path(__file__).resolve().parent / "guest"
_PEER: Final = "/root/peer"
_COMPILED: Final = "/root/compiled"
_BUILT: Final = Path(__file__).resolve().parents[2] / "build" / "compiled"
_ROCE: Final = "modprobe -a rdma_rxe ib_uverbs rdma_ucm; rdma link add rxe0 type rxe netdev data0"
# hosts.md 7.3 has the order of configfs; lab-recipe.md that of null_blk
_SERVE: Final = """
modprobe -a nvmet nvmet-rdma; modprobe brd rd_nr=1 rd_size={kib}; modprobe null_blk nr_devices=0
cd /sys/kernel/config/nullb; mkdir slow; cd slow
echo {mib} > size; echo 1 > memory_backed; echo 4096 > blocksize; echo 2 > irqmode; echo {slow_ns} > completion_nsec
echo {cpus} > submit_queues; echo 128 > hw_queue_depth; echo 1 > power
python3 -c '{fill}' /dev/ram0 /dev/slow
s=/sys/kernel/config/nvmet/subsystems/{nqn}; p=/sys/kernel/config/nvmet/ports/1
mkdir $s; echo 1 > $s/attr_allow_any_host
for n in 1:/dev/ram0 2:/dev/slow; do
  mkdir $s/namespaces/${{n%%:*}}; echo -n ${{n#*:}} > $s/namespaces/${{n%%:*}}/device_path
  echo 1 > $s/namespaces/${{n%%:*}}/enable
done
mkdir $p; echo rdma > $p/addr_trtype; echo ipv4 > $p/addr_adrfam; echo {address} > $p/addr_traddr
echo 4420 > $p/addr_trsvcid; ln -s $s $p/subsystems/{nqn}
"""
# every block of 4096 bytes begins with its number; the rest is noise, so that no page is all zeroes
_FILL: Final = """
import os, struct, sys
noise = bytearray(os.urandom(1 << 20))
for path in sys.argv[1:]:
    with open(path, "r+b", buffering=0) as disk:
        for mib in range(disk.seek(0, 2) >> 20):
            for at in range(256):
                struct.pack_into("<Q", noise, at * 4096, mib * 256 + at)
            disk.seek(mib << 20)
            disk.write(noise)
"""


@dataclass(slots=True)
class Pair:
    """The two machines, logged in. mib: of each namespace."""

    host: SshClient
    target: SshClient
    mib: int

    def ours(
        self, nsid: int, *, size: int, readers: int, queues: int, seconds: float, is_compiled: bool = False
    ) -> Any:
        """Returns what our engine reached, in plain Python or with its hot modules compiled (`make compiled`)."""
        url = f"nvme+rdma://{_TARGET}:4420/{NQN}?nsid={nsid}"
        asked = {"url": url, "size": size, "readers": readers, "queues": queues, "seconds": seconds, "tos": TOS}
        return self._measured("ours.py", asked, _COMPILED if is_compiled else FOLDER)

    def kernel(self, nsid: int, *, size: int, readers: int, seconds: float) -> Any:
        """Returns what the kernel's host reached, by fio."""
        device = self.device(nsid)
        return self._measured("kernel.py", {"device": device, "size": size, "readers": readers, "seconds": seconds})

    def local(self, device: str, *, size: int, readers: int, seconds: float) -> Any:
        """Returns what fio reads from a disk inside the target."""
        asked = {"device": device, "size": size, "readers": readers, "seconds": seconds}
        return self._measured("kernel.py", asked, at=self.target)

    def peer(self, nsid: int, *, size: int, seconds: float) -> Any:
        """Returns what PyPI's `nvmeof` reached."""
        asked = {"address": _TARGET, "nqn": NQN, "nsid": nsid, "size": size, "seconds": seconds}
        return self._measured("peer.py", asked, _PEER)

    def contexts(self, nsid: int, asked: Mapping[str, Any]) -> Any:
        """Returns how long contexts took to load through our engine."""
        url = f"nvme+rdma://{_TARGET}:4420/{NQN}?nsid={nsid}"
        return self._measured("contexts.py", {**asked, "url": url, "tos": TOS}, FOLDER)

    def connect_kernel(self, queues: int) -> int:
        """Connects the kernel's host; returns how many I/O queues it made."""
        argv = ["nvme", "connect", "-t", "rdma", "-a", _TARGET, "-s", "4420", "-n", NQN, "-i", str(queues)]
        run(self.host, *argv, "-T", str(TOS))
        said = run(self.host, "sh", "-c", "dmesg | grep -o 'creating [0-9]* I/O queues' | tail -1")
        return int(said.split()[1])

    def device(self, nsid: int) -> str:
        """Returns the kernel's disk of a namespace."""
        return f"/dev/nvme0n{nsid}"

    def raw_mib_s(self, seconds: float) -> float:
        """Returns what the link carries to the host with nothing else running: frames made by the target's kernel."""
        script = _PKTGEN.format(seconds=seconds, mac="02:00:00:00:00:02", address=_HOST)
        before, now = "/sys/class/net/data0/statistics/rx_bytes", "cat /proc/uptime"
        start = run(self.host, "sh", "-c", f"cat {before}; {now}").split()
        run(self.target, "sh", "-euc", script, timeout_s=seconds + 120)
        end = run(self.host, "sh", "-c", f"cat {before}; {now}").split()
        return (int(end[0]) - int(start[0])) / 2**20 / seconds

    def _measured(self, program: str, asked: Mapping[str, Any], path: str = "", at: SshClient | None = None) -> Any:
        argv = ["env", f"PYTHONPATH={path}", "python3", f"/root/{program}", json.dumps(asked)]
        return json.loads(run(at or self.host, *argv, timeout_s=asked.get("seconds", 300) + 180).splitlines()[-1])


_PKTGEN: Final = """
modprobe pktgen
echo rem_device_all > /proc/net/pktgen/kpktgend_0; echo add_device data0 > /proc/net/pktgen/kpktgend_0
for line in "count 0" "pkt_size 4154" "delay 0" "dst {address}" "dst_mac {mac}"; do
  echo "$line" > /proc/net/pktgen/data0
done
( echo start > /proc/net/pktgen/pgctrl ) & sleep {seconds}; echo stop > /proc/net/pktgen/pgctrl || kill $!
wait
"""


@contextmanager
def pair(*, mib: int = 128, cpus: int = 4, is_compiled: bool = True) -> Iterator[Pair]:
    """Yields the pair, with the kernel's host not connected yet.

    Args:
        mib: of each namespace.
        cpus: of the host: the kernel's host makes no more I/O queues than that. The target has one.
        is_compiled: the compiled engine is wanted too.
    """
    base = Path(tempfile.mkdtemp(prefix="pair", dir="/tmp"))
    try:
        with ExitStack() as stack:
            host, target = _boot(base, cpus, 512 + 2 * mib)
            at_host, at_target = stack.enter_context(host.login()), stack.enter_context(target.login())
            for session in (at_host, at_target):
                run(session, "sh", "-euc", _ROCE)
                for program in _PROGRAMS.glob("*.py"):
                    session.put(f"/root/{program.name}", program.read_bytes())
            fields = {"kib": mib * 1024, "mib": mib, "slow_ns": SLOW_NS, "cpus": 1, "fill": _FILL}
            script = _SERVE.format(nqn=NQN, address=_TARGET, **fields)
            run(at_target, "sh", "-euc", script, timeout_s=300)
            install(at_host)
            if is_compiled:
                _install_compiled(at_host)
            _install_peer(at_host)
            run(at_host, "modprobe", "nvme-rdma")
            yield Pair(at_host, at_target, mib)
    finally:
        sweep(base / "lab")
        shutil.rmtree(base)


def _boot(base: Path, cpus: int, target_mib: int) -> tuple[Machine, Machine]:
    image = build_image(cache_folder(os.environ), clock=WallClock())
    accelerator = pick_accelerator(image)
    wire = str(base / "wire")
    nics = (
        Nic("data0", "02:00:00:00:00:01", wire, is_server=True, address=f"{_TARGET}/24"),
        Nic("data0", "02:00:00:00:00:02", wire, address=f"{_HOST}/24"),
    )
    specs = (
        MachineSpec("target1", memory_mib=target_mib, nics=nics[:1]),
        MachineSpec("host1", memory_mib=768, cpus=cpus, nics=nics[1:]),
    )
    target, host = (create(base / "lab", spec, image, clock=WallClock()) for spec in specs)
    for machine in (target, host):
        machine.start(accelerator)
    for machine in (target, host):
        machine.wait()
    return host, target


def _install_compiled(session: SshClient) -> None:
    """Puts the engine as `make compiled` built it into the host; the bar's script has just built it."""
    if not any(_BUILT.glob("fabric_engine*.so")):
        raise EnvironmentMissingError("the compiled engine is missing", found=str(_BUILT), remedy="Run: make compiled")
    with tempfile.TemporaryDirectory() as folder:
        packed = shutil.make_archive(f"{folder}/packed", "gztar", _BUILT)
        session.put("/root/compiled.tar.gz", Path(packed).read_bytes())
    script = f"mkdir -p {_COMPILED}; tar -xzf /root/compiled.tar.gz -C {_COMPILED}"
    run(session, "sh", "-euc", f"{script}; python3 -m compileall -q {_COMPILED}", timeout_s=300)


def _install_peer(session: SshClient) -> None:
    """Puts PyPI's `nvmeof` and its `ibverbs` into the host: their own wheels, unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", f"{folder}/peer"]
        platform = ["--python-version", "3.11", "--only-binary=:all:"]
        subprocess.run([*argv, *platform, "nvmeof==2026.10.22", "ibverbs==2026.10.22"], check=True)
        packed = shutil.make_archive(f"{folder}/packed", "gztar", f"{folder}/peer")
        session.put("/root/peer.tar.gz", Path(packed).read_bytes())
    run(session, "sh", "-euc", f"mkdir -p {_PEER}; tar -xzf /root/peer.tar.gz -C {_PEER}")
