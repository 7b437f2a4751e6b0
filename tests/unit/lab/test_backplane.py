"""A data plane obeys what its device runs, and nothing that cannot be read."""

import json
import threading
from pathlib import Path

from fabric.errors import FabricError
from fabric.lab.backplane import Backplane
from fabric.lab.sonic import SonicDevice
from fabric.lab.wire import PausePeer, RoceFlow, Send, SwitchCore, Wiring
from fabric.observe import Recorder
from fabric.qos import DeviceQos
from tests.unit.lab.planes import (
    EOS_PORTS,
    MACS,
    SONIC_PORTS,
    core_of,
    eos_device,
    plane,
    read_eos,
    read_sonic,
    sonic_device,
)
from tests.unit.lab.wire.peers import SystemClock

ONE, OTHER = SONIC_PORTS


def bare_core(ports: tuple[str, ...] = SONIC_PORTS) -> SwitchCore:
    """Returns a switch of which nothing is configured yet."""
    return core_of(DeviceQos(device="leaf1", nos="sonic"), ports)


def queue_of(wiring: Wiring, dscp: int, ports: tuple[str, ...] = SONIC_PORTS) -> int | None:
    """Returns the queue through which a frame with that DSCP leaves now, None when it does not leave."""

    def send(core: SwitchCore, now_ns: int) -> tuple[int | None, list[Send | PausePeer]]:
        before = core.counters(ports[1]).queues
        core.receive(ports[0], RoceFlow(MACS[0], MACS[1], dscp=dscp).frame(0, b""), now_ns)
        core.advance(now_ns)
        after = core.counters(ports[1]).queues
        grown = (new for old, new in zip(before, after, strict=True) if old != new)
        return next((int(one.queue) for one in grown), None), []

    return wiring.ask("leaf1", send)


def apply(device: SonicDevice, *operations: dict[str, object]) -> None:
    """Patches the device as its SSH side does: a command, and then the data plane."""
    device.files.write("/home/admin/p.json", json.dumps(operations).encode(), user="admin")
    reply = device.execute("sudo config apply-patch p.json", "admin")
    assert reply.exit_status == 0, reply.error
    assert device.plane is not None
    device.plane.settle(device)


def test_the_first_configuration_holds_from_the_start(tmp_path: Path) -> None:
    heard = Recorder()
    with plane(sonic_device(), bare_core(), tmp_path, observer=heard) as wiring:
        assert [queue_of(wiring, dscp) for dscp in (3, 26, 48)] == [3, 1, 6]
    assert [(one.name, one.device) for one in heard.events] == [("lab.configuration.done", "leaf1")]


def test_a_change_on_the_device_changes_what_happens_to_frames(tmp_path: Path) -> None:
    device, heard = sonic_device(), Recorder()
    with plane(device, bare_core(), tmp_path, observer=heard) as wiring:
        assert queue_of(wiring, 26) == 1
        apply(device, {"op": "replace", "path": "/DSCP_TO_TC_MAP/AZURE/26", "value": "3"})
        assert queue_of(wiring, 26) == 3
        device.execute("show version", "admin")
        assert device.plane is not None
        device.plane.settle(device)
    assert len(heard.events) == 2  # what has not changed is not read again


def test_a_port_that_is_shut_down_stops_forwarding_until_it_is_taken_up(tmp_path: Path) -> None:
    device = sonic_device()
    path = f"/PORT/{OTHER}/admin_status"
    with plane(device, bare_core(), tmp_path) as wiring:
        apply(device, {"op": "replace", "path": path, "value": "down"})
        assert queue_of(wiring, 3) is None
        apply(device, {"op": "replace", "path": path, "value": "up"})
        assert queue_of(wiring, 3) == 3


def test_an_interface_of_eos_that_is_shut_down_stops_forwarding(tmp_path: Path) -> None:
    device = eos_device()
    shell = device.dialogue("admin")
    with plane(device, bare_core(EOS_PORTS), tmp_path) as wiring:
        assert queue_of(wiring, 3, EOS_PORTS) == 3
        for line in ("enable", "configure", "interface Ethernet2", "shutdown"):
            assert shell.feed(line).exit_status == 0
        assert device.plane is not None
        device.plane.settle(device)
        assert queue_of(wiring, 3, EOS_PORTS) is None
        shell.feed("no shutdown")
        device.plane.settle(device)
        assert queue_of(wiring, 3, EOS_PORTS) == 3


