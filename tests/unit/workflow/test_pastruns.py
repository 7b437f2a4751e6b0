"""What the folder, the journal and the lock of a run tell, whole, torn or damaged; nobody is contacted."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabric._version import __version__
from fabric.clock import FakeClock
from fabric.diff import IntendedConfig, Kept
from fabric.errors import FabricError
from fabric.nos.eos import EOS
from fabric.observe import Recorder
from fabric.plan import FabricPlan, SwitchPlan
from fabric.plan.model import Note
from fabric.push import journal_of, left_behind
from fabric.push.journal import Journal
from fabric.push.lock import DeviceLock
from fabric.qos import DeviceQos
from fabric.state import DeviceResult, Outcome
from fabric.tree import Tree
from fabric.workflow.design import DeviceChange
from fabric.workflow.environment import Environment
from fabric.workflow.keeping import notes_on_kept
from fabric.workflow.laterruns import Later, later_runs
from fabric.workflow.outcomes import PushDocument, verdict_of
from fabric.workflow.past import read_past
from fabric.workflow.planning import PlanDocument
from fabric.workflow.runfolder import RunFolder
from fabric.workflow.settling import settle
from fabric.workflow.stopwatch import Stopwatch
from fabric.workflow.summary import Summary, Verdict, how_it_ended
from tests.unit.workflow.reversal import run_of

CREATED_S = 1_700_000_000.0  # 20231114-221320


def change(device: str = "leaf1", mtu: str = "9214") -> DeviceChange:
    wanted = Tree({("interface Ethernet1", "mtu"): mtu})
    intended = IntendedConfig(device, "eos", wanted, owned=(("interface Ethernet1", "mtu"),))
    return replace(run_of(EOS, intended, "interface Ethernet1\n   mtu 1500\n")[0], device=device)


def document(*devices: DeviceChange, created_s: float = CREATED_S) -> PlanDocument:
    plans = tuple(
        SwitchPlan(device=one.device, nos="eos", qos=DeviceQos(device=one.device, nos="eos", ports=()))
        for one in devices
    )
    return PlanDocument(__version__, "small", created_s, (), FabricPlan(fabric="small", switches=plans), devices)


def folder(root: Path, name: str, plan: PlanDocument | None, outcomes: dict[str, Outcome] | None = None) -> RunFolder:
    made = RunFolder(root / name)
    made.path.mkdir(parents=True)
    if plan is not None:
        made.write("plan", plan)
    if outcomes is not None:
        made.write("push", PushDocument(tuple(DeviceResult(*item[:1], "eos", item[1]) for item in outcomes.items())))
    return made


def journal(state_dir: Path, run: str, device: str, *steps: tuple[str, str]) -> None:
    written = Journal(state_dir, run=run, device=device, nos="eos", transaction="t")
    for step, phase in steps:
        written.write(state="s", step=step, phase=phase, unix_s=1.0)


def test_only_what_was_committed_or_left_uncertain_is_touched(tmp_path: Path) -> None:
    plan = document(*(change(name) for name in "abc"))
    ends = {"a": Outcome.COMMITTED, "b": Outcome.FAILED, "c": Outcome.UNCERTAIN}
    past = read_past(folder(tmp_path, "r", plan, ends).path, tmp_path / "state", hosts=False)
    assert [one.device for one in past.touched] == ["a", "c"]
    assert past.change("c").device == "c"


def test_journals_tell_how_far_a_killed_run_came(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    run = folder(tmp_path, "r", document(*(change(name) for name in "abcde"))).path
    journal(state_dir, "r", "a", ("commit", "begin"), ("commit", "ok"), ("end", "committed"))
    journal(state_dir, "r", "b", ("commit", "begin"), ("end", "rolled-back"))
    journal(state_dir, "r", "c", ("stage", "ok"), ("commit", "begin"))
    journal(state_dir, "r", "d", ("stage", "begin"))
    past = read_past(run, state_dir, hosts=False)
    assert [one.device for one in past.touched] == ["a", "c"]
    assert journal_of(state_dir, "r", "e") == ()


@pytest.mark.parametrize(
    ("steps", "said"),
    [((("stage", "begin"),), "was killed before it changed a switch"), ((), "pushed nothing, or was killed elsewhere")],
)
def test_killed_run_that_left_nothing_says_so(tmp_path: Path, steps: tuple[tuple[str, str], ...], said: str) -> None:
    run = folder(tmp_path, "r", document(change("a"))).path
    journal(tmp_path / "state", "r", "a", *steps)
    with pytest.raises(FabricError, match=said):
        read_past(run, tmp_path / "state", hosts=False)


def _plan_gone(run: Path) -> None:
    (run / "plan.json").unlink()


def _other_schema(run: Path) -> None:
    text = json.loads((run / "plan.json").read_text())
    (run / "plan.json").write_text(json.dumps({**text, "schema": 99}))


def _torn(run: Path) -> None:
    (run / "push.json").write_text((run / "push.json").read_text()[:40])


def _of_another_run(run: Path) -> None:
    (run / "plan.json").unlink()
    RunFolder(run).write("plan", document(change("other")))
    switches = document(change("leaf1"), change("other"))
    RunFolder(run).write("plan", replace(switches, devices=(change("other"),)))


def _gone(run: Path) -> None:
    for path in run.iterdir():
        path.unlink()
    run.rmdir()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_plan_gone, "has no plan.json"),
        (_other_schema, "was written with another schema"),
        (_torn, "cannot be read as JSON"),
        (_of_another_run, "is damaged: plan.json has no change for leaf1"),
        (_gone, "there is no "),
    ],
)
def test_damaged_folder_is_an_error_that_names_the_file(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    run = folder(tmp_path, "r", document(change()), {"leaf1": Outcome.COMMITTED}).path
    damage(run)
    with pytest.raises(FabricError, match=said):
        read_past(run, tmp_path / "state", hosts=False)


def test_later_runs_are_found_oldest_first_and_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    first = document(change())
    run = folder(tmp_path, "20231114-221320-provision", first, {"leaf1": Outcome.COMMITTED}).path
    third = document(change(mtu="3000"), created_s=CREATED_S + 100)
    second = document(change(mtu="2000"), created_s=CREATED_S + 50)
    committed = {"leaf1": Outcome.COMMITTED}
    folder(tmp_path, "20231114-221500-provision", third, committed)
    folder(tmp_path, "20231114-221410-provision", second, committed)
    folder(tmp_path, "20231114-221411-provision", second, {"leaf1": Outcome.UNCHANGED})
    folder(tmp_path, "20231114-221412-provision", None, committed)
    folder(tmp_path, "20231114-221319-provision", third, committed)
    folder(tmp_path, "20231114-221413-plan", second)
    folder(tmp_path, "mine", third, committed)

    found = later_runs(run, first, ["leaf1"], [tmp_path, tmp_path / "absent", tmp_path])

    assert [one.run for one in found["leaf1"]] == ["20231114-221410-provision", "20231114-221500-provision"]
    assert later_runs(run, first, ["leaf9"], [tmp_path]) == {}


def test_what_is_kept_is_told_by_row_and_by_whom_it_is_from() -> None:
    mtu = ("interface Ethernet1", "mtu")
    members = tuple(Kept(("qos map dscp", str(dscp)), ("3",), (), ("1",)) for dscp in (24, 25, 27))
    needed = Kept(("MAP", "a", "1"), ("x",), ("x",), (), because="e9 names a")
    back = replace(change(), kept=(Kept(mtu, ("9214",), ("2000",), ("1500",)), *members, needed))
    later = (Later("run-2", change(mtu="2000")), Later("run-3", replace(change(), changes=back.changes)))

    told = notes_on_kept(back, later[:1])

    assert [(note.code, note.text) for note in told] == [
        (
            "kept-theirs",
            "interface Ethernet1: mtu: the run left 9214, now 2000, before the run 1500; put there by run-2",
        ),
        ("kept-theirs", "qos map dscp: 24-25,27: the run left 3, now nothing, before the run 1"),
        ("kept-needed", "MAP / a: 1: the run left x, before the run nothing; kept, since e9 names a"),
    ]
    assert "put there" not in notes_on_kept(back, later)[0].text  # the newest run left another value


def test_word_for_each_end_of_a_rollback() -> None:
    def word(outcome: Outcome, *, keeps: bool, verb: str = "rollback", changes: int = 0) -> str:
        one = DeviceResult("leaf1", "eos", outcome, changes=changes)
        notes = (("leaf1", Note("kept-theirs", "x")),) if keeps else (("leaf2", Note("kept-theirs", "x")),)
        return how_it_ended(Summary(verb, "f", Verdict.OK, devices=(one,), notes=notes), one)

    assert word(Outcome.COMMITTED, keeps=False) == "restored"
    assert word(Outcome.COMMITTED, keeps=True) == "partly restored"
    assert word(Outcome.UNCHANGED, keeps=True) == "kept"
    assert word(Outcome.UNCHANGED, keeps=False) == "nothing to do"
    assert word(Outcome.UNCHANGED, keeps=False, verb="rehearse-rollback", changes=1) == "to restore"
    assert word(Outcome.UNCHANGED, keeps=True, verb="rehearse-rollback", changes=1) == "to restore in part"
    assert word(Outcome.ROLLED_BACK, keeps=True) == "rolled-back"
    assert word(Outcome.COMMITTED, keeps=True, verb="provision") == "committed"
    assert word(Outcome.UNCHANGED, keeps=False, verb="plan", changes=1) == "to change"


@pytest.mark.parametrize("code", ["kept-theirs", "kept-needed"])
def test_what_is_kept_stands_against_the_run(code: str) -> None:
    done = (DeviceResult("leaf1", "eos", Outcome.COMMITTED),)
    assert verdict_of(done, (), (("leaf1", Note(code, "x")),)) is Verdict.FINDINGS
    assert verdict_of(done, (), (("leaf1", Note("other", "x")),)) is Verdict.OK


def test_lock_that_a_dead_run_left_tells_when_its_timer_has_run(tmp_path: Path) -> None:
    lock = DeviceLock(tmp_path, "leaf1", owner="anna", run="r7", clock=FakeClock(), expires_s=60.0)
    with lock:
        lock.arm(500.0)
        lock.keep()
    found = left_behind(tmp_path, "leaf1")
    assert found is not None
    assert (found.run, found.settles_unix_s) == ("r7", 500.0)
    assert left_behind(tmp_path, "leaf2") is None


@pytest.mark.parametrize(
    "other", [{"pid": os.getppid()}, {"pid": 2**62}, {"host": "elsewhere"}], ids=["alive", "no number", "other machine"]
)
def test_lock_of_somebody_who_may_still_be_there_is_not_waited_for(tmp_path: Path, other: dict[str, object]) -> None:
    lock = DeviceLock(tmp_path, "leaf1", owner="anna", run="r7", clock=FakeClock(), expires_s=60.0)
    with lock:
        lock.keep()
    path = tmp_path / "locks" / "leaf1.lock"
    path.write_text(json.dumps({**json.loads(path.read_text()), **other}))
    assert left_behind(tmp_path, "leaf1") is None


@pytest.mark.parametrize("text", ["", "{", '{"device": 3}'])
def test_lock_that_says_nothing_is_not_waited_for(tmp_path: Path, text: str) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "leaf1.lock").write_text(text)
    assert left_behind(tmp_path, "leaf1") is None


def test_dead_process_holds_nothing(tmp_path: Path) -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    with DeviceLock(tmp_path, "leaf1", owner="anna", run="r7", clock=FakeClock(), expires_s=60.0) as lock:
        lock.keep()
    path = tmp_path / "locks" / "leaf1.lock"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": gone}))
    assert left_behind(tmp_path, "leaf1") is not None


def test_rollback_waits_for_the_last_timer_that_dead_runs_left_and_names_each(tmp_path: Path) -> None:
    clock, recorder = FakeClock(), Recorder()
    environment = Environment(clock=clock, observer=recorder, state_dir=tmp_path)
    for device, seconds in (("leaf1", 40.0), ("leaf2", 90.0), ("leaf3", 0.0), ("leaf4", 500.0)):
        with DeviceLock(tmp_path, device, owner="anna", run=f"r-{device}", clock=clock, expires_s=60.0) as lock:
            if seconds:
                lock.arm(clock.unix_s() + seconds)
            lock.keep()
    began_s, watch = clock.unix_s(), Stopwatch(clock)

    settle(("leaf1", "leaf2", "leaf3", "leaf9"), environment, watch)  # leaf4 is of no interest

    assert clock.unix_s() - began_s == 90.0
    assert [(event.device, event.message) for event in recorder.events] == [
        ("leaf1", "run r-leaf1 died here; its timer runs for 40 s yet"),
        ("leaf2", "run r-leaf2 died here; its timer runs for 90 s yet"),
    ]
    assert [timing.stage for timing in watch.timings] == ["settle"]
    settle(("leaf1", "leaf2"), environment, watch)
    assert clock.unix_s() - began_s == 90.0
