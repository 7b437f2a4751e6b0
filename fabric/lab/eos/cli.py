"""The EOS command line: modes, prompts, and what a typed line does. Knows no socket; callers hold the device's lock."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fabric.lab.device import Reply
from fabric.lab.eos import shows
from fabric.lab.eos.config import Config, Node
from fabric.lab.eos.grammar import Entry, grammar
from fabric.lab.eos.refusal import INVALID, Refusal, misfit
from fabric.lab.eos.template import Miss
from fabric.lab.spec import FaultKind

if TYPE_CHECKING:
    from fabric.lab.eos.device import EosDevice, Session

__all__ = ("EosDialogue",)

# `(config-s-acl-ch)` for a session `acl-change`: cut to six letters. Source: a public transcript of vEOS
# (saidvandeklundert.net, "Arista configure sessions"), seen again in NAPALM's tests.
_SESSION_LETTERS: Final = 6
_TIMER: Final = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})")
_SHORT: Final = {"Ethernet": "Et", "Port-Channel": "Po", "Loopback": "Lo", "Management": "Ma", "Vlan": "Vl"}


@dataclass(slots=True)
class _Level:
    """One context of the configuration mode: several nodes for a range of interfaces."""

    context: str
    nodes: list[Node]
    prompt: str = ""


@dataclass(slots=True)
class _Editing:
    config: Config
    session: "Session | None" = None
    levels: list[_Level] = field(default_factory=list)


class EosDialogue:
    """One shell.

    Args:
        device: whose state it shows and changes.
        privileged: starts after `enable`.
    """

    def __init__(self, device: "EosDevice", user: str, *, privileged: bool = False) -> None:
        self._device = device
        self._user = user
        self._privileged = privileged
        self._asks_secret = False
        self._editing: _Editing | None = None

    def greeting(self) -> str:
        """Returns what is printed before the first prompt."""
        return ""

    def hides_input(self) -> bool:
        """Returns whether the next line is the enable secret."""
        return self._asks_secret

    def prompt(self) -> str:
        """Returns the prompt of now."""
        if self._asks_secret:
            return "Password: "
        mark = "#" if self._privileged else ">"
        return f"{self._device.name}{self._mode()}{mark}"

    def feed(self, line: str) -> Reply:
        """Returns the answer to one typed line."""
        self._device.alarms.run_due()
        if self._asks_secret:
            return self._answer_secret(line)
        command = " ".join(line.split())
        if not command or command.startswith("!"):
            return Reply()
        fault = self._device.faults.strike(FaultKind.REFUSE, command)
        if fault is not None:
            return Reply(f"{fault.text or INVALID}\n", exit_status=1)
        try:
            return self._run(command)
        except Refusal as refusal:
            return Reply(f"{refusal.text}\n", exit_status=1)

    def _mode(self) -> str:
        editing = self._editing
        if editing is None:
            return ""
        parts = ["config"]
        if editing.session is not None:
            parts += ["s", editing.session.name[:_SESSION_LETTERS]]
        # EOS names only the innermost interface or profile, then the queue; wording of queue modes unconfirmed.
        parts += [level.prompt for level in editing.levels if level.prompt]
        return f"({'-'.join(parts)})"

    def _answer_secret(self, line: str) -> Reply:
        self._asks_secret = False
        if line.strip() == self._device.spec.enable_secret:
            self._privileged = True
            return Reply()
        return Reply("% Access denied\n")  # wording unconfirmed

    def _run(self, command: str) -> Reply:
        if command.startswith("show "):
            return Reply(self._show(command))
        for pattern, action in _COMMON.items():
            match = re.fullmatch(pattern, command)
            if match is not None:
                return action(self, match)
        if not self._privileged:
            raise misfit(command, 0, len(self.prompt()))
        table = _EXEC if self._editing is None else {**_EDIT, **_EXEC_ANYWHERE}
        for pattern, action in table.items():
            match = re.fullmatch(pattern, command)
            if match is not None:
                return action(self, match)
        if self._editing is None:
            raise misfit(command, 0, len(self.prompt()))
        self._type(self._editing, command)
        return Reply()

    def _show(self, command: str) -> str:
        session = self._editing.session if self._editing else None
        text = shows.show(self._device, command.removeprefix("show "), session=session, privileged=self._privileged)
        if text is None:
            raise misfit(command, 1, len(self.prompt()))
        return text

    def _type(self, editing: _Editing, line: str) -> None:
        """Applies a configuration line in the innermost context that takes it, as EOS does."""
        first_miss: Miss | None = None
        for depth in range(len(editing.levels), -1, -1):
            context = editing.levels[depth - 1].context if depth else "global"
            found = grammar().read(line, context)
            if isinstance(found, Miss):
                if first_miss is None or found.at > first_miss.at:
                    first_miss = found
                continue
            del editing.levels[depth:]
            self._apply(editing, found)
            return
        raise misfit(line, first_miss.at if first_miss else 0, len(self.prompt()))

    def _apply(self, editing: _Editing, entries: tuple[Entry, ...]) -> None:
        parents = editing.levels[-1].nodes if editing.levels else [editing.config.root]
        opened: list[Node] = []
        for parent in parents:
            for entry in entries:
                node = editing.config.put(parent, entry)
                if node is not None and entry.kind.opens:
                    opened.append(node)
        first = entries[0]
        if opened:
            prompt = first.kind.prompt.format_map(first.values)
            editing.levels.append(_Level(first.kind.opens, opened, _shorten(prompt)))

    def _enable(self, _: re.Match[str]) -> Reply:
        self._asks_secret = bool(self._device.spec.enable_secret) and not self._privileged
        self._privileged = self._privileged or not self._asks_secret
        return Reply()

    def _disable(self, _: re.Match[str]) -> Reply:
        self._privileged = False
        return Reply()

    def _quit(self, _: re.Match[str]) -> Reply:
        if self._editing is None:
            return Reply(ends_dialogue=True)
        if self._editing.levels:
            self._editing.levels.pop()
        else:
            self._editing = None
        return Reply()

    def _end(self, _: re.Match[str]) -> Reply:
        self._editing = None
        return Reply()

    def _width(self, match: re.Match[str]) -> Reply:
        return Reply(f"Width set to {match[1]} columns.\n")

    def _length(self, match: re.Match[str]) -> Reply:
        return Reply("Pagination disabled.\n" if match[1] == "0" else f"Pagination set to {match[1]} lines.\n")

    def _nothing(self, _: re.Match[str]) -> Reply:
        return Reply()

    def _configure(self, _: re.Match[str]) -> Reply:
        self._editing = _Editing(self._device.config)
        return Reply()

    def _session(self, match: re.Match[str]) -> Reply:
        session = self._device.open_session(match[1] or f"sess-{len(self._device.sessions) + 1}", self._user)
        self._editing = _Editing(session.candidate, session)
        return Reply()

    def _session_verb(self, match: re.Match[str]) -> Reply:
        session = self._device.sessions.get(match[1])
        if session is None:
            raise Refusal(f"% Session {match[1]} does not exist")  # wording unconfirmed
        if match[2] == "abort":
            self._device.abort(session)
        else:
            self._device.commit(session, timer_s=_seconds(match[3]))
        return Reply()

    def _forget_session(self, match: re.Match[str]) -> Reply:
        session = self._device.sessions.get(match[1])
        if session is not None:
            self._device.abort(session)
        return Reply()

    def _commit(self, match: re.Match[str]) -> Reply:
        session = self._in_session()
        self._device.commit(session, timer_s=_seconds(match[1]))
        self._editing = None
        return Reply()

    def _abort(self, _: re.Match[str]) -> Reply:
        self._device.abort(self._in_session())
        self._editing = None
        return Reply()

    def _clean(self, _: re.Match[str]) -> Reply:
        session = self._in_session()
        session.candidate.root.children.clear()
        return Reply()

    def _in_session(self) -> "Session":
        session = self._editing.session if self._editing else None
        if session is None:
            raise Refusal(INVALID)
        return session

    def _write(self, _: re.Match[str]) -> Reply:
        self._device.save()
        return Reply("Copy completed successfully.\n")

    def _copy_to_flash(self, match: re.Match[str]) -> Reply:
        text = self._device.saved if match[1].startswith("startup") else self._device.config.text()
        self._device.flash[match[2]] = text
        return Reply("Copy completed successfully.\n")

    def _save_checkpoint(self, match: re.Match[str]) -> Reply:
        self._device.checkpoints[match[1]] = self._device.config.text()
        return Reply()

    def _replace(self, match: re.Match[str]) -> Reply:
        store = self._device.checkpoints if match[1] in {"checkpoint:", "checkpoint restore "} else self._device.flash
        text = store.get(match[2])
        if match[1] == "" and match[2] == "startup-config":
            text = self._device.saved
        if text is None:
            raise Refusal(f"% Error replacing the configuration: {match[2]}: No such file or directory")
        self._device.replace(text)
        return Reply()


_Action = Callable[[EosDialogue, re.Match[str]], Reply]
_COMMON: Final[Mapping[str, _Action]] = {
    r"enable": EosDialogue._enable,  # noqa: SLF001 - one class, its table
    r"disable": EosDialogue._disable,  # noqa: SLF001
    r"exit|logout|quit": EosDialogue._quit,  # noqa: SLF001
    r"terminal width (\d+)": EosDialogue._width,  # noqa: SLF001
    r"terminal length (\d+)": EosDialogue._length,  # noqa: SLF001
    r"terminal monitor|terminal dont-ask": EosDialogue._nothing,  # noqa: SLF001
}
_EXEC_ANYWHERE: Final[Mapping[str, _Action]] = {
    r"write( memory)?|copy running-config startup-config": EosDialogue._write,  # noqa: SLF001
}
_EXEC: Final[Mapping[str, _Action]] = {
    **_EXEC_ANYWHERE,
    r"end": EosDialogue._end,  # noqa: SLF001
    r"configure( terminal)?": EosDialogue._configure,  # noqa: SLF001
    r"configure session(?: (\S+))?": EosDialogue._session,  # noqa: SLF001
    r"configure session (\S+) (abort|commit)(?: timer (\S+))?": EosDialogue._session_verb,  # noqa: SLF001
    r"no configure session (\S+)": EosDialogue._forget_session,  # noqa: SLF001
    r"configure checkpoint save (\S+)": EosDialogue._save_checkpoint,  # noqa: SLF001
    r"configure (checkpoint restore )(\S+)": EosDialogue._replace,
    r"configure replace (flash:/?|checkpoint:|)(\S+)(?: ignore-errors| force)*": EosDialogue._replace,
    r"copy (running-config|startup-config) flash:/?(\S+)": EosDialogue._copy_to_flash,  # noqa: SLF001
}
_EDIT: Final[Mapping[str, _Action]] = {
    r"end": EosDialogue._end,  # noqa: SLF001
    r"commit(?: timer (\S+))?": EosDialogue._commit,  # noqa: SLF001
    r"abort": EosDialogue._abort,  # noqa: SLF001
    r"rollback clean-config": EosDialogue._clean,  # noqa: SLF001
}


def _seconds(text: str | None) -> int:
    if text is None:
        return 0
    match = _TIMER.fullmatch(text)
    if match is None or int(match[2]) > 59 or int(match[3]) > 59:
        raise Refusal(INVALID)
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    if seconds == 0:
        raise Refusal(INVALID)
    return seconds


def _shorten(prompt: str) -> str:
    for long, short in _SHORT.items():
        prompt = prompt.replace(f"if-{long}", f"if-{short}")
    return prompt
