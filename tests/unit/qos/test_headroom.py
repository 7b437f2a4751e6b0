"""Headroom: vendors' own rows, byte for byte, and the reasons for what is not known."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.qos import UNKNOWN
from fabric.qos.headroom import (
    CURRENT,
    Headroom,
    HeadroomQuery,
    canonical_asic,
    ieee_sum,
    lossless_headroom,
)
from fabric.qos.headroom_tables import tables
from fabric.serial import from_json, to_json

MTU = 9216


def rows_of(path: Path) -> list[tuple[int, ...]]:
    """Returns the rows of a pg_profile_lookup.ini, the cable as a number."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [tuple(int(cell.rstrip("m")) for cell in line) for line in lines if not line[0].startswith("#")]


def ask(asic: str, speed: int, cable: int | None, **more: object) -> Headroom:
    return lossless_headroom(replace(HeadroomQuery(asic, speed, cable, MTU), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "asic", "count"), [("ACS-MSN2700", "spectrum1", 15), ("ACS-MSN4700", "spectrum3", 21)]
)
def test_spectrum_rows_come_out_exactly(reference: Path, name: str, asic: str, count: int) -> None:
    rows = rows_of(reference / "oracles" / "headroom" / f"{name}.ini")
    assert len(rows) == count
    for speed, cable, size, xon, xoff, _ in rows:
        found = ask(asic, speed, cable)
        assert (found.size_bytes, found.xon_bytes, found.xoff_bytes) == (size, xon, xoff), (speed, cable)


def test_dell_rows_are_in_the_table(reference: Path) -> None:
    rows = rows_of(reference / "oracles" / "headroom" / "DellEMC-S5232f-C32.ini")
    assert len(rows) == 15
    for speed, cable, size, xon, xoff, alpha_log2, xon_offset in rows:
        found = ask("trident3", speed, cable, hwsku="DellEMC-S5232f-C32")
        assert (found.size_bytes, found.xon_bytes, found.xoff_bytes) == (size, xon, xoff)
        assert (found.alpha_log2, found.xon_offset_bytes, found.notes) == (alpha_log2, xon_offset, ())
        assert not found.unconfirmed


# sonic-net/sonic-buildimage@086b03bd device/mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini: xoff
SN5600 = {
    5: (45056, 48128, 57344, 63488, 113664, 131072, 231424, 257024),
    40: (46080, 52224, 62464, 69632, 126976, 157696, 283648, 362496),
    300: (56320, 76800, 101376, 118784, 225280, 355328, 677888, 1150976),
}


@pytest.mark.parametrize(("cable", "xoffs"), SN5600.items())
def test_current_form_is_behind_the_shipped_rows_of_spectrum4(cable: int, xoffs: tuple[int, ...]) -> None:
    speeds = (10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000)
    assert tuple(ask("spectrum4", speed, cable).xoff_bytes for speed in speeds) == xoffs


@pytest.mark.parametrize(
    ("asic", "speed", "percent", "xoffs"),
    [
        ("spectrum1", 100_000, 100, (73728, 81920, 147456)),
        ("spectrum2", 100_000, 100, (109568, 122880, 221184)),
        ("spectrum3", 100_000, 50, (48128, 53248, 94208)),
        ("spectrum3", 400_000, 50, (91136, 112640, 274432)),
    ],
)
def test_current_form_gives_the_reference_values(asic: str, speed: int, percent: int, xoffs: tuple[int, ...]) -> None:
    found = [
        lossless_headroom(HeadroomQuery(asic, speed, cable, MTU, small_packet_percent=percent), parameters=CURRENT)
        for cable in (5, 40, 300)
    ]
    assert tuple(one.xoff_bytes for one in found) == xoffs


def test_small_packet_compensation_is_for_headroom_that_is_not_shared() -> None:
    query = HeadroomQuery("spectrum3", 100_000, 5, MTU, small_packet_percent=50)
    alone = lossless_headroom(query, parameters=CURRENT)
    shared = lossless_headroom(replace(query, shared_pool=True), parameters=CURRENT)
    assert (alone.xoff_bytes, shared.xoff_bytes) == (48128, 46080)
    assert shared.size_bytes == shared.xon_bytes


