"""The lab: software switches for tests and demonstrations, reached over real SSH.

This is the front half: SSH servers that behave like Arista EOS and community SONiC as far as a pusher can tell, each
with its own grammar as data. It sees neither `fabric.nos` nor `fabric.push`, so that a wrong syntax cannot be right on
both sides. Many fronts live in one process.
"""

from fabric.lab.serve import Front, Fronts, serve
from fabric.lab.spec import DeviceSpec, Fault, FaultKind, spec_from_json

__all__ = ("DeviceSpec", "Fault", "FaultKind", "Front", "Fronts", "serve", "spec_from_json")
