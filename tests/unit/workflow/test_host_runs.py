"""Several runs on one host: at once, one after the other, and taken back in any order; over a host that keeps state."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.host.change import HostIntent, Part
from fabric.host.hold import Holder, holder_of
from fabric.policy import PROFILE_PATH
from fabric.state import DeviceResult
from fabric.workflow.hosts import results_of
from tests.faults_table_hosts import Fault, FaultyModel, World, tuned, wider
from tests.unit.host.faulty import KilledError
from tests.unit.host.intents import HOST, KV1, KV2, TWO

FAR = Holder("20261129-170000-provision", "another-boot/4026531836/17/99", "another-boot/4026531836/18/99", "you@there")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, FaultyModel(reachable={(KV1, "10.10.0.1"), (KV2, "10.10.0.1")}))


def provide(world: World, intent: HostIntent, *parts: str) -> Path:
    """Provisions the parts in one run; each is committed."""
    run = world.run(intent)
    for part in parts:
        assert world.do(part, run, "host1") == "committed"
    return run


def take_back(world: World, past: Path, of: str) -> DeviceResult:
    back = world.back_of(past)
    world.do("back", back, "host1", of=of)
    return results_of(back)["host1", Part(of)]


# --- an older run after a newer one ---------------------------------------------------------------------------------


def test_older_run_is_not_taken_back_over_a_newer_one_and_is_after_it(world: World) -> None:
    before = world.model.snapshot()
    old = provide(world, HOST, "nic")
    between = world.model.snapshot()
    new = provide(world, wider(HOST), "nic")
    stands = world.model.snapshot()

    refused = take_back(world, old, "nic")

    assert (refused.outcome, world.model.snapshot()) == ("refused", stands)
    assert "data0 mtu: 9000, where the run found 1500 and left 4200" in refused.error
    assert f"what came later: {new.name}" in refused.remedy
    assert take_back(world, new, "nic").outcome == "committed"
    assert world.model.snapshot() == between
    assert take_back(world, old, "nic").outcome == "committed"
    assert world.model.snapshot() == before


def test_what_others_changed_in_other_things_stays(world: World) -> None:
    old = provide(world, HOST, "nic", "connect")
    world.model.netdevs["data0"].addresses.append("192.0.2.9/26")
    world.model.files["/etc/sysctl.d/60-theirs.conf"] = ("kernel.x = 1\n", 0o644)
    assert [take_back(world, old, part).outcome for part in ("connect", "nic")] == ["committed", "committed"]
    assert world.model.netdevs["data0"].addresses == ["192.0.2.9/26"]
    assert "/etc/sysctl.d/60-theirs.conf" in world.model.files


def test_what_others_brought_back_by_hand_is_no_obstacle(world: World) -> None:
    before = world.model.snapshot()
    old = provide(world, HOST, "nic")
    world.model.netdevs["data0"].mtu = 1500
    assert take_back(world, old, "nic").outcome == "committed"
    assert world.model.snapshot() == before


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/etc/fabricctl/link.json", "/etc/fabricctl/link.json: another text"),
        (PROFILE_PATH, f"{PROFILE_PATH}: another"),
    ],
)
def test_file_of_ours_that_somebody_edited_is_not_overwritten(path: str, named: str, world: World) -> None:
    run = provide(world, tuned(6, 106), "nic", "connect")
    text, mode = world.model.files[path]
    world.model.files[path] = (text + "\n", mode)
    stands = world.model.snapshot()
    refused = take_back(world, run, "nic" if "link" in path else "connect")
    assert (refused.outcome, world.model.snapshot()) == ("refused", stands)
    assert named in refused.error
    assert "by hand first" in refused.remedy


def test_newer_run_that_added_a_connection_keeps_it(world: World) -> None:
    old = provide(world, HOST, "nic", "connect")
    provide(world, replace(HOST, connections=(*HOST.connections, TWO)), "connect")
    assert take_back(world, old, "connect").outcome == "refused"
    assert sorted(one["subsysnqn"] for one in world.model.controllers.values()) == [KV1, KV2]


def test_older_run_that_was_killed_is_not_taken_back_over_a_newer_one(world: World) -> None:
    old = world.run(HOST)
    world.model.at_step, world.model.fault = "… systemctl daemon-reload", Fault.KILLED
    with pytest.raises(KilledError):
        world.do("nic", old, "host1")
    world.model.mended(world.model.reachable)
    amid = world.model.snapshot()
    assert world.model.netdevs["data0"].mtu == 4200
    assert amid["active"] == set()
    new = provide(world, wider(HOST), "nic")
    assert take_back(world, old, "nic").outcome == "refused"
    assert take_back(world, new, "nic").outcome == "committed"
    assert {**world.model.snapshot(), "files": 0} == {**amid, "files": 0}  # all but its half files
    assert take_back(world, old, "nic").outcome == "committed"
    assert world.model.files == {}


def test_way_back_that_was_cut_off_is_taken_by_the_next_and_by_the_way_back_of_that(world: World) -> None:
    before = world.model.snapshot()
    old = provide(world, HOST, "nic")
    back = world.back_of(old)
    world.model.at_step, world.model.fault = "… rdma link delete", Fault.LOST
    assert world.do("back", back, "host1", of="nic") == "uncertain"
    world.model.mended(world.model.reachable)
    assert take_back(world, back, "nic").outcome == "committed"
    assert world.model.snapshot() == before


# --- two runs at once -----------------------------------------------------------------------------------------------


def test_host_at_which_another_run_is_stays_untouched_and_says_whose_it_is(world: World) -> None:
    first = world.run(HOST)
    other = world.run(wider(HOST))
    assert world.do("nic", first, "host1", hold=True) == "committed"
    stands = world.model.snapshot()

    assert world.do("nic", other, "host1", holder=FAR) == "failed"
    assert world.do("back", world.back_of(first), "host1", of="nic", holder=FAR) == "failed"

    assert world.model.snapshot() == stands
    assert (
        f"another run is at this host (found run {first.name} of me@here)" in results_of(other)["host1", Part.NIC].error
    )
    assert world.do("connect", first, "host1") == "committed"  # the last part lets go
    assert world.do("nic", other, "host1", holder=FAR) == "committed"


def test_part_that_does_not_end_well_lets_go_of_the_host(world: World) -> None:
    run = world.run(HOST)
    world.model.at_step, world.model.fault = "… ip link set dev data0 mtu", Fault.REFUSED
    assert world.do("nic", run, "host1", hold=True) == "rolled-back"
    assert "/run/fabricctl/lock" not in world.model.files


def test_lock_of_a_dead_run_is_broken_and_told(world: World) -> None:
    dead = holder_of("20261129-160000-provision", "me@here", lasting=os.getpid(), worker=os.getpid())
    key = dead.key.rpartition("/")[0] + "/1"  # the number was given again: it started at another time
    gone = replace(dead, key=key, worker=key)
    world.do("nic", world.run(HOST), "host1", hold=True, holder=gone)
    run = world.run(wider(HOST))
    assert world.do("nic", run, "host1") == "committed"
    (note,) = (text for code, text in results_of(run)["host1", Part.NIC].notes if code == "lock-broken")
    assert note == "run 20261129-160000-provision was cut off at this host; its lock was broken"


def test_release_lets_go_of_what_was_held_for_a_part_that_never_came(world: World) -> None:
    run = world.run(HOST)
    world.do("nic", run, "host1", hold=True)
    assert "/run/fabricctl/lock" in world.model.files
    world.release(run, "host1")
    assert "/run/fabricctl/lock" not in world.model.files


def test_check_mode_takes_no_lock_and_says_what_would_be_refused(world: World) -> None:
    old = provide(world, HOST, "nic")
    back = world.back_of(old)
    world.look("back", back, "host1", of="nic")
    told = results_of(back)["host1", Part.NIC]
    assert (told.outcome, told.changes > 0) == ("unchanged", True)
    provide(world, wider(HOST), "nic")
    said = world.look("back", back, "host1", of="nic")
    assert "data0 mtu: 9000, where the run found 1500 and left 4200" in said
    assert results_of(back)["host1", Part.NIC].outcome == "refused"
    assert "take the lock" not in world.model.steps[-12:]
