"""The lock: one at a time, dead holders, holders on other machines."""

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import DeviceError, FabricError
from fabric.push.lock import DeviceLock, LockRecord, in_flux, in_our_time
from fabric.serial import to_json
from fabric.state import Outcome
from tests.unit.push.bench import AFTER, bench

HOLD = """
import sys
from pathlib import Path
from fabric.clock import FakeClock
from fabric.push.lock import DeviceLock
clock = FakeClock(1000.0)
with DeviceLock(Path(sys.argv[1]), "leaf1", owner="anna", run="r7", clock=clock, expires_s=60.0) as lock:
    lock.arm(1300.0)
    print("held", flush=True)
    sys.stdin.read()
"""


def lock(state_dir: Path, clock: FakeClock, owner: str = "bert") -> DeviceLock:
    return DeviceLock(state_dir, "leaf1", owner=owner, run="r8", clock=clock, expires_s=60.0)


def holder(state_dir: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_is_free_again_after_its_holder(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock()
    with lock(state, clock) as first:
        assert first.inherited is None
    with lock(state, clock) as second:
        assert second.inherited is None

    (path,) = (state / "locks").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


class SetClock(FakeClock):
    """A clock that somebody sets meanwhile; what has passed goes on."""

    set_by_s = 0.0

    def unix_s(self) -> float:
        return super().unix_s() + self.set_by_s


@pytest.mark.parametrize("set_by_s", [-86_400.0, 0.0, 86_400.0])
def test_timer_of_a_dead_run_lasts_as_long_as_it_does_however_the_clock_is_set(tmp_path: Path, set_by_s: float) -> None:
    clock = SetClock(1e6)
    with lock(tmp_path / "state", clock) as dead:
        dead.arm(clock.unix_s() + 300.0)
        dead.keep()
    clock.sleep_s(100.0)
    clock.set_by_s = set_by_s
    with lock(tmp_path / "state", clock) as held:
        assert held.inherited is not None
        assert held.inherited.settles_unix_s - clock.unix_s() == pytest.approx(200.0)
        assert held.inherited.started_unix_s <= clock.unix_s()


def test_record_of_another_boot_in_our_future_counts_from_now() -> None:
    found = LockRecord("leaf1", "anna", 1, "other", "r7", 5000.0, 5060.0, 5300.0, boot="another")
    now = in_our_time(found, FakeClock(1000.0))
    assert (now.started_unix_s, now.expires_unix_s, now.settles_unix_s) == (1000.0, 1060.0, 1300.0)
    assert in_our_time(found, FakeClock(5100.0)) == found
    assert in_our_time(replace(found, settles_unix_s=0.0), FakeClock(1000.0)).settles_unix_s == 0.0


def test_a_second_holder_is_told_who_has_it(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock(1000.0)
    with holder(state) as process:
        with pytest.raises(DeviceError, match="another run holds this device") as caught, lock(state, clock):
            pytest.fail("two hold it")
        process.communicate("")

    assert f"run r7 of anna, process {process.pid} on {os.uname().nodename}" in caught.value.found
    assert "expires in 360 s" in caught.value.remedy


def test_two_runs_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock()
    with lock(state, clock), pytest.raises(DeviceError, match="another run"), lock(state, clock, "carl"):
        pytest.fail("two hold it")


def test_the_lock_of_a_killed_holder_is_taken_over_with_its_record(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock(1000.0)
    with holder(state) as process:
        os.kill(process.pid, signal.SIGKILL)

    with lock(state, clock) as taken:
        assert taken.inherited is not None
        assert (taken.inherited.owner, taken.inherited.pid) == ("anna", process.pid)
        assert taken.inherited.settles_unix_s == 1300.0


def test_the_record_of_a_run_that_crashed_stays(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock(1000.0)

    def crash() -> None:
        with lock(state, clock) as crashed:
            crashed.arm(1100.0)
            raise KeyError

    with pytest.raises(KeyError):
        crash()

    with lock(state, clock) as taken:
        assert taken.inherited is not None
        assert taken.inherited.settles_unix_s == 1100.0


def write_record(state: Path, record: LockRecord) -> None:
    with lock(state, FakeClock()):
        pass
    (path,) = (state / "locks").iterdir()
    path.write_text(json.dumps(to_json(record)))


ELSEWHERE = LockRecord("leaf1", "dora", 17, "other-machine", "r3", 900.0, 1060.0)


def test_a_holder_on_another_machine_counts_until_it_expires(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock(1000.0)
    write_record(state, ELSEWHERE)

    with pytest.raises(DeviceError, match="another run") as caught, lock(state, clock):
        pytest.fail("two hold it")
    assert "dora, process 17 on other-machine" in caught.value.found

    clock.sleep_s(61)
    with lock(state, clock) as taken:
        assert taken.inherited == ELSEWHERE


def test_a_torn_record_says_nothing_and_blocks_nobody(tmp_path: Path) -> None:
    state, clock = tmp_path / "state", FakeClock()
    write_record(state, ELSEWHERE)
    (path,) = (state / "locks").iterdir()
    path.write_text('{"device": "leaf')

    with lock(state, clock) as taken:
        assert taken.inherited is None


def test_a_folder_in_place_of_the_lock_is_an_error(tmp_path: Path) -> None:
    state = tmp_path / "state"
    one = lock(state, FakeClock())
    (state / "locks" / "leaf1.lock").mkdir()

    with pytest.raises(FabricError, match="the lock cannot be taken"), one:
        pytest.fail("taken")


def test_a_lock_that_is_not_held_cannot_be_armed(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match="not held"):
        lock(tmp_path / "state", FakeClock()).arm(1.0)


def test_a_device_under_the_timer_of_a_dead_run_is_waited_for(tmp_path: Path) -> None:
    it = bench(tmp_path)
    write_record(it.state_dir, replace(ELSEWHERE, host=os.uname().nodename, settles_unix_s=1_000_500.0))

    result = it.push()

    assert result.outcome is Outcome.COMMITTED
    assert it.clock.unix_s() >= 1_000_500.0


def test_a_change_that_a_dead_run_confirmed_and_did_not_save_is_saved(tmp_path: Path) -> None:
    it = bench(tmp_path)
    write_record(it.state_dir, replace(ELSEWHERE, host=os.uname().nodename))
    it.device.running = AFTER

    result = it.push()

    assert result.outcome is Outcome.UNCHANGED
    assert it.device.startup == AFTER


def test_a_device_that_somebody_else_holds_is_not_contacted(tmp_path: Path) -> None:
    it = bench(tmp_path)
    with lock(it.state_dir, it.clock):
        result = it.push()

    assert result.outcome is Outcome.FAILED
    assert "another run holds this device (run r8 of bert" in result.error
    assert it.device.calls == {}


def test_a_device_is_in_flux_while_it_is_held_and_after_its_holder_left_it_unknown(tmp_path: Path) -> None:
    state_dir, clock = tmp_path / "state", FakeClock(1000.0)
    assert not in_flux(state_dir, "leaf1")

    with lock(state_dir, clock):
        assert in_flux(state_dir, "leaf1")
    assert not in_flux(state_dir, "leaf1")

    with lock(state_dir, clock) as held:
        held.arm(1300.0)
        held.keep()
    assert in_flux(state_dir, "leaf1")
    with lock(state_dir, clock) as heir:  # leaves it unknown too, before it armed a timer of its own
        heir.keep()
    with lock(state_dir, clock) as last:
        assert last.inherited is not None
        assert last.inherited.settles_unix_s == 1300.0
    assert not in_flux(state_dir, "leaf1")
