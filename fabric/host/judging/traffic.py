"""What counters of host and switch together say about the class of RDMA traffic. Pure.

Both are cumulative and start at different moments. So only what cannot be otherwise is said: a host received RDMA
packets, its switch sent it at least as many packets in all, and none of them was in the lossless class.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fabric.host.change import HostIntent
from fabric.host.judging.answers import ERROR, WARNING, Rule, at_nic, doubtful
from fabric.host.judging.evidence import PortEvidence
from fabric.host.report import HostReport
from fabric.plan.model import HostPlan
from fabric.qos import UNKNOWN, Known
from fabric.state import Finding

__all__ = ("LOSSY", "Received", "lossy_only", "rdma_received", "traffic_findings")

LOSSY: Final = Rule("data-in-lossy-queue", WARNING)
_SKEW: Final = 0.95  # the two counters are read at different moments, and a switch may poll its own every 10 s
# what a driver counts of packets that came in: rxe, ionic (samples/linux/show/rdma_statistic_ionic.json), bnxt_re
_PACKETS: Final = ("rcvd_pkts", "rx_rdma_ucast_pkts", "rx_pkts")
_UNSEEN: Final = frozenset({"rx_pkts"})  # Linux 6.1 bnxt_re/hw_counters.c; no sample
# and, where it counts no packets, of requests: at least one packet each (mlx5, rdma_statistic_mlx5.json)
_REQUESTS: Final = ("rx_write_requests", "rx_read_requests")


@dataclass(frozen=True, slots=True)
class Received:
    """What one NIC received by RDMA since its driver was loaded, in packets at least, and by which counters."""

    packets: int
    name: str


def rdma_received(plan: HostPlan, netdev: str, report: HostReport) -> Known[Received]:
    """Returns how many RDMA packets came in at least; UNKNOWN when the driver counts nothing of the kind."""
    if netdev not in {nic.netdev for nic in plan.nics}:
        return UNKNOWN
    device = report.reading.state.nic(netdev).rdma_device
    number = next((one.rdma_port for one in report.reading.facts if one.netdev == netdev), 1)
    own = next((one for one in report.counters if (one.device, one.port) == (device, number)), None)
    if own is None:
        return UNKNOWN
    for name in _PACKETS:
        value = own.value(name)
        if value is not UNKNOWN:
            return Received(value, doubtful(name, ["bnxt_re counters"] if name in _UNSEEN else []))
    requests = [value for name in _REQUESTS if (value := own.value(name)) is not UNKNOWN]
    return Received(sum(requests), " + ".join(_REQUESTS)) if requests else UNKNOWN


def lossy_only(evidence: PortEvidence, received: Known[Received]) -> str:
    """Returns the proof that RDMA traffic came and none of it in the lossless class; "" when there is none."""
    if received is UNKNOWN or received.packets == 0:
        return ""
    if evidence.data_packets is UNKNOWN or evidence.other_packets is UNKNOWN or evidence.data_packets > 0:
        return ""
    if evidence.other_packets < received.packets * _SKEW:
        return ""  # the switch's counters are younger than the host's
    return (
        f"{received.packets} RDMA packets came in ({received.name}), and of {evidence.other_packets} packets that "
        f"{evidence.switch} sent out of {evidence.port} none was on queue {evidence.data_queue}"
    )


def traffic_findings(intent: HostIntent, report: HostReport, peers: Mapping[str, PortEvidence]) -> Iterator[Finding]:
    """Returns one finding for each NIC whose switch was asked: whether its RDMA traffic is in the lossless class."""
    for nic in intent.plan.nics:
        evidence = peers.get(nic.netdev)
        if evidence is not None:
            yield _judge(intent, nic.netdev, report, evidence)


def _judge(intent: HostIntent, netdev: str, report: HostReport, evidence: PortEvidence) -> Finding:
    where = at_nic(intent.host, netdev)
    place = f"{evidence.switch} {evidence.port}"
    expected = "the RDMA packets of this NIC on the queue of the lossless class"
    received = rdma_received(intent.plan, netdev, report)
    seen = lossy_only(evidence, received)
    if seen:
        # the configuration explains it; else it may be of the time before
        severity = ERROR if evidence.classifies is False else WARNING
        remedy = (
            f"put the RoCE DSCPs into the lossless class on {evidence.switch}"
            if evidence.classifies is False
            else "look at the type of service of the connections; if it is right, this is of the time before it was"
        )
        return LOSSY.failed(where, seen, expected, remedy, severity=severity)
    if evidence.reason or evidence.data_packets is UNKNOWN:
        why = evidence.reason or "its counters by queue were not read"
        return LOSSY.unknown(where, f"{place}: {why}", expected)
    if received is UNKNOWN:
        return LOSSY.unknown(where, "the host's driver does not count what comes in by RDMA", expected)
    if received.packets == 0:
        return LOSSY.passed(where, "no RDMA packet came in since the counters began: nothing is in the wrong class")
    text = f"{received.packets} came in ({received.name}); {place} sent {evidence.data_packets} on the data queue"
    if evidence.data_packets >= received.packets * _SKEW:
        return LOSSY.passed(where, text)
    return LOSSY.unknown(where, f"{text}: the two count since different moments", expected)
