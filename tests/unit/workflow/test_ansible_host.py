"""One part of one host as the plug-in does it: a small design over real files, the real way of changing and back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.host import LocalExecutor
from fabric.host.actions import Action, Run, Write
from fabric.host.change import HostIntent, Part, PartChange
from fabric.host.executor import Executor
from fabric.host.nvme.connect import Connection
from fabric.plan.model import HostPlan
from fabric.remote.ssh import ExecResult
from fabric.state import Outcome
from fabric.state.host import NvmetState, NvmetSubsystem
from fabric.workflow import ansible_host
from fabric.workflow.ansible_host import HostTask, host_part
from fabric.workflow.hosts import (
    failed_result,
    load_change,
    prepare_back,
    record_result,
    reports_of,
    results_of,
    write_intents,
)

NQN = "nqn.2026-01.net.example:"


@dataclass
class Designs:
    """Makes a file hold "new"; `broken` adds a step that fails."""

    value: Path
    broken: bool = False
    disruptive: tuple[str, ...] = ()
    asked: list[tuple[Part, HostIntent, str]] = field(default_factory=list)

    def __call__(self, part: Part, intent: HostIntent, executor: Executor, *, new_uuid: str) -> PartChange:
        self.asked.append((part, intent, new_uuid))
        now = executor.read(str(self.value))
        if now == "new":
            return PartChange(intent.host, part, (), (), "")
        forward: tuple[Action, ...] = (Write(str(self.value), "new"),)
        if self.broken:
            forward += (Run(("false",)),)
        back = (Write(str(self.value), str(now)),)
        return PartChange(intent.host, part, forward, back, f"-{now}\n+new", disruptive=self.disruptive)


@dataclass
class Cut:
    """A host whose connection breaks at the n-th write."""

    at: int
    lost: str = ""
    inner: Executor = field(default_factory=LocalExecutor)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        self._check()
        return self.inner.run(argv, stdin=stdin)

    def read(self, path: str) -> str | None:
        self._check()
        return self.inner.read(path)

    def write(self, path: str, text: str) -> ExecResult:
        self.at -= 1
        if self.at <= 0:
            self.lost = "Connection reset by peer"
        self._check()
        return self.inner.write(path, text)

    def _check(self) -> None:
        if self.lost:
            raise HostError("there is no connection to the host", found=self.lost)


class Host:
    """A run with host gpu1, which connects to target kv1, and target kv2 beside."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run = folder / "run"
        self.run.mkdir()
        self.value = folder / "value"
        self.value.write_text("old", encoding="utf-8")
        self.designs = Designs(self.value)
        monkeypatch.setattr(ansible_host, "design_part", self.designs)
        connection = Connection(f"{NQN}kv1", "192.0.2.1", 4420, "192.0.2.2", "ens1", 104)
        intents = [HostIntent("gpu1", "host", HostPlan("gpu1", "host", ()), (connection,))]
        for name in ("kv1", "kv2"):
            target = NvmetState((NvmetSubsystem(f"{NQN}{name}"),))
            intents.append(HostIntent(name, "target", HostPlan(name, "target", ()), target=target))
        write_intents(self.run, intents)

    def do(
        self,
        part: str = "nic",
        *,
        host: str = "gpu1",
        of: str = "",
        disruptive: bool = False,
        check_mode: bool = False,
        executor: Executor | None = None,
        lost: Callable[[], str] = str,
    ) -> dict[str, object]:
        task = HostTask(part, host, self.run, of=of, disruptive=disruptive, check_mode=check_mode)
        return host_part(task, executor or LocalExecutor(), lost)

    def outcome(self, part: Part = Part.NIC) -> Outcome:
        return results_of(self.run)["gpu1", part].outcome

    @property
    def now(self) -> str:
        return self.value.read_text(encoding="utf-8")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_a_part_is_changed_once(host: Host) -> None:
    first = host.do()
    assert (first["changed"], first["failed"], first["diff"], host.now) == (True, False, "-old\n+new", "new")
    second = host.do()
    assert (second["changed"], second["failed"], second["diff"]) == (False, False, "")
    assert host.outcome() is Outcome.COMMITTED  # of the run as a whole


def test_one_new_identity_serves_both_designs(host: Host) -> None:
    host.do()
    uuids = [uuid for _, _, uuid in host.designs.asked]
    assert len(uuids) == 2
    assert len(set(uuids)) == 1


def test_the_way_back_is_written_before_the_change_is_begun(host: Host) -> None:
    class Watched(Cut):
        def write(self, path: str, text: str) -> ExecResult:
            change = load_change(host.run, "gpu1", Part.NIC)
            assert change is not None
            assert change.backward == (Write(path, "old"),)
            return self.inner.write(path, text)

    assert host.do(executor=Watched(0))["changed"] is True


def test_check_mode_tells_and_changes_nothing(host: Host) -> None:
    seen = host.do(check_mode=True)
    assert (seen["changed"], seen["diff"], host.now) == (True, "-old\n+new", "old")
    assert load_change(host.run, "gpu1", Part.NIC) is None
    assert host.outcome() is Outcome.UNCHANGED


def test_a_change_that_fails_is_taken_back(host: Host) -> None:
    host.designs.broken = True
    seen = host.do()
    assert (seen["changed"], seen["failed"], host.now) == (False, True, "old")
    assert "false" in str(seen["msg"])
    assert host.outcome() is Outcome.ROLLED_BACK


