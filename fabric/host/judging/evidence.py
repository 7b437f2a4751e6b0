"""What a switch counted at the port of a NIC. A value; who reads it is above.

A switch counts queues where packets leave. The queues of the port to a host therefore hold what was sent *to* that
host: for a host that reads, the data of its targets, marked as the host asked for when it connected. What a host sends
is counted at the ports to its peers, mixed with what others send them, and proves nothing about one host.
"""

from dataclasses import dataclass

from fabric.qos import UNKNOWN, Known

__all__ = ("PortEvidence",)


@dataclass(frozen=True, slots=True)
class PortEvidence:
    """The switch's end of one NIC's cable. Counters are cumulative, since nobody knows when.

    Attributes:
        data_packets: sent to the NIC on the queue of the lossless class. other_packets: on the
            other queues, at least: some switches leave queues out.
        data_queue: that queue's number.
        classifies: whether the switch's running configuration puts the RoCE data DSCPs into the lossless class on
            every port of the fabric; UNKNOWN when it was not read.
        reason: why nothing was counted, "" if something was.
    """

    switch: str
    port: str
    data_packets: Known[int] = UNKNOWN
    other_packets: Known[int] = UNKNOWN
    data_queue: Known[int] = UNKNOWN
    classifies: Known[bool] = UNKNOWN
    reason: str = ""
