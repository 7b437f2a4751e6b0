"""The closed loop on a lab, unattended: provision → verify → tune, killed and resumed → provision → verify.

The target's disk is the kernel's null_blk, each command of which takes 20 ms: what one command at a time cannot hide.
The numbers are printed; figures of one run on emulated machines say nothing of others.
"""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fabric.lab.vm import Image
from fabric.policy import PROFILE_PATH, profile_from_text
from fabric.workflow.lab import topology
from tests.vm.fabrics import Driven, Ran, driven_lab

pytestmark = pytest.mark.vm

HOSTS: Final = ("host1", "host2")
TRIALS, SECONDS = 12, 4.0
KILLED_AFTER: Final = 5  # trials
ENDED_WITHIN_S: Final = 60.0  # of an emulated machine; what stays, stays for ever
LEAST_GAIN: Final = 2.0  # over one command in flight; bar 05_4 asks for 4, of a machine that nobody else uses
# A KV cache of one layer, 16 tokens of 1 KiB: small reads, many at a time.
_LOAD: Final = """\
span: 8MiB
phases:
  - {name: kv, pattern: pairwise, size: 16KiB, readers: 16, seconds: 8}
"""
_SLOW_DISK: Final = "{device: /dev/kv0, size_mib: 64, latency_us: 20000}"


def slow_lab(folder: Path) -> Path:
    """Returns an inventory of its own, since tune writes into it: the lab's, with a disk that takes its time."""
    made = folder / "site"
    shutil.copytree(topology("lab"), made)
    place = made / "group_vars" / "targets.yml"
    text = place.read_text()
    changed = text.replace("/dev/ram0}", "/dev/kv0}").replace("{device: /dev/ram0, size_mib: 64}", _SLOW_DISK)
    assert changed.count("/dev/kv0") == 2
    assert "/dev/ram0" not in changed
    place.write_text(changed)
    return made


@pytest.fixture(name="driven")
def _driven(image: Image, tmp_path: Path) -> Iterator[Driven]:
    del image
    with driven_lab("lab", inventory=slow_lab(tmp_path)) as driven:
        (driven.folder / "load.yml").write_text(_LOAD)
        yield driven


def done(driven: Driven, verb: str, *words: str) -> Ran:
    """Returns how a verb ended, which must be well."""
    begin = time.monotonic()
    ran = driven.fabricctl(verb, *words)
    print(f"{verb} {' '.join(words)}: exit {ran.status}, {time.monotonic() - begin:.0f} s")
    assert ran.status == 0, ran.stdout[-6000:] + ran.stderr[-6000:]
    return ran


def proven(driven: Driven) -> dict[str, Any]:
    """Returns the verdict of a verification, which must be that nothing was lost."""
    load = str(driven.folder / "load.yml")
    verdict: dict[str, Any] = done(driven, "verify", "--profile", load, "--scratch", "target1").document["verdict"]
    assert verdict["status"] == "pass"
    assert verdict["lost"] == 0
    print(f"  no loss in {verdict['packets']} packets, <= {verdict['bound_95']:.3g}, grade {verdict['grade']}")
    return verdict


def killed_study(driven: Driven, *words: str) -> Path:
    """Returns the run folder of a study that was killed after some trials; whatever it had on hosts has ended."""
    with (driven.folder / "killed.log").open("w") as log:
        process = subprocess.Popen(
            driven.argv("tune", *words), env=driven.environ, cwd=driven.folder, stdout=log, stderr=log
        )
    end = time.monotonic() + 300
    run = None
    while run is None or len((run / "journal.jsonl").read_bytes().splitlines()) <= KILLED_AFTER:
        assert process.poll() is None, (driven.folder / "killed.log").read_text()[-6000:]
        assert time.monotonic() < end
        time.sleep(0.2)
        run = next((one.parent for one in (driven.folder / "runs").glob("*-tune/journal.jsonl")), None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return run


def agents_on(driven: Driven, host: str) -> str:
    return driven.sh(host, "pgrep -f fabric[.]engine[.]load || true; ls -d /tmp/fabricctl.* 2>/dev/null || true")


def assert_no_agents(driven: Driven) -> None:
    """An agent ends with its connection: no process and no folder of it stays on a host."""
    begin = time.monotonic()
    while left := {host: there for host in HOSTS if (there := agents_on(driven, host).strip())}:
        assert time.monotonic() - begin < ENDED_WITHIN_S, left
        time.sleep(0.5)
    print(f"  agents gone {time.monotonic() - begin:.1f} s after the kill")


def test_a_fabric_is_provisioned_proven_tuned_and_proven_again(driven: Driven) -> None:
    first = done(driven, "provision")
    before = proven(driven)

    load = ("--profile", str(driven.folder / "load.yml"), "--scratch", "target1", "--checked")
    # this release of SONiC shows no marks: what nobody counts would be infeasible
    unseen = ("--marks-percent", "100")
    words = ("--trials", str(TRIALS), "--seconds", str(SECONDS), *unseen, *load, first.document["run_folder"])
    run = killed_study(driven, *words)
    kept = (run / "journal.jsonl").read_bytes()
    assert_no_agents(driven)
    study = done(driven, "tune", "--resume", str(run), "--checked", first.document["run_folder"], "--write").document
    whole = (run / "journal.jsonl").read_bytes()
    assert whole.startswith(kept[: kept.rindex(b"\n") + 1])  # what was measured before the kill was not measured again

    report, chosen = study["report"], study["report"]["chosen"]
    assert study["is_written"]
    assert report["loss"]["lost"] == 0
    serial = next(one for one in report["baselines"] if one["knobs"]["queues"] * one["knobs"]["depth"] == 1)
    tuned, alone = chosen["outcome"]["bytes_per_s"], serial["outcome"]["bytes_per_s"]
    assert chosen["default_outcome"] is not None  # else "never below the default" would say nothing
    default = chosen["default_outcome"]["bytes_per_s"]
    print(f"  chosen {chosen['knobs']}: {chosen['why']}")

    again = done(driven, "provision")
    assert again.outcomes()["leaf1"] == "unchanged"
    assert {again.outcomes()[one] for one in HOSTS} == {"committed"}
    there = [profile_from_text(driven.sh(one, f"cat {PROFILE_PATH}"), place=one).policy for one in HOSTS]
    assert {(one.queues, one.depth) for one in there} == {(chosen["knobs"]["queues"], chosen["knobs"]["depth"])}

    after = proven(driven)
    jobs = (max((driven.folder / "runs").glob("*-verify")) / "rounds.json").read_text()
    assert f'"queues": {chosen["knobs"]["queues"]}' in jobs  # the load goes as the profile on the hosts says
    held = driven.fabricctl("tune", "--check", *load, again.document["run_folder"], "--seconds", "3", *unseen)
    told = held.stdout[-6000:] + held.stderr[-6000:]
    assert held.document.get("outcome"), told
    assert held.document["outcome"]["lost"] == 0, told
    assert held.status == (1 if held.document["why"] else 0)
    # whether it still gives as much is up to who else uses these cores; what it says must be about that alone
    assert all("MB/s" in one or "GB/s" in one or "p99" in one for one in held.document["why"]), held.document["why"]
    print(
        f"loop: tuned {tuned / 1e6:.2f} MB/s, {tuned / alone:.1f}x one command in flight ({alone / 1e6:.2f}), "
        f"{tuned / default:.2f}x the default; "
        f"lost 0 of {before['packets']} before and 0 of {after['packets']} after"
    )
    assert tuned >= LEAST_GAIN * alone
    assert tuned >= default