def test_small_packet_compensation_ends_two_kib_below_the_worst_case() -> None:
    query = HeadroomQuery("spectrum3", 100_000, 5, MTU, small_packet_percent=99)
    close = lossless_headroom(query, parameters=CURRENT).xoff_bytes
    worst = lossless_headroom(replace(query, small_packet_percent=100), parameters=CURRENT).xoff_bytes
    assert (close, worst) == (99328 + 2048, 109568)
    near = lossless_headroom(replace(query, mtu_bytes=64, cable_m=0, speed_mbps=10_000), parameters=CURRENT)
    assert near.xoff_bytes == 15360  # 2 KiB more would be the worst case itself, 17408


def test_small_packets_count_by_packets_in_the_shipped_form() -> None:
    half = ask("spectrum3", 100_000, 5, small_packet_percent=50)
    assert half.xoff_bytes == 25600
    assert half.formula == "spectrum-shipped3"


def test_spectrum6_has_a_longer_pipeline_and_an_extra() -> None:
    found = ask("spectrum6", 100_000, 5)
    assert found.xon_bytes == 42 * 1024
    assert found.xoff_bytes == 145408 + 18 * 1024


def test_eight_lanes_double_the_latency_and_reserve_an_mtu() -> None:
    shipped = ask("spectrum3", 400_000, 5)
    current = lossless_headroom(HeadroomQuery("spectrum3", 400_000, 5, MTU), parameters=CURRENT)
    assert shipped.xon_bytes == 37888
    assert current.xon_bytes == 38912
    assert shipped.notes == ("8 lanes assumed for 400000 Mb/s",)
    told = ask("spectrum3", 400_000, 5, lanes=4)
    assert (told.xon_bytes, told.notes) == (19456, ())


def test_speed_without_pause_quanta_is_unknown() -> None:
    found = ask("spectrum6", 1_600_000, 5)
    assert found.xoff_bytes is UNKNOWN
    assert found.notes == ("no pause quanta for 1600000 Mb/s",)


def test_length_is_never_guessed() -> None:
    found = ask("spectrum3", 100_000, None)
    assert found.xoff_bytes is UNKNOWN
    assert found.notes == ("nobody said how long the cable is",)


def test_table_takes_the_next_longer_cable_and_says_so() -> None:
    found = ask("trident3", 100_000, 6, hwsku="DellEMC-S5232f-C32")
    assert found.xoff_bytes == 173568
    assert found.notes == ("the table has no row for 6 m: the one for 40 m was taken",)


def test_table_ends_with_its_last_row() -> None:
    found = ask("trident3", 100_000, 301, hwsku="DellEMC-S5232f-C32")
    assert found.xoff_bytes is UNKNOWN
    assert "the table of Dell S5232F, Arista 7050CX3 ends at 300 m" in found.notes


def test_other_boards_with_the_asic_answer_with_the_largest_row() -> None:
    found = ask("Tomahawk-4", 100_000, 5)
    assert (found.xoff_bytes, found.formula) == (165568, "table TH4 BALANCED")
    assert found.unconfirmed
    assert ask("th4", 400_000, 5).xoff_bytes == 371348


def test_speed_that_the_boards_own_table_lacks_comes_from_the_asics_other_boards() -> None:
    found = ask("trident3", 25_000, 5, hwsku="Arista-7050CX3-32S-C32")
    assert (found.xoff_bytes, found.formula) == (65024, "table Dell S5232F")
    assert found.notes[0] == "the table of Arista 7050CX3 has no row for 25000 Mb/s"


def test_board_names_its_asic_when_nobody_said_it() -> None:
    assert ask("", 100_000, 5, hwsku="dellemc-s5232f-c32").xoff_bytes == 162048
    assert ask("", 25_000, 5, hwsku="Arista-7050CX3-32S-C32").xoff_bytes == 65024


