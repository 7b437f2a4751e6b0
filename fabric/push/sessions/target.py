"""From the inventory's way to reach a device to the SSH client's."""

from fabric.intent.access import DeviceAccess
from fabric.remote.ssh import SshTarget

__all__ = ("ssh_target",)


def ssh_target(access: DeviceAccess) -> SshTarget:
    """Returns where and as whom to log in."""
    return SshTarget(
        name=access.device,
        host=access.host,
        port=access.port,
        username=access.username,
        password=access.password,
        private_key=access.private_key,
        known_hosts=access.known_hosts,
    )
