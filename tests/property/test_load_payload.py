"""Each kind of damage to a payload is found, named and located; none is found where there is none."""

from random import Random

from hypothesis import assume, example, given
from hypothesis import strategies as st

from fabric.engine.load.model import SECTOR_BYTES, FlawKind
from fabric.engine.load.payload import (
    GUARD_BYTES,
    Damage,
    Origin,
    damage,
    guard_damage,
    guard_pattern,
    poison_pattern,
    sector,
    sector_matches,
)

WORD = st.integers(0, (1 << 64) - 1)
ORIGINS = st.builds(Origin, WORD, WORD)
LBAS = st.integers(0, 1 << 40)
VERSIONS = st.integers(1, 1 << 32)
NUMBERS = st.integers(0, 1 << 40)
CUTS = st.integers(80, SECTOR_BYTES - 16)


def judge(found: bytes, origin: Origin, lba: int, version: int, number: int = 7) -> Damage:
    assert not sector_matches(b"x" * 16 + found, 16, origin, lba, version)
    told = damage(found, origin, lba, version, poison_pattern(number, SECTOR_BYTES))
    assert told is not None
    wanted = sector(origin, lba, version)
    assert found[: told.offset] == wanted[: told.offset]
    assert found[told.offset] != wanted[told.offset]
    return told


@given(ORIGINS, LBAS, VERSIONS, NUMBERS)
def test_what_was_written_is_found_whole(origin: Origin, lba: int, version: int, number: int) -> None:
    made = sector(origin, lba, version)
    assert len(made) == SECTOR_BYTES
    assert sector_matches(b"x" + made, 1, origin, lba, version)
    assert damage(made, origin, lba, version, poison_pattern(number, SECTOR_BYTES)) is None


@given(ORIGINS, LBAS, VERSIONS, st.integers(0, SECTOR_BYTES - 1), st.integers(1, 255))
@example(Origin(0, 0), 0, 1, 32, 1)  # the version before, up to the checksum
def test_one_wrong_byte_anywhere_is_found_where_it_is(
    origin: Origin, lba: int, version: int, at: int, change: int
) -> None:
    found = bytearray(sector(origin, lba, version))
    found[at] ^= change
    told = judge(bytes(found), origin, lba, version)
    assert (told.kind, told.offset) == (FlawKind.WRONG, at)


@given(ORIGINS, LBAS, VERSIONS, st.integers(1, 1 << 20))
def test_an_older_version_is_stale(origin: Origin, lba: int, version: int, newer: int) -> None:
    told = judge(sector(origin, lba, version), origin, lba, version + newer)
    assert told.kind is FlawKind.STALE
    assert f"version {version}" in told.found
    assert f"version {version + newer}" in told.expected


@given(ORIGINS, WORD, LBAS, VERSIONS)
def test_a_sector_of_an_earlier_run_is_stale(origin: Origin, run: int, lba: int, version: int) -> None:
    assume(run != origin.run)
    assert judge(sector(origin._replace(run=run), lba, version), origin, lba, version).kind is FlawKind.STALE


@given(ORIGINS, LBAS, LBAS, VERSIONS, VERSIONS)
def test_a_sector_of_another_place_is_misplaced(origin: Origin, lba: int, other: int, one: int, two: int) -> None:
    assume(lba != other)
    told = judge(sector(origin, other, two), origin, lba, one)
    assert told.kind is FlawKind.MISPLACED
    assert f"LBA {other}," in told.found


@given(ORIGINS, WORD, LBAS, VERSIONS)
def test_a_sector_of_another_namespace_is_misplaced(origin: Origin, device: int, lba: int, version: int) -> None:
    assume(device != origin.device)
    assert judge(sector(origin._replace(device=device), lba, version), origin, lba, version).kind is FlawKind.MISPLACED


@given(ORIGINS, LBAS, VERSIONS, st.integers(1, SECTOR_BYTES - 64))
def test_a_shifted_sector_is_misplaced(origin: Origin, lba: int, version: int, by: int) -> None:
    made = sector(origin, lba, version)
    told = judge((b"\0" * by + made)[:SECTOR_BYTES], origin, lba, version)
    assert told.kind is FlawKind.MISPLACED
    assert told.found.endswith(f"begun at byte {by}")


