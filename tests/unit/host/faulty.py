"""A model host with one planted fault at one step: a command on the wire, or an action that the agent performs."""

import json
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from fabric.errors import HostError
from fabric.host.actions import PutFile, StageFile, actions_from_json, command
from fabric.host.executor import perform
from fabric.remote.ssh import ExecResult
from tests.unit.host.answers import failed
from tests.unit.host.model import Model

__all__ = ("DELAYED", "FOR_GOOD", "Fault", "FaultyModel", "KilledError", "run_folder_is_full")


class KilledError(BaseException):
    """The process that works on the host is gone: kill -9."""


class Fault(StrEnum):
    """What goes wrong at a step. "after": the host has performed it, the answer does not come."""

    REFUSED = "refused"
    HANGS = "time limit"
    LOST_ONCE = "session lost once"
    LOST_ONCE_AFTER = "session lost once, after"
    LOST = "host lost"
    LOST_AFTER = "host lost, after"
    LOST_AMID = "host lost amid the write"
    KILLED = "kill -9"
    KILLED_AFTER = "kill -9, after"
    KILLED_GOES_ON = "kill -9, the host goes on"
    REBOOTS = "host reboots"
    FULL = "disk full on the host"
    RUN_FULL = "disk full on our side"
    UNIT_FAILS = "unit fails to start"
    TARGET_GONE = "target gone"


DELAYED = frozenset({Fault.LOST_ONCE_AFTER, Fault.LOST_AFTER, Fault.KILLED_AFTER, Fault.KILLED_GOES_ON})
_BREAKS = frozenset({Fault.LOST_ONCE, Fault.LOST_ONCE_AFTER, Fault.LOST, Fault.LOST_AFTER, Fault.LOST_AMID})
FOR_GOOD = frozenset({Fault.LOST, Fault.LOST_AFTER, Fault.LOST_AMID, Fault.REBOOTS})


