"""The load's agents: one process on each host over SSH, for as long as it is needed. Installs nothing there.

    open_agents ──▶ log in, unpack the engine into a private folder, start the agent ──▶ ask … ──▶ end its input

The agent ends when its input does, and the shell that holds it then removes the folder: so nothing stays behind, also
when the session is lost. A host that cannot be reached, or is lost, or says nothing, is an error of that host and stops
no other. One thread hears all hosts; only logging in and out is done for several at a time.
"""

import json
import re
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from fabric.engine.load import Job, JobResult, Region, Stream
from fabric.errors import ConnectError, FabricError, HostError
from fabric.intent import DeviceAccess, Loaded
from fabric.observe import Event
from fabric.push.fanout import fan_out
from fabric.push.sessions.target import ssh_target
from fabric.remote.bundle import pack
from fabric.remote.process import Process
from fabric.remote.ssh import SshClient
from fabric.serial import Json, SerialError, from_json, to_json
from fabric.workflow.environment import Environment

__all__ = ("Agents", "Answers", "Preparation", "open_agents")

_PROTOCOL: Final = 1
_READY_S: Final = 30.0
_UNPACK_S: Final = 60.0
_PING_S: Final = 10.0
_PINGS: Final = 3
_OPEN_S: Final = 10.0  # what a stream may take to open, fabric.engine.load.runner
_PATIENCE_S: Final = 60.0  # beyond what the work itself may take: a read's deadline is 30 s
_CLOSE_S: Final = 10.0
_WORKERS: Final = 8
_SLOW_BYTES_S: Final = 10 << 20  # what a preparation writes at least, else it is given up

_UNPACK: Final = """\
umask 077
folder=$(mktemp -d "${TMPDIR:-/tmp}/fabricctl.XXXXXXXXXX") || exit 1
if tar -xzf - -C "$folder"; then printf '%s' "$folder"; else rm -rf -- "$folder"; exit 1; fi
"""
# -E and -s: nothing of the user's own Python; -B: nothing is written. The module is found in the current folder.
_SERVE: Final = """\
trap 'cd /; rm -rf -- "$1"' EXIT
cd "$1" || exit 1
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'
then python3 -EsB -m fabric.engine.load
else echo 'Python 3.11 or newer is missing' >&2; exit 1
fi
"""
_FOLDER: Final = re.compile(r"/[\w./-]*/fabricctl\.[A-Za-z0-9]{10}")  # it is given to rm -rf

T = TypeVar("T")
_Lines = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Preparation:
    """A region to overwrite with a payload, through one stream of one host.

    Attributes:
        consent: somebody who may has said that the region holds nothing of worth.
    """

    stream: Stream
    region: Region
    run_id: int
    consent: bool


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """What hosts answered, and why one did not."""

    results: Mapping[str, T] = field(default_factory=dict)
    errors: Mapping[str, FabricError] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """One host with a running agent. `offset_s`: its clock less ours."""

    name: str
    client: SshClient
    process: Process
    folder: str
    offset_s: float = 0.0


@dataclass(slots=True)
class _Question:
    """One order that is under way: which answer ends it, and until when what is waited for."""

    number: int
    end: str
    silence_ns: int
    end_ns: int
    heard_ns: int


