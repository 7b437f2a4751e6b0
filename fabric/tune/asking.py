"""What a search may ask for: fidelities, seeds, reasons, and the settings that all is compared with. Data alone."""

from dataclasses import dataclass
from typing import Final

from fabric.policy import ShardPolicy
from fabric.tune.knobs import Knobs, Space, connect_defaults, serial
from fabric.tune.path import PathModel

__all__ = ("BASELINES", "CONNECT", "DEFAULT", "FIRST_SEED", "FULL", "MIDDLE", "SERIAL", "Ask", "baselines", "defaults")

CONNECT, DEFAULT, SERIAL = "nvme connect", "default policy", "one queue, serial"
BASELINES: Final = (CONNECT, DEFAULT, SERIAL)
MIDDLE, FULL = 1 / 3, 1.0  # eta 3: simulation study 4.4; a third rung, 1/9, would save load and no trial
MIDDLE_SEED, FIRST_SEED = 201, 301  # equal within a fidelity, so that settings see equal load


@dataclass(frozen=True, slots=True)
class Ask:
    """One measurement wanted."""

    knobs: Knobs
    fidelity: float
    seed: int
    why: str

    @classmethod
    def once(cls, knobs: Knobs, why: str) -> "Ask":
        """Returns the first measurement of a setting, below full fidelity."""
        return cls(knobs, MIDDLE, MIDDLE_SEED, why)


def baselines(space: Space, model: PathModel) -> dict[str, Knobs]:
    """Returns name → knobs of what is compared with."""
    mdts = space.transfer_bytes[-1]
    policy = Knobs.of(ShardPolicy(transfer_bytes=min(mdts, ShardPolicy().transfer_bytes)))
    return {
        CONNECT: connect_defaults(min(model.cores, model.queues_max or model.cores), mdts),
        DEFAULT: policy,
        SERIAL: serial(mdts),
    }


def defaults(space: Space, model: PathModel) -> tuple[Knobs, Knobs]:
    """Returns what is deployed where nobody tunes: that of the kernel, and that of the policy."""
    named = baselines(space, model)
    return named[CONNECT], named[DEFAULT]
