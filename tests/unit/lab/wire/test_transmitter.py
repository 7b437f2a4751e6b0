from fabric.lab.wire.transmitter import WIRE_OVERHEAD_BYTES, QueuePlan, Transmitter


class Item:
    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


def plans(**changes: QueuePlan) -> tuple[QueuePlan, ...]:
    return tuple(changes.get(f"q{queue}", QueuePlan(quantum_bytes=2_000)) for queue in range(8))


def order(transmitter: Transmitter[Item], count: int) -> list[int]:
    taken = [transmitter.take(0) for _ in range(count)]
    return [one[0] for one in taken if one is not None]


def test_strict_queues_come_first_highest_number_first() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(q2=QueuePlan(strict=True), q6=QueuePlan(strict=True)), 1)
    for queue in (0, 2, 6, 2, 7):
        transmitter.push(queue, Item(100))
    assert order(transmitter, 9) == [6, 2, 2, 0, 7]


def test_round_robin_gives_each_its_quantum() -> None:
    transmitter: Transmitter[Item] = Transmitter(
        plans(q0=QueuePlan(quantum_bytes=2_000), q3=QueuePlan(quantum_bytes=4_000)), 1
    )
    for _ in range(12):
        transmitter.push(0, Item(1_000))
        transmitter.push(3, Item(1_000))
    assert order(transmitter, 12) == [0, 0, 3, 3, 3, 3, 0, 0, 3, 3, 3, 3]


def test_a_frame_larger_than_the_quantum_still_goes() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(q0=QueuePlan(quantum_bytes=100)), 1)
    transmitter.push(0, Item(1_000))
    assert order(transmitter, 1) == [0]


def test_a_held_queue_waits_and_the_others_go() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(), 1)
    transmitter.push(3, Item(100))
    transmitter.push(0, Item(100))
    transmitter.held[3] = True
    assert order(transmitter, 2) == [0]
    transmitter.held[3] = False
    assert order(transmitter, 1) == [3]
    assert transmitter.waiting() == 0


def test_the_rate_is_exact_over_many_frames() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(), 100_000_000_000)
    end_ns = 0
    for _ in range(100):
        end_ns = transmitter.occupy(1048 - WIRE_OVERHEAD_BYTES, end_ns)
    assert end_ns == 8_384  # 100 x 1048 B at 100 Gb/s: 83.84 ns each


def test_a_shaped_queue_waits_for_its_rate() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(q1=QueuePlan(shape_bps=1_000_000_000)), 100_000_000_000)
    transmitter.push(1, Item(1000 - WIRE_OVERHEAD_BYTES))
    transmitter.push(1, Item(1000 - WIRE_OVERHEAD_BYTES))
    assert transmitter.take(0) is not None
    assert transmitter.take(7_999) is None
    assert transmitter.shaped_until_ns(7_999) == 8_000
    assert transmitter.take(8_000) is not None
    assert transmitter.shaped_until_ns(8_000) is None


def test_a_flushed_queue_is_empty() -> None:
    transmitter: Transmitter[Item] = Transmitter(plans(), 1)
    transmitter.push(3, Item(100))
    assert len(transmitter.flush(3)) == 1
    assert transmitter.depth_bytes[3] == 0
    assert transmitter.take(0) is None