class Agents:
    """Running agents; made by `open_agents`. Used from one thread.

    Args:
        hosts: running.
        errors: why others do not.
        environment: clock and observer.

    Attributes:
        errors: host → why it has no agent, or none any more.
    """

    def __init__(self, hosts: Sequence[_Host], errors: Mapping[str, FabricError], environment: Environment) -> None:
        self.errors = dict(errors)
        self._hosts = {one.name: one for one in hosts}
        self._clock, self._observer = environment.clock, environment.observer
        self._numbers = iter(range(1, 1 << 62))

    @property
    def alive(self) -> tuple[str, ...]:
        """The hosts that can be asked."""
        return tuple(self._hosts)

    @property
    def offsets_s(self) -> Mapping[str, float]:
        """By how much the clock of each host is ahead of ours, within half a round trip."""
        return {one.name: one.offset_s for one in self._hosts.values()}

    def measure_clocks(self) -> None:
        """Asks every host for its time, and keeps what the fastest answer says."""
        best: dict[str, float] = {}
        for _ in range(_PINGS):
            for name in self.alive:
                sent_s, sent_ns = self._clock.unix_s(), self._clock.now_ns()
                answer = self._ask({name: {"do": "ping"}}, "pong", {name: _PING_S}).results.get(name)
                took_s = (self._clock.now_ns() - sent_ns) / 1e9
                theirs = (answer or {}).get("unix_s")
                if isinstance(theirs, float) and took_s < best.get(name, _PING_S):
                    best[name] = took_s
                    self._hosts[name].offset_s = theirs - (sent_s + took_s / 2)

    def prepare(self, wanted: Mapping[str, Preparation]) -> Answers[int]:
        """Returns how many bytes each host wrote; several hosts write at a time.

        A host prepares one region a call; call again for another.
        """
        orders: dict[str, _Lines] = {}
        limits: dict[str, float] = {}
        for name, one in wanted.items():
            orders[name] = {
                "do": "prepare",
                "run_id": one.run_id,
                "stream": to_json(one.stream),
                "region": to_json(one.region),
                "consent": one.consent,
            }
            limits[name] = _OPEN_S + one.region.blocks * 4096 / _SLOW_BYTES_S
        return _typed(self._ask(orders, "prepared", limits), "bytes", int)

    def run(self, jobs: Mapping[str, Job], *, lead_s: float | None = None) -> Answers[JobResult]:
        """Returns what the job of each host came to; `started_unix_s` by our clock.

        Args:
            jobs: by host; a start in them is meant by our clock.
            lead_s: all start so long from now; time to open their streams. None: as each says.
        """
        start = None if lead_s is None else self._clock.unix_s() + lead_s
        orders: dict[str, _Lines] = {}
        limits: dict[str, float] = {}
        for name, job in jobs.items():
            begin = job.start_unix_s if start is None else start
            limits[name] = len(job.streams) * _OPEN_S + job.seconds + _deadline_s(job)
            if begin is not None:
                limits[name] += max(0.0, begin - self._clock.unix_s())
                begin += self.offsets_s.get(name, 0.0)
            orders[name] = {"do": "run", "job": to_json(replace(job, start_unix_s=begin))}
        offsets = self.offsets_s
        found = _typed(self._ask(orders, "result", limits), "result", JobResult)
        ours = {
            name: replace(one, started_unix_s=one.started_unix_s - offsets.get(name, 0.0))
            for name, one in found.results.items()
        }
        return Answers(ours, found.errors)

    def _ask(self, orders: Mapping[str, _Lines], end: str, limits_s: Mapping[str, float]) -> Answers[_Lines]:
        results: dict[str, _Lines] = {}
        errors = {name: self.errors.get(name, _never_asked(name)) for name in orders if name not in self._hosts}
        pending = self._send(orders, end, limits_s, errors)
        try:
            while pending:
                self._wait(pending)
                for name in tuple(pending):
                    self._hear(name, pending, results, errors)
        except BaseException:  # Ctrl-C: what runs shall not go on while nobody listens
            for name in pending:
                with suppress(ConnectError):
                    self._hosts[name].process.write_line(json.dumps({"do": "stop"}))
            raise
        return Answers(results, errors)

    def _send(
        self, orders: Mapping[str, _Lines], end: str, limits_s: Mapping[str, float], errors: dict[str, FabricError]
    ) -> dict[str, _Question]:
        pending: dict[str, _Question] = {}
        for name, order in orders.items():
            if name not in self._hosts:
                continue
            number, now_ns = next(self._numbers), self._clock.now_ns()
            limit_ns = round((limits_s[name] + _PATIENCE_S) * 1e9)
            # an agent tells its progress every second, but not while a stream opens or a write is waited for
            silence_ns = min(limit_ns, round(2 * _PATIENCE_S * 1e9))
            try:
                self._hosts[name].process.write_line(json.dumps({**order, "id": number}))
            except ConnectError as error:
                self._lose(name, error, errors)
                continue
            pending[name] = _Question(number, end, silence_ns, now_ns + limit_ns, now_ns)
        return pending

    def _wait(self, pending: Mapping[str, _Question]) -> None:
        poller, now_ns = select.poll(), self._clock.now_ns()
        for name in pending:
            poller.register(self._hosts[name].process.fileno(), select.POLLIN)
        until_ns = min(min(one.end_ns, one.heard_ns + one.silence_ns) for one in pending.values())
        poller.poll(max(0, min(1000, (until_ns - now_ns) // 1_000_000 + 1)))

    def _hear(
        self,
        name: str,
        pending: dict[str, _Question],
        results: dict[str, _Lines],
        errors: dict[str, FabricError],
    ) -> None:
        question, process = pending[name], self._hosts[name].process
        now_ns = self._clock.now_ns()
        try:
            lines = process.lines()
        except ConnectError as error:
            del pending[name]
            self._lose(name, error, errors)
            return
        for line in lines:
            question.heard_ns = now_ns
            told = _parsed(line)
            event, is_answer = told.get("event"), told.get("id") == question.number
            if is_answer and event == question.end:
                results[name] = told
                del pending[name]
                return
            if is_answer and event == "error":
                errors[name] = HostError(f"{told.get('class')}: {told.get('what')}", where=name)
                del pending[name]
                return
            self._pass_on(name, told)
        if process.is_ended:
            del pending[name]
            self._lose(name, _ended(name, process), errors)
        elif now_ns >= min(question.end_ns, question.heard_ns + question.silence_ns):
            del pending[name]
            self._lose(name, HostError("the agent says nothing", where=name, remedy=_REMEDY), errors)

    def _pass_on(self, name: str, told: _Lines) -> None:
        match told.get("event"):
            case "progress":
                streams = told.get("streams")
                rows = [one for one in streams if isinstance(one, dict)] if isinstance(streams, list) else []
                total = {key: sum(_number(one.get(key)) for one in rows) for key in _COUNTED}
                data = {"second": _number(told.get("second")), **total}
                self._observer(Event("load.progress", device=name, data=data))
            case "said":
                self._observer(Event("load.said.progress", device=name, message=str(told.get("what"))))

    def _lose(self, name: str, error: FabricError, errors: dict[str, FabricError]) -> None:
        errors[name] = self.errors[name] = error
        host = self._hosts.pop(name)
        self._observer(Event("load.host.failed", device=name, message=str(error)))
        with suppress(ConnectError):
            host.process.close(timeout_s=0)
        host.client.close()

    def close(self) -> None:
        """Ends every agent; each removes its folder. Never raises."""
        hosts, self._hosts = tuple(self._hosts.values()), {}
        fan_out(hosts, _close, workers=_WORKERS, crashed=lambda _host, _error: None, skipped=lambda _host: None)


_COUNTED: Final = ("bytes", "requests", "errors", "flaw_count")
_REMEDY: Final = "Look at the host's load and its targets; then run again."


def _close(host: _Host, is_stopped: Callable[[], bool]) -> None:
    del is_stopped
    try:
        with suppress(ConnectError):
            host.process.close(timeout_s=_CLOSE_S)
    finally:
        host.client.close()


@contextmanager
def open_agents(
    loaded: Loaded, hosts: Sequence[str], environment: Environment, *, cores: bool = False
) -> Iterator[Agents]:
    """Yields an agent on each host that can have one, its clock measured; ends them all.

    Args:
        loaded: the ways to the hosts.
        hosts: names of hosts or targets.
        environment: clock and observer.
        cores: compiled modules of this installation go along; see `remote.bundle`.
    """
    archive = pack(cores=cores)

    def one(name: str, is_stopped: Callable[[], bool]) -> _Host | FabricError:
        del is_stopped
        try:
            return _opened(loaded.access.get(name), name, archive, environment)
        except FabricError as error:
            return error

    def crashed(name: str, error: Exception) -> FabricError:
        return HostError(f"a defect: {type(error).__name__}: {error}", where=name)

    opened = dict(zip(hosts, fan_out(hosts, one, workers=_WORKERS, crashed=crashed, skipped=_never_asked), strict=True))
    running = [host for host in opened.values() if isinstance(host, _Host)]
    errors = {name: error for name, error in opened.items() if isinstance(error, FabricError)}
    agents = Agents(running, errors, environment)
    try:
        agents.measure_clocks()
        yield agents
    finally:
        agents.close()


def _opened(access: DeviceAccess | None, name: str, archive: bytes, environment: Environment) -> _Host:
    if access is None:
        raise ConnectError(
            "the inventory does not say how to reach it",
            where=name,
            remedy="Give it ansible_host, ansible_user and a password or key.",
        )
    client = SshClient(ssh_target(access), clock=environment.clock)
    client.open()
    try:
        folder = _unpacked(client, name, archive)
        become = ("sudo", "-n") if access.become else ()
        process = client.open_process([*become, "sh", "-c", _SERVE, "fabricctl", folder])
        try:
            _await_ready(process, name, environment)
        except HostError:
            process.close(timeout_s=_CLOSE_S)
            client.exec(["rm", "-rf", "--", folder])  # sudo may have refused, and then no shell removes it
            raise
    except BaseException:  # Ctrl-C too must leave no session
        client.close()
        raise
    return _Host(name, client, process, folder)


def _unpacked(client: SshClient, name: str, archive: bytes) -> str:
    done = client.exec(["sh", "-c", _UNPACK], stdin=archive, timeout_s=_UNPACK_S)
    folder = done.stdout.strip()
    if not done.ok or not _FOLDER.fullmatch(folder):
        found = done.stderr.strip().rpartition("\n")[2] or folder
        remedy = "Check the room in its temporary folder, and that it has sh, mktemp and tar."
        raise HostError("the engine could not be unpacked", where=name, found=found, remedy=remedy)
    return folder


def _await_ready(process: Process, name: str, environment: Environment) -> None:
    end_ns = environment.clock.now_ns() + round(_READY_S * 1e9)
    poller = select.poll()
    poller.register(process.fileno(), select.POLLIN)
    while (left_ns := end_ns - environment.clock.now_ns()) > 0:
        poller.poll(left_ns // 1_000_000 + 1)
        for line in process.lines():
            told = _parsed(line)
            if told.get("event") == "ready" and told.get("protocol") == _PROTOCOL:
                return
        if process.is_ended:
            raise _ended(name, process)
    raise HostError("the agent did not begin in time", where=name, expected=f"within {_READY_S:g} s", remedy=_REMEDY)


def _ended(name: str, process: Process) -> FabricError:
    said = process.errors.strip().rpartition("\n")[2]
    if process.status is None:
        return ConnectError("the session with the agent was lost", where=name, found=said)
    remedy = "It needs Python 3.11 or newer, and sudo without a password where ansible_become is set."
    return HostError(f"the agent ended with status {process.status}", where=name, found=said, remedy=remedy)


def _never_asked(name: str) -> FabricError:
    return HostError("it has no agent", where=name, remedy="Open one first.")


def _parsed(line: str) -> _Lines:
    try:
        data = json.loads(line)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _typed(found: Answers[_Lines], key: str, kind: type[T]) -> Answers[T]:
    results: dict[str, T] = {}
    errors = dict(found.errors)
    for name, told in found.results.items():
        try:
            results[name] = from_json(kind, told.get(key))
        except SerialError as error:
            errors[name] = HostError(f"the agent's answer makes no sense: {error}", where=name)
    return Answers(results, errors)


def _deadline_s(job: Job) -> float:
    return max((one.policy.deadline_ns for one in job.streams), default=0) / 1e9


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
