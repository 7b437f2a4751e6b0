"""Every counter of one host or target, in one round trip: its RDMA ports, its netdevs, and what voids a difference.

An epoch is the boot and the driver's instance: sysfs gives a device that is made anew a new inode. Changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fabric.errors import HostError
from fabric.host import Executor, NicFacts
from fabric.host import names as checked
from fabric.host.batch import Question, ask
from fabric.host.parse.ethtool import read_statistics
from fabric.host.parse.rdma import read_statistic
from fabric.intent.model import HostNic
from fabric.remote.ssh import ExecResult
from fabric.state import Counter, CounterSet, Missing, Source, SourceKind
from fabric.verify import is_volume
from fabric.verify.meanings import RDMA_FAMILIES, meaning, width

__all__ = ("Machine", "MachineReading", "rdma_place", "read_machine", "read_volumes", "unreached")

_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_LIFESPAN_MS: Final = 10  # hosts.md 5.1: hw_counters are cached for that long unless `lifespan` says else
_CARRIER: Final = "carrier_down_count"
# bnxt_en has its counters written into memory once a second (stats-block-usecs 1000000); mlx5 asks when it is asked
_NETDEV_CACHE_NS: Final = 1_000_000_000
_PER_NIC: Final = 6
_FRAMES: Final = ("rx_packets", "tx_packets")  # of /sys/class/net/*/statistics; RoCE of hardware passes them by
_HARDWARE: Final = frozenset(RDMA_FAMILIES) - {"rxe"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A host or target.

    Attributes:
        why_not: why it is not contacted, "" when it is.
    """

    name: str
    kind: SourceKind
    nics: tuple[HostNic, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MachineReading:
    """What one machine gave."""

    sets: tuple[CounterSet, ...] = ()
    missing: tuple[Missing, ...] = ()


def rdma_place(facts: NicFacts) -> str:
    """Returns `rxe0/1`, "" where the netdev has no RDMA device."""
    return f"{facts.rdma_device}/{facts.rdma_port}" if facts.rdma_device else ""


def read_machine(machine: Machine, facts: Sequence[NicFacts], executor: Executor, *, now_ns: int) -> MachineReading:
    """Returns the counters of every NIC; what a NIC did not give is missing, with the reason.

    Args:
        machine: whom to ask.
        facts: of its NICs, in their order.
        executor: the way to it.
        now_ns: the asker's clock; `span_ns` is left to the asker.

    Raises:
        HostError: it cannot be reached, or does not answer.
    """
    head: list[Question] = [("rdma", "-j", "statistic", "show"), _BOOT]
    questions = [*head, *(one for fact in facts for one in _questions(fact))]
    statistic, boot, *own = ask(executor, questions)
    if not boot.ok:
        raise HostError("it does not say which boot this is", where=machine.name, found=boot.stderr.strip()[:120])
    listed = _listed(statistic)
    sets: list[CounterSet] = []
    missing: list[Missing] = []
    for nic, fact, answers in zip(machine.nics, facts, _chunks(own), strict=True):
        for one in _of_nic(machine, nic, fact, answers, (listed, boot.stdout.strip(), now_ns)):
            (sets if isinstance(one, CounterSet) else missing).append(one)  # type: ignore[arg-type]  # by its type
    return MachineReading(tuple({one.source: one for one in sets}.values()), tuple(missing))


def read_volumes(machine: Machine, facts: Sequence[NicFacts], executor: Executor) -> dict[tuple[Source, str], int]:
    """Returns the counts of packets alone, as fast as can be: two such readings tell whether anything moves.

    Raises:
        HostError: it cannot be reached, or does not answer.
    """
    pairs = tuple(zip(machine.nics, facts, strict=True))
    folders = {
        _folder(fact): Source(machine.name, rdma_place(fact), machine.kind, nic.family)
        for nic, fact in pairs
        if fact.rdma_device
    }
    hardware = [fact.port for nic, fact in pairs if nic.family in _HARDWARE]
    questions: list[Question] = [("ethtool", "-S", checked.netdev(one)) for one in hardware]
    if folders:
        questions.append(("grep", "-rs", "", *folders))
    answers = ask(executor, questions)
    found: dict[tuple[Source, str], int] = {}
    if folders:
        for path, value in _lines(answers[-1].stdout):
            folder, _, name = path.rpartition("/")
            if folder in folders and is_volume(folders[folder].family, name):
                found[folders[folder], name] = value
    for port, answer in zip(hardware, answers, strict=False):
        source = Source(machine.name, port, machine.kind, "netdev")
        shown = _statistics(answer)
        found |= {(source, name): value for name, value in shown.items() if is_volume("netdev", name)}
    return found


def unreached(machine: Machine, why: str) -> MachineReading:
    """Returns that each NIC of the machine is missing."""
    sources = (Source(machine.name, nic.netdev, machine.kind, nic.family) for nic in machine.nics)
    return MachineReading(missing=tuple(Missing(one, why) for one in sources))


def _questions(fact: NicFacts) -> list[Question]:
    port = checked.netdev(fact.port)
    place = f"/sys/class/net/{port}"
    down = ("cat", f"{place}/{_CARRIER}")
    frames = ("grep", "-s", "", *(f"{place}/statistics/{one}" for one in _FRAMES))
    questions: list[Question] = [("ethtool", "-S", port), down, frames, ("stat", "-L", "-c", "%i", place)]
    if not fact.rdma_device:
        return [*questions, ("true",), ("true",)]
    base = f"/sys/class/infiniband/{checked.rdma_device(fact.rdma_device)}"
    return [*questions, ("stat", "-L", "-c", "%i", base), ("grep", "-rs", "", _folder(fact))]


def _folder(fact: NicFacts) -> str:
    return f"/sys/class/infiniband/{checked.rdma_device(fact.rdma_device)}/ports/{fact.rdma_port}/hw_counters"


def _chunks(answers: Sequence[ExecResult]) -> Iterator[Sequence[ExecResult]]:
    return (answers[begin : begin + _PER_NIC] for begin in range(0, len(answers), _PER_NIC))


def _listed(answer: ExecResult) -> dict[str, tuple[tuple[str, int], ...]]:
    """RDMA port → counters by `rdma`; {} where the tool is missing or speaks otherwise."""
    try:
        found = read_statistic(answer.stdout) if answer.ok and answer.stdout.strip() else ()
    except HostError:
        return {}
    return {f"{one.device}/{one.port}": one.values for one in found}


def _of_nic(
    machine: Machine,
    nic: HostNic,
    fact: NicFacts,
    answers: Sequence[ExecResult],
    common: tuple[dict[str, tuple[tuple[str, int], ...]], str, int],
) -> Iterator[CounterSet | Missing]:
    statistics, carrier, frames, netdev_inode, rdma_inode, files = answers
    listed, boot, now_ns = common
    place = rdma_place(fact)
    if place:
        source = Source(machine.name, place, machine.kind, nic.family)
        in_files = dict(_files(files.stdout))
        lifespan_ns = in_files.pop("lifespan", _LIFESPAN_MS) * 1_000_000
        # netlink and sysfs have the same counters; an old `rdma`, or none, leaves sysfs
        values = listed.get(place) or tuple(in_files.items())
        if values:
            counters = _counters(nic.family, values)
            epoch = _epoch(boot, rdma_inode)
            yield CounterSet(source, epoch, now_ns, cache_ns=lifespan_ns, counters=counters)
        else:
            yield Missing(source, "neither `rdma -j statistic` nor hw_counters shows a counter")
    elif nic.family in RDMA_FAMILIES:
        source = Source(machine.name, nic.netdev, machine.kind, nic.family)
        yield Missing(source, f"there is no RDMA device on {nic.netdev}")
    yield from _of_netdev(machine, nic, (statistics, carrier, frames), _epoch(boot, netdev_inode), now_ns)


def _of_netdev(
    machine: Machine, nic: HostNic, answers: tuple[ExecResult, ExecResult, ExecResult], epoch: str, now_ns: int
) -> Iterator[CounterSet | Missing]:
    """The netdev's own counters; of one below Soft-RoCE, which counts nothing of RoCE by class, those of its link.

    Below Soft-RoCE every frame passes the netdev, so its totals are those of the cable: `statistics.rx_packets`.
    """
    source = Source(machine.name, nic.netdev, machine.kind, "netdev")
    answer, carrier, frames = answers
    values = _statistics(answer)
    is_known = any(meaning("netdev", name) is not None for name in values)
    if carrier.ok and carrier.stdout.strip().isdecimal():
        values[_CARRIER] = int(carrier.stdout)
    if nic.family not in _HARDWARE:
        values |= {f"statistics.{name}": value for name, value in _files(frames.stdout) if name in _FRAMES}
    if is_known or (nic.family not in _HARDWARE and any(meaning("netdev", name) for name in values)):
        counters = _counters("netdev", values.items())
        yield CounterSet(source, epoch, now_ns, cache_ns=_NETDEV_CACHE_NS, counters=counters)
    elif nic.family in _HARDWARE:
        said = answer.stderr.strip().partition("\n")[0][:120]
        yield Missing(source, f"ethtool -S: {said}" if said else "ethtool -S shows none of the counters that are known")


def _statistics(answer: ExecResult) -> dict[str, int]:
    """The counters of `ethtool -S`; {} where it says nothing, or something else."""
    try:
        return dict(read_statistics(answer.stdout)) if answer.ok else {}
    except HostError:
        return {}


def _files(text: str) -> Iterator[tuple[str, int]]:
    """Name → value of `grep -r ""` over hw_counters."""
    return ((path.rpartition("/")[2], value) for path, value in _lines(text))


def _lines(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        path, _, value = line.partition(":")
        if value.strip().isdecimal():
            yield path, int(value)


def _counters(family: str, values: Iterable[tuple[str, int]]) -> tuple[Counter, ...]:
    return tuple(Counter(name, value, width(family, name)) for name, value in values)


def _epoch(boot: str, inode: ExecResult) -> str:
    return f"{boot.partition('-')[0]}.{inode.stdout.strip() if inode.ok else '?'}"
