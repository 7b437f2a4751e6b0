"""The engine: a userspace NVMe over Fabrics host and what stands on it.

It imports `qos` and floor 0 only: it runs inside an inference server, where netmiko, Ansible and pydantic have no
business. `open` is the way in; `client` is what it returns. Below it: `nvmeof` is the protocol, sans-I/O; `queues`
deals transfers, `transport` carries them. Beside it: `metrics` counts, `trace` records a run and runs it again. The
key-value store comes beside them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.engine.client import Engine, Settings
    from fabric.policy import ShardPolicy

__all__ = ("open",)


def open(  # noqa: A001, as gzip.open and tarfile.open
    url: str, *, policy: "ShardPolicy | None" = None, settings: "Settings | None" = None
) -> "Engine":
    """Returns an engine on what the URL names, connected. See `client.open_engine` for arguments and errors."""
    # lazy: whoever wants the protocol alone imports this package too, and needs no socket
    from fabric.engine.client import Settings, open_engine
    from fabric.policy import ShardPolicy

    return open_engine(url, policy=policy or ShardPolicy(), settings=settings or Settings())
