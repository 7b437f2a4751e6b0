"""What is pushed to: each session of the product with a device of the lab, one small change, and its two good ends."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from fabric.clock import Clock
from fabric.errors import DeviceError
from fabric.intent.access import DeviceAccess
from fabric.lab import DeviceSpec, Front, serve
from fabric.nos import catalog
from fabric.push.session import DeviceSession, StagedChange
from fabric.push.sessions.dryrun import DryRunSession
from fabric.push.sessions.eos import EosSession
from fabric.push.sessions.sonic import SonicSession
from fabric.push.transaction import Action, State

__all__ = ("BY_NAME", "SUBJECTS", "Config", "Need", "Subject", "configs", "served")

Config = object
"""A configuration in canonical form: text without the comment that names the command, or the JSON database."""

Need = Literal["command", "prompt", "login", "commit", "revert"]
"""What a step must do for a fault to have something to strike."""

_DEVICE: Final = "leaf1"
_EOS_SEED: Final = "hostname leaf1\n!\nntp server 192.0.2.9\n!\nqos map dscp 26 to traffic-class 1\n!\nend\n"
_EOS_PAYLOAD: Final = "qos map dscp 26 to traffic-class 5\n"
_EOS_BACK: Final = "qos map dscp 26 to traffic-class 1\n"
_SONIC_SEED: Final = {
    "DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "hwsku": "ACS-MSN4700"}},
    "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9100"}},
    "NTP_SERVER": {"192.0.2.9": {}},
}
_SONIC_INTENDED: Final = {**_SONIC_SEED, "PORT": {"Ethernet0": {"lanes": "0", "speed": "100000", "mtu": "9216"}}}
_SONIC_PAYLOAD: Final = json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}])
_SONIC_BACK: Final = json.dumps([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9100"}])

_NEEDS_SONIC: Final[dict[Action, frozenset[Need]]] = {
    Action.OPEN: frozenset({"login"}),
    Action.REOPEN: frozenset({"login"}),
    Action.READ: frozenset({"command"}),
    Action.STAGE: frozenset({"command"}),
    Action.COMMIT: frozenset({"command", "commit"}),
    Action.VERIFY: frozenset({"command"}),
    Action.CONFIRM: frozenset({"command"}),
    Action.SAVE: frozenset({"command"}),
    Action.LOOK: frozenset({"command"}),
    Action.REVERT: frozenset({"command", "commit", "revert"}),
    Action.DISCARD: frozenset({"command"}),
}
_NEEDS_INSTALL: Final = {
    **_NEEDS_SONIC,
    Action.STAGE: frozenset[Need](),  # files alone
    Action.DISCARD: frozenset[Need](),
    Action.REVERT: frozenset[Need]({"command", "commit"}),  # by reload
}
_TYPED: Final[frozenset[Need]] = frozenset({"command", "prompt"})
_TYPED_LOGIN: Final[frozenset[Need]] = frozenset({"command", "prompt", "login"})
_TYPED_COMMIT: Final[frozenset[Need]] = frozenset({"command", "prompt", "commit"})
_TYPED_REVERT: Final[frozenset[Need]] = frozenset({"command", "prompt", "revert"})
_NEEDS_EOS: Final = {
    **dict.fromkeys(_NEEDS_SONIC, _TYPED),
    Action.OPEN: _TYPED_LOGIN,
    Action.REOPEN: _TYPED_LOGIN,
    Action.COMMIT: _TYPED_COMMIT,
    Action.CONFIRM: _TYPED_COMMIT,
    Action.REVERT: _TYPED_REVERT,
    Action.DISCARD: _TYPED_REVERT,
}


@dataclass(frozen=True)
class Subject:
    """One session of the product, as the rows name it.

    Attributes:
        classes: the session classes that stand behind it.
        needs: by action, what it gives a fault to strike; absent: nothing.
        needs_at: likewise where a state differs from its action.
        is_dry: the session applies nothing.
    """

    name: str
    nos: Literal["eos", "sonic"]
    classes: tuple[type, ...]
    needs: dict[Action, frozenset[Need]] = field(repr=False)
    needs_at: dict[State, frozenset[Need]] = field(repr=False, default_factory=dict)
    is_dry: bool = False
    is_install: bool = False

    @property
    def change(self) -> StagedChange:
        if self.nos == "eos":
            return StagedChange("t1", _EOS_PAYLOAD, _EOS_BACK)
        if self.is_install:
            return StagedChange(
                "t1", _SONIC_PAYLOAD, _SONIC_BACK, disruptive=True, full_config=json.dumps(_SONIC_INTENDED)
            )
        return StagedChange("t1", _SONIC_PAYLOAD, _SONIC_BACK)

    @property
    def before(self) -> Config:
        return self.canonical(_EOS_SEED) if self.nos == "eos" else _SONIC_SEED

    @property
    def intended(self) -> Config:
        if self.nos == "sonic":
            return _SONIC_INTENDED
        return self.canonical(_EOS_SEED.replace(_EOS_BACK, _EOS_PAYLOAD))

    def canonical(self, text: str) -> Config:
        """Returns the configuration of a device's words; "" of a text that is none."""
        if self.nos == "sonic":
            try:
                return json.loads(text)
            except ValueError:
                return ""
        lines = [line for line in text.split("\n") if line.strip() and not line.startswith("! ")]
        return [line for line in lines if line.strip() != "!"]

    def session(self, how: DeviceAccess, clock: Clock) -> DeviceSession:
        """Returns the session of the product that this subject is about."""
        nos = catalog.get(self.nos)
        made: DeviceSession
        made = EosSession(how, nos.session, clock=clock) if self.nos == "eos" else _sonic(how, clock)
        return DryRunSession(made, nos.apply) if self.is_dry else made

    def play(self, how: DeviceAccess, clock: Clock, commands: tuple[str, ...]) -> None:
        """Types recovery commands on the device, as a person does: one that is refused stops nobody."""
        session = self.session(how, clock)
        session.open()
        for command in commands:
            try:
                session.run(command)
            except DeviceError:
                session.close()  # a reload cuts the session
                _again(session, clock)
        session.close()


