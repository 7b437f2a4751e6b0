"""Executors and the agent: the same actions on real files, here, through a shell as SSH has one, and recorded."""

import json
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fabric.errors import ConnectError, HostError
from fabric.host import agent
from fabric.host.actions import (
    Action,
    ControllerAttribute,
    Link,
    MakeFolder,
    PutFile,
    RemoveFolder,
    RemoveLink,
    Run,
    Write,
    agent_text,
)
from fabric.host.batch import perform_together
from fabric.host.executor import (
    Executor,
    LocalExecutor,
    RecordedExecutor,
    SshExecutor,
    list_folder,
    perform,
    perform_all,
)
from fabric.remote.ssh import ExecResult


class Shell:
    """Runs words as the far end of an SSH session does: joined, and split again by a shell."""

    def exec(self, argv: Sequence[str], *, timeout_s: float = 60.0, stdin: bytes = b"") -> ExecResult:
        done = subprocess.run(
            ["sh", "-c", shlex.join(argv)], input=stdin, capture_output=True, check=False, timeout=timeout_s
        )
        return ExecResult(done.returncode, done.stdout.decode(), done.stderr.decode())


class Gone:
    def exec(self, argv: Sequence[str], *, timeout_s: float = 60.0, stdin: bytes = b"") -> ExecResult:
        del argv, timeout_s, stdin
        raise ConnectError("running ls failed", where="gpu1")


EXECUTORS: tuple[Callable[[], Executor], ...] = (LocalExecutor, lambda: SshExecutor(Shell(), "gpu1"))


@pytest.fixture(name="executor", params=EXECUTORS, ids=["local", "ssh"])
def _executor(request: pytest.FixtureRequest) -> Executor:
    made: Executor = request.param()
    return made


def test_words_arrive_as_they_are(executor: Executor) -> None:
    word = "a b;$(reboot)`x`'\"\\*\n"
    assert executor.run(["printf", "%s", word]).stdout == word


def test_program_that_is_not_there_is_a_result(executor: Executor) -> None:
    assert executor.run(["no-such-program-here"]).status == 127


def test_tools_speak_english(executor: Executor) -> None:
    assert executor.run(["sh", "-c", "echo $LC_ALL"]).stdout == "C\n"


def test_write_changes_what_is_there_and_makes_nothing(executor: Executor, tmp_path: Path) -> None:
    attribute = tmp_path / "default_roce_tos"
    assert not executor.write(str(attribute), "104").ok
    assert not attribute.exists()
    attribute.write_text("0\n")
    assert executor.write(str(attribute), "104").ok
    assert executor.read(str(attribute)) == "104"
    assert executor.read(str(tmp_path / "absent")) is None


