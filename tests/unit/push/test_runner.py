"""A whole transaction against a device in memory: what the device holds afterwards, and what the run says."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.push.jobs import DeviceJob, PushOptions
from fabric.push.journal import read, unfinished
from fabric.push.lock import DeviceLock, in_flux
from fabric.push.provision import push_all, rehearse_all
from fabric.push.session import StagedChange
from fabric.push.sessions.memory import Fault, FaultKind, MemorySession
from fabric.state import DeviceResult, Outcome
from tests.unit.push.bench import AFTER, BEFORE, Bench, apply, bench, differs, verbs

OPEN_AND_ON = ["open", "read", "check", "stage", "decide", "commit", "reopen", "verify", "confirm", "save"]


def test_a_change_is_committed_confirmed_and_saved(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = it.push()

    assert result.outcome is Outcome.COMMITTED
    assert (result.error, result.remedy, result.changes) == ("", "", 4)
    assert it.device.running == it.device.startup == AFTER
    assert it.device.deadline_ns is None
    assert verbs(it.recorder) == OPEN_AND_ON
    assert [step.step for step in result.steps] == OPEN_AND_ON
    assert all(step.ok for step in result.steps)


def test_a_second_run_finds_nothing_to_do(tmp_path: Path) -> None:
    it = bench(tmp_path)
    it.push()

    result = it.push()

    assert result.outcome is Outcome.UNCHANGED
    assert [step.step for step in result.steps] == ["open", "read", "check"]


def test_a_device_that_changed_since_the_plan_is_not_touched(tmp_path: Path) -> None:
    it = bench(tmp_path, running="somebody else's")

    result = it.push()

    assert result.outcome is Outcome.REFUSED
    assert "has changed since the plan" in result.error
    assert "new plan" in result.remedy
    assert it.device.running == it.device.startup == "somebody else's"


def test_an_empty_change_on_a_device_that_differs_is_refused(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = it.push(it.job(payload=""))

    assert result.outcome is Outcome.REFUSED
    assert "nothing is to be sent" in result.error


# what goes wrong: verb, kind → outcome, what the device runs and boots with afterwards
FAULTS = [
    # before the commit
    ("open", FaultKind.LOST_BEFORE, Outcome.FAILED, BEFORE),
    ("open", FaultKind.DENIED, Outcome.FAILED, BEFORE),
    ("fetch", FaultKind.REJECTED, Outcome.FAILED, BEFORE),
    ("stage", FaultKind.REJECTED, Outcome.FAILED, BEFORE),
    ("stage", FaultKind.LOST_BEFORE, Outcome.FAILED, BEFORE),
    ("stage", FaultKind.LOST_AFTER, Outcome.FAILED, BEFORE),
    # at the commit
    ("commit", FaultKind.REJECTED, Outcome.ROLLED_BACK, BEFORE),
    ("commit", FaultKind.HALF_DONE, Outcome.ROLLED_BACK, BEFORE),
    ("commit", FaultKind.LOST_BEFORE, Outcome.ROLLED_BACK, BEFORE),
    ("commit", FaultKind.LOST_AFTER, Outcome.ROLLED_BACK, BEFORE),
    ("commit", FaultKind.REBOOT, Outcome.ROLLED_BACK, BEFORE),
    # at the confirmation
    ("confirm", FaultKind.REJECTED, Outcome.ROLLED_BACK, BEFORE),
    ("confirm", FaultKind.LOST_BEFORE, Outcome.COMMITTED, AFTER),  # sent once more
    ("confirm", FaultKind.LOST_AFTER, Outcome.COMMITTED, AFTER),
    ("confirm", FaultKind.REBOOT, Outcome.ROLLED_BACK, BEFORE),
    # at the saving
    ("save", FaultKind.REJECTED, Outcome.ROLLED_BACK, BEFORE),
    ("save", FaultKind.LOST_BEFORE, Outcome.COMMITTED, AFTER),
    ("save", FaultKind.LOST_AFTER, Outcome.COMMITTED, AFTER),
    ("save", FaultKind.REBOOT, Outcome.ROLLED_BACK, BEFORE),
]


@pytest.mark.parametrize(("verb", "kind", "outcome", "left"), FAULTS, ids=[f"{f[0]}-{f[1].value}" for f in FAULTS])
def test_a_fault_leaves_the_device_as_intended_or_as_before(
    tmp_path: Path, verb: str, kind: FaultKind, outcome: Outcome, left: str
) -> None:
    it = bench(tmp_path, Fault(verb, kind))

    result = it.push()

    assert result.outcome is outcome
    assert it.device.running == it.device.startup == left
    assert it.device.deadline_ns is None
    assert it.device.staged == {}
    assert result.error
    assert list(unfinished(it.state_dir)) == []


def test_a_confirmation_that_is_lost_twice_leaves_the_verdict_to_the_timer(tmp_path: Path) -> None:
    it = bench(tmp_path, *(Fault("confirm", FaultKind.LOST_BEFORE, nth=n) for n in (1, 2)))

    result = it.push()

    assert result.outcome is Outcome.ROLLED_BACK
    assert it.device.running == it.device.startup == BEFORE


@pytest.mark.parametrize("verb", ["commit", "fetch", "confirm"])
def test_a_device_that_is_too_slow_for_its_own_timer_goes_back(tmp_path: Path, verb: str) -> None:
    it = bench(tmp_path, Fault(verb, FaultKind.SLOW, nth=2 if verb == "fetch" else 1, seconds=61))

    result = it.push()

    assert it.device.running == it.device.startup
    assert result.outcome is (Outcome.COMMITTED if verb == "confirm" else Outcome.ROLLED_BACK)
    assert it.device.running == (AFTER if verb == "confirm" else BEFORE)


def test_a_session_lost_while_reading_is_opened_again(tmp_path: Path) -> None:
    it = bench(tmp_path, Fault("fetch", FaultKind.LOST_BEFORE, nth=2), Fault("fetch", FaultKind.LOST_AFTER, nth=3))

    assert it.push().outcome is Outcome.COMMITTED


def test_a_device_that_cuts_off_management_goes_back_by_its_timer(tmp_path: Path) -> None:
    it = bench(tmp_path, *(Fault("open", FaultKind.LOST_BEFORE, nth=n) for n in range(2, 40)))

    result = it.push()

    assert result.outcome is Outcome.ROLLED_BACK
    assert it.device.running == it.device.startup == BEFORE
    assert verbs(it.recorder)[-3:] == ["wait", "reopen", "look"]


def test_a_device_that_never_answers_again_is_uncertain_and_says_what_to_do(tmp_path: Path) -> None:
    it = bench(tmp_path, *(Fault("open", FaultKind.LOST_BEFORE, nth=n) for n in range(2, 400)))

    result = it.push()

    assert result.outcome is Outcome.UNCERTAIN
    assert "revert t1" in result.remedy
    saved = Path(result.remedy.rsplit(": ", 1)[1])
    assert saved.read_text() == BEFORE


def test_a_timer_that_does_not_run_is_made_good(tmp_path: Path) -> None:
    it = bench(
        tmp_path,
        Fault("commit", FaultKind.TIMER_DEAD),
        *(Fault("open", FaultKind.LOST_BEFORE, nth=n) for n in range(2, 32)),
    )

    result = it.push()

    assert result.outcome is Outcome.ROLLED_BACK
    assert it.device.running == BEFORE
    assert "revert" in verbs(it.recorder)


def test_a_refused_rollback_ends_with_commands_and_the_saved_configuration(tmp_path: Path) -> None:
    it = bench(tmp_path, Fault("commit", FaultKind.HALF_DONE), Fault("revert", FaultKind.ROLLBACK_REFUSED, nth=0))

    result = it.push()

    assert result.outcome is Outcome.ROLLBACK_FAILED
    assert "Modification of PFC_WD table is illegal" in result.error
    *advice, command, saved = result.remedy.split("\n")
    assert advice == ["Bring the device back by hand with these commands:"]
    assert command == "  revert t1"
    path = Path(saved.removeprefix("The configuration before the change is saved here: "))
    assert path.read_text() == BEFORE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", [FaultKind.REJECTED, FaultKind.LOST_BEFORE, FaultKind.LOST_AFTER])
def test_a_rollback_that_fails_otherwise_leaves_the_timer_its_chance(tmp_path: Path, kind: FaultKind) -> None:
    it = bench(tmp_path, Fault("commit", FaultKind.HALF_DONE), Fault("revert", kind))

    result = it.push()

    assert result.outcome is Outcome.ROLLED_BACK
    assert it.device.running == it.device.startup == BEFORE


def test_a_change_that_is_not_what_was_intended_is_reverted(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = it.push(it.job(payload="a 2"))

    assert result.outcome is Outcome.ROLLED_BACK
    assert "not as intended after the commit: found 'a 2'" in result.error
    assert it.device.running == BEFORE


def test_a_disruptive_change_has_to_be_allowed(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = it.push(it.job(disruptive=True))

    assert result.outcome is Outcome.REFUSED
    assert "--disruptive" in result.remedy
    assert it.device.calls == {}


def test_an_allowed_disruptive_change_is_marked(tmp_path: Path) -> None:
    it = bench(tmp_path, options=PushOptions(run="r1", confirm_s=60, allow_disruptive=True))

    result = it.push(it.job(disruptive=True))

    assert result.outcome is Outcome.COMMITTED
    assert result.disruptive
    assert it.device.running == AFTER


def test_the_journal_tells_each_step_before_it_is_done(tmp_path: Path) -> None:
    it = bench(tmp_path)
    it.push()

    (path,) = it.state_dir.glob("r1/*.jsonl")
    entries = read(path)

    assert [entry.step for entry in entries if entry.phase == "begin"] == OPEN_AND_ON
    assert [entry.step for entry in entries if entry.phase == "ok"] == OPEN_AND_ON
    assert (entries[-1].step, entries[-1].phase) == ("end", "committed")
    assert {entry.transaction for entry in entries} == {"t1"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert AFTER not in path.read_text()


class _Breaking(MemorySession):
    """After one verb, the journal can no longer be written: a folder stands in its place."""

    def __init__(self, it: Bench, verb: str) -> None:
        super().__init__(it.device)
        self._journal = it.state_dir / "r1" / "leaf1.jsonl"
        self._verb = verb

    def _strike(self, verb: str) -> None:
        if verb == self._verb:
            self._journal.unlink()
            self._journal.mkdir()

    def stage(self, change: StagedChange) -> str:
        words = super().stage(change)
        self._strike("stage")
        return words

    def commit(self, change: StagedChange, *, confirm_s: int) -> None:
        super().commit(change, confirm_s=confirm_s)
        self._strike("commit")

    def confirm(self, change: StagedChange) -> None:
        super().confirm(change)
        self._strike("confirm")


def _push_with_a_journal_that_breaks_at(it: Bench, verb: str) -> DeviceResult:
    return it.push(replace(it.job(), make_session=lambda: _Breaking(it, verb)))


def test_a_journal_that_breaks_before_the_commit_leaves_the_device_alone(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = _push_with_a_journal_that_breaks_at(it, "stage")

    assert result.outcome is Outcome.FAILED
    assert "Is a directory" in result.error
    assert it.device.running == BEFORE
    assert it.device.staged == {}


def test_a_journal_that_breaks_after_the_commit_brings_the_device_back(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = _push_with_a_journal_that_breaks_at(it, "commit")

    assert result.outcome is Outcome.ROLLED_BACK
    assert "Is a directory" in result.error
    assert it.device.running == it.device.startup == BEFORE


def test_a_journal_that_breaks_after_the_confirmation_does_not_hinder_saving(tmp_path: Path) -> None:
    it = bench(tmp_path)

    result = _push_with_a_journal_that_breaks_at(it, "confirm")

    assert result.outcome is Outcome.COMMITTED
    assert "Is a directory" in result.error
    assert it.device.startup == AFTER


def test_a_state_directory_that_others_can_read_is_refused(tmp_path: Path) -> None:
    it = bench(tmp_path)
    it.state_dir.mkdir(mode=0o755)
    it.state_dir.chmod(0o755)

    result = it.push()

    assert result.outcome is Outcome.FAILED
    assert "mode 0755" in result.error
    assert it.device.calls == {}


def test_one_failing_device_stops_no_other(tmp_path: Path) -> None:
    benches = [bench(tmp_path), bench(tmp_path, Fault("open", FaultKind.LOST_BEFORE, nth=0)), bench(tmp_path)]
    jobs = [replace(it.job(), device=f"leaf{n}") for n, it in enumerate(benches)]

    results = push_all(jobs, options=benches[0].options, clock=benches[0].clock, state_dir=benches[0].state_dir)

    assert [result.device for result in results] == ["leaf0", "leaf1", "leaf2"]
    assert [result.outcome for result in results] == [Outcome.COMMITTED, Outcome.FAILED, Outcome.COMMITTED]


def test_a_defect_in_one_run_is_that_devices_result(tmp_path: Path) -> None:
    it = bench(tmp_path)

    def broken(text: str) -> str:
        raise KeyError(text[:1])

    result = it.push(replace(it.job(), verify=broken))

    assert result.outcome is Outcome.UNCERTAIN
    assert "a defect of this program: KeyError" in result.error


def test_a_rehearsal_shows_what_would_come_and_changes_nothing(tmp_path: Path) -> None:
    it = bench(tmp_path)

    (result,) = rehearse_all(
        [(it.job(), apply)], options=it.options, clock=it.clock, state_dir=it.state_dir, observer=it.recorder
    )

    assert result.outcome is Outcome.UNCHANGED
    assert result.error == ""
    assert result.changes == 4
    assert it.device.running == it.device.startup == BEFORE
    assert it.device.staged == {}
    assert "commit" not in it.device.calls


def test_a_rehearsal_tells_of_a_refusal(tmp_path: Path) -> None:
    it = bench(tmp_path)

    (result,) = rehearse_all(
        [(it.job(payload="nonsense"), apply)], options=it.options, clock=it.clock, state_dir=it.state_dir
    )

    assert result.outcome is Outcome.FAILED
    assert "nonsense is no line" in result.error


def test_a_rehearsal_that_would_be_reverted_says_so(tmp_path: Path) -> None:
    it = bench(tmp_path)

    (result,) = rehearse_all(
        [(it.job(payload="a 2"), apply)], options=it.options, clock=it.clock, state_dir=it.state_dir
    )

    assert result.outcome is Outcome.ROLLED_BACK
    assert it.device.running == BEFORE


@pytest.mark.parametrize("transaction", ["", "Up", "a b", "a;reboot", "x" * 41, "-a", "ä"])
def test_a_transaction_id_that_could_be_more_than_a_name_is_refused(transaction: str) -> None:
    with pytest.raises(ValueError, match="the transaction id"):
        DeviceJob(
            "d",
            "n",
            make_session=lambda: pytest.fail("not contacted"),
            change=StagedChange(transaction, "", ""),
            check_base=lambda text: differs(BEFORE, text),
            verify=lambda text: differs(AFTER, text),
        )


@pytest.mark.parametrize(
    ("field", "value"), [("confirm_s", 0), ("confirm_s", 86400), ("workers", 0), ("margin_s", 300.0)]
)
def test_options_that_cannot_work_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        replace(PushOptions(run="r"), **{field: value})  # type: ignore[arg-type]


def test_a_device_that_was_left_unsaved_is_saved_by_the_next_run_although_nothing_is_to_be_changed(
    tmp_path: Path,
) -> None:
    faults = [Fault("save", FaultKind.LOST_BEFORE, nth=n) for n in range(1, 8)]  # once, and thrice late, and again
    it = bench(tmp_path, *faults)
    assert it.push().outcome is Outcome.UNCERTAIN
    assert (it.device.running, it.device.startup) == (AFTER, BEFORE)
    assert in_flux(it.state_dir, "leaf1")

    again = it.push(it.job(payload=""))

    assert again.outcome is Outcome.UNCHANGED
    assert it.device.startup == AFTER
    assert not in_flux(it.state_dir, "leaf1")


def test_a_device_that_is_not_ready_for_a_session_yet_is_asked_again(tmp_path: Path) -> None:
    it = bench(tmp_path, Fault("open", FaultKind.REJECTED, nth=2))  # the first after the commit

    assert it.push().outcome is Outcome.COMMITTED
    assert (it.device.running, it.device.startup) == (AFTER, AFTER)


def test_saving_goes_on_as_long_as_the_device_answers_and_is_as_intended(tmp_path: Path) -> None:
    it = bench(tmp_path, *(Fault("save", FaultKind.LOST_BEFORE, nth=n) for n in (1, 2, 3, 4)))

    assert it.push().outcome is Outcome.COMMITTED
    assert (it.device.running, it.device.startup) == (AFTER, AFTER)


def test_a_rehearsal_or_a_failure_does_not_forget_the_run_that_died_before(tmp_path: Path) -> None:
    it = bench(tmp_path, Fault("open", FaultKind.LOST_BEFORE, nth=3))  # 1, 2: the rehearsal
    with DeviceLock(it.state_dir, "leaf1", owner="", run="dead", clock=it.clock, expires_s=9.0) as dead:
        dead.arm(it.clock.unix_s() + 300)
        dead.keep()

    started_s = it.clock.unix_s()
    rehearse_all([(it.job(), apply)], options=it.options, clock=it.clock, state_dir=it.state_dir, observer=it.recorder)
    assert it.clock.unix_s() >= started_s + 300
    assert any("run dead died here" in event.message for event in it.recorder.events)
    assert in_flux(it.state_dir, "leaf1")
    assert it.push().outcome is Outcome.FAILED
    assert in_flux(it.state_dir, "leaf1")
    assert it.push().outcome is Outcome.COMMITTED
    assert not in_flux(it.state_dir, "leaf1")


def test_a_rehearsal_that_loses_the_device_leaves_nothing_uncertain(tmp_path: Path) -> None:
    faults = (
        Fault("fetch", FaultKind.LOST_BEFORE, nth=2),  # 1: the reading; 2: the simulated commit
        *(Fault("open", FaultKind.LOST_BEFORE, nth=n) for n in range(2, 200)),
    )
    it = bench(tmp_path, *faults)

    (result,) = rehearse_all(
        [(it.job(), apply)], options=it.options, clock=it.clock, state_dir=it.state_dir, observer=it.recorder
    )

    assert result.outcome is Outcome.FAILED
    assert "Nothing was applied" in result.remedy
    assert not in_flux(it.state_dir, "leaf1")
