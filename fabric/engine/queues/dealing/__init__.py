"""Which queue a transfer goes to: policies by name. Nothing is imported until a name is asked for."""

from fabric.engine.queues.dealing.base import Dealing, MakeDealing, arguments
from fabric.registry import Registry

__all__ = ("Dealing", "MakeDealing", "arguments", "catalog")

catalog: Registry[MakeDealing] = Registry(
    "fabric.sharding",
    {
        "least-bytes": "fabric.engine.queues.dealing.least_bytes:least_bytes",
        "rail-aware": "fabric.engine.queues.dealing.rail_aware:rail_aware",
        "rendezvous": "fabric.engine.queues.dealing.rendezvous:rendezvous",
        "round-robin": "fabric.engine.queues.dealing.round_robin:round_robin",
    },
)
