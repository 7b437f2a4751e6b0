"""Jobs on real files: what is read is verified, what is damaged is located, time and caps are kept."""

import time
from pathlib import Path
from typing import Any

import pytest

from fabric.engine import client
from fabric.engine.load import (
    OPEN_S,
    FlawKind,
    Grounds,
    Job,
    JobResult,
    Region,
    Stream,
    checked_job,
    describe,
    prepare,
    run_job,
)
from fabric.engine.load.payload import Origin, device_id, sector
from fabric.errors import LocalProtocolError, TransportError
from fabric.serial import from_json, to_json
from tests.unit.engine.load.rig import MIB, RUN, Disk, Told, job


@pytest.fixture(name="disk")
def _disk(tmp_path: Path) -> Disk:
    made = Disk(tmp_path / "disk")
    assert made.prepare() == MIB
    return made


def test_a_clean_region_reads_without_a_flaw(disk: Disk) -> None:
    result = disk.run()
    (one,) = result.streams
    assert one.reads > 0
    assert one.bytes_read == one.reads * 16384
    assert (one.writes, one.errors, one.flaw_count) == (0, (), 0)
    assert one.p50_ns is not None
    assert one.p99_ns is not None
    assert 0 < one.p50_ns <= one.p99_ns <= (one.p999_ns or 0)
    assert sum(moved for _second, moved, _p99 in one.series) == one.bytes_read
    assert result.is_complete
    assert 0.1 <= result.seconds < 0.2
    assert result.cpu_s > 0
    assert one.policy is not None


def test_results_and_jobs_go_through_json(disk: Disk) -> None:
    disk.damage(0, b"x")
    result = disk.run()
    assert from_json(JobResult, to_json(result)) == result
    wanted = disk.job()
    assert from_json(Job, to_json(wanted)) == wanted


def test_mixed_reads_find_the_version_that_was_written_last(disk: Disk) -> None:
    first = disk.run(write_share=0.5, seconds=0.2).streams[0]
    assert min(first.reads, first.writes) > 0
    assert (first.errors, first.flaw_count) == ((), 0)
    again = disk.run(size_bytes=4096).streams[0]  # another size, over all versions that stand there now
    assert again.reads > 0
    assert again.flaw_count == 0


def test_two_paths_to_one_namespace_do_not_get_in_each_others_way(disk: Disk) -> None:
    both = (disk.stream, Stream("s2", disk.stream.url, disk.stream.policy))
    result = run_job(
        job(both, disk.region, write_share=0.5, seconds=0.2), grounds=disk.grounds, outside=disk.told.outside()
    )
    assert all(one.writes for one in result.streams)
    assert [one.flaw_count for one in result.streams] == [0, 0]


def test_each_damage_on_the_medium_is_named_and_located(disk: Disk) -> None:
    origin, blocks = Origin(RUN, device_id(str(disk.path), 1)), 4096 // disk.block
    lbas = [number * blocks for number in range(8)]
    old = sector(origin, lbas[2], 9)
    disk.damage(0 * 4096 + 3000, b"\xff\x00\xff")
    disk.damage(2 * 4096, old)
    disk.damage(4 * 4096 + 2048, sector(origin, lbas[4], 9)[2048:])
    disk.damage(6 * 4096, sector(origin, lbas[7], 1))
    found = {(one.lba, one.kind) for one in disk.run(seconds=0.2).streams[0].flaws}
    assert found == {
        (lbas[0], FlawKind.WRONG),
        (lbas[2], FlawKind.STALE),
        (lbas[4], FlawKind.TORN),
        (lbas[6], FlawKind.MISPLACED),
    }


def test_flaws_are_counted_beyond_those_that_are_kept(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "never-prepared")
    one = disk.run(seconds=0.2).streams[0]
    assert len(one.flaws) == 100
    assert one.flaw_count >= 4 * one.reads
    assert one.flaws[0].found == "zeroes from byte 0 on"


def test_after_a_run_of_writes_a_lost_write_is_stale(disk: Disk) -> None:
    before = disk.path.read_bytes()
    assert disk.run(write_share=1.0).streams[0].writes > 0
    disk.damage(0, before)
    assert {one.kind for one in disk.run().streams[0].flaws} == {FlawKind.STALE}


def test_bursts_are_counted_and_those_with_a_flaw_are_bad(disk: Disk) -> None:
    one = disk.run(on_ns=10_000_000, off_ns=30_000_000, seconds=0.8).streams[0]
    assert 1 <= one.bursts <= 20  # a busy machine sleeps through some
    assert one.bursts_failed == 0
    disk.damage(0, bytes(MIB))
    bad = disk.run(on_ns=10_000_000, off_ns=30_000_000, seconds=0.8).streams[0]
    assert bad.bursts == bad.bursts_failed > 0


def test_a_cap_holds(disk: Disk) -> None:
    one = disk.run(max_bytes_per_s=2 * MIB, seconds=0.4).streams[0]
    assert 0.3 * MIB < one.bytes_read <= 1.1 * MIB


def test_a_start_is_waited_for(disk: Disk) -> None:
    start = time.time() + 0.15
    result = disk.run(start_unix_s=start)
    assert result.started_unix_s == pytest.approx(start, abs=0.05)
    assert result.streams[0].reads > 0


