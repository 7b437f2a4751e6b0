"""Find the queue policy that is fastest without losing, on a fabric that runs: `tune`, and `check_profile`.

| module | holds |
|---|---|
| options | what is asked for |
| modelling | the path before the first trial: light reads, plan, cabling |
| measuring, outcomes | one trial: the load, the counters around it, what they come to |
| study, phases | what a study is about, so that it can be gone on with; the order |
| writing | the profile into the inventory, as a diff |
| concluding | run folder, figures, report, summary |

Counters, sessions, loads and checks are those of `verifying`; the search is `fabric.tune`, which sees none of this.
"""

from fabric.workflow.tuning.concluding import Checked, Tuned
from fabric.workflow.tuning.options import TuneOptions
from fabric.workflow.tuning.phases import check_profile, tune

__all__ = ("Checked", "TuneOptions", "Tuned", "check_profile", "tune")
