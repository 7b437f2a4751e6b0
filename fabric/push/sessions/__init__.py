"""Sessions by network OS. Nothing heavy is imported until one is opened."""

from typing import Protocol

from fabric.clock import Clock
from fabric.intent.access import DeviceAccess
from fabric.nos.base import Nos, SessionSpec
from fabric.push.jobs import SessionFactory
from fabric.push.session import DeviceSession
from fabric.registry import Registry

__all__ = ("SessionMaker", "catalog", "session_factory")


class SessionMaker(Protocol):
    """A kind of session: one per network OS, since each has its own words for the verbs."""

    def __call__(self, access: DeviceAccess, spec: SessionSpec, *, clock: Clock) -> DeviceSession:
        """Returns a session that is not open yet."""
        ...


catalog: Registry[SessionMaker] = Registry(
    "fabric.transports",
    {"eos": "fabric.push.sessions.eos:EosSession", "sonic": "fabric.push.sessions.sonic:SonicSession"},
)


def session_factory(nos: Nos, access: DeviceAccess, *, clock: Clock) -> SessionFactory:
    """Returns what makes a session with that device.

    Raises:
        UnknownNameError: this network OS has no session.
    """
    maker = catalog.get(nos.name)
    spec = nos.session
    return lambda: maker(access, spec, clock=clock)
