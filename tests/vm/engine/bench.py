"""A host and a Linux target with a leaf between them, set up by hand, and programs that run in the host.

The target serves over RDMA and TCP, from one RAM disk: `KV`; `CLOSED`, which no host may use; `TWO`, with two I/O
queues. `/dev/slow` there answers after `SLOW_S`. Programs are those of `tests.vm.engine.programs`.
"""

import json
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

import pytest

from fabric.workflow.lab.access import ssh_words
from tests.vm.engine import guest, programs
from tests.vm.fabrics import Driven

__all__ = (
    "ADDRESS",
    "CLOSED",
    "HOST",
    "HOST_PORT",
    "KV",
    "RDMA_IN_CI",
    "TARGET",
    "TARGET_PORT",
    "TRANSPORTS",
    "TWO",
    "Bench",
    "Talk",
    "set_up",
)

HOST, TARGET = "host1", "target1"
HOST_PORT, TARGET_PORT = "Ethernet0", "Ethernet16"
ADDRESS: Final = "10.10.0.11"
KV: Final = "nqn.2026-11.net.example:kv"
CLOSED: Final = "nqn.2026-11.net.example:closed"
TWO: Final = "nqn.2026-11.net.example:two"
TRANSPORTS: Final = ("tcp", "rdma")
RDMA_IN_CI: Final = (pytest.param("tcp", marks=pytest.mark.bar), "rdma")  # of what is long and lies above both
SLOW_S: Final = 4
_PORTS: Final = {"rdma": 1, "tcp": 2}
_NVMET: Final = "/sys/kernel/config/nvmet"
_PACKAGE: Final = "tests.vm.engine.programs"
_HOST: Final = """
ip link set data0 mtu 4200 up
ip address add 10.10.0.1/24 dev data0
sysctl -qw net.ipv6.conf.data0.disable_ipv6=1
modprobe -a rdma_rxe rdma_ucm
rdma link add rxe0 type rxe netdev data0
"""
_TARGET: Final = f"""
ip link set data0 mtu 4200 up
ip address add {ADDRESS}/24 dev data0
modprobe -a rdma_rxe rdma_ucm nvmet nvmet-rdma nvmet-tcp
modprobe null_blk nr_devices=0
rdma link add rxe0 type rxe netdev data0
slow=/sys/kernel/config/nullb/slow
mkdir $slow
echo 16 >$slow/size
echo 4096 >$slow/blocksize
echo 2 >$slow/irqmode
echo {SLOW_S}000000000 >$slow/completion_nsec
(echo 1 >$slow/power) </dev/null >/dev/null 2>&1 &  # the kernel looks for partitions, which takes several answers
sysctl -qw net.ipv6.conf.data0.disable_ipv6=1
subsystem() {{
    mkdir {_NVMET}/subsystems/$1
    echo $2 >{_NVMET}/subsystems/$1/attr_allow_any_host
}}
namespace() {{
    mkdir {_NVMET}/subsystems/$1/namespaces/$2
    echo $3 >{_NVMET}/subsystems/$1/namespaces/$2/device_path
    echo 1 >{_NVMET}/subsystems/$1/namespaces/$2/enable
}}
port() {{
    mkdir {_NVMET}/ports/$1
    echo $2 >{_NVMET}/ports/$1/addr_trtype
    echo ipv4 >{_NVMET}/ports/$1/addr_adrfam
    echo {ADDRESS} >{_NVMET}/ports/$1/addr_traddr
    echo 4420 >{_NVMET}/ports/$1/addr_trsvcid
}}
subsystem {KV} 1
subsystem {CLOSED} 0
subsystem {TWO} 1
echo 2 >{_NVMET}/subsystems/{TWO}/attr_qid_max
namespace {KV} 1 /dev/ram0
namespace {TWO} 1 /dev/ram0
port {_PORTS["rdma"]} rdma
port {_PORTS["tcp"]} tcp
"""


class Talk:
    """A program that runs in the host, and what it and the test say to each other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.result: Mapping[str, Any] = {}

    def until(self, place: str) -> str:
        """Returns what follows `place` where the program tells that it is there; it must come to that."""
        for line in self._stream(self._process.stdout):
            if line.startswith(f"at {place}"):
                return line.removeprefix(f"at {place}").strip()
        raise AssertionError(f"the program never came to {place}: {self._stream(self._process.stderr).read()}")

    def places(self) -> Iterator[str]:
        """Yields each place that the program comes to, until it prints its result."""
        for line in self._stream(self._process.stdout):
            if not line.startswith("at "):
                self.result = json.loads(line)
                return
            yield line.removeprefix("at ").strip()
        raise AssertionError(f"the program ended early: {self._stream(self._process.stderr).read()}")

    def say(self, line: str = "go") -> None:
        """Answers the program."""
        stream = self._stream(self._process.stdin)
        stream.write(line + "\n")
        stream.flush()

    def kill(self) -> None:
        """Ends the program where it stands; it is at a place where it waits."""
        self._process.kill()

    def end(self) -> Mapping[str, Any]:
        """Returns the program's result; what it still tells of its places is let be."""
        for _place in self.places():
            pass
        assert self._process.wait(60) == 0
        return self.result

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


