"""What the data plane keeps whatever the load: nothing vanishes, lossless loses nothing, checksums stay right."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fabric.lab.wire import Cable, NicPlan, PausePeer, RoceFlow, Send, Source, SwitchCore, simulate
from fabric.lab.wire.aqm import Curve
from fabric.lab.wire.buffer import Charge, GroupPlan, SharedBuffer
from fabric.lab.wire.frame import checksum, parse, with_dscp, with_mark
from fabric.lab.wire.roce import invariant_crc
from fabric.lab.wire.transmitter import WIRE_OVERHEAD_BYTES, QueuePlan, Transmitter
from fabric.qos import Aqm, AqmKind, DeviceQos, PortWatchdog, Threshold, WatchdogAction
from tests.unit.lab.wire.wiring import LOSSLESS, device, flow, switch

US = 1_000
MS = 1_000_000

flows = st.builds(
    RoceFlow,
    source_mac=st.binary(min_size=6, max_size=6),
    destination_mac=st.binary(min_size=6, max_size=6),
    source_ip=st.binary(min_size=4, max_size=4),
    destination_ip=st.binary(min_size=4, max_size=4),
    dscp=st.integers(0, 63),
    ecn=st.integers(0, 3),
    vlan=st.none() | st.tuples(st.integers(0, 7), st.integers(0, 4095)),
    queue_pair=st.integers(0, 0xFFFFFF),
    source_port=st.integers(0, 0xFFFF),
)


@given(flows, st.binary(max_size=64), st.integers(0, 63), st.booleans())
def test_a_changed_octet_leaves_both_checksums_right(flow: RoceFlow, payload: bytes, dscp: int, v6: bool) -> None:
    if v6:
        flow = replace(flow, source_ip=flow.source_ip * 4, destination_ip=flow.destination_ip * 4)
    frame = flow.frame(1, payload)
    headers = parse(frame)
    assert headers is not None
    for changed in (with_mark(frame, headers), with_dscp(frame, headers, dscp)):
        if changed is None:
            assert flow.ecn == 0
            continue
        after = parse(changed)
        assert after is not None
        assert v6 or checksum(changed[after.l3_at : after.l3_at + 20]) == 0
        assert changed.endswith(invariant_crc(changed) or b"none")


@st.composite
def devices(draw: st.DrawFn) -> DeviceQos:
    kmin = draw(st.integers(0, 20_000))
    ramp = draw(st.integers(0, 20_000))
    dog = PortWatchdog(
        frozenset({LOSSLESS}), detection_ms=1, restoration_ms=1, action=draw(st.sampled_from(WatchdogAction))
    )
    return device(
        pfc=draw(st.booleans()),
        headroom_bytes=draw(st.sampled_from((0, 3_000, 30_000))),
        alpha_log2=draw(st.integers(-4, 3)),
        curve=Aqm(AqmKind.MARK, Threshold(kmin), Threshold(kmin + ramp), draw(st.integers(0, 100))),
        lossy_curve=draw(
            st.none() | st.just(Aqm(AqmKind.DROP, Threshold(2_000), Threshold(9_000), draw(st.integers(0, 100))))
        ),
        watchdog=draw(st.none() | st.just(dog)),
        mtu_bytes=draw(st.sampled_from((600, 9_100))),
    )


# Each: (what happens, port, other port, DSCP, payload bytes, ns until the next)
events = st.lists(
    st.tuples(
        st.sampled_from(("frame", "frame", "frame", "pause", "resume", "storm", "configure")),
        st.integers(0, 3),
        st.integers(0, 4),  # 4: nobody's address, so flooded
        st.sampled_from((0, 10, 26, 48)),
        st.integers(0, 1_000),
        st.sampled_from((0, 100, 5_000, 100_000, 2_000_000)),
    ),
    max_size=60,
)
Event = tuple[str, int, int, int, int, int]


def happen(core: SwitchCore, event: Event, now_ns: int, other: DeviceQos) -> Sequence[Send | PausePeer]:
    what, port, target, dscp, size, _ = event
    name = f"p{port}"
    if what == "frame":
        return core.receive(name, flow(port, target, dscp=dscp).frame(size, bytes(size)), now_ns)
    if what == "storm":
        return core.storm(name, LOSSLESS, until_ns=now_ns + size * US, now_ns=now_ns)
    if what == "configure":
        return core.configure(other, now_ns)
    return core.peer_pauses(name, LOSSLESS, paused=what == "pause", now_ns=now_ns)


def conserved(core: SwitchCore) -> None:
    tally = core.tally()
    assert tally.received == tally.admitted + sum(tally.refused.values())
    assert tally.copies == tally.sent + sum(tally.lost.values()) + tally.queued
    assert (core.buffer.charged_bytes == 0) == (tally.queued == 0)


@given(devices(), devices(), events, st.integers(4_000, 60_000), st.integers(0, 99))
def test_every_frame_is_sent_dropped_for_a_reason_or_queued(
    qos: DeviceQos, other: DeviceQos, happened: list[Event], shared_bytes: int, seed: int
) -> None:
    core = switch(qos, shared_bytes=shared_bytes, seed=seed)
    now_ns = 0
    sends: list[Send] = []
    pauses: dict[tuple[str, int], bool] = {}
    for event in happened:
        actions = happen(core, event, now_ns, other)
        sends += [one for one in actions if isinstance(one, Send)]
        for one in actions:
            if isinstance(one, PausePeer):
                assert pauses.get((one.port, one.priority), False) is not one.paused  # each says something new
                pauses[one.port, one.priority] = one.paused
        conserved(core)
        now_ns += event[-1]
    for port in core.ports:
        sends += [
            one
            for one in core.peer_pauses(port, LOSSLESS, paused=False, now_ns=now_ns + 10 * MS)
            if isinstance(one, Send)
        ]
    sends += [one for one in core.advance(now_ns + 10_000 * MS) if isinstance(one, Send)]
    conserved(core)
    assert core.tally().queued == 0
    assert len(sends) == core.tally().sent
    for port in core.ports:
        on_link = [one for one in sends if one.port == port]
        assert all(before.end_ns <= after.start_ns for before, after in pairwise(on_link))


@given(
    senders=st.integers(2, 6),
    rates=st.lists(st.integers(100_000_000, 1_000_000_000), min_size=6, max_size=6),
    sizes=st.lists(st.integers(64, 1_400), min_size=6, max_size=6),
    delay_us=st.integers(0, 20),
    reaction_us=st.integers(0, 50),
    shared_bytes=st.integers(10_000, 200_000),
    alpha_log2=st.integers(-3, 3),
    seed=st.integers(0, 1_000),
)
def test_lossless_loses_nothing_with_headroom_for_the_reaction_time(
    *,
    senders: int,
    rates: list[int],
    sizes: list[int],
    delay_us: int,
    reaction_us: int,
    shared_bytes: int,
    alpha_log2: int,
    seed: int,
) -> None:
    largest = max(sizes) + 58 + WIRE_OVERHEAD_BYTES
    # What can still come after XOFF: two cable delays and the reaction at line rate, the frame that the NIC has
    # begun, and the one that crossed the threshold.
    headroom = (2 * delay_us + reaction_us) * US * 1_000_000_000 // 8_000_000_000 + 2 * largest
    core = switch(
        device(senders + 1, headroom_bytes=headroom, alpha_log2=alpha_log2), shared_bytes=shared_bytes, seed=seed
    )
    sources = [
        Source(f"p{one}", flow(one, senders), rates[one], payload_bytes=sizes[one], frames=30) for one in range(senders)
    ]
    nics = {f"p{one}": NicPlan(1_000_000_000) for one in range(senders)}
    trace = simulate(core, sources, 1_000 * MS, seed, nics=nics, cable=Cable(delay_us * US, reaction_us * US))
    assert core.tally().refused == core.tally().lost == {}
    assert len(trace.deliveries) == 30 * senders
    assert core.buffer.headroom_peak_bytes <= headroom


class Item:
    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


@given(
    st.lists(st.integers(1, 10), min_size=2, max_size=8),
    st.lists(st.integers(60, 1_500), min_size=20, max_size=60),
    st.integers(20, 100),
)
def test_backlogged_queues_get_their_weights_within_one_quantum(
    weights: list[int], sizes: list[int], rounds: int
) -> None:
    quantum = 1_500
    plans = [QueuePlan(quantum_bytes=weight * quantum) for weight in weights] + [QueuePlan()] * (8 - len(weights))
    transmitter: Transmitter[Item] = Transmitter(plans, 1)
    for queue in range(len(weights)):
        for number in range(rounds):  # enough: no queue can run dry
            transmitter.push(queue, Item(sizes[(number + queue) % len(sizes)]))
    sent = [0] * len(weights)
    for _ in range(rounds):
        taken = transmitter.take(0)
        assert taken is not None
        sent[taken[0]] += taken[1].size_bytes
    turns = [sent[queue] / (weight * quantum) for queue, weight in enumerate(weights)]
    # A queue is at most one round ahead; what a frame did not fit into is carried, less than a frame.
    assert max(turns) - min(turns) <= 1 + max(sizes) / quantum


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), min_size=1, max_size=40))
def test_a_weighted_queue_never_goes_before_a_strict_one(pushed: list[tuple[int, bool]]) -> None:
    plans = [QueuePlan(strict=queue >= 5) for queue in range(8)]
    transmitter: Transmitter[Item] = Transmitter(plans, 1)
    for queue, take in pushed:
        transmitter.push(queue, Item(100))
        if take:
            best = max((one for one in range(5, 8) if transmitter.queues[one]), default=None)
            taken = transmitter.take(0)
            assert taken is not None
            assert best is None or taken[0] == best


@given(
    st.integers(1_000, 100_000),
    st.lists(st.builds(GroupPlan, st.integers(0, 9_000), st.integers(0, 3_000)), min_size=8, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(60, 3_000), st.booleans()), max_size=120),
)
def test_the_buffer_is_never_overbooked(
    shared_bytes: int, plans: list[GroupPlan], steps: list[tuple[int, int, bool]]
) -> None:
    buffer = SharedBuffer(shared_bytes, (tuple(plans),))
    held: list[tuple[int, Charge]] = []
    for group, size, arrives in steps:
        if arrives:
            charge = buffer.admit(0, group, size)
            if charge is not None:
                held.append((size, charge))
        elif held:
            buffer.release(held.pop(0)[1])
        assert 0 <= buffer.used_bytes <= shared_bytes
        assert buffer.charged_bytes == sum(size for size, _ in held)
        assert buffer.headroom_used_bytes <= sum(plan.headroom_bytes for plan in plans)
    for _, charge in held:
        buffer.release(charge)
    assert buffer.charged_bytes == buffer.used_bytes == buffer.headroom_used_bytes == 0


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.integers(0, 100), st.integers(0, 30_000), st.booleans())
def test_a_curve_selects_as_often_as_its_ramp_says(
    kmin: int, ramp: int, pmax: int, depth: int, all_above: bool
) -> None:
    curve = Curve(AqmKind.MARK, kmin, kmin + ramp, pmax, all_above)
    draw = random.Random(depth)  # noqa: S311
    share = sum(curve.selects(depth, draw) for _ in range(400)) / 400
    if depth <= kmin:
        expected = 0.0
    elif depth > kmin + ramp:
        expected = 1.0 if all_above else pmax / 100
    else:
        expected = pmax / 100 * (depth - kmin) / ramp
    assert abs(share - expected) <= 0.15  # six standard deviations of 400 draws
