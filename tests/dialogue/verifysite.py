"""A fabric to verify without VMs: an emulated switch, a host and a target over SSH, NVMe/TCP between the two.

Everything is real but the RDMA NICs: `rdma` on the machines prints counters that a test moves.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fabric.engine.client import TargetSpec, soft_target
from fabric.lab import DeviceSpec, serve
from fabric.lab.alarms import WallClock
from fabric.lab.stock import StockPort, sonic_config
from fabric.observe import Event, Recorder
from fabric.workflow import Environment, Request, RunFolder, Summary, SystemClock, Verdict
from tests.dialogue.shell_server import ShellServer, shell_server

NQN = "nqn.2026-01.example:kv1"
SCRATCH_BYTES = 4 << 20
_STATISTIC = "#!/bin/sh\ncase \"$*\" in *statistic*) cat '{counters}';; *link*) cat '{links}';; *) exit 1;; esac\n"
_INVENTORY = """\
switches:
  vars: {{fabric_name: small, fabric_role: leaf, fabric_adopt: true, ansible_user: admin}}
  hosts:
    leaf1:
      fabric_nos: sonic
      fabric_version: "202411"
      fabric_asic: spectrum3
      fabric_hwsku: ACS-MSN4700
      fabric_ports:
        - {{ports: Ethernet0, role: host, speed: 100G, lanes: 4}}
        - {{ports: Ethernet8, role: target, speed: 100G, lanes: 4}}
      fabric_links:
        - {{a: "leaf1:Ethernet0", b: "gpu1:lo", cable: 3m}}
        - {{a: "leaf1:Ethernet8", b: "kv1:lo", cable: 3m}}
hosts:
  hosts:
    gpu1:
      fabric_nics: [{{netdev: lo, family: rxe, speed: 100G, addresses: [127.0.0.2/8]}}]
      fabric_connect: [{nqn}]
targets:
  hosts:
    kv1:
      fabric_nics: [{{netdev: lo, family: rxe, speed: 100G, addresses: [127.0.0.1/8]}}]
      fabric_subsystems: [{{nqn: "{nqn}", namespaces: [{{nsid: 1, device: /dev/ram0}}]}}]
      fabric_nvme_ports: [{{traddr: 127.0.0.1, trsvcid: {port}}}]
"""


class HastyClock(SystemClock):
    """Sleeps in no time: the time that was slept is added to what it shows."""

    def __init__(self) -> None:
        self._skipped_ns = 0

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._skipped_ns

    def sleep_s(self, seconds: float) -> None:
        self._skipped_ns += round(seconds * 1e9)


@dataclass
class Machine:
    """A host or target over SSH, with an RDMA port that a test counts for."""

    name: str
    folder: Path
    values: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (
            "sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_seq_err", "completer_retry_err",
        )  # fmt: skip
        self.values = dict.fromkeys(names, 0)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "tmp").mkdir()
        links = self.folder / "links.json"
        links.write_text(json.dumps([{"ifname": "rxe0", "port": 1, "netdev": "lo", "state": "ACTIVE"}]))
        program = self.folder / "bin" / "rdma"
        program.write_text(_STATISTIC.format(counters=self.counters, links=links))
        program.chmod(0o755)
        self.move()

    @property
    def counters(self) -> Path:
        return self.folder / "counters.json"

    @property
    def environment(self) -> dict[str, str]:
        own = {"TMPDIR": str(self.folder / "tmp"), "HOME": str(self.folder)}
        return {"PATH": f"{self.folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", **own}

    def move(self, **by: int) -> None:
        for name, count in by.items():
            self.values[name] += count
        self.counters.write_text(json.dumps([{"ifname": "rxe0", "port": 1, **self.values}]))

    def without_counters(self) -> None:
        self.counters.write_text("[]")


@dataclass
class VerifySite:
    """A served fabric; `at` is what a test does when an event is heard."""

    request: Request
    environment: Environment
    host: Machine
    target: Machine
    recorder: Recorder
    folder: Path
    profile: Path
    servers: dict[str, ShellServer]
    disk: Path
    checked: Path
    at: dict[str, object] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        self.recorder(event)
        action = self.at.get(event.name)
        if callable(action):
            action()

    def carry(self, packets: int = 1000, *, lost: int = 0) -> None:
        """Counts packets from the target to the host, and as many back; the first few are lost."""
        self.target.move(sent_pkts=packets, rcvd_pkts=packets)
        self.host.move(sent_pkts=packets, rcvd_pkts=packets - lost)
        if lost:
            self.host.move(out_of_seq_request=1)
            self.target.move(rcvd_seq_err=1)


@contextmanager
def verify_site(folder: Path, passwords: Mapping[str, str] | None = None) -> Iterator[VerifySite]:
    """Yields the fabric, its switch, host and target served on loopback; `passwords` by device, for who cares which."""
    known = passwords or {}
    host, target = Machine("gpu1", folder / "gpu1"), Machine("kv1", folder / "kv1")
    profile = folder / "load.yml"
    profile.write_text(
        f"transport: tcp\nspan: {SCRATCH_BYTES}\n"
        "phases: [{name: incast, pattern: incast, size: 64KiB, readers: 2, seconds: 1}]\n"
    )
    disk = folder / "disk"
    ports = [StockPort(name, 100_000) for name in ("Ethernet0", "Ethernet8")]
    stock = sonic_config(ports, hostname="leaf1", hwsku="ACS-MSN4700")
    switch = DeviceSpec("leaf1", "sonic", stock, hwsku="ACS-MSN4700", password=known.get("leaf1", ""))
    with ExitStack() as stack:
        port = stack.enter_context(_served_target(disk))
        fronts = stack.enter_context(serve([switch], directory=folder / "lab"))
        servers = {
            one.name: stack.enter_context(
                shell_server(one.folder, one.environment, password=known.get(one.name, "right"))
            )
            for one in (host, target)
        }
        inventory, overlay = folder / "site.yml", folder / "lab.yml"
        inventory.write_text(_INVENTORY.format(nqn=NQN, port=port))
        overlay.write_text(fronts.inventory())
        overlay.chmod(0o600)
        logins = folder / "logins.json"
        logins.write_text(json.dumps({
            group: {"hosts": {name: _login(servers[name])}} for group, name in (("hosts", "gpu1"), ("targets", "kv1"))
        }))  # fmt: skip
        request = Request(sources=(inventory, overlay, logins), runs=folder / "runs")
        recorder = Recorder()
        site = VerifySite(
            request, Environment(), host, target, recorder, folder, profile, servers, disk, _checked(folder)
        )
        site.environment = Environment(clock=HastyClock(), observer=site.hear, state_dir=folder / "state")
        yield site


@contextmanager
def _served_target(path: Path) -> Iterator[int]:
    done = threading.Event()
    with soft_target(TargetSpec(SCRATCH_BYTES, path, NQN)) as served:
        thread = threading.Thread(target=served.serve, args=(WallClock(), done.is_set))
        thread.start()
        try:
            yield served.server.port
        finally:
            done.set()
            thread.join(20)


def _login(server: ShellServer) -> dict[str, object]:
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": server.port,
        "ansible_user": "root",
        "ansible_password": server.password,
        "fabric_known_hosts": os.fspath(server.known_hosts),
    }


def _checked(folder: Path) -> Path:
    """Returns a run that found nothing wrong, to stand for the checks."""
    run = RunFolder.create(folder / "runs", "provision", 0.0)
    run.write("summary", Summary("provision", "small", Verdict.OK))
    return run.path
