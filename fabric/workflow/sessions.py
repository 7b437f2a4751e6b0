"""How each switch is reached: its network OS's session with the secrets of the inventory."""

from collections.abc import Mapping, Sequence

from fabric.errors import ConnectError
from fabric.intent import Loaded
from fabric.nos import catalog
from fabric.plan.model import SwitchPlan
from fabric.push import DeviceSession, SessionFactory, session_factory
from fabric.workflow.environment import Environment

__all__ = ("session_factories",)


def session_factories(
    loaded: Loaded, switches: Sequence[SwitchPlan], environment: Environment
) -> Mapping[str, SessionFactory]:
    """Returns what makes a session, by device; a device without an address fails when its session is made."""
    return {one.device: _factory(loaded, one, environment) for one in switches}


def _factory(loaded: Loaded, plan: SwitchPlan, environment: Environment) -> SessionFactory:
    access = loaded.access.get(plan.device)
    if access is not None:
        return session_factory(catalog.get(plan.nos), access, clock=environment.clock)

    def missing() -> DeviceSession:
        raise ConnectError(
            "the inventory does not say how to reach it",
            where=plan.device,
            remedy="Give it ansible_host, ansible_user and a password or key.",
        )

    return missing
