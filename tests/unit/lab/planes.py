"""Switches of the lab with a data plane that has really counted: pauses, drops, marks, a storm of its watchdog."""

import json
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fabric.clock import FakeClock
from fabric.lab.backplane import Backplane
from fabric.lab.device import Device, Neighbour
from fabric.lab.eos import EosDevice
from fabric.lab.sonic import SonicDevice
from fabric.lab.spec import DeviceSpec
from fabric.lab.stock import StockPort, sonic_tables
from fabric.lab.wire import Endpoint, Platform, RoceFlow, SwitchCore, Wiring
from fabric.nos.catalog import catalog
from fabric.observe import Observer, silent
from fabric.qos import DeviceQos
from tests.unit.lab.wire.peers import SystemClock

MS = 1_000_000
MACS = (bytes((2, 0, 0, 0, 1, 0)), bytes((2, 0, 0, 0, 1, 1)))
PLATFORM = Platform(shared_bytes=200_000, rate_bps=1_000_000_000, headroom_bytes=20_000, xon_offset_bytes=5_000)
SONIC_PORTS = ("Ethernet0", "Ethernet4")
EOS_PORTS = ("Ethernet1", "Ethernet2")


def sonic_text(*, wred_counted: bool = True) -> str:
    """Returns a stock SONiC whose curve marks early and whose headroom is small."""
    tables: dict[str, dict[str, dict[str, str]]] = {**sonic_tables([StockPort(f"Ethernet{4 * n}") for n in range(4)])}
    for row in tables["WRED_PROFILE"].values():
        row |= {"green_min_threshold": "4000", "green_max_threshold": "8000", "green_drop_probability": "100"}
    for name, row in tables["BUFFER_PROFILE"].items():
        if name.startswith("pg_lossless"):
            row |= {"size": "0", "xon": "0", "xoff": "20000"}
    if wred_counted:
        tables["FLEX_COUNTER_TABLE"] = {"WRED_ECN_QUEUE": {"FLEX_COUNTER_STATUS": "enable"}}
    return json.dumps(tables)


def eos_text() -> str:
    """Returns an EOS configuration with PFC on priority 3 and marks counted on queue 3."""
    lines = ["hostname leaf1", "qos map dscp 3 to traffic-class 3"]
    for name in ("Ethernet1", "Ethernet2", "Ethernet3"):
        lines += [f"interface {name}", "   no switchport", "   qos trust dscp"]
        lines += ["   priority-flow-control on", "   priority-flow-control priority 3 no-drop"]
        lines += ["   uc-tx-queue 3"]
        lines += [
            "      random-detect ecn minimum-threshold 4 kbytes maximum-threshold 8 kbytes max-mark-probability 100"
        ]
        lines += ["      random-detect ecn count"]
    return "\n".join([*lines, "end", ""])


def sonic_device(text: str | None = None) -> SonicDevice:
    return SonicDevice(DeviceSpec("leaf1", "sonic", sonic_text() if text is None else text), FakeClock())


def eos_device(text: str | None = None) -> EosDevice:
    return EosDevice(DeviceSpec("leaf1", "eos", eos_text() if text is None else text), FakeClock())


def read_sonic(device: str, text: str) -> DeviceQos:
    return catalog.get("sonic").parse(text, device=device)


def read_eos(device: str, text: str) -> DeviceQos:
    return catalog.get("eos").parse(text, device=device)


def core_of(qos: DeviceQos, ports: tuple[str, ...], platform: Platform = PLATFORM) -> SwitchCore:
    core = SwitchCore(qos, platform, draw=random.Random(1), ports=ports)  # noqa: S311  (which frame is no secret)
    for mac, port in zip(MACS, ports, strict=True):
        core.learn(mac, port)
    return core


def overload(core: SwitchCore, one: str, other: str) -> None:
    """Sends from one port to the other until every kind of counter has counted, and then until nothing is queued."""

    def send(dscp: int, count: int, start_ns: int, step_ns: int) -> None:
        flow = RoceFlow(MACS[0], MACS[1], dscp=dscp)
        for psn in range(count):
            core.receive(one, flow.frame(psn, bytes(1000)), start_ns + psn * step_ns)

    send(3, 50, 0, 1_000)  # faster than the link: marks
    send(0, 1_000, 1 * MS, 100)  # as long as the shared buffer has room, then lost at the tail
    core.peer_pauses(other, 3, paused=True, now_ns=50 * MS)
    send(3, 400, 51 * MS, 1_000)  # pauses its sender, which does not listen: headroom overflow
    core.advance(1_000 * MS)  # the watchdog, if there is one, has tripped
    send(3, 5, 1_000 * MS, 1_000)
    core.peer_pauses(other, 3, paused=False, now_ns=1_100 * MS)
    core.advance(3_000 * MS)
    send(3, 7, 3_000 * MS, 1_000)
    core.advance(4_000 * MS)


@contextmanager
def plane(
    device: Device,
    core: SwitchCore,
    folder: Path,
    *,
    neighbours: Mapping[Endpoint, Neighbour] | None = None,
    observer: Observer = silent,
) -> Iterator[Wiring]:
    """Yields the running wiring of one switch, `leaf1`, whose device has it as its data plane."""
    read = read_sonic if isinstance(device, SonicDevice) else read_eos
    wiring = Wiring({"leaf1": core}, folder, {}, (), SystemClock())
    thread = threading.Thread(target=wiring.run)
    thread.start()
    try:
        device.plane = Backplane("leaf1", wiring, read, neighbours=neighbours or {}, observer=observer)
        device.plane.settle(device)
        yield wiring
    finally:
        wiring.stop()
        thread.join(10)
        assert not thread.is_alive()
