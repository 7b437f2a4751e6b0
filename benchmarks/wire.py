"""Measures how fast the lab's wiring forwards between two fake guests on unix sockets; JSON is the last line.

    python benchmarks/wire.py [--frames N] [--payload BYTES] [--switches 1|2]

The sender, the receiver and the wiring are three processes, as with two virtual machines. `cpu_us` is what the
forwarding thread itself takes for a frame, and is less disturbed by a busy machine than the rate.
"""

import argparse
import json
import multiprocessing
import os
import platform
import random
import socket
import tempfile
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from fabric.lab.wire import GuestSide, NicPlan, Platform, RoceFlow, SwitchCore, Wiring
from fabric.qos import DeviceQos

RATE_BPS = 10_000_000_000
FLOW = RoceFlow(bytes((2, 0, 0, 0, 1, 0)), bytes((2, 0, 0, 0, 1, 1)))


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def unix_s(self) -> float:
        return time.time()

    def sleep_s(self, seconds: float) -> None:
        time.sleep(seconds)


def connected(path: str) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end.settimeout(60)
    end.connect(path)
    return end


def receive(path: str, size: int, answer: Connection) -> None:
    with connected(path) as end:
        answer.send(0.0)
        buffer, start = bytearray(1 << 18), 0.0
        while size > 0:
            got = end.recv_into(buffer)
            start = start or time.monotonic()
            size -= got
        answer.send(time.monotonic() - start)


def send(path: str, frame: bytes, count: int) -> None:
    with connected(path) as end:
        one = len(frame).to_bytes(4, "big") + frame
        for _ in range(count):
            end.sendall(one)


def core(ports: tuple[str, str]) -> SwitchCore:
    board = Platform(shared_bytes=4_000_000, rate_bps=RATE_BPS, tc_to_queue=tuple(range(8)))
    draw = random.Random(1)
    return SwitchCore(DeviceQos(device="leaf", nos="sonic"), board, draw=draw, ports=ports)


def measure(frames: int, payload_bytes: int, switches: int) -> dict[str, float]:
    frame = FLOW.frame(0, bytes(payload_bytes))
    side = replace(GuestSide(NicPlan(RATE_BPS)), limit_bytes=1 << 30)
    cores = {f"leaf{number}": core(("p0", "p1")) for number in range(switches)}
    first, last = ("leaf0", "p0"), (f"leaf{switches - 1}", "p1")
    cables = [((f"leaf{number}", "p1"), (f"leaf{number + 1}", "p0")) for number in range(switches - 1)]
    with tempfile.TemporaryDirectory() as folder:
        wiring = Wiring(cores, Path(folder), {first: side, last: side}, cables, SystemClock())
        cpu_s: list[float] = []

        def forward() -> None:
            wiring.run()
            cpu_s.append(time.thread_time())

        thread = threading.Thread(target=forward)
        thread.start()
        mine, theirs = multiprocessing.Pipe()
        fork = multiprocessing.get_context("spawn")
        receiver = fork.Process(target=receive, args=(str(wiring.path(last)), frames * (len(frame) + 4), theirs))
        receiver.start()
        mine.recv()
        sender = fork.Process(target=send, args=(str(wiring.path(first)), frame, frames))
        sender.start()
        elapsed_s = mine.recv() if mine.poll(300) else float("inf")
        wiring.stop()
        thread.join()
        for process in (sender, receiver):
            process.join(10)
    return {
        "frames_per_s": round(frames / elapsed_s),
        "megabytes_per_s": round(frames * len(frame) / elapsed_s / 1e6, 1),
        "cpu_us": round(cpu_s[0] / frames * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--frames", type=int, default=40_000)
    parser.add_argument("--payload", type=int, default=4096, help="bytes")
    parser.add_argument("--switches", type=int, default=1)
    options = parser.parse_args()
    found = measure(options.frames, options.payload, options.switches)
    machine = {"python": platform.python_version(), "cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**vars(options), **found, **machine}))


if __name__ == "__main__":
    main()
