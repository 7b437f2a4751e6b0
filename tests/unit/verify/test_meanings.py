import json
from pathlib import Path

import pytest

from fabric.verify.events import Event, Per, Rule, Unit, Way
from fabric.verify.meanings import LOSS_SEEN, RDMA_FAMILIES, counts, meaning, width
from fabric.verify.table import TABLE


@pytest.mark.parametrize(
    ("family", "name", "event", "index"),
    [
        ("mlx5", "out_of_sequence", Event.GAP_SEEN, None),
        ("rxe", "rcvd_seq_err", Event.GAP_NAKED, None),
        ("bnxt_re", "missing_resp", Event.READ_GAP, None),
        ("irdma", "cnpIgnored", Event.CNP_IGNORED, None),
        ("netdev", "rx_prio5_pause_duration", Event.PAUSED_TIME, 5),
        ("netdev", "rx_priority_3_xoff.nic", Event.PAUSE_RECEIVED, 3),
        ("netdev", "tx_pfc_ena_frames_pri3", Event.PAUSE_SENT, 3),
        ("netdev", "pfc_rx_xoff.3", Event.PAUSE_RECEIVED, 3),
        ("sonic", "queue.UC3.dropped", Event.QUEUE_DROP, 3),
        ("eos", "queue.VOQ3.dropped", Event.QUEUE_DROP, 3),
        ("eos", "pg_dropped.3", Event.GROUP_DROP, 3),
    ],
)
def test_a_counter_is_known_by_family_and_name(family: str, name: str, event: Event, index: int | None) -> None:
    found = meaning(family, name)
    assert found is not None
    assert (found.row.event, found.index) == (event, index)


@pytest.mark.parametrize(
    ("family", "name"),
    [("rxe", "out_of_sequence"), ("netdev", "rx_prio_packets"), ("sonic", "queue.MC3.dropped"), ("nobody", "x")],
)
def test_what_is_not_in_the_table_means_nothing(family: str, name: str) -> None:
    assert meaning(family, name) is None


def test_every_row_has_one_meaning_a_name() -> None:
    names = [(row.family, name) for row in TABLE for name in row.names]
    assert len(names) == len(set(names))


def test_a_row_with_a_number_says_of_what_and_one_without_is_of_the_device() -> None:
    for row in TABLE:
        assert all(("{}" in name) is (row.per is not Per.DEVICE) for name in row.names), row


def test_what_must_stand_is_never_a_volume() -> None:
    assert all(row.unit in {Unit.PACKETS, Unit.EPISODES} for row in TABLE if row.rule is Rule.ZERO)
    assert all(row.way is not Way.LOCAL for row in TABLE if row.event in LOSS_SEEN - {Event.QP_DEAD})


def test_which_families_count_loss_at_all() -> None:
    silent = {family for family in RDMA_FAMILIES if not counts(family) & {Event.GAP_SEEN, Event.GAP_NAKED}}
    assert silent == {"irdma"}


def test_queue_counters_of_mlx5_wrap_at_32_bits() -> None:
    assert width("mlx5", "out_of_sequence") == 32
    assert width("mlx5", "np_cnp_sent") == 64
    assert width("rxe", "out_of_seq_request") == width("mlx5", "unheard_of") == 64


def test_a_sample_of_ionic_is_read(reference: Path) -> None:
    sample, *_ = json.loads((reference / "samples/linux/show/rdma_statistic_ionic.json").read_text(encoding="utf-8"))
    events = {found.row.event for name in sample if (found := meaning("ionic", name)) is not None}
    assert {Event.GAP_SEEN, Event.GAP_NAKED, Event.READ_GAP, Event.ACK_TIMEOUT, Event.DUPLICATE} <= events
