"""`python -m tests.vm.image`: builds the lab's image if it is not in the cache, and says where it is."""

import os
import sys

from fabric.errors import FabricError
from fabric.lab.alarms import WallClock
from fabric.lab.vm import build_image, cache_folder
from fabric.observe import Event


def main() -> int:
    """Returns 0, or 5 when something is missing on this machine."""
    try:
        image = build_image(cache_folder(os.environ), clock=WallClock(), observer=_tell)
    except FabricError as error:
        sys.stderr.write(f"{error}\n")
        return 5
    sys.stdout.write(f"{image.folder}\n")
    return 0


def _tell(event: Event) -> None:
    sys.stdout.write(f"{event.name} {event.message}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
