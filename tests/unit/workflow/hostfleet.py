"""Hosts without machines: a playbook runner that leaves in the run folder what the playbooks' plug-in would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabric.errors import FabricError, HostError, RollbackFailedError
from fabric.host.actions import PutFile
from fabric.host.change import HostIntent, Part, PartChange
from fabric.intent import Loaded
from fabric.intent.access import DeviceAccess
from fabric.observe import Event, Observer, silent
from fabric.remote.ansible import PlaybookRun, VaultOptions
from fabric.serial import Json
from fabric.state import DeviceResult, Outcome
from fabric.workflow import Environment, Request, planning
from fabric.workflow.hosts import (
    load_change,
    load_intent,
    part_result,
    record_change,
    record_report,
    record_result,
)
from tests.unit.host.right import report
from tests.unit.intent.inventories import Devices, built, small

__all__ = ("Fleet", "direct", "environment", "request_for", "serve_inventory")

_PARTS: Mapping[str, tuple[Part, ...]] = {
    "targets.yml": (Part.NIC, Part.TARGET),
    "hosts.yml": (Part.NIC,),
    "connect.yml": (Part.CONNECT,),
    "disconnect.yml": (Part.CONNECT,),
}


@dataclass
class Fleet:
    """The hosts, and what is wrong with them.

    Attributes:
        done: the parts that are as the intent has them.
        calls: playbook and hosts of every run, in order; check mode has a `?`.
        refusing: parts that a host takes back. stubborn: whose way back fails. dead: hosts without a connection.
        killed: parts during which the host is lost, with the change begun.
        error: raised instead of a run.
        drift: added to every diff.
    """

    done: set[tuple[str, Part]] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    refusing: set[tuple[str, Part]] = field(default_factory=set)
    stubborn: set[tuple[str, Part]] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    killed: set[tuple[str, Part]] = field(default_factory=set)
    disruptive: tuple[str, ...] = ()
    cannot_restore: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    error: FabricError | None = None
    status: str = ""
    drift: str = ""
    forks: int = 0
    given: list[Mapping[str, Json]] = field(default_factory=list)

    def __call__(
        self,
        playbook: Path,
        *,
        sources: Sequence[Path] = (),
        extra_vars: Mapping[str, Json] | None = None,
        vault: VaultOptions | None = None,
        limit: str = "",
        observer: Observer = silent,
        check: bool = False,
        forks: int = 0,
    ) -> PlaybookRun:
        del sources, vault
        self.forks = forks
        assert playbook.is_absolute()
        variables = dict(extra_vars or {})
        self.given.append(variables)
        self.calls.append(f"{playbook.name}{'?' if check else ''} {limit}")
        if self.error is not None:
            raise self.error
        if self.status:
            return PlaybookRun(self.status, 254, (), is_changed=False)
        run = Path(str(variables["run"]))
        failed: dict[str, str] = {}
        for host in limit.split(","):
            observer(Event("ansible.task.done", device=host, message=playbook.name))
            if host in self.dead:
                failed[host] = "no route to host"
                continue
            intent = load_intent(run, host)
            assert intent is not None, "a host outside the intents was named"
            if why := self._host(playbook.name, run, intent, check=check, disruptive=bool(variables["disruptive"])):
                failed[host] = why
        status = "failed" if failed else "successful"
        return PlaybookRun(status, 2 if failed else 0, tuple(sorted(failed)), is_changed=False, reasons=failed)

    def _host(self, name: str, run: Path, intent: HostIntent, *, check: bool, disruptive: bool) -> str:
        if name == "status.yml":
            record_report(run, report(intent))
            return ""
        if name == "back.yml":
            return self._back(run, intent.host)
        for part in _PARTS[name]:
            if name == "disconnect.yml":
                self.done.discard((intent.host, part))
                record_result(run, part, DeviceResult(intent.host, "linux", Outcome.COMMITTED, 1))
                return ""
            result = self._part(run, intent.host, part, check=check, disruptive=disruptive)
            if result is None:
                return "lost"
            record_result(run, part, result)
            if result.error:
                return result.error  # the play ends for this host
        return ""

    def _part(self, run: Path, host: str, part: Part, *, check: bool, disruptive: bool) -> DeviceResult | None:
        """None: the host was lost while it was changed."""
        change = self._change(host, part)
        if check or not change.forward:
            return part_result(change, Outcome.UNCHANGED)
        try:
            record_change(run, change, disruptive=disruptive)
        except FabricError as error:
            return part_result(change, Outcome.REFUSED, error)
        if (host, part) in self.killed:
            return None
        if (host, part) in self.refusing:
            return part_result(change, Outcome.ROLLED_BACK, HostError(f"the {part} part was refused"))
        self.done.add((host, part))
        return part_result(change, Outcome.COMMITTED)

    def _change(self, host: str, part: Part) -> PartChange:
        if (host, part) in self.done:
            return PartChange(host, part, (), (), "")
        forward, backward = (PutFile("/etc/x", "new"),), (PutFile("/etc/x", "old"),)
        known = (self.disruptive, self.cannot_restore, self.unconfirmed)
        return PartChange(host, part, forward, backward, f"+ {part} of {host}{self.drift}", *known)

    def _back(self, run: Path, host: str) -> str:
        for part in (Part.CONNECT, Part.NIC, Part.TARGET) if host.startswith("gpu") else (Part.TARGET, Part.NIC):
            change = load_change(run, host, part)
            if change is None:
                continue
            if (host, part) in self.stubborn:
                error = RollbackFailedError("the way back was refused", remedy="Type this: …")
                record_result(run, part, part_result(change, Outcome.ROLLBACK_FAILED, error))
                return error.what
            self.done.discard((host, part))
            record_result(run, part, part_result(change, Outcome.COMMITTED))
        return ""


def direct() -> Devices:
    """Returns gpu1 cabled to kv1, without a switch."""
    devices = small()
    del devices["leaf1"]
    for _, variables in devices.values():
        variables["fabric_links"] = [{"a": "gpu1:ens1", "b": "kv1:ens1"}]
    return devices


def serve_inventory(monkeypatch: pytest.MonkeyPatch, devices: Devices, selected: Sequence[str] = ()) -> None:
    """Makes the verbs load these devices; Ansible's own reading is tested elsewhere and takes a second each time."""
    made = built(devices)
    # nobody listens at port 1: a switch fails at once
    access = {name: DeviceAccess(name, "127.0.0.1", 1, "admin", "x") for name in made.access}
    loaded = Loaded(made.fabric, access, tuple(selected or devices))
    monkeypatch.setattr(planning, "load", lambda *_, **__: loaded)


def environment(fleet: Fleet, folder: Path) -> Environment:
    """Returns an environment whose playbooks are the fleet's."""
    return Environment(state_dir=folder / "state", runner=fleet)


def request_for(folder: Path) -> Request:
    """Returns a request for switches and hosts."""
    return Request(sources=(folder / "site.yml",), runs=folder / "runs", hosts=True)