def test_board_with_a_gearbox_has_its_own_rows_and_speaks_for_no_other() -> None:
    assert ask("spectrum2", 100_000, 5, hwsku="ACS-MSN3800").xoff_bytes == 56320
    assert ask("spectrum2", 100_000, 5).xoff_bytes == 33792
    shared = ask("spectrum3", 100_000, 2000, hwsku="Mellanox-SN4600C-D112C8")
    assert (shared.xoff_bytes, shared.size_bytes) == (234496, 19456)


def test_board_without_a_row_and_of_an_asic_without_other_tables_is_unknown() -> None:
    found = ask("gearboxed", 400_000, 5, hwsku="ACS-MSN3800")
    assert found.xoff_bytes is UNKNOWN
    assert found.notes == ("the table of SN3800 has no row for 400000 Mb/s",)


@pytest.mark.parametrize(
    ("speed", "delays", "sums"),
    [
        (25_000, 1, (24601, 25694, 27569, 33819)),
        (100_000, 1, (59757, 64132, 71632, 96632)),
        (100_000, 2, (75117, 79492, 86992, 111992)),
    ],
)
def test_ieee_sum_is_that_of_the_reference_table(speed: int, delays: int, sums: tuple[int, ...]) -> None:
    found = [
        ieee_sum(HeadroomQuery("", speed, cable, MTU), cable_m=cable, interface_delays=delays).xoff_bytes
        for cable in (5, 40, 100, 300)
    ]
    assert tuple(found) == sums


def test_ieee_sum_answers_for_an_unknown_asic_only() -> None:
    unknown = ask("some-asic", 100_000, 5)
    assert (unknown.formula, unknown.xoff_bytes, unknown.unconfirmed) == ("ieee-sum", 59757, True)
    for asic in ("spectrum1", "spectrum3"):
        known = ask(asic, 100_000, 40)
        assert known.xoff_bytes is not UNKNOWN
        assert known.xoff_bytes < 64132
    assert ask("tomahawk3", 25_000, 5).xoff_bytes is UNKNOWN


@pytest.mark.parametrize("speed", [10_000, 50_000, 200_000, 400_000])
def test_ieee_sum_is_unknown_without_an_interface_delay(speed: int) -> None:
    found = ask("", speed, 5)
    assert found.xoff_bytes is UNKNOWN
    assert found.notes == (f"no interface delay is published for {speed} Mb/s",)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("Spectrum-3", "spectrum3"),
        ("spc1", "spectrum1"),
        ("MELLANOX-SPECTRUM", "spectrum1"),
        ("TH4", "tomahawk4"),
        ("broadcom td3", "trident3"),
        ("Tomahawk", "tomahawk"),
        ("J2C+", "jericho2c+"),
        ("", ""),
        ("8102-64H", "810264h"),
    ],
)
def test_asics_have_one_name(name: str, canonical: str) -> None:
    assert canonical_asic(name) == canonical


def test_every_table_has_a_source_and_sound_rows() -> None:
    for table in tables():
        assert table.source
        assert table.asic == canonical_asic(table.asic)
        keys = [(row.speed_mbps, row.cable_m) for row in table.rows]
        assert keys == sorted(set(keys))


def test_answers_survive_the_run_folder() -> None:
    for found in (ask("spectrum3", 100_000, 5), ask("", 10_000, 5)):
        assert from_json(Headroom, to_json(found)) == found


@given(
    asic=st.sampled_from(("spectrum1", "spectrum3", "spectrum4", "trident3", "tomahawk4", "")),
    speed=st.sampled_from((25_000, 40_000, 100_000)),
    cables=st.tuples(st.integers(0, 300), st.integers(0, 300)),
)
def test_longer_cables_never_need_less(asic: str, speed: int, cables: tuple[int, int]) -> None:
    short, long = (ask(asic, speed, cable).xoff_bytes for cable in sorted(cables))
    assert short is not UNKNOWN
    assert long is not UNKNOWN
    assert short <= long
