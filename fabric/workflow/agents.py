"""The load's agents: one process on each host over SSH, for as long as it is needed. Installs nothing there.

    open_agents ──▶ log in, unpack the engine into a private folder, start the agent ──▶ ask … ──▶ end its input

The agent ends when its input does, and the shell that holds it then removes the folder: so nothing stays behind, also
when the session is lost. A host that cannot be reached, or is lost, or says nothing, is an error of that host and stops
no other. One thread hears all hosts; only logging in and out is done for several at a time.
"""

import json
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from fabric.engine.client import Description
from fabric.engine.load import OPEN_S, Job, JobResult, Region, Stream
from fabric.errors import ConnectError, FabricError, HostError
from fabric.intent import Loaded
from fabric.observe import Event
from fabric.push.fanout import fan_out
from fabric.remote.bundle import pack
from fabric.serial import Json, SerialError, from_json, to_json
from fabric.workflow.agenthosts import REMEDY, AgentHost, close_host, ended, open_host, parsed
from fabric.workflow.environment import Environment

__all__ = ("Agents", "Answers", "Preparation", "open_agents")

_PING_S: Final = 10.0
_PINGS: Final = 3
PATIENCE_S: Final = 60.0  # beyond what the work itself may take: a read's deadline is 30 s
_WORKERS: Final = 8
_SLOW_BYTES_S: Final = 10 << 20  # what a preparation writes at least, else it is given up

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
        patience_s: how much longer than its work may take an agent may be silent.

    Attributes:
        errors: host → why it has no agent, or none any more.
    """

    def __init__(
        self,
        hosts: Sequence[AgentHost],
        errors: Mapping[str, FabricError],
        environment: Environment,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
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
                answer = self._ask({name: {"do": "ping"}}, "pong", {name: min(_PING_S, self._patience_s)}).results.get(
                    name
                )
                took_s = (self._clock.now_ns() - sent_ns) / 1e9
                theirs = (answer or {}).get("unix_s")
                if isinstance(theirs, float) and took_s < best.get(name, _PING_S):
                    best[name] = took_s
                    self._hosts[name].offset_s = theirs - (sent_s + took_s / 2)

    def describe(self, streams: Mapping[str, Stream]) -> Answers[Description]:
        """Returns what the stream of each host reaches: block size, blocks, queues."""
        orders: dict[str, _Lines] = {name: {"do": "describe", "stream": to_json(one)} for name, one in streams.items()}
        return _typed(
            self._ask(orders, "described", dict.fromkeys(orders, self._patience_s + OPEN_S)),
            "description",
            Description,
        )

    def prepare(self, wanted: Sequence[tuple[str, Preparation]]) -> Answers[int]:
        """Returns how many bytes each host wrote; several hosts write at a time, one host one region after another.

        What a host could not write is its error, whatever else it wrote.
        """
        results: dict[str, int] = {}
        errors: dict[str, FabricError] = {}
        left = list(wanted)
        while left:
            turn = dict(reversed(left))  # the first of each host
            left = [(name, one) for name, one in left if turn[name] is not one]
            found = self._prepare(turn)
            errors |= found.errors
            results |= {name: results.get(name, 0) + length for name, length in found.results.items()}
        return Answers({name: one for name, one in results.items() if name not in errors}, errors)

    def _prepare(self, wanted: Mapping[str, Preparation]) -> Answers[int]:
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
            limits[name] = self._patience_s + OPEN_S + one.region.blocks * 4096 / _SLOW_BYTES_S
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
            limits[name] = self._patience_s + len(job.streams) * OPEN_S + job.seconds + _deadline_s(job)
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
            limit_ns = round(limits_s[name] * 1e9)
            # an agent tells its progress every second, but not while a stream opens or a write is waited for
            silence_ns = min(limit_ns, round(2 * self._patience_s * 1e9))
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
            told = parsed(line)
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
            self._lose(name, ended(name, process), errors)
        elif now_ns >= min(question.end_ns, question.heard_ns + question.silence_ns):
            del pending[name]
            self._lose(name, HostError("the agent says nothing", where=name, remedy=REMEDY), errors)

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
        fan_out(
            hosts,
            lambda host, _stop: close_host(host),
            workers=_WORKERS,
            crashed=lambda _host, _error: None,
            skipped=lambda _host: None,
        )


_COUNTED: Final = ("bytes", "requests", "errors", "flaw_count")


@contextmanager
def open_agents(
    loaded: Loaded,
    hosts: Sequence[str],
    environment: Environment,
    *,
    cores: bool = False,
    patience_s: float = PATIENCE_S,
) -> Iterator[Agents]:
    """Yields an agent on each host that can have one, its clock measured; ends them all.

    Args:
        loaded: the ways to the hosts.
        hosts: names of hosts or targets.
        environment: clock and observer.
        cores: compiled modules of this installation go along; see `remote.bundle`.
        patience_s: how much longer than its work may take an agent may be silent.
    """
    archive = pack(cores=cores)

    def one(name: str, is_stopped: Callable[[], bool]) -> AgentHost | FabricError:
        del is_stopped
        try:
            return open_host(loaded.access.get(name), name, archive, environment)
        except FabricError as error:
            return error

    def crashed(name: str, error: Exception) -> FabricError:
        return HostError(f"a defect: {type(error).__name__}: {error}", where=name)

    opened = dict(zip(hosts, fan_out(hosts, one, workers=_WORKERS, crashed=crashed, skipped=_never_asked), strict=True))
    running = [host for host in opened.values() if isinstance(host, AgentHost)]
    errors = {name: error for name, error in opened.items() if isinstance(error, FabricError)}
    agents = Agents(running, errors, environment, patience_s=patience_s)
    try:
        agents.measure_clocks()
        yield agents
    finally:
        agents.close()


def _never_asked(name: str) -> FabricError:
    return HostError("it has no agent", where=name, remedy="Open one first.")


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