@dataclass
class FaultyModel(Model):
    """The host. `steps` says what was asked, by its number; the one with the number `at`, or named so, has the fault."""

    at: int = -1
    at_step: str = ""
    fault: Fault | None = None
    steps: list[str] = field(default_factory=list)
    lost: str = ""
    has_struck: bool = False
    inside: bool = False
    when_struck: Callable[[], None] = lambda: None
    stubborn: bool = False

    def _is_here(self, step: str) -> bool:
        """Notes the step; returns whether the fault is planted here."""
        self.steps.append(step)
        named = bool(self.at_step) and self.at_step in step and not self.has_struck
        return named or len(self.steps) - 1 == self.at

    # --- the wire ---

    def run(self, argv: Sequence[str], *, stdin: bytes = b"") -> ExecResult:
        """Answers one command."""
        if self.inside:
            return super().run(argv, stdin=stdin)
        return self._on_the_wire(_named(argv, stdin), lambda: super(FaultyModel, self).run(argv, stdin=stdin))

    def read(self, path: str) -> str | None:
        """Returns a file's text."""
        if self.inside:
            return super().read(path)
        done = self._on_the_wire(f"read {path}", lambda: _as_result(super(FaultyModel, self).read(path)))
        return done.stdout if done.ok else None

    def write(self, path: str, text: str) -> ExecResult:
        """Writes into a file that is there."""
        if self.inside:
            return super().write(path, text)
        return self._on_the_wire(f"write {path}", lambda: super(FaultyModel, self).write(path, text))

    def _on_the_wire(self, step: str, work: Callable[[], ExecResult]) -> ExecResult:
        if self.lost and self.fault in FOR_GOOD:
            raise HostError("there is no connection to the host", found=self.lost)
        self.lost = ""
        if not self._is_here(step):
            return work()
        if self.fault in DELAYED:
            work()
        return self._struck() or work()

    # --- on the host ---

    def _batch(self, stdin: bytes) -> ExecResult:
        answers = []
        for question in json.loads(stdin):
            if self._is_here(f"? {question if isinstance(question, str) else ' '.join(question)}"[:110]):
                self._struck()
                answers.append([1, "", "refused by the test"])
                continue
            (answer,) = json.loads(super()._batch(json.dumps([question]).encode()).stdout)
            answers.append(answer)
        return ExecResult(0, json.dumps(answers), "")

    def _agent(self, stdin: bytes) -> ExecResult:
        actions = actions_from_json(json.loads(stdin))
        for done, action in enumerate(actions):
            struck = self._is_here(f"… {command(action)}")
            if struck and self.fault is Fault.KILLED_GOES_ON:
                self.has_struck = True
            elif struck and self.fault not in DELAYED:
                if self.fault is Fault.LOST_AMID and isinstance(action, PutFile | StageFile):
                    self.files[f"{action.path}.fabricctl"] = (action.text[:1], 0o600)
                if (answer := self._struck()) is not None:
                    return ExecResult(0, json.dumps({"done": done, "reason": answer.stderr}), "")
            self.inside = True
            try:
                perform(self, action, host="model")
            except HostError as error:
                return ExecResult(0, json.dumps({"done": done, "reason": str(error)}), "")
            finally:
                self.inside = False
            if struck and self.fault in DELAYED - {Fault.KILLED_GOES_ON}:
                self._struck()
        if self.has_struck and self.fault is Fault.KILLED_GOES_ON:
            raise KilledError
        return ExecResult(0, json.dumps({"done": len(actions), "reason": ""}), "")

    # --- faults ---

    def _struck(self) -> ExecResult | None:
        """Lets the fault happen; None where the command is performed all the same."""
        self.has_struck = True
        self.when_struck()
        match self.fault:
            case Fault.REFUSED:
                return failed("refused by the test")
            case Fault.HANGS:
                raise HostError("a command did not end within 180 s")
            case Fault.KILLED | Fault.KILLED_AFTER | Fault.KILLED_GOES_ON:
                raise KilledError
            case Fault.REBOOTS:
                self.boot()
                self.lost = "Connection reset by peer"
                raise HostError("there is no connection to the host", found=self.lost)
            case Fault.FULL:
                self.is_full = True
            case Fault.UNIT_FAILS:
                self.stubborn = True
            case Fault.TARGET_GONE:
                self.reachable = set()
                for one in self.controllers.values():
                    one["state"] = "connecting"
            case found if found in _BREAKS:
                self.lost = "Connection reset by peer"
                raise HostError("there is no connection to the host", found=self.lost)
        return None

    def boot(self, *, late: str = "") -> None:
        """Restarts the host; what systemd does then is no step."""
        outer, self.inside = self.inside, True
        super().boot(late=late)
        self.inside = outer

    def start_unit(self, unit: str) -> ExecResult:
        if self.stubborn and unit not in self.active:
            self.failed_units.add(unit)
            return failed(f"Job for {unit} failed.")
        return super().start_unit(unit)

    def run_line(self, line: str) -> ExecResult:
        outer, self.inside = self.inside, True
        try:
            return super().run_line(line)
        finally:
            self.inside = outer

    def mended(self, reachable: set[tuple[str, str]]) -> None:
        """Ends the fault: the host is there, has room, its units start, targets answer."""
        self.fault, self.at, self.lost, self.is_full, self.stubborn = None, -1, "", False, False
        self.at_step = ""
        self.reachable = set(reachable)
        self.when_struck = lambda: None
        for one in self.controllers.values():
            one["state"] = "live"


def _as_result(text: str | None) -> ExecResult:
    return failed("cannot be read") if text is None else ExecResult(0, text, "")


def _named(argv: Sequence[str], stdin: bytes) -> str:
    """Returns a command as a person would name it."""
    if argv[0] == "python3":
        if argv[3:] == ["-"] or argv[3:] == ("-",):
            return f"agent: {len(json.loads(stdin))} actions"
        return f"ask: {_first(json.loads(stdin))}"
    if argv[:2] in (["sh", "-c"], ("sh", "-c")) and "flock" in argv[2]:
        return "release the lock" if len(argv) == 6 else "take the lock"
    return " ".join(word.partition("\n")[0] for word in argv)[:110]


def _first(questions: Sequence[object]) -> str:
    first = questions[0]
    words = first if isinstance(first, str) else " ".join(str(one) for one in first) if isinstance(first, list) else ""
    return f"{words[:70]} and {len(questions) - 1} more"


@contextmanager
def run_folder_is_full() -> Iterator[Callable[[], None]]:
    """Gives what makes every write of this process to a file fail from then on, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
