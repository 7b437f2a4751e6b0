"""A pause of one priority holds that priority alone: other traffic through the same ports goes on as before.

The load is real: NVMe reads over Soft-RoCE in the lossless class, and UDP in class 0 from the same target to the same
host. What is compared is what the leaf sent to the host from queue 0, in a second with the pause and in one without.
"""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.vm.fabrics import Driven, Saved
from tests.vm.traffic import namespaces, read_all

pytestmark = [pytest.mark.vm, pytest.mark.bar]  # it measures; without machines the same holds exactly

HOST_PORT: Final = "Ethernet0"
PAIRS: Final = 9
PAUSE_S: Final = 1.0
BEGUN_S: Final = 30  # an emulated machine may take so long to begin
STUDENT_95: Final = 2.306  # two-sided, 8 degrees of freedom
DATAGRAM_BYTES: Final = 1400
RATE_BYTES_S: Final = 1_400_000
_SENDER: Final = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin, sent = time.monotonic(), 0
while (passed := time.monotonic() - begin) < {seconds}:
    while sent * {size} < passed * {rate}:
        out.sendto(bytes({size}), ("10.10.0.1", 9000))
        sent += 1
    time.sleep(0.002)
"""
_SINK: Final = """
import socket, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("10.10.0.1", 9000))
sink.settimeout(1)
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    try:
        sink.recv(65536)
    except TimeoutError:
        pass
"""


@pytest.fixture(scope="module")
def driven(incast: Saved) -> Driven:
    """The watchdog is off: it would end a pause of a second after its detection time."""
    lab = incast.again()
    words = ("--switches-only", "--disruptive", "-e", "fabric_watchdog_enabled=false")
    done = lab.fabricctl("provision", *words)
    assert done.status == 0, done.stdout + done.stderr
    return lab


@contextmanager
def traffic(driven: Driven, seconds: float) -> Iterator[None]:
    """Reads in the lossless class and datagrams in class 0 while the context is open, at most for `seconds`."""
    failures: list[BaseException] = []

    def guarded(act: object, *words: object) -> None:
        try:
            act(*words)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001  # shown by the test's own thread
            failures.append(error)

    def read() -> None:
        with driven.site.machine("host1").login() as session:
            (device, *_) = namespaces(session)
            assert read_all(session, [device], block="256k", depth=4, seconds=seconds).errors == 0

    sink = _SINK.format(seconds=seconds)
    sender = _SENDER.format(seconds=seconds, size=DATAGRAM_BYTES, rate=RATE_BYTES_S)
    threads = [
        threading.Thread(target=guarded, args=(driven.python, "host1", sink, seconds + 60)),
        threading.Thread(target=guarded, args=(driven.python, "target1", sender, seconds + 60)),
        threading.Thread(target=guarded, args=(read,)),
    ]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        for one in threads:
            one.join()
    assert not failures, failures


def sent(driven: Driven) -> tuple[int, int]:
    """Returns the bytes that the leaf sent to the host from queue 0 and from queue 3."""
    (ports,) = driven.site.ask("counters", switches=["leaf1"]).values()
    queues = ports[HOST_PORT]["counters"]["queues"]
    return queues[0]["bytes"], queues[3]["bytes"]


def until_all_runs(driven: Driven) -> None:
    """Waits until a second has seen bytes from both queues."""
    limit, (zero, three) = time.monotonic() + BEGUN_S, sent(driven)
    while time.monotonic() < limit:
        time.sleep(1)
        before, (zero, three) = (zero, three), sent(driven)
        if zero > before[0] and three > before[1]:
            return
    pytest.fail(f"no load of both classes within {BEGUN_S} s")


def window(driven: Driven, *, paused: bool) -> tuple[float, int]:
    """Returns bytes a second from queue 0 and the bytes from queue 3, in most of a second."""
    if paused:
        driven.site.ask(
            "fault-add", kind="storm", switch="leaf1", port=HOST_PORT, priority=3, duration_ms=round(PAUSE_S * 1000)
        )
    time.sleep(0.05)
    start, (zero, three) = time.monotonic(), sent(driven)
    time.sleep(PAUSE_S - 0.25)
    took, (zero_after, three_after) = time.monotonic() - start, sent(driven)
    time.sleep(1.0)  # what the pause held back goes out before the next window
    return (zero_after - zero) / took, three_after - three


def test_priority_0_does_not_feel_a_pause_of_priority_3(driven: Driven) -> None:
    ratios: list[float] = []
    held: list[int] = []
    free: list[int] = []
    with traffic(driven, seconds=PAIRS * 2 * (PAUSE_S + 1.2) + BEGUN_S + 10):
        until_all_runs(driven)
        for pair in range(PAIRS):
            order = (True, False) if pair % 2 else (False, True)
            rates = {}
            for paused in order:
                rates[paused], three = window(driven, paused=paused)
                (held if paused else free).append(three)
            ratios.append(rates[True] / rates[False])
    driven.site.ask("fault-clear")
    mean = statistics.mean(ratios)
    half = STUDENT_95 * statistics.stdev(ratios) / len(ratios) ** 0.5
    print(
        f"priority 0 with priority 3 paused, against without: {mean:.3f} ± {half:.3f} (95 %, {PAIRS} pairs); "
        f"priority 3 meanwhile {max(held)} B at most in a pause, {statistics.median(free):.0f} B (median) without"
    )
    assert max(held) == 0, "priority 3 was not held"
    assert statistics.median(free) > 0, "priority 3 had no load"
    assert mean - half <= 1 <= mean + half
    assert half <= 0.10
