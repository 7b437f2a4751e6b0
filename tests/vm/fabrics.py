"""A lab with its inventory, driven as a user drives it: `fabricctl` and `ansible-playbook` in processes of their own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fabric.lab.site import Site
from fabric.remote.ssh import SshClient, SshTarget
from fabric.resources import data_path
from fabric.workflow import Environment
from fabric.workflow.lab import RATE_BPS, design_lab, lab_down, running_lab, topology
from tests.vm.traffic import run

__all__ = ("Driven", "Ran", "Saved", "driven_lab", "end_in_order", "state_of_host")

_BIN: Final = Path(sys.executable).parent
_LIMIT_S: Final = 900
# What a host is, for a comparison before and after: everybody's files, link, RDMA, target, connections, our units.
_STATE: Final = """
import hashlib, os, pathlib, re, stat, subprocess
def said(*argv):
    return subprocess.run(argv, capture_output=True, text=True).stdout
for top in ("/etc", "/usr/local"):
    for folder, folders, files in os.walk(top):
        folders.sort()
        for path in sorted(os.path.join(folder, name) for name in files):
            kept = os.lstat(path)
            link = stat.S_ISLNK(kept.st_mode)
            content = os.readlink(path).encode() if link else pathlib.Path(path).read_bytes()
            print(path, oct(kept.st_mode), hashlib.sha256(content).hexdigest()[:16])
print(re.sub(r".*(<[^>]*>).*?(mtu [0-9]+).*", r"\\1 \\2", said("ip", "-o", "link", "show", "data0")))
print(*said("ip", "-o", "-4", "addr", "show", "data0").split())
print(said("rdma", "link", "show"))
for top in ("nvmet/subsystems", "nvmet/ports", "nvmet/hosts", "rdma_cm"):
    for folder, folders, _ in os.walk("/sys/kernel/config/" + top):
        for name in sorted(folders):  # not the top: modules stay loaded, and it is theirs
            print(folder, name)
print(*sorted(os.listdir("/sys/class/nvme")) if os.path.isdir("/sys/class/nvme") else ())
for what in ("list-unit-files", "list-units"):
    print(said("systemctl", what, "--no-legend", "--all", "fabricctl*"))
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. document: what it printed as JSON, {} if nothing."""

    status: int
    stdout: str
    stderr: str
    document: Mapping[str, Any] = field(default_factory=dict)

    def outcomes(self) -> dict[str, str]:
        """Returns by device how it ended."""
        return {one["device"]: one["outcome"] for one in self.document["devices"]}

    def failed_rules(self) -> set[str]:
        """Returns the rules with a FAIL."""
        return {one["rule"] for one in self.document["findings"] if one["status"] == "fail"}


@dataclass(slots=True)
class Driven:
    """A running lab and the inventory that describes it."""

    site: Site
    inventory: Path
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """Returns the environment of commands: this lab, and a state directory of its own."""
        own = {"FABRICCTL_LAB": str(self.folder / "lab"), "FABRICCTL_STATE": str(self.folder / "state")}
        return {**os.environ, **own, "ANSIBLE_NOCOLOR": "true", "PATH": f"{_BIN}:{os.environ['PATH']}"}

    def fabricctl(self, verb: str, *words: str, inventory: bool = True) -> Ran:
        """Returns how `fabricctl VERB -i INVENTORY --json …` ended."""
        done = self._run(self.argv(verb, *words, inventory=inventory))
        return Ran(done.returncode, done.stdout, done.stderr, json.loads(done.stdout) if done.stdout.strip() else {})

    def argv(self, verb: str, *words: str, inventory: bool = True) -> list[str]:
        """Returns the command `fabricctl VERB -i INVENTORY --json …`."""
        given = ["-i", str(self.inventory)] if inventory else []
        return [str(_BIN / "fabricctl"), *verb.split(), *given, "--runs", str(self.folder / "runs"), "--json", *words]

    def playbook(self, name: str, *words: str) -> tuple[Ran, dict[str, int]]:
        """Returns how `ansible-playbook` ended, and by host how many tasks changed something."""
        own = ["-e", f"runs={self.folder / 'runs'}"]
        argv = [str(_BIN / "ansible-playbook"), "-i", str(self.inventory), *own, *words]
        done = self._run([*argv, str(data_path("playbooks", name))])
        recap = re.findall(r"(?m)^(\S+)\s+: ok=\d+\s+changed=(\d+)", done.stdout)
        return Ran(done.returncode, done.stdout, done.stderr), {host: int(changed) for host, changed in recap}

    def sh(self, device: str, script: str, *, timeout_s: float = 120) -> str:
        """Returns what a shell script printed on a machine; it must succeed."""
        with self.site.machine(device).login() as session:
            return run(session, "sh", "-euc", script, timeout_s=timeout_s)

    def python(self, device: str, program: str, timeout_s: float = 120) -> str:
        """Returns what a Python program printed on a machine; it must succeed."""
        with self.site.machine(device).login() as session:
            return run(session, "python3", "-c", program, timeout_s=timeout_s)

    def patch_switch(self, device: str, patch: object) -> None:
        """Changes the running configuration of a SONiC switch by hand, with a JSON patch, as an operator would."""
        login = self.site.folder.logins()[device]
        target = SshTarget(
            device, login.host, login.port, login.user, password=login.password, known_hosts=Path(login.known_hosts)
        )
        with closing(SshClient(target, clock=self.site.tools.clock)) as session:
            session.open()
            path = f"{session.home()}/by-hand.json"
            session.put(path, json.dumps(patch).encode())
            run(session, "sudo", "config", "apply-patch", path)
            session.remove(path)

    def dscp_received(self) -> dict[str, dict[str, int]]:
        """Returns by port of the first switch the IP frames by DSCP that came in."""
        (ports,) = self.site.ask("counters", switches=[self.site.spec.switches[0].name]).values()
        return {port: dict(row["dscp_received"]) for port, row in ports.items()}

    def _run(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, env=self.environ, cwd=self.folder, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )


def end_in_order() -> None:
    """Makes SIGTERM what Ctrl-C is, also to what a shell started behind its back: the lab goes down with its program."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


@contextmanager
def driven_lab(name: str, *, rate_bps: int = RATE_BPS, inventory: Path | None = None) -> Iterator[Driven]:
    """Yields the lab of a shipped topology, or of another inventory, in a folder with a path short for sockets."""
    base = Path(tempfile.mkdtemp(prefix="lab", dir="/tmp"))
    environment = Environment()
    described = topology(name) if inventory is None else inventory
    try:
        spec = design_lab([described], environment, rate_bps=rate_bps)
        with running_lab(spec, base / "lab", environment=environment) as site:
            yield Driven(site, described, base)
    finally:
        lab_down(base / "lab")
        shutil.rmtree(base)


@dataclass(frozen=True, slots=True)
class Saved:
    """A lab that was provisioned and saved, to begin from again."""

    driven: Driven
    folder: Path

    def again(self) -> Driven:
        """Returns the lab as it was saved."""
        self.driven.site = self.driven.site.restore_all(self.folder)
        return self.driven


def state_of_host(driven: Driven, device: str) -> str:
    """Returns what a host is, as text to compare."""
    return driven.python(device, _STATE)
