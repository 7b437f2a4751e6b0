"""EOS sessions over real SSH: netmiko against the lab."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabric.errors import AuthError, CommandRejectedError, CommitTimeoutError, ConnectError, RollbackFailedError
from fabric.intent.access import DeviceAccess
from fabric.lab import DeviceSpec, Fault, FaultKind, Front, serve
from fabric.nos.base import SessionSpec
from fabric.push.jobs import DeviceJob
from fabric.push.session import StagedChange
from fabric.push.sessions.eos import EosSession
from fabric.state import Outcome
from tests.dialogue.pushing import CLOCK, access, options, push

SEED = """hostname leaf1
!
qos map dscp 26 to traffic-class 1
!
interface Ethernet1
   description to gpu1
   mtu 9000
!
interface Ethernet2
   mtu 9000
!
end
"""
PAYLOAD = """qos map dscp 26 to traffic-class 5
interface Ethernet1
   mtu 9214
   priority-flow-control on
   priority-flow-control priority 3 no-drop
"""
ROLLBACK = """qos map dscp 26 to traffic-class 1
interface Ethernet1
   no priority-flow-control priority 3 no-drop
   no priority-flow-control on
   mtu 9000
"""
SPEC = SessionSpec("netmiko", "arista_eos", "show running-config", {})
CHANGE = StagedChange("t1", PAYLOAD, ROLLBACK)

Serve = Callable[..., tuple[Front, DeviceAccess]]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Serve]:
    import contextlib

    with contextlib.ExitStack() as stack:

        def start(*faults: Fault, enable: str = "", config: str = SEED) -> tuple[Front, DeviceAccess]:
            spec = DeviceSpec("leaf1", "eos", config, enable_secret=enable, faults=faults)
            fronts = stack.enter_context(serve([spec], directory=tmp_path / "lab"))
            return fronts["leaf1"], access(fronts["leaf1"], fronts.known_hosts, enable=enable or None)

        yield start


@pytest.fixture
def session(lab: Serve) -> Iterator[tuple[Front, EosSession]]:
    front, how = lab()
    eos = EosSession(how, SPEC, clock=CLOCK)
    eos.open()
    yield front, eos
    eos.close()


def body(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("!")]


def job(front: Front, how: DeviceAccess, change: StagedChange = CHANGE) -> DeviceJob:
    before = body(front.running())

    def check_base(text: str) -> str:
        return "" if body(text) == before else "the configuration is another one"

    def verify(text: str) -> str:
        missing = [line for line in change.payload.splitlines() if line not in body(text)]
        return "; ".join(missing)

    return DeviceJob("leaf1", "eos", lambda: EosSession(how, SPEC, clock=CLOCK), change, check_base, verify)


def test_the_whole_configuration_is_read_without_echo_and_prompt(session: tuple[Front, EosSession]) -> None:
    front, eos = session

    assert eos.fetch().strip("\n") == front.running().strip("\n")


def test_a_long_configuration_is_read_whole(lab: Serve) -> None:
    ports = "".join(
        f"interface Ethernet{n}\n   description port {n} of the leaf\n   mtu 9000\n!\n" for n in range(1, 600)
    )
    front, how = lab(config=f"hostname leaf1\n!\n{ports}end\n")
    eos = EosSession(how, SPEC, clock=CLOCK)
    eos.open()

    assert body(eos.fetch()) == body(front.running())
    eos.close()


def test_staging_shows_the_diff_and_changes_nothing(session: tuple[Front, EosSession]) -> None:
    front, eos = session
    before = front.running()

    diff = eos.stage(CHANGE)

    assert "+qos map dscp 26 to traffic-class 5" in diff
    assert "+   priority-flow-control on" in diff
    assert "-   mtu 9000" in diff
    assert "fabricctl-t1#" not in diff
    assert front.running() == before


def test_a_refused_line_is_named_with_the_devices_words_and_nothing_stays_staged(
    session: tuple[Front, EosSession],
) -> None:
    front, eos = session
    before = front.running()

    with pytest.raises(CommandRejectedError) as caught:
        eos.stage(StagedChange("t1", "interface Ethernet1\n   priority-flow-control mode on\n", ""))

    assert "'priority-flow-control mode on'" in str(caught.value)
    assert "% Invalid input" in caught.value.found
    assert "t1" not in eos.run("show configuration sessions")
    eos.discard(CHANGE)
    assert front.running() == before


@pytest.mark.parametrize("line", ["   description a\x03b", "   description what?", "   description a\tb", "a\x1b[2J"])
def test_a_line_that_would_be_more_than_a_line_is_not_typed(session: tuple[Front, EosSession], line: str) -> None:
    front, eos = session
    before = front.running()

    with pytest.raises(CommandRejectedError, match="cannot be typed safely"):
        eos.stage(StagedChange("t1", f"interface Ethernet1\n{line}\n", ""))

    assert front.running() == before


def test_a_commit_runs_and_a_fresh_connection_confirms_and_saves_it(session: tuple[Front, EosSession]) -> None:
    front, eos = session
    eos.stage(CHANGE)
    eos.commit(CHANGE, confirm_s=60)
    assert "traffic-class 5" in front.running()
    assert "traffic-class 5" not in front.startup()

    eos.close()
    eos.open()
    eos.confirm(CHANGE)
    eos.save(CHANGE)

    assert "traffic-class 5" in front.startup()


def test_reverting_a_pending_commit_aborts_it(session: tuple[Front, EosSession]) -> None:
    front, eos = session
    before = front.running()
    eos.stage(CHANGE)
    eos.commit(CHANGE, confirm_s=60)

    eos.close()
    eos.open()
    eos.revert(CHANGE)

    assert front.running() == before


def test_reverting_after_the_confirmation_types_the_way_back_and_saves(session: tuple[Front, EosSession]) -> None:
    front, eos = session
    before = front.running()
    eos.stage(CHANGE)
    eos.commit(CHANGE, confirm_s=60)
    eos.confirm(CHANGE)
    eos.save(CHANGE)

    eos.revert(CHANGE)

    assert body(front.running()) == body(before)
    assert body(front.startup()) == body(before)


def test_a_confirmation_that_got_no_answer_is_undone_like_one_that_arrived(lab: Serve) -> None:
    front, how = lab(Fault(FaultKind.DROP_AFTER_COMMIT, "fabricctl-t1 commit", times=1))
    before = front.running()
    eos = EosSession(how, SPEC, clock=CLOCK)
    eos.open()
    eos.stage(CHANGE)
    eos.commit(CHANGE, confirm_s=60)
    with pytest.raises(ConnectError):
        eos.confirm(CHANGE)
    eos.open()
    with pytest.raises(CommitTimeoutError):
        eos.confirm(CHANGE)

    eos.revert(CHANGE)

    assert body(front.running()) == body(before)
    eos.close()


@pytest.mark.parametrize("rollback", ["", "qos map dscp 99 to traffic-class 1\n"])
def test_a_way_back_that_the_device_refuses_is_a_failed_rollback(
    session: tuple[Front, EosSession], rollback: str
) -> None:
    _, eos = session
    change = StagedChange("t1", PAYLOAD, rollback)
    eos.stage(change)
    eos.commit(change, confirm_s=60)
    eos.confirm(change)

    with pytest.raises(RollbackFailedError):
        eos.revert(change)


def test_confirming_what_is_not_pending_is_a_commit_timeout(session: tuple[Front, EosSession]) -> None:
    _, eos = session

    with pytest.raises(CommitTimeoutError, match="could not be confirmed"):
        eos.confirm(CHANGE)


def test_the_recovery_commands_bring_a_confirmed_device_back(session: tuple[Front, EosSession]) -> None:
    front, eos = session
    before = front.running()
    eos.stage(CHANGE)
    eos.commit(CHANGE, confirm_s=60)
    eos.confirm(CHANGE)

    for command in eos.recovery(CHANGE)[1:]:
        eos.run(command)

    assert body(front.running()) == body(before)


def test_the_enable_secret_opens_privileged_mode(lab: Serve) -> None:
    front, how = lab(enable="canary-enable")
    eos = EosSession(how, SPEC, clock=CLOCK)
    eos.open()

    assert body(eos.fetch()) == body(front.running())
    eos.close()


def test_a_wrong_enable_secret_is_an_auth_error_that_does_not_show_it(lab: Serve) -> None:
    front, right = lab(enable="canary-enable")
    wrong = access(front, right.known_hosts or Path(), enable="canary-wrong")

    with pytest.raises(AuthError, match="privileged mode") as caught:
        EosSession(wrong, SPEC, clock=CLOCK).open()

    assert "canary" not in str(caught.value)


def test_a_wrong_password_is_an_auth_error_that_does_not_show_it(lab: Serve) -> None:
    front, how = lab()
    wrong = access(front, how.known_hosts or Path(), password="canary-password")

    with pytest.raises(AuthError, match="refused the login of admin") as caught:
        EosSession(wrong, SPEC, clock=CLOCK).open()

    assert "canary" not in f"{caught.value!r} {caught.value} {wrong!r}"
    assert caught.value.__cause__ is not None


def test_an_unknown_host_key_is_refused_with_fingerprint_and_the_command_that_accepts(
    lab: Serve, tmp_path: Path
) -> None:
    front, _ = lab()
    empty = tmp_path / "none yet"

    with pytest.raises(AuthError, match="is unknown") as caught:
        EosSession(access(front, empty), SPEC, clock=CLOCK).open()

    assert "SHA256:" in caught.value.found
    assert f"ssh-keyscan -p {front.port} 127.0.0.1 >> '{empty}'" in caught.value.remedy


def test_a_changed_host_key_is_refused_in_other_words(lab: Serve) -> None:
    front, how = lab()
    front.restart(change_host_keys=True)

    with pytest.raises(AuthError, match="has CHANGED") as caught:
        EosSession(how, SPEC, clock=CLOCK).open()

    assert caught.value.found != caught.value.expected
    assert "SHA256:" in caught.value.found
    assert "ssh-keyscan" not in caught.value.remedy


def test_nobody_listening_is_a_connect_error() -> None:
    how = DeviceAccess("leaf1", "127.0.0.1", 1, "admin", "x", known_hosts=Path("/nonexistent"))

    with pytest.raises(ConnectError, match="connecting failed"):
        EosSession(how, SPEC, clock=CLOCK).open()


def test_a_verb_without_a_session_is_a_connect_error(lab: Serve) -> None:
    _, how = lab()

    with pytest.raises(ConnectError, match="the session is closed"):
        EosSession(how, SPEC, clock=CLOCK).fetch()


def test_a_session_that_the_device_drops_is_noticed_at_once(lab: Serve) -> None:
    _, how = lab(Fault(FaultKind.DROP_AT, "show running-config"))
    eos = EosSession(how, SPEC, clock=CLOCK)
    eos.open()
    started_ns = CLOCK.now_ns()

    with pytest.raises(ConnectError):
        eos.fetch()

    assert CLOCK.now_ns() - started_ns < 5e9
    eos.close()


def test_an_unknown_show_command_is_rejected(session: tuple[Front, EosSession]) -> None:
    _, eos = session

    with pytest.raises(CommandRejectedError, match="show nonsense"):
        eos.run("show nonsense")


# whole transactions


def test_a_push_ends_committed_and_the_next_one_finds_nothing_to_do(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()
    one = job(front, how)

    (first,) = push([one], tmp_path / "state", options(30))
    (second,) = push([one], tmp_path / "state", options(30))

    assert (first.outcome, first.error) == (Outcome.COMMITTED, "")
    assert "+qos map dscp 26 to traffic-class 5" in first.diff
    assert body(front.running()) == body(front.startup())
    assert "qos map dscp 26 to traffic-class 5" in front.startup()
    assert second.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(FaultKind.REFUSE, "priority-flow-control on", times=1), Outcome.FAILED),
        (Fault(FaultKind.DROP_AT, "mtu 9214", times=1), Outcome.FAILED),
        (Fault(FaultKind.DROP_AT, "commit timer", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AFTER_COMMIT, "commit timer", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.REFUSE, "commit timer", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AT, "fabricctl-t1 commit", times=1), Outcome.COMMITTED),
        (Fault(FaultKind.REFUSE, "fabricctl-t1 commit", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.REFUSE, "write memory", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AFTER_COMMIT, "fabricctl-t1 commit", times=1), Outcome.COMMITTED),
        (Fault(FaultKind.DROP_AT, "write memory", times=1), Outcome.COMMITTED),
    ],
    ids=lambda value: f"{value.kind.value}:{value.match}".replace(" ", "-") if isinstance(value, Fault) else "",
)
def test_a_fault_leaves_the_switch_as_intended_or_as_before(
    lab: Serve, tmp_path: Path, fault: Fault, outcome: Outcome
) -> None:
    front, how = lab(fault)
    before = body(front.running())
    one = job(front, how)

    (result,) = push([one], tmp_path / "state", options(3))

    assert result.outcome is outcome, result.error
    assert result.error
    if outcome is Outcome.COMMITTED:
        assert one.verify(front.running()) == ""
        assert one.verify(front.startup()) == ""
    else:
        assert body(front.running()) == body(front.startup()) == before


def test_a_switch_that_goes_away_after_the_commit_is_back_by_its_own_timer(lab: Serve, tmp_path: Path) -> None:
    front, how = lab(
        Fault(FaultKind.DROP_AFTER_COMMIT, "commit timer"),
        Fault(FaultKind.REFUSE_REVERT),
        Fault(FaultKind.REFUSE, "abort"),
    )
    before = body(front.running())

    (result,) = push([job(front, how)], tmp_path / "state", options(2))

    assert result.outcome is Outcome.ROLLED_BACK
    assert body(front.running()) == before
