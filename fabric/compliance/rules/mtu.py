"""MTU theme: no hop drops a frame that a host may send.

Two network OSes count an MTU differently; `Capabilities.mtu_overhead_bytes` says what each leaves out.
Source: switches.md 4.3 rows 9-11.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fabric.compliance.grouping import Judgement, failed, passed, undecided
from fabric.compliance.hints import hint
from fabric.compliance.rule import PortRule, Subject
from fabric.intent.model import Endpoint, Link
from fabric.plan.mtu import carried_ip_mtu_bytes
from fabric.qos import UNKNOWN, Capabilities, Known, PortQos, Unknown
from fabric.state import Finding, Severity, Status, Where

__all__ = ("MTU_BELOW_HOST_MTU", "MTU_BELOW_POLICY", "MTU_DIFFERS_ACROSS_LINK")

_ETHERNET_BYTES = 14  # IEEE 802.3-2018 3.1.1: two addresses and the type
_VLAN_BYTES = 4  # IEEE 802.1Q-2018 9.6


def _wanted(subject: Subject, port: PortQos) -> int | None:
    planned = subject.planned(port.name)
    if planned is not None and not isinstance(planned.mtu_bytes, Unknown):
        return planned.mtu_bytes
    wanted = subject.expected.mtu_bytes
    if wanted is None or subject.capabilities is None:
        return wanted
    return min(wanted, subject.capabilities.mtu_max_bytes.value)


def _policy(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    wanted = _wanted(subject, port)
    if wanted is None:
        return
    if port.mtu_bytes is UNKNOWN:
        yield undecided("the text does not show the MTU", "read the MTU from the device")
    elif port.mtu_bytes < wanted:
        yield failed(
            f"MTU {port.mtu_bytes}",
            f"MTU {wanted} or more",
            f"raise the MTU to {wanted}{hint(subject.qos.nos, 'mtu')}: a larger frame is dropped, and no pause helps",
        )
    else:
        yield passed(f"MTU {port.mtu_bytes}")


def _host(subject: Subject, port: PortQos) -> Iterator[Judgement]:
    need = subject.expected.host_mtu(port.name)
    if need is None:
        return
    if port.mtu_bytes is UNKNOWN:
        yield undecided("the text does not show the MTU", "read the MTU from the device")
        return
    least, most = _carried(subject.capabilities, port.mtu_bytes, tagged=need.tagged)
    if most < need.ip_mtu_bytes:
        yield failed(
            f"MTU {port.mtu_bytes} carries IP packets of {most} B at most",
            f"IP packets of {need.ip_mtu_bytes} B, the MTU of the hosts",
            f"raise the MTU of the port{hint(subject.qos.nos, 'mtu')}, or lower that of the hosts",
        )
    elif least < need.ip_mtu_bytes:
        yield undecided(
            f"MTU {port.mtu_bytes}: whether this OS counts the Ethernet header in it is not known",
            "state what the OS counts in its MTU",
        )
    else:
        yield passed(f"MTU {port.mtu_bytes} carries the hosts' IP MTU of {need.ip_mtu_bytes}")


def _carried(capabilities: Capabilities | None, mtu_bytes: int, *, tagged: bool) -> tuple[int, int]:
    """The largest IP packet that passes: at least, and at most."""
    if capabilities is None:
        return mtu_bytes - _ETHERNET_BYTES - (_VLAN_BYTES if tagged else 0), mtu_bytes
    carried = carried_ip_mtu_bytes(mtu_bytes, tagged=tagged, capabilities=capabilities)
    return carried, carried


@dataclass(frozen=True, slots=True)
class MtuAcrossLink:
    """The two ends of a cable take frames of the same size, or the smaller end takes all that its OS can."""

    id: str = "mtu-differs-across-link"
    title: str = "Both ends of a link take frames of the same size."
    severity: Severity = Severity.WARNING

    def evaluate_links(self, subjects: tuple[Subject, ...], links: tuple[Link, ...]) -> Iterable[Finding]:
        """Returns one finding a link that differs or cannot be told; the place is its smaller end."""
        by_device = {subject.qos.device: subject for subject in subjects}
        for link in links:
            ends = [(end, by_device.get(end.device)) for end in (link.a, link.b)]
            known = [(end, subject) for end, subject in ends if subject is not None]
            if len(known) == len(ends):
                yield self._judge(known)

    def _judge(self, ends: list[tuple[Endpoint, Subject]]) -> Finding:
        frames = [(self._frame(end, subject), end, subject) for end, subject in ends]
        sizes = [frame for frame, _, _ in frames if frame is not UNKNOWN]
        names = " and ".join(str(end) for _, end, _ in frames)
        if len(sizes) < len(frames):
            return self._finding(Status.UNKNOWN, frames[0][1], f"{names}: the frame size of one end is not known")
        low = min(range(len(frames)), key=sizes.__getitem__)
        _, end, subject = frames[low]
        text = f"{names} take frames of {sizes[0]} B and {sizes[1]} B"
        port = subject.qos.port(end.port)
        at_most = subject.capabilities is not None and port is not None and port.mtu_bytes is not UNKNOWN
        if at_most and subject.capabilities is not None and port is not None:
            at_most = port.mtu_bytes == subject.capabilities.mtu_max_bytes.value
        if sizes[0] == sizes[1] or at_most:
            return self._finding(Status.PASS, end, text + (", all that the smaller end can" if at_most else ""))
        return self._finding(Status.FAIL, end, text)

    def _finding(self, status: Status, end: Endpoint, evidence: str) -> Finding:
        failed_here = status is Status.FAIL
        return Finding(
            rule=self.id,
            status=status,
            severity=self.severity,
            where=Where(end.device, (end.port,)),
            evidence=evidence,
            expected="frames of the same size at both ends" if failed_here else "",
            remedy=f"raise the MTU of {end}: it drops the larger frames of its peer" if failed_here else "",
        )

    @staticmethod
    def _frame(end: Endpoint, subject: Subject) -> Known[int]:
        port = subject.qos.port(end.port)
        if port is None or port.mtu_bytes is UNKNOWN or subject.capabilities is None:
            return UNKNOWN
        return port.mtu_bytes + subject.capabilities.mtu_overhead_bytes.value


MTU_BELOW_POLICY: Final = PortRule("mtu-below-policy", "Every port has the MTU of the policy.", Severity.ERROR, _policy)
MTU_BELOW_HOST_MTU: Final = PortRule(
    "mtu-below-host-mtu", "Every port carries the largest frame of the hosts.", Severity.ERROR, _host
)
MTU_DIFFERS_ACROSS_LINK: Final = MtuAcrossLink()
