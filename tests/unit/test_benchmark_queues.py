"""The arithmetic of the model's ceilings, against numbers worked out by hand."""

import xml.etree.ElementTree as ET

import pytest

from benchmarks import queues
from benchmarks.queues import BASELINES, KIB, MIB, MS, SECOND, SERIAL, Mode, ceiling, configured, sharded
from fabric.engine.transport.shape import Latency, Shape

ROUND = Shape(service_ns=10 * MS, latency=Latency("fixed", 5 * MS), link_bytes_per_s=100 * MIB)  # 1 MiB on it: 10 ms


def mode(queues_: int, depth: int = 32, window: int = 32 * MIB) -> Mode:
    return Mode("m", queues_, depth, 1 * MIB, window)


def test_queue_takes_service_time_and_bytes() -> None:
    shape = Shape(service_ns=1 * MS, queue_bytes_per_s=64 * MIB)
    assert queues.queue_ns(shape, 64 * KIB) == MS + SECOND // 1024


@pytest.mark.parametrize(("count", "mib_s"), [(1, 100), (2, 100)])
def test_configured_is_the_lesser_of_link_and_queues(count: int, mib_s: int) -> None:
    assert configured(ROUND, mode(count)) == mib_s * MIB


def test_configured_without_a_link_grows_with_queues() -> None:
    assert configured(Shape(service_ns=10 * MS), mode(3)) == pytest.approx(300 * MIB)


def test_lone_read_of_one_command_takes_service_latency_and_link() -> None:
    assert queues.shortest_read_ns(ROUND, mode(4), 1 * MIB) == 25 * MS


def test_lone_read_waits_for_the_link_once_queues_are_many() -> None:
    # four commands ready after 15 ms, 10 ms of link each
    assert queues.shortest_read_ns(ROUND, mode(4), 4 * MIB) == 55 * MS


def test_lone_read_waits_for_its_last_wave_on_one_queue() -> None:
    slow = Shape(service_ns=40 * MS, latency=Latency("fixed", 5 * MS), link_bytes_per_s=100 * MIB)
    assert queues.shortest_read_ns(slow, mode(1), 3 * MIB) == (3 * 40 + 5 + 10) * MS


def test_one_command_in_flight_pays_for_every_part() -> None:
    assert ceiling(ROUND, mode(1, depth=1), 16, 4 * MIB) == pytest.approx(MIB * SECOND / (25 * MS))


def test_window_bounds_as_depth_does() -> None:
    assert ceiling(ROUND, mode(8, window=MIB), 16, 4 * MIB) == ceiling(ROUND, mode(1, depth=1), 16, 4 * MIB)


def test_one_reader_reaches_what_a_lone_read_allows() -> None:
    assert ceiling(ROUND, mode(4), 1, 4 * MIB) == pytest.approx(4 * MIB * SECOND / (55 * MS))


def test_many_readers_reach_what_is_configured() -> None:
    assert ceiling(ROUND, mode(4), 16, 4 * MIB) == configured(ROUND, mode(4))


def test_ceiling_never_passes_what_is_configured() -> None:
    for one in (*map(sharded, queues.COUNTS), *BASELINES):
        for readers in queues.READERS:
            assert ceiling(queues.SHAPE, one, readers, queues.READ_BYTES) <= configured(queues.SHAPE, one)


def test_serial_baseline_has_one_command_in_flight() -> None:
    assert (SERIAL.policy.queues, SERIAL.policy.depth) == (1, 1)


def test_every_cell_is_whole_reads_of_every_reader() -> None:
    for cell in queues.grid(0.5):
        assert cell.total_bytes % (cell.readers * cell.read_bytes) == 0


def test_plot_is_well_formed_and_says_model() -> None:
    cells = queues.grid(0.5)
    for cell in cells:
        cell.seconds, cell.cpu_s = [1.0], [0.1]
    root = ET.fromstring(queues.draw([cell.row() for cell in cells]))  # noqa: S314, our own text
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word and word.startswith("Model") for word in words)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2 * len(queues.READERS)
