"""One lab on this machine: virtual machines, emulated switches and the cables between them, from a `LabSpec`.

`bring_up`, `open_site` and `take_down` work on the lab's folder; `run_process` is what carries switches and cables.
Knows no inventory: `fabric.workflow.lab` makes the spec.
"""

from fabric.lab.backplane import Reader
from fabric.lab.site.control import ask
from fabric.lab.site.folder import LabFolder, Login, Record, lab_path
from fabric.lab.site.process import run_process
from fabric.lab.site.site import Site, Tools, bring_up, open_site, take_down
from fabric.lab.site.spec import Cable, End, LabMachine, LabPort, LabSpec, LabSwitch, mac_of

__all__ = (
    "Cable",
    "End",
    "LabFolder",
    "LabMachine",
    "LabPort",
    "LabSpec",
    "LabSwitch",
    "Login",
    "Reader",
    "Record",
    "Site",
    "Tools",
    "ask",
    "bring_up",
    "lab_path",
    "mac_of",
    "open_site",
    "run_process",
    "take_down",
)
