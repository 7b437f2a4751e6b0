"""The data plane of the lab's switches: does to each Ethernet frame what `DeviceQos` says.

`SwitchCore` is pure: frames, pauses and time in, actions out. `simulate` drives it with generated RoCEv2 frames,
`Wiring` in real time with the virtual NICs of QEMU and with other switches. Evidence about our own parts and about
what loss does, not about a vendor's ASIC.
"""

from fabric.lab.wire.actions import Action, DropReason, PausePeer, Send, Tally
from fabric.lab.wire.cablefault import (
    ActiveFault,
    CableFault,
    CableFaultKind,
    cable_fault_from_json,
)
from fabric.lab.wire.core import SwitchCore
from fabric.lab.wire.faults import FaultRule, WireFault, WireFaults
from fabric.lab.wire.guest import Endpoint, GuestSide
from fabric.lab.wire.nic import NicModel, NicPlan
from fabric.lab.wire.pcap import PcapWriter
from fabric.lab.wire.platform import Platform
from fabric.lab.wire.roce import PacketKind, RoceFlow
from fabric.lab.wire.simulate import Cable, PeerPause, Source, Trace, simulate
from fabric.lab.wire.wiring import Wiring

__all__ = (
    "Action",
    "ActiveFault",
    "Cable",
    "CableFault",
    "CableFaultKind",
    "DropReason",
    "Endpoint",
    "FaultRule",
    "GuestSide",
    "NicModel",
    "NicPlan",
    "PacketKind",
    "PausePeer",
    "PcapWriter",
    "PeerPause",
    "Platform",
    "RoceFlow",
    "Send",
    "Source",
    "SwitchCore",
    "Tally",
    "Trace",
    "WireFault",
    "WireFaults",
    "Wiring",
    "cable_fault_from_json",
    "simulate",
)
