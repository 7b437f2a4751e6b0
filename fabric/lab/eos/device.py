"""The state of one emulated EOS device: running and saved configuration, sessions, checkpoints, commit timer.

    state of a session     entered by                       left by
    pending                configure session NAME           commit, commit timer, abort, no configure session
    pendingCommitTimer     commit timer HH:MM:SS            configure session NAME commit | abort, the timer
    completed              commit                           (kept until the next one completes)

A session holds a whole candidate; committing it overwrites what others changed since it was opened. Source: EOS
manual, "Configure Session". Knows no command line and no socket; callers hold `lock`.
"""

import difflib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from fabric.clock import Clock
from fabric.lab.alarms import Alarm, Alarms
from fabric.lab.device import DataPlane, Reply
from fabric.lab.eos.cli import EosDialogue
from fabric.lab.eos.config import Config
from fabric.lab.eos.refusal import Refusal
from fabric.lab.faults import FaultBox
from fabric.lab.spec import DeviceSpec, FaultKind

__all__ = ("EosDevice", "Session")

MAX_PENDING = 5  # source: EOS manual, "Configure Session": default of `service configuration session max pending`
_COMMIT = re.compile(r"\s*(commit(\s+timer\s.*)?|configure session \S+ commit.*|configure replace .*)")


@dataclass(slots=True)
class Session:
    """One configuration session; `before` is what the commit timer goes back to."""

    name: str
    candidate: Config
    user: str
    state: str = "pending"
    before: Config | None = None
    alarm: Alarm | None = None


