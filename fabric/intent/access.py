"""How to reach a device: address and secret. Kept apart from `Fabric`, never serialised, never printed."""

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ("DeviceAccess",)


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    """How to log in to one device.

    Attributes:
        host: name or address. port: TCP port of SSH.
        password: from vault or environment, never in repr; None for a key or agent.
        private_key: path of a key file, or None.
        become: what needs root is done through sudo; of hosts and targets.
        enable_secret: EOS `enable` secret, never in repr, or None.
        known_hosts: OpenSSH known_hosts file; None for the user's own.
    """

    device: str
    host: str
    port: int = 22
    username: str = ""
    password: str | None = field(default=None, repr=False)
    private_key: Path | None = None
    enable_secret: str | None = field(default=None, repr=False)
    known_hosts: Path | None = None
    become: bool = False