def test_what_interrupts_traffic_waits_for_a_consent(host: Host) -> None:
    host.designs.disruptive = ("the link goes down",)
    seen = host.do()
    assert (seen["failed"], host.now, host.outcome()) == (True, "old", Outcome.REFUSED)
    assert "the link goes down" in str(seen["msg"])
    assert "-e disruptive=true" in str(seen["msg"])
    assert host.do(disruptive=True)["changed"] is True
    assert host.now == "new"


def test_a_host_that_is_lost_at_once_is_unreachable_and_untouched(host: Host) -> None:
    cut = Cut(0, lost="No route to host")
    seen = host.do(executor=cut, lost=lambda: cut.lost)
    assert (seen["unreachable"], "failed" in seen, host.outcome()) == (True, False, Outcome.FAILED)
    assert "No route to host" in str(seen["msg"])


def test_a_host_that_is_lost_amid_a_change_is_uncertain(host: Host) -> None:
    host.designs.broken = True
    cut = Cut(1)  # the change is performed in one go, so that the first write is its way back
    seen = host.do(executor=cut, lost=lambda: cut.lost)
    assert (seen["unreachable"], host.outcome()) == (True, Outcome.UNCERTAIN)
    assert load_change(host.run, "gpu1", Part.NIC) is not None


def test_a_way_back_that_fails_is_told_with_what_is_left(host: Host) -> None:
    class Stuck(Cut):
        def write(self, path: str, text: str) -> ExecResult:
            return ExecResult(1, "", "Device or resource busy") if text == "old" else self.inner.write(path, text)

    host.designs.broken = True
    seen = host.do(executor=Stuck(0))
    assert (seen["failed"], host.outcome()) == (True, Outcome.ROLLBACK_FAILED)
    assert "These commands are left" in str(seen["msg"])


@pytest.mark.parametrize(("target", "goes"), [("kv1", False), ("kv2", True)])
def test_a_failed_target_stops_the_hosts_that_connect_to_it(target: str, *, goes: bool, host: Host) -> None:
    record_result(host.run, Part.NIC, failed_result(target, HostError("no such netdev")))
    seen = host.do("connect")
    assert seen["changed"] is goes
    assert host.outcome(Part.CONNECT) is (Outcome.COMMITTED if goes else Outcome.REFUSED)
    assert (host.now == "new") is goes
    assert goes or "kv1" in str(seen["msg"])


def test_a_failed_target_stops_no_nic_of_a_host(host: Host) -> None:
    record_result(host.run, Part.TARGET, failed_result("kv1", HostError("no such device")))
    assert host.do("nic")["changed"] is True


def test_disconnecting_designs_a_host_without_connections(host: Host) -> None:
    assert host.do("disconnect")["changed"] is True
    part, intent, _ = host.designs.asked[0]
    assert (part, intent.connections) == (Part.CONNECT, ())


def test_a_part_is_taken_back_and_may_be_again(host: Host) -> None:
    host.do()
    would = host.do("back", of="nic", check_mode=True)
    assert (would["changed"], host.now) == (True, "new")
    for is_changed in (True, False):
        seen = host.do("back", of="nic")
        assert (seen["changed"], seen["failed"], host.now) == (is_changed, False, "old")
        assert seen["diff"] == ("-new\n+old" if is_changed else "")
    assert host.do("back", of="nic", check_mode=True)["changed"] is False
    assert host.do("back", of="connect")["changed"] is False


def test_a_repeated_rollback_says_unchanged(host: Host, tmp_path: Path) -> None:
    host.do()
    past, ends = host.run, []
    for name in ("first", "second"):
        host.run = tmp_path / name
        host.run.mkdir()
        prepare_back(past, host.run)
        host.do("back", of="nic")
        ends.append(host.outcome())
    assert ends == [Outcome.COMMITTED, Outcome.UNCHANGED]


def test_a_host_that_cannot_be_designed_for_is_brought_back_all_the_same(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.do()

    def refused(*_: object, **__: object) -> PartChange:
        raise HostError("nvme-cli does not run")

    monkeypatch.setattr(ansible_host, "design_part", refused)
    assert host.do("back", of="nic")["changed"] is True
    assert host.now == "old"


def test_a_way_back_without_connection_is_uncertain(host: Host) -> None:
    host.do()
    cut = Cut(1)
    seen = host.do("back", of="nic", executor=cut, lost=lambda: cut.lost)
    assert (seen["unreachable"], host.outcome()) == (True, Outcome.UNCERTAIN)


def test_a_host_outside_the_run_is_skipped_and_not_contacted(host: Host) -> None:
    cut = Cut(0, lost="must not be asked")
    seen = host.do(host="gpu2", executor=cut)
    assert (seen["skipped"], seen["changed"]) == (True, False)


def test_reading_leaves_a_report_and_a_line_of_each_thing(host: Host) -> None:
    seen = host.do("read")
    assert (seen["changed"], seen["failed"]) == (False, False)
    assert isinstance(seen["lines"], list)
    assert "gpu1" in reports_of(host.run)


@pytest.mark.parametrize(
    ("part", "of", "said"),
    [("conect", "", "Did you mean 'connect'?"), ("back", "", "nic, target, connect"), ("back", "nics", "found nics")],
)
def test_a_wrong_argument_is_told_with_what_may_stand_there(part: str, of: str, said: str, host: Host) -> None:
    seen = host.do(part, of=of)
    assert seen["failed"] is True
    assert said in str(seen["msg"])


def test_a_run_without_intents_is_told(host: Host) -> None:
    (host.run / "hosts" / "intents.json").unlink()
    seen = host.do()
    assert seen["failed"] is True
    assert "intents.json" in str(seen["msg"])
