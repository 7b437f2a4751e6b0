"""`python -m fabric.lab SPEC.json`: serves the devices of the file until standard input closes or SIGTERM comes.

SPEC.json is a list of objects with the fields of `DeviceSpec`; `config_file` may stand in place of `config` and is
read relative to the file. Prints the path of the inventory overlay, one line, once everything listens.
"""

import argparse
import json
import os
import selectors
import signal
import sys
import tempfile
from pathlib import Path

from fabric.errors import FabricError
from fabric.lab import serve, spec_from_json
from fabric.lab.spec import DeviceSpec

__all__ = ("main", "read_specs")


def read_specs(path: Path) -> tuple[DeviceSpec, ...]:
    """Returns the specs of a JSON file.

    Raises:
        FabricError: the file cannot be read as specs.
    """
    try:
        rows = json.loads(path.read_text("utf-8"))
        if not isinstance(rows, list):
            raise FabricError("the file is no list of devices", where=str(path))
        for row in rows:
            if "config_file" in row:
                row["config"] = (path.parent / row.pop("config_file")).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise FabricError(f"the file cannot be read: {error}", where=str(path)) from error
    return tuple(spec_from_json(row) for row in rows)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0 after an orderly stop, 2 for a file that cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m fabric.lab", description="Serve emulated switches over SSH.")
    parser.add_argument("spec", type=Path, help="JSON list of devices")
    parser.add_argument("--directory", type=Path, help="where known_hosts and inventory.yml go; a new one if absent")
    options = parser.parse_args(arguments)
    try:
        specs = read_specs(options.spec)
    except FabricError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="fabric-lab-") as temporary:
        directory = options.directory or Path(temporary)
        stopped = _descriptor_of_signals()  # before anybody can know that we run, and say that we shall end
        with serve(specs, directory=directory):
            sys.stdout.write(f"{directory / 'inventory.yml'}\n")
            sys.stdout.flush()
            _wait_for_the_end(stopped)
    return 0


def _descriptor_of_signals() -> int:
    """Returns a descriptor that can be read once SIGTERM or SIGINT came."""
    reading, writing = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(writing, b"x") and None)
    return reading


def _wait_for_the_end(stopped: int) -> None:
    """Returns when standard input is at its end, or when `stopped` can be read."""
    with selectors.DefaultSelector() as selector:
        selector.register(stopped, selectors.EVENT_READ)
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == stopped or not os.read(key.fd, 4096):
                    return


if __name__ == "__main__":
    sys.exit(main())