def _sonic(how: DeviceAccess, clock: Clock) -> SonicSession:
    return SonicSession(how, catalog.get("sonic").session, clock=clock)


def _again(session: DeviceSession, clock: Clock) -> None:
    for _ in range(50):
        try:
            session.open()
        except DeviceError:
            clock.sleep_s(0.1)
        else:
            return


_NOTHING: Final = frozenset[Need]()
_READS: Final = frozenset[Need]({"command"})
_DRY: Final = {
    **dict.fromkeys((Action.VERIFY, Action.CONFIRM, Action.SAVE, Action.REVERT), _NOTHING),
    Action.COMMIT: _READS,
}

SUBJECTS: Final = (
    Subject("eos", "eos", (EosSession,), _NEEDS_EOS, {State.REVERTING_LATE: _TYPED_REVERT | _TYPED_COMMIT}),
    Subject("sonic", "sonic", (SonicSession,), _NEEDS_SONIC),
    Subject("sonic-install", "sonic", (SonicSession,), _NEEDS_INSTALL, is_install=True),
    Subject(
        "dryrun-eos",
        "eos",
        (DryRunSession, EosSession),
        # what was staged is dropped in the same step: nothing is left to discard
        {**_NEEDS_EOS, **_DRY, Action.STAGE: _TYPED_REVERT, Action.COMMIT: _TYPED, Action.DISCARD: _NOTHING},
        is_dry=True,
    ),
    Subject("dryrun-sonic", "sonic", (DryRunSession, SonicSession), {**_NEEDS_SONIC, **_DRY}, is_dry=True),
)
BY_NAME: Final = {one.name: one for one in SUBJECTS}


@contextmanager
def served(subject: Subject, folder: Path, clock: Clock) -> Iterator[tuple[Front, DeviceAccess]]:
    """Yields the device of a subject behind SSH, and the way to it."""
    seed = _EOS_SEED if subject.nos == "eos" else json.dumps(_SONIC_SEED)
    with serve([DeviceSpec(_DEVICE, subject.nos, seed, reload_s=0.1)], directory=folder, clock=clock) as fronts:
        front = fronts[_DEVICE]
        how = DeviceAccess(
            device=front.name,
            host=front.host,
            port=front.port,
            username=front.username,
            password=front.password,
            known_hosts=fronts.known_hosts,
        )
        yield front, how


def configs(subject: Subject, front: Front) -> tuple[Config, Config]:
    """Returns what the device runs, and what it boots with."""
    return subject.canonical(front.running()), subject.canonical(front.startup())
