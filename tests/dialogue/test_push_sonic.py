"""SONiC sessions over real SSH: exec and SFTP against the lab."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import AuthError, CommandRejectedError, CommitTimeoutError, ConnectError, RollbackFailedError
from fabric.intent.access import DeviceAccess
from fabric.lab import DeviceSpec, Fault, FaultKind, Front, serve
from fabric.nos.base import SessionSpec
from fabric.push.jobs import DeviceJob
from fabric.push.session import StagedChange
from fabric.push.sessions.sonic import SonicSession
from fabric.push.sessions.target import ssh_target
from fabric.remote.ssh import SshClient, probe_host_key
from fabric.state import Outcome
from tests.dialogue.pushing import CLOCK, access, options, push

SEED = {
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "ACS-MSN4700"}},
    "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9100"}},
}
INTENDED = {**SEED, "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9216"}}}
PAYLOAD = json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}])
ROLLBACK = json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9100"}])
ILLEGAL = json.dumps([{"op": "add", "path": "/PFC_WD", "value": {"GLOBAL": {"POLL_INTERVAL": "200"}}}])
SPEC = SessionSpec("ssh-exec", "linux", "show runningconfiguration all", {})
CHANGE = StagedChange("t1", PAYLOAD, ROLLBACK)
INSTALL = StagedChange("t1", PAYLOAD, ROLLBACK, disruptive=True, full_config=json.dumps(INTENDED))

Serve = Callable[..., tuple[Front, DeviceAccess]]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Serve]:
    with contextlib.ExitStack() as stack:

        def start(*faults: Fault, hwsku: str = "", version: str = "") -> tuple[Front, DeviceAccess]:
            spec = DeviceSpec("leaf1", "sonic", json.dumps(SEED), faults=faults, hwsku=hwsku, version=version)
            fronts = stack.enter_context(serve([spec], directory=tmp_path / "lab"))
            return fronts["leaf1"], access(fronts["leaf1"], fronts.known_hosts)

        yield start


@pytest.fixture
def session(lab: Serve) -> Iterator[tuple[Front, SonicSession]]:
    front, how = lab()
    sonic = SonicSession(how, SPEC, clock=CLOCK)
    sonic.open()
    yield front, sonic
    sonic.close()


def running(front: Front) -> object:
    return json.loads(front.running())


def leftovers(sonic: SonicSession) -> str:
    home = sonic.run("ls /home/admin")
    checkpoints = sonic.run("sudo config list-checkpoints")
    timers = sonic.run("systemctl list-timers")
    return "".join(line for line in f"{home}{checkpoints}{timers}".splitlines() if "fabricctl" in line)


def job(how: DeviceAccess, change: StagedChange = CHANGE, intended: object = INTENDED) -> DeviceJob:
    def compare(expected: object) -> Callable[[str], str]:
        return lambda text: "" if json.loads(text) == expected else "the database is another one"

    return DeviceJob(
        "leaf1", "sonic", lambda: SonicSession(how, SPEC, clock=CLOCK), change, compare(SEED), compare(intended)
    )


def test_the_running_configuration_is_read_as_json(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session

    assert json.loads(sonic.fetch()) == running(front) == SEED


def test_staging_changes_nothing_and_discarding_leaves_nothing(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session

    words = sonic.stage(CHANGE)

    assert "DRY RUN" in words.upper()
    assert running(front) == SEED
    assert "fabricctl-t1" in leftovers(sonic)
    modes = sonic.run("stat -c %a /home/admin/fabricctl-t1.patch.json /home/admin/fabricctl-t1.before.json")
    assert modes.split() == ["600", "600"]
    sonic.discard(CHANGE)
    assert leftovers(sonic) == ""


def test_a_refusal_of_the_updater_is_told_in_its_own_words(lab: Serve) -> None:
    front, how = lab(hwsku="No-Such-Switch")
    sonic = SonicSession(how, SPEC, clock=CLOCK)
    sonic.open()

    with pytest.raises(CommandRejectedError) as caught:
        sonic.stage(StagedChange("t1", ILLEGAL, ROLLBACK))

    assert caught.value.found.startswith("Modification of PFC_WD table is illegal- validating function")
    assert running(front) == SEED
    sonic.discard(CHANGE)
    assert leftovers(sonic) == ""
    sonic.close()


def test_a_commit_is_undone_by_the_deadman_when_nobody_confirms(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    sonic.stage(CHANGE)
    sonic.commit(CHANGE, confirm_s=1)
    assert running(front) == INTENDED

    CLOCK.sleep_s(1.3)

    assert running(front) == SEED
    with pytest.raises(CommitTimeoutError, match="the deadman's timer was gone"):
        sonic.confirm(CHANGE)


def test_a_confirmed_and_saved_change_stays_and_leaves_nothing_behind(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    sonic.stage(CHANGE)
    sonic.commit(CHANGE, confirm_s=1)
    sonic.confirm(CHANGE)
    assert json.loads(front.startup()) == SEED
    sonic.save(CHANGE)

    CLOCK.sleep_s(1.3)

    assert running(front) == json.loads(front.startup()) == INTENDED
    assert leftovers(sonic) == ""


def test_a_revert_rolls_back_and_stops_the_deadman(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    sonic.stage(CHANGE)
    sonic.commit(CHANGE, confirm_s=60)

    sonic.revert(CHANGE)

    assert running(front) == SEED
    assert ".timer" not in leftovers(sonic)


def test_a_deadman_that_cannot_be_armed_stops_the_change(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    sonic.stage(CHANGE)
    sonic.run("sudo systemd-run --on-active=60s --unit=fabricctl-deadman-t1 true")

    with pytest.raises(CommandRejectedError, match="systemd-run"):
        sonic.commit(CHANGE, confirm_s=60)

    assert running(front) == SEED


def test_an_install_is_reverted_by_a_reload_that_may_cut_the_session(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    sonic.stage(INSTALL)
    sonic.commit(INSTALL, confirm_s=60)
    assert running(front) == INTENDED
    CLOCK.sleep_s(0.5)
    sonic.close()
    sonic.open()

    front.add_fault(Fault(FaultKind.DROP_AFTER_COMMIT, "config reload"))
    with pytest.raises(ConnectError):  # nobody knows whether it is done: who looks next will tell
        sonic.revert(INSTALL)

    assert running(front) == SEED


def test_a_reload_that_fails_is_told_in_the_words_of_the_journal(session: tuple[Front, SonicSession]) -> None:
    front, sonic = session
    broken = replace(INSTALL, full_config="{broken")
    sonic.stage(broken)

    with pytest.raises(CommandRejectedError, match="config reload -y -f") as caught:
        sonic.commit(broken, confirm_s=60)

    assert caught.value.found
    assert "No entries" not in caught.value.found
    assert running(front) == SEED


def test_a_refused_rollback_is_told_apart_from_another_failure(lab: Serve) -> None:
    front, how = lab(
        Fault(FaultKind.REFUSE_REVERT, times=1), Fault(FaultKind.REFUSE_REVERT, times=1, text="the lock is held")
    )
    sonic = SonicSession(how, SPEC, clock=CLOCK)
    sonic.open()
    sonic.stage(CHANGE)
    sonic.commit(CHANGE, confirm_s=60)

    with pytest.raises(RollbackFailedError, match="Modification of BUFFER_PROFILE table is illegal"):
        sonic.revert(CHANGE)
    with pytest.raises(CommandRejectedError, match="the lock is held"):
        sonic.revert(CHANGE)
    sonic.revert(CHANGE)

    assert running(front) == SEED
    sonic.close()


def test_a_device_without_a_session_is_a_connect_error(lab: Serve) -> None:
    _, how = lab()

    with pytest.raises(ConnectError, match="the session is closed"):
        SonicSession(how, SPEC, clock=CLOCK).fetch()


def test_an_unknown_command_is_rejected(session: tuple[Front, SonicSession]) -> None:
    _, sonic = session

    with pytest.raises(CommandRejectedError, match="nonsense"):
        sonic.run("nonsense --now")


# the SSH client


def client(how: DeviceAccess) -> SshClient:
    return SshClient(ssh_target(how), clock=CLOCK)


def test_words_of_a_command_stay_words(lab: Serve) -> None:
    _, how = lab()
    ssh = client(how)
    ssh.open()

    for word in ("a b", "$(reboot)", "; reboot", "it's", '"', "`id`", "a\nb", "*", ""):
        assert ssh.exec(["echo", word]).stdout == f"{word}\n"
    ssh.close()


def test_the_exit_status_of_a_command_is_told(lab: Serve) -> None:
    _, how = lab()
    ssh = client(how)
    ssh.open()
    result = ssh.exec(["false"])

    assert (result.status, result.ok) == (1, False)
    ssh.close()


def test_a_file_is_for_its_owner_only_and_replaces_what_was_there(lab: Serve) -> None:
    _, how = lab()
    ssh = client(how)
    ssh.open()
    path = f"{ssh.home()}/x.json"

    ssh.put(path, b"first, and longer")
    ssh.put(path, b"second")

    assert ssh.exec(["cat", path]).stdout == "second"
    assert ssh.exec(["stat", "-c", "%a", path]).stdout == "600\n"
    ssh.remove(path)
    ssh.remove(path)
    assert not ssh.exec(["test", "-f", path]).ok
    ssh.close()


def test_a_file_that_cannot_be_written_is_a_connect_error(lab: Serve) -> None:
    _, how = lab()
    ssh = client(how)
    ssh.open()

    with pytest.raises(ConnectError, match="writing /no/such/folder/x failed"):
        ssh.put("/no/such/folder/x", b"x")
    ssh.close()


def test_a_command_that_takes_too_long_is_a_connect_error(lab: Serve) -> None:
    _, how = lab(Fault(FaultKind.DELAY, "echo slow", seconds=1.0))
    ssh = client(how)
    ssh.open()

    with pytest.raises(ConnectError, match="running echo failed"):
        ssh.exec(["echo", "slow"], timeout_s=0.2)
    ssh.close()


def test_a_session_that_the_device_drops_is_a_connect_error(lab: Serve) -> None:
    _, how = lab(Fault(FaultKind.DROP_AT, "echo x"))
    ssh = client(how)
    ssh.open()

    with pytest.raises(ConnectError, match="running echo failed"):
        ssh.exec(["echo", "x"])
    ssh.close()


def test_a_wrong_password_is_an_auth_error_that_does_not_show_it(lab: Serve) -> None:
    front, how = lab()
    wrong = access(front, how.known_hosts or Path(), password="canary-password")

    with pytest.raises(AuthError, match="refused the login of admin") as caught:
        client(wrong).open()

    assert "canary" not in f"{caught.value!r} {caught.value} {ssh_target(wrong)!r}"
    assert caught.value.__cause__ is not None


def test_an_unknown_host_key_is_refused_with_fingerprint_and_the_command_that_accepts(
    lab: Serve, tmp_path: Path
) -> None:
    front, _ = lab()
    empty = tmp_path / "none"

    with pytest.raises(AuthError, match="is unknown") as caught:
        client(access(front, empty)).open()

    assert "SHA256:" in caught.value.found
    assert f"ssh-keyscan -p {front.port} 127.0.0.1 >> {empty}" in caught.value.remedy


def test_the_command_that_accepts_names_the_users_own_file(
    lab: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    front, how = lab()
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(AuthError, match="is unknown") as caught:
        client(replace(how, known_hosts=None)).open()

    assert caught.value.remedy.endswith(f"ssh-keyscan -p {front.port} 127.0.0.1 >> ~/.ssh/known_hosts")


def test_a_changed_host_key_is_refused_in_other_words(lab: Serve) -> None:
    front, how = lab()
    before = probe_host_key(ssh_target(how))
    front.restart(change_host_keys=True)
    after = probe_host_key(ssh_target(how))

    with pytest.raises(AuthError, match="has CHANGED") as caught:
        client(how).open()

    assert before != after
    assert caught.value.found == after
    assert caught.value.expected == before
    assert f"ssh-keygen -R '[127.0.0.1]:{front.port}'" in caught.value.remedy


def test_a_broken_known_hosts_line_is_named(lab: Serve, tmp_path: Path) -> None:
    front, _ = lab()
    broken = tmp_path / "broken"
    broken.write_text(f"[127.0.0.1]:{front.port} ssh-ed25519 AAAA-not-base64\n")

    with pytest.raises(AuthError, match="known_hosts file has a broken line"):
        client(access(front, broken)).open()


def test_nobody_listening_is_a_connect_error() -> None:
    how = DeviceAccess("leaf1", "127.0.0.1", 1, "admin", "x", known_hosts=Path("/nonexistent"))

    with pytest.raises(ConnectError, match="connecting failed"):
        client(how).open()
    with pytest.raises(ConnectError, match="reading the host key failed"):
        probe_host_key(ssh_target(how))


# whole transactions


def test_a_push_ends_committed_and_the_next_one_finds_nothing_to_do(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()

    (first,) = push([job(how)], tmp_path / "state", options(30))
    (second,) = push([job(how)], tmp_path / "state", options(30))

    assert (first.outcome, first.error) == (Outcome.COMMITTED, "")
    assert running(front) == json.loads(front.startup()) == INTENDED
    assert second.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (Fault(FaultKind.REFUSE, "mtu", times=1), Outcome.FAILED),
        (Fault(FaultKind.DROP_AT, "config checkpoint", times=1), Outcome.FAILED),
        (Fault(FaultKind.DROP_AT, "apply-patch -d", times=1), Outcome.FAILED),
        (Fault(FaultKind.DROP_AT, "systemd-run", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AT, "apply-patch /", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AFTER_COMMIT, "apply-patch", times=1), Outcome.ROLLED_BACK),
        (Fault(FaultKind.DROP_AT, "systemctl stop", times=1), Outcome.COMMITTED),
        (Fault(FaultKind.DROP_AT, "config save", times=1), Outcome.COMMITTED),
        (Fault(FaultKind.DROP_AT, "delete-checkpoint", times=1), Outcome.COMMITTED),
    ],
    ids=lambda value: f"{value.kind.value}:{value.match}".replace(" ", "-") if isinstance(value, Fault) else "",
)
def test_a_fault_leaves_the_switch_as_intended_or_as_before(
    lab: Serve, tmp_path: Path, fault: Fault, outcome: Outcome
) -> None:
    front, how = lab(fault)

    (result,) = push([job(how)], tmp_path / "state", options(2))

    assert result.outcome is outcome, result.error
    left = INTENDED if outcome is Outcome.COMMITTED else SEED
    assert running(front) == json.loads(front.startup()) == left


def test_a_change_that_is_not_as_intended_is_rolled_back_and_leaves_nothing(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()

    (result,) = push([job(how, intended={})], tmp_path / "state", options(30))

    assert result.outcome is Outcome.ROLLED_BACK
    assert running(front) == json.loads(front.startup()) == SEED
    sonic = SonicSession(how, SPEC, clock=CLOCK)
    sonic.open()
    assert leftovers(sonic) == ""
    sonic.close()


def test_a_refused_rollback_ends_with_commands_that_bring_the_switch_back(lab: Serve, tmp_path: Path) -> None:
    front, how = lab(Fault(FaultKind.REFUSE_REVERT))

    (result,) = push([job(how, intended={})], tmp_path / "state", options(30))

    assert result.outcome is Outcome.ROLLBACK_FAILED
    assert "Modification of BUFFER_PROFILE table is illegal" in result.error
    assert running(front) == INTENDED
    commands = [line.strip() for line in result.remedy.split("\n") if line.startswith("  ")]
    sonic = SonicSession(how, SPEC, clock=CLOCK)
    sonic.open()
    for command in commands:
        sonic.run(command)
    assert running(front) == SEED
    saved = Path(result.remedy.rsplit(": ", 1)[1])
    assert json.loads(saved.read_text()) == SEED
    sonic.close()


def test_a_first_install_reloads_and_survives_the_outage(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()

    (result,) = push([job(how, INSTALL)], tmp_path / "state", options(30, disruptive=True))

    assert (result.outcome, result.error) == (Outcome.COMMITTED, "")
    assert result.disruptive
    assert running(front) == json.loads(front.startup()) == INTENDED


def test_a_first_install_that_is_wrong_goes_back_by_reload(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()

    (result,) = push([job(how, INSTALL, intended={})], tmp_path / "state", options(30, disruptive=True))

    assert result.outcome is Outcome.ROLLED_BACK
    assert running(front) == json.loads(front.startup()) == SEED


def test_a_first_install_that_nobody_confirms_goes_back_by_its_deadman(lab: Serve, tmp_path: Path) -> None:
    front, how = lab()
    blind = replace(job(how, INSTALL), make_session=lambda: _Deaf(how, SPEC, clock=CLOCK))

    (result,) = push([blind], tmp_path / "state", options(2, disruptive=True))

    assert result.outcome is Outcome.ROLLED_BACK
    assert running(front) == json.loads(front.startup()) == SEED


class _Deaf(SonicSession):
    """After the commit, every confirmation is lost on its way to the device."""

    def confirm(self, change: StagedChange) -> None:
        self.close()
        raise ConnectError("lost on the way", where=change.transaction)
