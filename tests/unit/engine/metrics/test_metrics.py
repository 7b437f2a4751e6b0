"""What an engine counts of itself, under a clock that the test moves; and what Prometheus sees of it."""

import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from fabric.engine.client import Engine, Read, Settings, Write, open_engine
from fabric.engine.metrics import EngineMetrics
from fabric.engine.metrics.prometheus import METRICS, EngineCollector, serve_metrics
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import UNSHAPED, Shape
from fabric.errors import EnvironmentMissingError
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import MIB, MS, POLICY, Hand, in_memory, reads, service, writes
from tests.unit.engine.trace.rig import Story

READ = (2,)
REFERENCE = Path(__file__).parents[4] / "docs" / "reference" / "engine-metrics.md"


def quiet(shape: Shape = UNSHAPED, policy: ShardPolicy = POLICY) -> tuple[Engine, Hand]:
    """An engine whose clock stands still."""
    clock = Hand()
    settings = Settings(command_ns=60 * MS, close_ns=0)
    return open_engine("memory://", policy=policy, settings=settings, service=service(shape), clock=clock), clock


def test_bytes_transfers_and_queues_are_counted() -> None:
    engine, _ = in_memory()
    with engine:
        buffer = engine.allocate(MIB)
        engine.wait(engine.submit(writes(engine, buffer)) + engine.submit(reads(engine, buffer)))
        found = engine.metrics()

    assert [queue.queue for queue in found.queues] == [1, 2, 3, 4]
    for op in ("read", "write"):
        flow = found.flow(op)
        assert (flow.bytes, flow.transfers, flow.retries, flow.failures) == (MIB, 16, 0, ())
        assert flow.service.count == flow.queueing.count == 16
    (path,) = found.paths()
    assert (path.queues, path.in_flight, dict(path.flows)["read"]) == (4, 0, found.flow("read"))
    assert (found.requests, found.waiting, found.request_failures) == (0, 0, ())


def test_queueing_and_service_are_told_apart() -> None:
    engine, clock = quiet(Shape(service_ns=5 * MS), ShardPolicy(queues=1, depth=1, transfer_bytes=64 << 10))
    with engine:
        buffer = engine.allocate(128 << 10)
        futures = engine.submit(reads(engine, buffer, 64 << 10))
        assert (engine.metrics().waiting, engine.metrics().requests) == (1, 2)
        assert engine.metrics().queues[0].in_flight == 1
        clock.move(engine, 5 * MS)
        clock.move(engine, 5 * MS)
        assert [one.result() for one in futures] == [64 << 10] * 2
        flow = engine.metrics().flow("read")

    assert (flow.queueing.sum_ns, flow.queueing.highest_ns) == (5 * MS, 5 * MS)
    assert (flow.service.sum_ns, flow.service.highest_ns) == (10 * MS, 5 * MS)


def test_failures_and_retries_are_counted_where_they_happened() -> None:
    fault = Fault(FaultKind.STATUS, opcodes=READ, commands=(0,), status=0x006)
    engine, clock = quiet(Shape(faults=(fault,)))
    with engine:
        buffer = engine.allocate(4096)
        (future,) = engine.submit([Read(0, (buffer.view(),))])
        clock.move(engine, MS)
        clock.move(engine, MS)
        assert future.result() == 4096
        flow = engine.metrics().flow("read")

    assert flow.failures == (("PathError", 1),)
    assert (flow.retries, flow.transfers) == (1, 1)


def test_a_lost_queue_is_seen_to_go_and_to_come_back() -> None:
    engine, clock = quiet(Shape(faults=(Fault(FaultKind.DROP, opcodes=READ, commands=(0,)),)))
    with engine:
        buffer = engine.allocate(4096)
        (future,) = engine.submit([Read(0, (buffer.view(),), deadline_ns=10 * MS)])
        clock.move(engine, 10 * MS)
        held = engine.metrics()
        assert (held.quarantined_bytes, held.quarantine_releases) == (4096, 0)
        assert sum(queue.in_flight for queue in held.queues) == 1
        for _ in range(20):
            clock.move(engine, 100 * MS)
        assert future.settled
        after = engine.metrics()

    assert (after.quarantined_bytes, after.quarantine_releases) == (0, 1)
    assert after.request_failures == (("EngineError", 1),)
    assert sum(queue.reconnects for queue in after.queues) >= 1
    assert {queue.state for queue in after.queues} == {"open"}
    assert sum(queue.in_flight for queue in after.queues) == 0


