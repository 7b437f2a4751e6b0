"""Finds the queue policy that is fastest without losing: model first, then measured trials, then a paired confirmation.

`Tuner` says what to measure and takes what was measured; it opens no connection and knows no host, engine or switch.
Whoever holds it deploys each trial's policy, loads the fabric, and reads the counters before and after.
"""

from fabric.tune.figures import pareto_svg, scaling_svg
from fabric.tune.journal import JournalError
from fabric.tune.knobs import Knobs, Space, connect_defaults, serial
from fabric.tune.model import INFEASIBLE, Advice, FanIn, advise, fan_in, needed_bytes
from fabric.tune.outcome import Chosen, Goal, Limits, Outcome, Trial, flaws, is_feasible
from fabric.tune.path import Buffer, PathModel
from fabric.tune.profile import make_profile, no_longer_holds
from fabric.tune.report import TuneReport
from fabric.tune.text import to_text
from fabric.tune.tuner import BUDGET, Tuner
from fabric.tune.usl import ScalingLaw, fit_law

__all__ = (
    "BUDGET",
    "INFEASIBLE",
    "Advice",
    "Buffer",
    "Chosen",
    "FanIn",
    "Goal",
    "JournalError",
    "Knobs",
    "Limits",
    "Outcome",
    "PathModel",
    "ScalingLaw",
    "Space",
    "Trial",
    "TuneReport",
    "Tuner",
    "advise",
    "connect_defaults",
    "fan_in",
    "fit_law",
    "flaws",
    "is_feasible",
    "make_profile",
    "needed_bytes",
    "no_longer_holds",
    "pareto_svg",
    "scaling_svg",
    "serial",
    "to_text",
)
