"""One SSH session to each host and target for as long as a verification lasts; lost ones are opened again.

Apart from the agents' own: a target has no agent, and a host whose agent died with it must still be asked what became
of its counters. Changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from fabric.errors import ConnectError, FabricError, HostError
from fabric.host import Executor, NicFacts, SshExecutor
from fabric.host.observe import discover_all
from fabric.intent import Loaded
from fabric.push.fanout import Stop, fan_out
from fabric.push.sessions.target import ssh_target
from fabric.remote.ssh import SshClient
from fabric.workflow.environment import Environment
from fabric.workflow.verifying.hostcounters import Machine

__all__ = ("Way", "Ways")

_ASK_S: Final = 60.0
_AGAIN_S: Final = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Way:
    """An open session. facts: of the machine's NICs, in their order."""

    client: SshClient
    executor: Executor
    facts: tuple[NicFacts, ...]


class Ways:
    """The sessions. Close them, or use it in a `with`.

    Args:
        loaded: how to log in.
        environment: the clock.
        workers: machines at a time.
    """

    def __init__(self, loaded: Loaded, environment: Environment, *, workers: int = 8) -> None:
        self._loaded, self._clock, self._workers = loaded, environment.clock, workers
        self._open: dict[str, Way] = {}
        self._facts: dict[str, tuple[NicFacts, ...]] = {}

    def __enter__(self) -> Self:
        """Returns itself; a session is opened when it is needed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends every session."""
        for name in tuple(self._open):
            self._drop(name)

    @property
    def facts(self) -> Mapping[str, tuple[NicFacts, ...]]:
        """What the NICs of each machine are, as far as it was reached."""
        return dict(self._facts)

    def each(
        self,
        machines: Sequence[Machine],
        work: Callable[[Machine, Way], T],
        *,
        failed: Callable[[Machine, str], T],
        wait_s: float = 0.0,
    ) -> tuple[T, ...]:
        """Returns what `work` made of each machine, in order, or `failed` with the reason.

        Args:
            machines: whom; one that is not to be contacted has failed.
            work: runs in a thread of its own; its `HostError` means that the session is lost.
            failed: makes the result of one that could not be asked.
            wait_s: how long one that does not answer is tried again: it may be booting.
        """
        stop, end_ns = Stop(), self._clock.now_ns() + round(wait_s * 1e9)

        def one(machine: Machine, is_stopped: Callable[[], bool]) -> T:
            if machine.why_not:
                return failed(machine, machine.why_not)
            while True:
                try:
                    return work(machine, self._way(machine))
                except FabricError as error:
                    self._drop(machine.name)
                    if is_stopped() or self._clock.now_ns() >= end_ns:
                        return failed(machine, str(error))
                self._clock.sleep_s(_AGAIN_S)

        found = fan_out(
            machines,
            one,
            workers=self._workers,
            crashed=lambda machine, error: failed(machine, f"a defect: {type(error).__name__}: {error}"),
            skipped=lambda machine: failed(machine, "the run was stopped"),
            stop=stop,
        )
        if stop.is_set():
            raise KeyboardInterrupt
        return found

    def _way(self, machine: Machine) -> Way:
        found = self._open.get(machine.name)
        if found is not None:
            return found
        access = self._loaded.access.get(machine.name)
        if access is None:
            raise ConnectError(
                "the inventory does not say how to reach it",
                where=machine.name,
                remedy="Give it ansible_host, ansible_user and a password or key.",
            )
        client = SshClient(ssh_target(access), clock=self._clock)
        client.open()
        become = ("sudo", "-n") if access.become else ()
        executor = SshExecutor(client, machine.name, become, timeout_s=_ASK_S)
        try:
            facts = discover_all([nic.netdev for nic in machine.nics], executor) if machine.nics else ()
        except HostError:
            client.close()
            raise
        self._facts[machine.name] = facts
        return self._open.setdefault(machine.name, Way(client, executor, facts))

    def _drop(self, name: str) -> None:
        lost = self._open.pop(name, None)
        if lost is not None:
            lost.client.close()
