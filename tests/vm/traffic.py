"""Load on real machines and what they count: reads by fio, Soft-RoCE's counters, UDP and TCP by nothing but Python."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.remote.ssh import SshClient

__all__ = ("LOSS_COUNTERS", "Reads", "grown", "namespaces", "read_all", "run", "rxe_counters")

# hosts.md 5.1, column rxe: each moves only when a packet was lost, late or refused; episodes, not packets
LOSS_COUNTERS: Final = (
    "out_of_seq_request", "rcvd_seq_err", "completer_retry_err", "duplicate_request", "retry_exceeded_err",
    "rcvd_rnr_err", "send_rnr_err", "send_err",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reads:
    """What fio read. `mib_s` of all jobs together."""

    mib_s: float
    reads: int
    errors: int


def run(session: SshClient, *argv: str, stdin: bytes = b"", timeout_s: float = 120) -> str:
    """Returns what a command printed; it must succeed."""
    result = session.exec(argv, stdin=stdin, timeout_s=timeout_s)
    assert result.ok, f"{argv}: {result.stdout}{result.stderr}"
    return result.stdout


def namespaces(session: SshClient) -> list[str]:
    """Returns the block devices of fabrics controllers on a host, in order."""
    code = (
        "import pathlib\n"
        "for one in sorted(pathlib.Path('/sys/class/nvme-subsystem').glob('nvme-subsys*/nvme*n*')):\n"
        "    print('/dev/' + one.name)\n"
    )
    return run(session, "python3", "-c", code).split()


def read_all(
    session: SshClient, devices: Sequence[str], *, block: str, depth: int, seconds: float, jobs: int = 1
) -> Reads:
    """Reads all devices at once, directly and at random, and returns what came."""
    argv = [
        "fio", "--output-format=json", "--ioengine=libaio", "--direct=1", "--rw=randread", f"--bs={block}",
        f"--iodepth={depth}", f"--numjobs={jobs}", f"--runtime={seconds:g}", "--time_based", "--group_reporting",
    ]  # fmt: skip
    for number, device in enumerate(devices):
        argv += [f"--name=job{number}", f"--filename={device}"]
    text = run(session, *argv, timeout_s=seconds + 120)
    found = json.loads(text[text.index("{") :])["jobs"]
    rows = [one["read"] for one in found]
    return Reads(
        sum(row["bw_bytes"] for row in rows) / 2**20,
        sum(row["total_ios"] for row in rows),
        sum(one["error"] for one in found),
    )


def rxe_counters(session: SshClient) -> dict[str, int]:
    """Returns Soft-RoCE's hardware counters, of all its devices together."""
    code = (
        "import pathlib\n"
        "for one in pathlib.Path('/sys/class/infiniband').glob('*/ports/1/hw_counters/*'):\n"
        "    print(one.name, one.read_text().strip()) if one.name != 'lifespan' else None\n"
    )
    total: dict[str, int] = {}
    for line in run(session, "python3", "-c", code).splitlines():
        name, value = line.split()
        total[name] = total.get(name, 0) + int(value)
    return total


def grown(before: Mapping[str, int], after: Mapping[str, int], names: Sequence[str] = LOSS_COUNTERS) -> dict[str, int]:
    """Returns the counters of `names` that moved, with by how much. All of them must exist."""
    moved = {name: after[name] - before[name] for name in names}
    return {name: count for name, count in moved.items() if count}
