"""The fault matrix over real wires: what can break, in each state of a controller. Nothing wrong, hung, or held at the end.

Linux nvmet is at the other end. A frame that is lost or doubled is sent again and nobody hears of it; a cable, a port
or a device that goes takes connections, and reads with it until it is back.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pytest

from tests.vm.engine.bench import HOST, HOST_PORT, RDMA_IN_CI, TARGET_PORT, Bench, Talk

pytestmark = pytest.mark.vm

STATES: Final = ("connecting", "greeting", "enabling", "idle", "reading", "writing", "stopping")
FEW: Final = ("enabling", "reading")  # before there are queues, and with reads on them; bar 04_6 has all
REST: Final = tuple(one for one in STATES if one not in FEW)
_KINDS: Final = ("cm", "send", "write", "read-request", "read-response", "ack")
_AWAY_S: Final = 1.0
_CLOSED_S: Final = 12.0  # 2 s of patience, and what an emulated machine takes to flush queue pairs


@contextmanager
def _struck(bench: Bench, kind: str, packet: str) -> Iterator[Callable[[], None]]:
    """The next frame of a kind, in each direction."""
    with ExitStack() as stack:
        for port in (HOST_PORT, TARGET_PORT):
            stack.enter_context(bench.fault(kind, port, packet=packet))
        yield lambda: None


@contextmanager
def _cut(bench: Bench) -> Iterator[Callable[[], None]]:
    numbers = [bench.strike("down", HOST_PORT)]

    def mend() -> None:
        time.sleep(_AWAY_S)
        bench.mend(numbers.pop())

    yield mend


@contextmanager
def _port(bench: Bench, transport: str) -> Iterator[Callable[[], None]]:
    bench.hang_up(transport)

    def mend() -> None:
        time.sleep(_AWAY_S)
        bench.listen(transport)

    yield mend


def _faults(bench: Bench, transport: str) -> dict[str, Callable[[], Any]]:
    common: dict[str, Callable[[], Any]] = {
        "cut": lambda: _cut(bench),
        "port": lambda: _port(bench, transport),
    }
    if transport == "tcp":
        return {"lost any": lambda: _struck(bench, "drop", "any"), **common}
    lost = {f"lost {kind}": (lambda kind=kind: _struck(bench, "drop", kind)) for kind in _KINDS}
    doubled = {"doubled roce": lambda: _struck(bench, "duplicate", "roce")}
    return {**lost, **doubled, **common}


def _scene(talk: Talk, state: str, fault: Callable[[], Any]) -> tuple[dict[str, Any], int]:
    """Returns how a state met a fault, and how many blocks hold what they cannot."""
    talk.say(state)
    talk.until(state)
    with fault() as mend:
        talk.say()
        mend()
        end: dict[str, Any] = json.loads(talk.until("end"))
    talk.say()
    return end, int(talk.until("written")) if end["written"] else 0


def _flaws(end: dict[str, Any], spoilt: int = 0, *, fault: str) -> list[str]:
    """Returns what may not be."""
    counts = {name: end[name] for name in ("wrong", "hung", "unsettled", "quarantined", "leaked", "descriptors")}
    found = [f"{name} {count}" for name, count in {**counts, "spoilt": spoilt}.items() if count]
    if end["closed_s"] > _CLOSED_S:
        found.append(f"closed after {end['closed_s']:.1f} s")
    if end["errors"] and not end["written"] and fault != "device":
        found.append(f"reads failed: {end['errors']}")
    if end["error"] and fault.startswith(("lost", "doubled")):
        found.append(f"did not open: {end['error']}")
    return found


@pytest.mark.parametrize("states", [FEW, pytest.param(REST, marks=pytest.mark.bar)], ids=["few", "rest"])
@pytest.mark.parametrize("transport", RDMA_IN_CI)
def test_no_fault_in_any_state_makes_a_wrong_byte_a_hang_or_a_leak(
    bench: Bench, transport: str, states: tuple[str, ...]
) -> None:
    bad: dict[str, list[str]] = {}
    with bench.talk("faulty", bench.url(transport), limit_s=900) as talk:
        for name, fault in _faults(bench, transport).items():
            for state in states:
                began = time.monotonic()
                end, spoilt = _scene(talk, state, fault)
                took_s = time.monotonic() - began
                shown = {key: value for key, value in end.items() if value and key != "written"}
                print(f"{transport}: {name}, {state}: {took_s:.1f} s {shown}")
                if flaws := _flaws(end, spoilt, fault=name):
                    bad[f"{name}, {state}"] = flaws
        talk.say("")
        scenes = talk.end()["scenes"]
    print(f"{transport}: {scenes} scenes, {len(bad)} with a flaw")
    assert not bad


@pytest.mark.parametrize("state", [*FEW, *(pytest.param(one, marks=pytest.mark.bar) for one in REST)])
def test_a_device_that_goes_in_any_state_leaves_no_wrong_byte_hang_or_leak(bench: Bench, state: str) -> None:
    """A process of its own for each: librdmacm holds the device open, and the kernel waits for it, until that exits."""
    with bench.talk("faulty", bench.url("rdma")) as talk:
        talk.say(state)
        talk.until(state)
        with bench.process(HOST, "sh", "-c", "echo begun; exec rdma link delete rxe0") as deleting:
            assert deleting.stdout is not None
            deleting.stdout.readline()
            time.sleep(0.3)
            talk.say()
            end = json.loads(talk.until("end"))
            talk.kill()
            assert deleting.wait(60) == 0
    bench.host("rdma link add rxe0 type rxe netdev data0")
    print(f"rdma: device, {state}: {end}")
    assert not _flaws(end, fault="device")