def test_a_start_in_another_hour_is_refused(disk: Disk) -> None:
    with pytest.raises(LocalProtocolError, match="too far ahead"):
        disk.run(start_unix_s=time.time() + 4000)


def test_who_is_told_to_stop_ends_soon_and_says_so(disk: Disk) -> None:
    begin = time.monotonic()
    result = run_job(
        disk.job(seconds=60.0),
        grounds=disk.grounds,
        outside=disk.told.outside(is_stopped=lambda: time.monotonic() > begin + 0.5),
    )
    assert time.monotonic() - begin < 10
    assert not result.is_complete
    assert result.streams[0].reads > 0
    assert result.streams[0].errors == ()


def test_a_stream_that_cannot_be_opened_stops_no_other(disk: Disk, tmp_path: Path) -> None:
    gone = Stream("gone", f"file://{tmp_path}/absent")
    result = run_job(job((gone, disk.stream), disk.region), grounds=disk.grounds, outside=disk.told.outside())
    assert [one.name for one in result.streams] == ["gone", "s1"]
    assert result.streams[0].errors == (("EnvironmentMissingError", 1),)
    assert "absent" in result.streams[0].first_error
    assert result.streams[1].reads > 0


def test_a_target_that_could_not_connect_in_time_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, tries = client.open_engine, []

    def busy(url: str, **named: Any) -> client.Engine:
        tries.append(named["settings"].open_ns)
        if len(tries) < 3:
            raise TransportError("no I/O queue could be opened")
        return opened(url, **named)

    monkeypatch.setattr(client, "open_engine", busy)
    assert describe(Stream("m", "memory://?bytes=1048576")).namespaces
    assert len(tries) == 3
    assert tries == sorted(tries, reverse=True)  # all of them within OPEN_S
    assert tries[0] <= OPEN_S * 1e9


def test_a_target_that_never_connects_is_asked_a_few_times_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def busy(url: str, **_: Any) -> client.Engine:
        tries.append(url)
        raise TransportError("no I/O queue could be opened")

    monkeypatch.setattr(client, "open_engine", busy)
    with pytest.raises(TransportError, match="no I/O queue"):
        describe(Stream("m", "memory://?bytes=1048576"))
    assert 1 < len(tries) < 5


def test_what_is_read_without_a_check_is_not_judged(disk: Disk) -> None:
    disk.damage(0, bytes(MIB))
    one = disk.run(check=False).streams[0]
    assert (one.reads > 0, one.flaw_count) == (True, 0)


def test_memory_takes_unchecked_writes() -> None:
    memory = Stream("m", "memory://?bytes=1048576")
    result = run_job(
        job((memory,), Region(0, 2048), check=False, write_share=0.5, size_bytes=1536),
        grounds=Grounds(),
        outside=Told().outside(),
    )
    one = result.streams[0]
    assert min(one.reads, one.writes) > 0
    assert one.errors == ()


@pytest.mark.slow
def test_progress_is_told_every_second(disk: Disk) -> None:
    disk.run(seconds=1.1, max_bytes_per_s=MIB)
    (first,) = disk.told.progress
    assert first.second == 1
    assert first.streams[0].bytes > 0


def test_nothing_is_overwritten_without_consent(disk: Disk) -> None:
    before = disk.path.read_bytes()
    with pytest.raises(LocalProtocolError, match="nobody said"):
        prepare(
            disk.stream,
            disk.region,
            run_id=1,
            has_consent=False,
            grounds=disk.grounds,
            outside=disk.told.outside(),
        )
    assert disk.path.read_bytes() == before


@pytest.mark.parametrize(
    ("region", "words"),
    [(Region(0, 1 << 30), "not in the namespace"), (Region(0, 1), "too small")],
)
def test_a_region_that_does_not_fit_is_told(disk: Disk, region: Region, words: str) -> None:
    result = run_job(job((disk.stream,), region, size_bytes=65536), grounds=disk.grounds, outside=disk.told.outside())
    assert words in result.streams[0].first_error


def test_what_surrounds_the_region_is_left_alone(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk")
    quarter = MIB // 4 // disk.block
    disk.region = Region(quarter, quarter)
    assert disk.prepare() == MIB // 4
    result = disk.run(write_share=1.0)
    assert result.streams[0].writes > 0
    data = disk.path.read_bytes()
    assert not any(data[: MIB // 4])
    assert not any(data[MIB // 2 :])
    assert data[MIB // 4 :].startswith(b"FABLOAD1")


def test_everything_wrong_with_a_job_is_named_at_once() -> None:
    bad = job((Stream("a", "x", tos=300), Stream("a", "y")), Region(0, 0), readers=0, size_bytes=1000, off_ns=5)
    with pytest.raises(LocalProtocolError) as caught:
        checked_job(bad)
    for words in ("readers is 0", "region.blocks is 0", "two streams", "multiple of 4096", "no bursts", "tos of a"):
        assert words in caught.value.found
    with pytest.raises(LocalProtocolError, match="no stream"):
        checked_job(job((), Region(0, 1)))
    with pytest.raises(LocalProtocolError, match="fewer readers"):
        checked_job(job((Stream("a", "x"),), Region(0, 1), readers=4096, size_bytes=1 << 30))