@given(ORIGINS, LBAS, VERSIONS, st.integers(1, 16), CUTS)
def test_the_head_of_one_version_and_the_tail_of_another_are_torn(
    origin: Origin, lba: int, version: int, newer: int, cut: int
) -> None:
    old, new = sector(origin, lba, version), sector(origin, lba, version + newer)
    late = judge(new[:cut] + old[cut:], origin, lba, version + newer)
    assert late.kind is FlawKind.TORN
    assert cut <= late.offset < cut + 8  # a byte of noise may be the same by chance
    early = judge(old[:cut] + new[cut:], origin, lba, version + newer)
    assert early.kind is FlawKind.TORN
    assert early.offset < 64  # the header says the old version
    assert f"version {version}" in early.found


@given(ORIGINS, LBAS, LBAS, VERSIONS, CUTS)
def test_parts_of_two_places_are_torn(origin: Origin, lba: int, other: int, version: int, cut: int) -> None:
    assume(lba != other)
    here, there = sector(origin, lba, version), sector(origin, other, version)
    assume(here[64:128] != there[64:128])  # one window in 2**20
    assert judge(here[:cut] + there[cut:], origin, lba, version).kind is FlawKind.TORN
    assert judge(there[:cut] + here[cut:], origin, lba, version).kind is FlawKind.TORN


@given(ORIGINS, LBAS, VERSIONS, NUMBERS, st.integers(0, SECTOR_BYTES - 8))
@example(Origin(0, 0), 0, 1, 0, 8)  # the run is the number of the poison
def test_a_buffer_that_was_not_written_is_told_from_where_on(
    origin: Origin, lba: int, version: int, number: int, at: int
) -> None:
    found = sector(origin, lba, version)[:at] + poison_pattern(number, SECTOR_BYTES)[at:]
    told = judge(found, origin, lba, version, number)
    assert told.kind is FlawKind.UNWRITTEN
    assert at <= told.offset < at + 16  # a field of the header may be the same by chance


@given(ORIGINS, LBAS, VERSIONS, NUMBERS, st.integers(0, SECTOR_BYTES // 512 - 2))
def test_a_hole_in_a_buffer_is_unwritten(origin: Origin, lba: int, version: int, number: int, block: int) -> None:
    found, at = bytearray(sector(origin, lba, version)), block * 512
    found[at : at + 512] = poison_pattern(number, SECTOR_BYTES)[at : at + 512]
    told = judge(bytes(found), origin, lba, version, number)
    assert told.kind is FlawKind.UNWRITTEN
    assert at <= told.offset < at + 16  # a field of the header may be the same by chance


@given(ORIGINS, LBAS, VERSIONS, WORD)
def test_zeroes_and_noise_of_nobody_are_wrong(origin: Origin, lba: int, version: int, seed: int) -> None:
    assert judge(bytes(SECTOR_BYTES), origin, lba, version).kind is FlawKind.WRONG
    noise = Random(seed).randbytes(SECTOR_BYTES)  # noqa: S311
    assert judge(noise, origin, lba, version).kind is FlawKind.WRONG


@given(NUMBERS, st.integers(0, GUARD_BYTES - 1), st.integers(1, 255))
def test_a_guard_that_was_touched_is_told_where(number: int, at: int, change: int) -> None:
    pattern = guard_pattern(number)
    assert guard_damage(bytes(pattern), pattern) is None
    touched = bytearray(pattern)
    touched[at] ^= change
    told = guard_damage(bytes(touched), pattern)
    assert told is not None
    assert (told.kind, told.offset) == (FlawKind.GUARD, at)


@given(ORIGINS, LBAS, VERSIONS)
def test_near_versions_have_other_bodies(origin: Origin, lba: int, version: int) -> None:
    bodies = {sector(origin, lba, version + more)[64:] for more in range(20)}
    assert len(bodies) == 20