def test_a_configuration_that_cannot_be_read_leaves_the_old_one_and_is_told_once(tmp_path: Path) -> None:
    def read(device: str, text: str) -> DeviceQos:
        if "broken" in text:
            raise FabricError("no such thing")
        return read_eos(device, text)

    device, heard = eos_device(), Recorder()
    shell = device.dialogue("admin")
    with plane(device, bare_core(EOS_PORTS), tmp_path) as wiring:
        device.plane = Backplane("leaf1", wiring, read, neighbours={}, observer=heard)
        device.plane.settle(device)
        for line in ("enable", "configure", "hostname broken", "qos map dscp 3 to traffic-class 5"):
            assert shell.feed(line).exit_status == 0
            device.plane.settle(device)
        assert queue_of(wiring, 3, EOS_PORTS) == 3
        device.plane.settle(device)
        shell.feed("hostname leaf1")
        device.plane.settle(device)
        assert queue_of(wiring, 3, EOS_PORTS) == 5
    assert [one.name.rsplit(".", 1)[1] for one in heard.events] == ["done", "failed", "failed", "done"]
    assert "no such thing" in heard.events[1].message


def test_a_configuration_of_which_no_plan_can_be_made_is_told_too(tmp_path: Path) -> None:
    device, heard = sonic_device(), Recorder()
    with plane(device, bare_core(), tmp_path) as wiring:
        device.plane = Backplane("leaf1", wiring, _plan_of_nothing, neighbours={}, observer=heard)
        device.plane.settle(device)
        assert queue_of(wiring, 3) == 3
    assert [one.name for one in heard.events] == ["lab.configuration.failed"]


def _plan_of_nothing(device: str, text: str) -> DeviceQos:
    raise ValueError(f"{device}: {len(text)} B say nothing")


def test_a_data_plane_that_did_not_answer_is_asked_again_at_the_next_command(tmp_path: Path) -> None:
    device, heard = sonic_device(), Recorder()
    wiring = Wiring({"leaf1": bare_core()}, tmp_path, {}, (), SystemClock())
    device.plane = Backplane("leaf1", wiring, read_sonic, neighbours={}, observer=heard, timeout_s=0.5)
    device.plane.settle(device)
    thread = threading.Thread(target=wiring.run)
    thread.start()
    device.plane.settle(device)
    assert queue_of(wiring, 3) == 3
    wiring.stop()
    thread.join(10)
    assert [one.name.rsplit(".", 1)[1] for one in heard.events] == ["failed", "done"]


def test_what_the_data_plane_cannot_do_is_told(tmp_path: Path) -> None:
    device, heard = eos_device(), Recorder()
    shell = device.dialogue("admin")
    with plane(device, bare_core(EOS_PORTS), tmp_path, observer=heard):
        curve = "random-detect ecn minimum-threshold 4 segments maximum-threshold 8 segments max-mark-probability 10"
        for line in ("enable", "configure", "interface Ethernet1", "uc-tx-queue 3", curve):
            assert shell.feed(line).exit_status == 0
        assert device.plane is not None
        device.plane.settle(device)
    assert [one.message for one in heard.events[:-1]] == [""]
    assert "queue 3: thresholds" in heard.events[-1].message


def test_a_locked_device_and_a_busy_data_plane_do_not_wait_for_each_other(tmp_path: Path) -> None:
    device = sonic_device()
    with plane(device, bare_core(), tmp_path) as wiring:

        def commands() -> None:
            for _ in range(20):
                with device.lock:
                    device.execute("show pfc counters", "admin")
                    assert device.plane is not None
                    device.plane.settle(device)

        threads = [threading.Thread(target=commands) for _ in range(4)]
        for one in threads:
            one.start()
        for _ in range(100):
            wiring.ask("leaf1", lambda core, _: (core.counters(ONE), ()))
        for one in threads:
            one.join(20)
            assert not one.is_alive()
