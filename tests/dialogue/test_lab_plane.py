"""A switch with its data plane over real SSH: commands and timers change what happens to real frames."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import paramiko

from fabric.lab import DeviceSpec, Front, Fronts, serve
from fabric.lab.backplane import Backplane
from fabric.lab.wire import GuestSide, NicPlan, RoceFlow, SwitchCore, Wiring
from fabric.nos.catalog import catalog
from fabric.qos import DeviceQos
from tests.unit.lab.planes import MACS, PLATFORM, SONIC_PORTS, eos_text, sonic_text
from tests.unit.lab.wire.peers import Peer, SystemClock

SIDE = GuestSide(NicPlan(1_000_000_000))


@contextmanager
def lab(nos: str, config: str, ports: tuple[str, str], folder: Path) -> Iterator[tuple[Fronts, Wiring]]:
    """Yields the front of `leaf1` and the wiring behind it, with room for a guest at both ports."""

    def read(device: str, text: str) -> DeviceQos:
        return catalog.get(nos).parse(text, device=device)

    spec = DeviceSpec("leaf1", "eos" if nos == "eos" else "sonic", config)
    with serve([spec], directory=folder) as fronts:
        draw = random.Random(1)  # noqa: S311  (which frame is marked is no secret)
        core = SwitchCore(DeviceQos(device="leaf1", nos=nos), PLATFORM, draw=draw, ports=ports)
        wiring = Wiring({"leaf1": core}, folder, {("leaf1", port): SIDE for port in ports}, (), SystemClock())
        thread = threading.Thread(target=wiring.run)
        thread.start()
        try:
            fronts["leaf1"].attach(Backplane("leaf1", wiring, read, neighbours={}))
            yield fronts, wiring
        finally:
            wiring.stop()
            thread.join(10)
            assert not thread.is_alive()


@contextmanager
def connected(front: Front, fronts: Fronts) -> Iterator[paramiko.SSHClient]:
    with paramiko.SSHClient() as client:
        client.load_host_keys(str(fronts.known_hosts))
        client.connect(
            front.host,
            port=front.port,
            username=front.username,
            password=front.password,
            look_for_keys=False,
            allow_agent=False,
        )
        yield client


def run(client: paramiko.SSHClient, command: str) -> str:
    _, output, errors = client.exec_command(command, timeout=20)
    text = output.read().decode()
    assert output.channel.recv_exit_status() == 0, text + errors.read().decode()
    return text


def queue_that_grew(wiring: Wiring, ports: tuple[str, str], dscp: int) -> int:
    """Sends one real frame from guest to guest and returns the queue through which it left."""

    def packets(core: SwitchCore, _: int) -> tuple[tuple[object, ...], tuple[()]]:
        return tuple(one.packets for one in core.counters(ports[1]).queues), ()

    one, other = (Peer(wiring.path(("leaf1", port))) for port in ports)
    before = wiring.ask("leaf1", packets)
    frame = RoceFlow(MACS[0], MACS[1], dscp=dscp).frame(0, b"")
    one.send(frame)
    assert other.receive() == frame
    after = wiring.ask("leaf1", packets)
    one.close()
    other.close()
    return next(queue for queue in range(8) if before[queue] != after[queue])


def wait_until(claim: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_patch_over_ssh_moves_real_frames_to_another_queue_and_the_shows_count_them(tmp_path: Path) -> None:
    with (
        lab("sonic", sonic_text(), SONIC_PORTS, tmp_path) as (fronts, wiring),
        connected(fronts["leaf1"], fronts) as client,
    ):
        assert queue_that_grew(wiring, SONIC_PORTS, 26) == 1
        with client.open_sftp() as files, files.open("/home/admin/p.json", "w") as file:
            file.write('[{"op": "replace", "path": "/DSCP_TO_TC_MAP/AZURE/26", "value": "3"}]')
        run(client, "sudo config apply-patch /home/admin/p.json")
        assert queue_that_grew(wiring, SONIC_PORTS, 26) == 3
        found = catalog.get("sonic").counters({"queue": run(client, "show queue counters")})
        by_port = {one.port: {queue.queue: queue.packets for queue in one.queues} for one in found}
        assert (by_port["Ethernet4"]["UC1"], by_port["Ethernet4"]["UC3"]) == (1, 1)


def test_what_a_commit_timer_takes_back_is_taken_back_from_the_data_plane(tmp_path: Path) -> None:
    ports = ("Ethernet1", "Ethernet2")
    with (
        lab("eos", eos_text(), ports, tmp_path) as (fronts, wiring),
        connected(fronts["leaf1"], fronts) as client,
    ):
        assert queue_that_grew(wiring, ports, 3) == 3
        run(client, "configure session s\nqos map dscp 3 to traffic-class 5\ncommit timer 00:00:01")
        assert queue_that_grew(wiring, ports, 3) == 5
        wait_until(lambda: queue_that_grew(wiring, ports, 3) == 3)  # nobody typed anything
