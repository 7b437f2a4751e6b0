"""The whole fabric from bare machines: provisioned, provisioned again, rebooted, brought back to where it was."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from fabric.lab.wire.frame import parse
from fabric.lab.wire.pcap import read_pcap
from fabric.lab.wire.roce import read_bth
from tests.vm.fabrics import state_of_host
from tests.vm.lab.conftest import HOSTS, MACHINES, Provisioned
from tests.vm.traffic import grown, namespaces, read_all, rxe_counters

pytestmark = pytest.mark.vm

ROCE_DSCP: Final = 26
BACK_S: Final = 120.0


def roce_dscps(path: Path) -> Counter[int]:
    """Returns how many RoCEv2 packets a capture has, by DSCP."""
    found: Counter[int] = Counter()
    with path.open("rb") as file:
        for _, frame in read_pcap(file):
            headers = parse(frame)
            if headers is not None and headers.dscp is not None and read_bth(frame) is not None:
                found[headers.dscp] += 1
    return found


def test_every_roce_packet_of_both_directions_carries_the_dscp(provisioned: Provisioned, tmp_path: Path) -> None:
    driven = provisioned.driven
    before = driven.dscp_received()
    path = tmp_path / "target.pcap"
    with ThreadPoolExecutor(1) as pool:
        capture = pool.submit(
            driven.site.ask,
            "capture",
            switch="leaf1",
            port="Ethernet16",
            path=str(path),
            seconds=20,
            timeout_s=60,
        )
        for host in HOSTS:
            driven.sh(host, "systemctl restart 'fabricctl-nvme-*'")  # its connection's own packets are captured too
            with driven.site.machine(host).login() as session:
                (device,) = namespaces(session)
                read = read_all(session, [device], block="64k", depth=8, seconds=3)
                assert read.errors == 0
                assert read.reads > 0
                driven.sh(host, f"dd if=/dev/urandom of={device} bs=64k count=16 oflag=direct")
        assert capture.result(60) > 0
    after = driven.dscp_received()

    captured = roce_dscps(path)
    assert set(captured) == {ROCE_DSCP}, captured
    for port in ("Ethernet0", "Ethernet8", "Ethernet16"):
        assert after[port][str(ROCE_DSCP)] > before[port].get(str(ROCE_DSCP), 0)
        strange = {dscp: count for dscp, count in after[port].items() if dscp not in {"0", "26"}}
        assert not strange, f"{port}: {strange}"
    print(f"RoCE packets captured at the target's port: {captured[ROCE_DSCP]}, all with DSCP {ROCE_DSCP}")


def test_second_run_changes_nothing(provisioned: Provisioned) -> None:
    driven = provisioned.driven
    start = time.monotonic()
    done = driven.fabricctl("provision")
    print(f"second provision: {time.monotonic() - start:.0f} s")
    assert done.status == 0, done.stdout + done.stderr
    assert set(done.outcomes().values()) == {"unchanged"}
    assert not done.document["changed"]
    assert [one["diff"] for one in done.document["devices"] if one["diff"]] == []

    ran, changed = driven.playbook("provision.yml")

    assert ran.status == 0, ran.stdout + ran.stderr
    assert set(changed) >= set(MACHINES)
    assert set(changed.values()) == {0}, ran.stdout


def test_all_comes_back_after_a_reboot_of_host_and_target(provisioned: Provisioned) -> None:
    driven = provisioned.driven
    for name in ("target1", "host1"):
        driven.site.reboot(name)
    end = time.monotonic() + BACK_S
    for host in HOSTS:
        with driven.site.machine(host).login() as session:
            while not namespaces(session):
                assert time.monotonic() < end, driven.sh(host, "systemctl --failed; journalctl -b -u 'fabricctl*'")
                time.sleep(1)
            before = rxe_counters(session)
            read = read_all(session, namespaces(session), block="64k", depth=8, seconds=3)
            assert read.errors == 0
            assert read.reads > 0
            assert grown(before, rxe_counters(session)) == {}
    done = driven.fabricctl("check", "--live")
    assert done.status == 0, json.dumps([one for one in done.document["findings"] if one["status"] != "pass"], indent=1)


@pytest.fixture(scope="module", name="used")
def _used(provisioned: Provisioned) -> Path:
    """Returns the saved lab after all that the tests above did to it."""
    saved = provisioned.driven.folder / "used"
    provisioned.driven.site.save_all(saved)
    return saved


def test_rollback_brings_everything_to_where_it_was(provisioned: Provisioned, used: Path) -> None:
    driven = provisioned.driven
    driven.site = driven.site.restore_all(used)
    done = driven.fabricctl("rollback", provisioned.run)

    assert done.status == 0, done.stdout + done.stderr
    assert_as_before(provisioned)


@pytest.mark.bar
def test_the_playbook_does_so_too(provisioned: Provisioned, used: Path) -> None:
    driven = provisioned.driven
    driven.site = driven.site.restore_all(used)
    ran, _ = driven.playbook("rollback.yml", "-e", f"run={provisioned.run}")

    assert ran.status == 0, ran.stdout + ran.stderr
    assert_as_before(provisioned)


def assert_as_before(provisioned: Provisioned) -> None:
    driven = provisioned.driven
    now = {one: state_of_host(driven, one) for one in MACHINES} | driven.site.ask("configs")
    for device, text in provisioned.before.items():
        assert now[device].splitlines() == text.splitlines(), device