def test_folder_is_listed(executor: Executor, tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    (tmp_path / ".a").touch()
    assert list_folder(executor, str(tmp_path)) == (".a", "b")
    assert list_folder(executor, str(tmp_path / "absent")) is None


def folder_actions(base: Path) -> tuple[Action, ...]:
    return (
        MakeFolder(f"{base}/port"),
        MakeFolder(f"{base}/port"),
        MakeFolder(f"{base}/gone"),
        RemoveFolder(f"{base}/gone"),
        RemoveFolder(f"{base}/gone"),
        Link(f"{base}/link", f"{base}/port"),
        Link(f"{base}/link", f"{base}/port"),
        Link(f"{base}/old", f"{base}/port"),
        RemoveLink(f"{base}/old"),
        RemoveLink(f"{base}/old"),
        Write(f"{base}/value", "1"),
        Run(("touch", f"{base}/ran")),
        Run(("touch", f"{base}/not"), unless_exists=f"{base}/value"),
        Run(("sh", "-c", "exit 79"), accepted=(0, 79)),
        Run(("sh", "-c", "echo already connected >&2; exit 1"), accepted_words="already connected"),
    )


def check(base: Path) -> None:
    assert sorted(path.name for path in base.iterdir()) == ["link", "port", "ran", "value"]
    assert (base / "link").readlink() == base / "port"
    assert (base / "value").read_text().startswith("1")


def test_actions_on_real_files_twice(executor: Executor, tmp_path: Path) -> None:
    (tmp_path / "value").write_text("0\n")
    for _ in range(2):
        perform_all(executor, folder_actions(tmp_path), host="gpu1")
        check(tmp_path)


def test_agent_does_the_same(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "value").write_text("0\n")
    file = tmp_path / "actions.json"
    file.write_text(agent_text(folder_actions(base)))
    command = [sys.executable, "-I", agent.__file__, str(file)]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        check(base)


def test_agent_goes_on_after_a_failure_and_says_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actions = (Write(f"{tmp_path}/absent", "1"), Run(("false",)), MakeFolder(f"{tmp_path}/made"))
    file = tmp_path / "actions.json"
    file.write_text(agent_text(actions))
    assert agent.main([str(file)]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"write {tmp_path}/absent:")
    assert second == "run false: exit 1: "
    assert (tmp_path / "made").is_dir()
    assert not (tmp_path / "absent").exists()
    assert agent.main([]) == 2


def test_agent_refuses_what_it_does_not_know() -> None:
    assert agent.apply([{"do": "format", "path": "/"}]) == [
        "format /: unknown action; this agent is older than the file"
    ]


@pytest.mark.parametrize("wanted", ["192.0.2.21", ""])
def test_agent_finds_controllers_by_their_connection(tmp_path: Path, wanted: str) -> None:
    for name, nqn, address in (
        ("nvme0", "nqn.a", "traddr=192.0.2.11,trsvcid=4420,host_traddr=192.0.2.21"),
        ("nvme1", "nqn.a", "traddr=192.0.2.11,trsvcid=4420,host_traddr=192.0.2.22"),
        ("nvme2", "nqn.b", "traddr=192.0.2.11,trsvcid=4420,host_traddr=192.0.2.21"),
    ):
        (tmp_path / name).mkdir()
        for file, text in (("subsysnqn", nqn), ("address", address), ("ctrl_loss_tmo", "600")):
            (tmp_path / name / file).write_text(f"{text}\n")
    (tmp_path / "nvme9").mkdir()
    action = ControllerAttribute("nqn.a", "192.0.2.11", "ctrl_loss_tmo", "-1\n", wanted)
    document = json.loads(agent_text((action,)))
    assert isinstance(document, dict)
    actions = document["actions"]
    assert isinstance(actions, list)
    assert agent.apply(actions, nvme=tmp_path) == []
    found = [(tmp_path / f"nvme{at}" / "ctrl_loss_tmo").read_text()[:3] for at in range(3)]
    assert found == (["-1\n", "600", "600"] if wanted else ["-1\n", "-1\n", "600"])
    assert agent.apply(actions, nvme=tmp_path / "none") == ["controller-attribute nqn.a: no controller connects so"]


def test_controllers_are_found_over_an_executor() -> None:
    sysfs = "/sys/class/nvme"
    executor = RecordedExecutor(
        {("ls", "-1A", "--", sysfs): ExecResult(0, "nvme0\nnvme1\n", "")},
        {
            f"{sysfs}/nvme0/subsysnqn": "nqn.a\n",
            f"{sysfs}/nvme0/address": "traddr=192.0.2.12,trsvcid=4420\n",
            f"{sysfs}/nvme1/subsysnqn": "nqn.a\n",
            f"{sysfs}/nvme1/address": "traddr=192.0.2.11,trsvcid=4420\n",
            f"{sysfs}/nvme1/fast_io_fail_tmo": "off\n",
        },
    )
    perform(executor, ControllerAttribute("nqn.a", "192.0.2.11", "fast_io_fail_tmo", "15"), host="gpu1")
    assert executor.files[f"{sysfs}/nvme1/fast_io_fail_tmo"] == "15"
    with pytest.raises(HostError, match="no NVMe controller"):
        perform(executor, ControllerAttribute("nqn.b", "192.0.2.11", "fast_io_fail_tmo", "15"), host="gpu1")


def test_file_is_put_whole_with_its_mode(executor: Executor, tmp_path: Path) -> None:
    path = tmp_path / "etc" / "secret.json"
    for text in ("first and longer\n", "second\n"):
        perform(executor, PutFile(str(path), text, mode=0o600), host="gpu1")
        assert path.read_text() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["secret.json"]


def test_secret_text_is_in_no_record() -> None:
    executor = RecordedExecutor()
    with pytest.raises(HostError) as error:
        perform(executor, PutFile("/etc/x", "DHHC-1:secret", mode=0o600), host="gpu1")
    assert "secret" not in str(error.value)
    assert "secret" not in repr(executor.done)


def test_failure_names_host_action_and_the_hosts_words() -> None:
    executor = RecordedExecutor(
        {("modprobe", "nvmet"): ExecResult(1, "", "modprobe: FATAL: Module nvmet not found.\n")}
    )
    with pytest.raises(HostError) as error:
        perform(executor, Run(("modprobe", "nvmet")), host="kv1")
    assert str(error.value) == "kv1: could not modprobe nvmet (found exit 1: modprobe: FATAL: Module nvmet not found.)"


def test_lost_session_is_an_error_of_the_host() -> None:
    with pytest.raises(HostError, match="session was lost"):
        SshExecutor(Gone(), "gpu1").run(["ls"])


def test_become_stands_before_every_command() -> None:
    assert SshExecutor(Shell(), "gpu1", become=("env", "WHO=root")).run(["sh", "-c", "echo $WHO"]).stdout == "root\n"


def test_command_that_hangs_is_an_error() -> None:
    with pytest.raises(HostError, match="did not end in time"):
        LocalExecutor(timeout_s=0.05).run(["sleep", "5"])


def test_put_is_not_for_boot() -> None:
    with pytest.raises(ValueError, match="put once"):
        agent_text((PutFile("/x", ""),))


def test_agent_performs_what_is_said_on_standard_input_and_stops_at_the_first_failure(tmp_path: Path) -> None:
    executor = LocalExecutor()
    secret = PutFile(f"{tmp_path}/new/key", "DHHC-1:x\n", 0o600)
    perform_together(executor, (secret, MakeFolder(f"{tmp_path}/made")), host="gpu1")
    assert (tmp_path / "new/key").read_text() == "DHHC-1:x\n"
    assert (tmp_path / "new/key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key"]
    missing = Write(f"{tmp_path}/absent", "1")
    with pytest.raises(HostError, match="could not printf %s 1") as error:
        perform_together(executor, (missing, MakeFolder(f"{tmp_path}/later")), host="gpu1")
    assert "No such file" in str(error.value)
    assert not (tmp_path / "later").exists()
    assert "DHHC" not in repr(error.value)


def test_file_that_cannot_be_put_leaves_no_half(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    (tmp_path / "name/full").touch()
    with pytest.raises(HostError, match="name"):
        perform_together(LocalExecutor(), (PutFile(f"{tmp_path}/name", "x"), PutFile("/x", "")), host="gpu1")
    assert [path.name for path in tmp_path.iterdir()] == ["name"]


@pytest.mark.parametrize("perform_it", [perform_all, perform_together])
def test_refused_value_that_stands_already_is_no_failure(tmp_path: Path, perform_it: Callable[..., None]) -> None:
    locked = tmp_path / "folder"  # a folder refuses every write, as a locked attribute does
    locked.mkdir()
    optional = (Write(f"{tmp_path}/absent", "1", optional=True), Run(("true",)))
    perform_it(LocalExecutor(), optional, host="gpu1")
    with pytest.raises(HostError):
        perform_it(LocalExecutor(), (Write(str(locked), "1"), Run(("true",))), host="gpu1")
    with pytest.raises(HostError, match="absent"):
        perform_it(LocalExecutor(), (Write(f"{tmp_path}/absent", "1"), Run(("true",))), host="gpu1")


def test_program_runs_only_if_its_path_is_there(tmp_path: Path) -> None:
    made = f"{tmp_path}/made"
    for perform_it in (perform_all, perform_together):
        actions = (Run(("touch", made), if_exists=f"{tmp_path}/absent"), Run(("true",)))
        perform_it(LocalExecutor(), actions, host="gpu1")
        assert not Path(made).exists()


def test_agent_takes_output_that_is_no_text() -> None:
    words = ["sh", "-c", "printf '\\377'; exit 3"]
    told = agent.perform([{"do": "run", "argv": words}])
    assert told == {"done": 0, "reason": "exit 3: \N{REPLACEMENT CHARACTER}"}


def test_agent_that_does_not_answer_is_an_error() -> None:
    class Broken(RecordedExecutor):
        def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
            assert (argv[0], stdin[:1]) == ("python3", b"[")
            return ExecResult(0, "{}", "")

    with pytest.raises(HostError, match="agent did not answer"):
        perform_together(Broken(), (Run(("true",)), Run(("true",))), host="gpu1")


def test_host_without_python_is_served_one_by_one(tmp_path: Path) -> None:
    executor = RecordedExecutor({("true",): ExecResult(0, "", ""), ("systemctl", "start", "x"): ExecResult(0, "", "")})
    perform_together(executor, (Run(("true",)), Run(("true",)), Run(("systemctl", "start", "x"))), host="gpu1")
    assert executor.done[1:] == ["true", "true", "systemctl start x"]