@dataclass(frozen=True, slots=True)
class Bench:
    """The running lab."""

    driven: Driven

    def url(self, transport: str, nqn: str = KV, nsid: int = 1) -> str:
        """Returns the URL of a namespace."""
        return f"nvme+{transport}://{ADDRESS}:4420/{nqn}?nsid={nsid}"

    @contextmanager
    def talk(self, program: str, *words: str, limit_s: float = 300) -> Iterator[Talk]:
        """Yields a program that runs in the host; it is ended with the context."""
        command = ["timeout", "-k", "1", f"{limit_s:g}", "env", f"PYTHONPATH={guest.FOLDER}", "python3", "-m"]
        with self.process(HOST, *command, f"{_PACKAGE}.{program}", *words) as process:
            yield Talk(process)

    @contextmanager
    def process(self, machine: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Yields a command that runs on a machine; it is ended with the context."""
        argv = ssh_words(self.driven.site.folder.logins()[machine], [shlex.quote(word) for word in words])
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, program: str, *words: str, limit_s: float = 300) -> Mapping[str, Any]:
        """Returns the result of a program."""
        with self.talk(program, *words, limit_s=limit_s) as talk:
            return talk.end()

    def target(self, script: str) -> str:
        """Returns what a shell script printed on the target."""
        return self.driven.sh(TARGET, script)

    def host(self, script: str) -> str:
        """Returns what a shell script printed on the host."""
        return self.driven.sh(HOST, script)

    def listen(self, transport: str) -> None:
        """Offers all subsystems over a transport."""
        links = [f"{_NVMET}/ports/{_PORTS[transport]}/subsystems/{nqn}" for nqn in (KV, CLOSED, TWO)]
        self.target("\n".join(f"ln -s {_NVMET}/subsystems/{Path(link).name} {link}" for link in links))

    def hang_up(self, transport: str) -> None:
        """Takes the target's port away: every connection ends, and nobody listens."""
        self.target(f"rm {_NVMET}/ports/{_PORTS[transport]}/subsystems/*")

    def add_namespace(self, nsid: int, device: str) -> None:
        """Gives `KV` one more namespace, on a block device of the target."""
        place = f"{_NVMET}/subsystems/{KV}/namespaces/{nsid}"
        self.target(f"mkdir {place}; echo {device} >{place}/device_path; echo 1 >{place}/enable")

    def remove_namespace(self, nsid: int) -> None:
        """Takes a namespace from `KV`."""
        place = f"{_NVMET}/subsystems/{KV}/namespaces/{nsid}"
        self.target(f"echo 0 >{place}/enable; rmdir {place}")

    @contextmanager
    def fault(self, kind: str, port: str, **options: Any) -> Iterator[None]:
        """Holds a fault at the cable of a port of the leaf while the context is open."""
        number = self.strike(kind, port, **options)
        try:
            yield
        finally:
            self.mend(number)

    def strike(self, kind: str, port: str, **options: Any) -> int:
        """Returns the number of a fault that holds until it is mended."""
        number: int = self.driven.site.ask("fault-add", kind=kind, switch="leaf1", port=port, **options)
        return number

    def mend(self, number: int) -> None:
        """Ends a fault."""
        self.driven.site.ask("fault-remove", number=number)

    def struck(self) -> dict[int, int]:
        """Returns by number how many frames each fault in force struck."""
        return {one["number"]: one["struck"] for one in self.driven.site.ask("fault-list")}

    def dscps(self, before: Mapping[str, Mapping[str, int]] | None = None) -> dict[str, dict[int, int]]:
        """Returns by port and DSCP how many frames came in since `before`, or ever."""
        told = self.driven.dscp_received()
        known = before or {}
        return {
            port: {
                int(dscp): count - known.get(port, {}).get(dscp, 0)
                for dscp, count in row.items()
                if count != known.get(port, {}).get(dscp, 0)
            }
            for port, row in told.items()
        }


def set_up(driven: Driven) -> Bench:
    """Returns the lab with the target serving and the engine and its programs in the host."""
    bench = Bench(driven)
    bench.target(_TARGET)
    for transport in TRANSPORTS:
        bench.listen(transport)
    bench.host(_HOST)
    with driven.site.machine(HOST).login() as session:
        guest.install(session)
        session.put("/root/programs.tar.gz", _programs())
    bench.host(f"tar -xzf /root/programs.tar.gz -C {guest.FOLDER}; python3 -m compileall -q {guest.FOLDER}/tests")
    return bench


def _programs() -> bytes:
    """Returns the programs as the package that they are here; its parents have nothing in them."""
    buffer = BytesIO()
    place = Path(*_PACKAGE.split("."))
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for parent in list(place.parents)[:-1]:
            tar.addfile(tarfile.TarInfo(str(parent / "__init__.py")))
        for path in sorted(Path(programs.__path__[0]).glob("*.py")):
            tar.add(path, arcname=str(place / path.name))
    return buffer.getvalue()