@pytest.mark.parametrize("seed", range(8))
def test_counts_agree_with_the_dealer_whatever_happens(seed: int) -> None:
    story = Story(None, seed, metrics=True)
    engine = story.engine
    load, found = engine.load(), engine.metrics()
    assert (found.waiting, found.requests) == (load.waiting, len(engine._live))
    known = {queue.queue: queue.in_flight for queue in found.queues if queue.state != "gone"}
    assert known == {queue.queue: queue.commands for queue in load.queues}
    assert found.quarantined_bytes == sum(view.length for view in engine.quarantined)
    engine.close()


def test_an_engine_without_metrics_counts_nothing_of_its_queues() -> None:
    engine, _ = in_memory(settings=Settings(metrics=False))
    with engine:
        buffer = engine.allocate(4096)
        engine.wait(engine.submit([Write(0, (buffer.view(),))]))
        assert engine.metrics() == EngineMetrics()


def scraped(text: str) -> dict[str, str]:
    return {one.name: one.type for one in text_string_to_metric_families(text)}


def test_prometheus_reads_every_metric_over_http() -> None:
    fault = Fault(FaultKind.STATUS, opcodes=READ, commands=(0,), status=0x281)
    engine, _ = in_memory(Shape(faults=(fault,)))
    with engine, serve_metrics(engine) as server:
        buffer = engine.allocate(MIB)
        engine.wait(engine.submit(reads(engine, buffer)))
        with urllib.request.urlopen(f"http://{server.address}:{server.port}/metrics") as answer:
            text = answer.read().decode()

    assert server.address == "127.0.0.1"
    assert scraped(text) == {one.name: one.kind for one in METRICS}
    assert 'fabricctl_engine_transfer_seconds_bucket{le="+Inf",op="read",path="any>memory",queue="1"' in text
    assert re.search(r'fabricctl_engine_transfer_failures_total\{error="MediumError",op="read".*\} 1\.0', text)
    total = sum(float(one) for one in re.findall(r"fabricctl_engine_transfer_bytes_total\{.*\} (.*)", text))
    assert total == MIB - (64 << 10)
    les = re.findall(r'transfer_seconds_bucket\{le="([^"]*)",op="read",path="any>memory",queue="1"', text)
    assert len(les) == 22
    assert les[:4] == ["1e-05", "2e-05", "5e-05", "0.0001"]
    assert les[-2:] == ["30.0", "+Inf"]


def test_a_scrape_beside_a_busy_engine_takes_no_harm() -> None:
    engine, _ = in_memory()
    registry = CollectorRegistry()
    with engine:
        registry.register(EngineCollector(engine))
        ended = threading.Event()
        scrapes: list[int] = []

        def scrape() -> None:
            while not ended.is_set():
                scrapes.append(len(list(registry.collect())))

        thread = threading.Thread(target=scrape)
        thread.start()
        buffer = engine.allocate(MIB)
        for _ in range(30):
            engine.wait(engine.submit(reads(engine, buffer)))
        ended.set()
        thread.join()
    assert scrapes
    assert set(scrapes) == {len(METRICS)}


def test_an_address_that_is_taken_is_told() -> None:
    engine, _ = in_memory()
    with engine, serve_metrics(engine) as server, pytest.raises(EnvironmentMissingError, match="cannot be served"):
        serve_metrics(engine, port=server.port)


def test_without_prometheus_client_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    engine, _ = in_memory()
    with engine, pytest.raises(EnvironmentMissingError, match=r"pip install 'fabricctl\[metrics\]'"):
        serve_metrics(engine)


def test_nothing_outside_the_standard_library_is_imported() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import fabric.engine.metrics.prometheus, fabric.engine.trace, fabric.engine.client\n"
        "fresh = [(name, str(getattr(sys.modules[name], '__file__', ''))) for name in set(sys.modules) - before]\n"
        "print(*[name for name, file in fresh if 'site-packages' in file])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_the_reference_lists_what_there_is() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE
    )
    told = [(name, kind, tuple(re.findall(r"\w+", labels)), text) for name, kind, labels, text in rows]
    assert told == [(one.name, one.kind, one.labels, one.text) for one in METRICS]