class EosDevice:
    """One emulated EOS device.

    Args:
        spec: `config` is its running and saved configuration at the start.
        clock: of the commit timer.
    """

    def __init__(self, spec: DeviceSpec, clock: Clock) -> None:
        self.spec = spec
        self.clock = clock
        self.lock = threading.RLock()
        self.alarms = Alarms(clock)
        self.faults = FaultBox(spec.faults)
        self.files = None
        self.plane: DataPlane | None = None
        self.config = Config(spec.config)
        self.saved = self.config.text()
        self.sessions: dict[str, Session] = {}
        self.checkpoints: dict[str, str] = {}
        self.flash: dict[str, str] = {}
        self.started_ns = clock.now_ns()
        self._outage_s = 0.0

    @property
    def name(self) -> str:
        """Returns the host name of now."""
        found = self.config.hostname()
        return self.spec.name if found == "localhost" else found

    @property
    def version(self) -> str:
        """Returns the EOS release."""
        return self.spec.version or "4.33.1F"

    @property
    def model(self) -> str:
        """Returns the hardware model."""
        return self.spec.hwsku or "DCS-7060DX5-64S"

    def running(self) -> str:
        """Returns the running configuration as the device shows it."""
        self.alarms.run_due()
        return self.header("running-config") + self.config.text()

    def startup(self) -> str:
        """Returns the saved configuration."""
        return self.header("startup-config") + self.saved

    def header(self, what: str) -> str:
        """Returns the comment lines that EOS prints above a configuration."""
        machine = f"! device: {self.name} ({self.model}, EOS-{self.version})"
        return f"! Command: show {what}\n{machine}\n!\n! boot system flash:/EOS.swi\n"

    def shut_ports(self) -> frozenset[str]:
        """Returns the interfaces that have `shutdown`."""
        nodes = self.config.root.children.values()
        shut = (node for node in nodes if node.context == "interface" and "shutdown" in node.children)
        return frozenset(node.line.split()[1] for node in shut)

    def is_commit(self, command: str) -> bool:
        """Returns whether the command makes a change take effect."""
        return _COMMIT.fullmatch(command) is not None

    def reboot(self) -> None:
        """Boots with the saved configuration; checkpoints and files stay."""
        for session in self.sessions.values():
            if session.alarm is not None:
                self.alarms.cancel(session.alarm)
        self.sessions.clear()
        self.config = Config(self.saved)
        self.started_ns = self.clock.now_ns()
        self._outage_s = self.spec.reload_s

    def take_outage_s(self) -> float:
        """Returns the outage that a reboot asked for, seconds, and forgets it."""
        seconds, self._outage_s = self._outage_s, 0.0
        return seconds

    def dialogue(self, user: str) -> EosDialogue:
        """Returns a new interactive shell."""
        return EosDialogue(self, user)

    def execute(self, command: str, user: str) -> Reply:
        """Returns the answer to commands given on an exec channel, run with all privileges, one a line."""
        shell = EosDialogue(self, user, privileged=True)
        texts: list[str] = []
        for line in command.splitlines():
            reply = shell.feed(line)
            texts.append(reply.text)
            if reply.exit_status:
                return Reply("".join(texts), exit_status=1)
        return Reply("".join(texts))

    def save(self) -> None:
        """Makes the running configuration the saved one."""
        self.saved = self.config.text()

    def open_session(self, name: str, user: str) -> Session:
        """Returns the pending session of that name, new if there is none.

        Raises:
            Refusal: it is not pending any more, or too many are.
        """
        session = self.sessions.get(name)
        if session is None:
            if sum(1 for one in self.sessions.values() if one.state == "pending") >= MAX_PENDING:
                raise Refusal(
                    "% Maximum number of pending sessions has been reached. Please commit or abort previous sessions "
                    "before creating a new one."
                )
            session = Session(name, self.config.copy(), user)
            self.sessions[name] = session
        elif session.state != "pending":
            raise Refusal(f"% Cannot enter session {name}: its state is {session.state}")  # wording unconfirmed
        return session

    def commit(self, session: Session, *, timer_s: int = 0) -> None:
        """Makes the candidate run; with a timer, only until it is confirmed.

        Raises:
            Refusal: another commit waits for its confirmation.
        """
        waiting = self.waiting()
        if waiting is session:
            self._settle(session, timer_s)
            return
        if waiting is not None:
            raise Refusal(f"% Session {waiting.name} is waiting for its commit to be confirmed")  # unconfirmed
        if session.state != "pending":
            raise Refusal(f"% Session {session.name} is already {session.state}")  # wording unconfirmed
        before = self.config
        self.checkpoints[f"ckpt-{len(self.checkpoints) + 1}"] = before.text()
        self.config = session.candidate.copy()
        session.before = before
        self._settle(session, timer_s)

    def _settle(self, session: Session, timer_s: int) -> None:
        if session.alarm is not None:
            self.alarms.cancel(session.alarm)
            session.alarm = None
        if timer_s:
            session.state = "pendingCommitTimer"
            session.alarm = self.alarms.after(timer_s, lambda: self._expire(session))
            return
        for name in [one.name for one in self.sessions.values() if one.state == "completed"]:
            del self.sessions[name]  # one completed session is kept; source: EOS manual, "Configure Session"
        session.state, session.before = "completed", None

    def _expire(self, session: Session) -> None:
        with self.lock:
            self._go_back(session)

    def _go_back(self, session: Session) -> None:
        if session.before is not None:
            self.config = session.before
        self.sessions.pop(session.name, None)

    def abort(self, session: Session) -> None:
        """Drops the session; what its timed commit had changed goes back now.

        Raises:
            Refusal: the session is complete, or a fault refuses it.
        """
        fault = self.faults.strike(FaultKind.REFUSE_REVERT, f"abort {session.name}")
        if fault is not None:
            raise Refusal(fault.text or "% Internal error: abort failed")
        if session.state == "completed":
            raise Refusal(f"% Session {session.name} is already completed")  # wording unconfirmed
        if session.alarm is not None:
            self.alarms.cancel(session.alarm)
        self._go_back(session)

    def waiting(self) -> Session | None:
        """Returns the session whose commit waits for its confirmation, or None."""
        return next((one for one in self.sessions.values() if one.state == "pendingCommitTimer"), None)

    def replace(self, text: str) -> None:
        """Makes `text` the running configuration.

        Raises:
            Refusal: a fault refuses it.
        """
        fault = self.faults.strike(FaultKind.REFUSE_REVERT, "configure replace")
        if fault is not None:
            raise Refusal(fault.text or "% Internal error: replace failed")
        self.config = Config(text)

    def diff(self, session: Session) -> str:
        """Returns what the session would change, as `show session-config diffs` prints it; "" for nothing."""
        lines = difflib.unified_diff(
            _body(self.config),
            _body(session.candidate),
            "system:/running-config",
            f"session:/{session.name}-session-config",
            lineterm="",
        )
        return "".join(f"{line}\n" for line in lines)


def _body(config: Config) -> Sequence[str]:
    return config.text().splitlines()
