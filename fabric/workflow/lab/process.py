"""`python -m fabric.workflow.lab.process FOLDER TOKEN`: the process that carries a lab's switches and cables.

Started by `fabricctl lab up`. It brings to the lab what that may not see: how a network OS's configuration is read.
The token is not used here: it stands in the command line, by which the process is found again.
"""

import os
import sys
from pathlib import Path

from fabric.errors import FabricError
from fabric.lab.site import LabFolder, LabSpec, Reader, run_process
from fabric.nos import catalog
from fabric.qos import DeviceQos
from fabric.workflow.environment import SystemClock

__all__ = ("main", "reader_of")


def reader_of(spec: LabSpec) -> Reader:
    """Returns what reads the running configuration of each switch of a lab."""
    nos = {one.name: catalog.get(one.front.nos) for one in spec.switches}

    def read(device: str, text: str) -> DeviceQos:
        return nos[device].parse(text, device=device)

    return read


def main(arguments: list[str]) -> int:
    """Returns the exit status: 0 after an orderly stop, 1 when the lab cannot be served."""
    folder = LabFolder(Path(arguments[0]))
    os.chdir("/")  # it outlives the folder that it was started in
    record = folder.record()
    try:
        if record is None:
            raise FabricError("no lab is described here", where=str(folder.path))
        run_process(folder, reader_of(record.spec), SystemClock())
    except FabricError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
