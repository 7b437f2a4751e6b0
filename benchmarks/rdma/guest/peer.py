"""Reads through PyPI's `nvmeof`, in a guest: one JSON object in, one out. It has one command in flight; its own API.

python3 peer.py '{"address": …, "nqn": …, "size": 65536, "seconds": 4}'

Blocks carry their own number in their first 8 bytes; every read is compared, as ours are.
"""

import json
import random
import struct
import sys
import time
from typing import Any

BLOCK = 4096
RAMP_S = 1.0


def main() -> None:
    """Measures once."""
    import nvmeof  # type: ignore[import-not-found]  # a peer, only in the guest

    asked: dict[str, Any] = json.loads(sys.argv[1])
    size = asked["size"]
    chance = random.Random(7)
    with nvmeof.Controller.connect(asked["address"], asked["nqn"]) as controller:
        namespace = controller.namespace(asked["nsid"])
        unit = namespace.lba_size
        places = namespace.info.size_lbas * unit // size
        with controller.allocate(size) as buffer:
            reads = wrong = 0
            start = time.monotonic() + RAMP_S
            end = start + asked["seconds"]
            while (now := time.monotonic()) < end:
                place = chance.randrange(places)
                namespace.read(buffer, place * size // unit, size // unit)
                (stamp,) = struct.unpack("<Q", buffer.read(8))
                wrong += stamp != place * size // BLOCK
                reads += now >= start
            wall = time.monotonic() - start
    print(json.dumps({"mib_s": round(reads * size / 2**20 / wall, 3), "reads": reads, "wrong": wrong}))


if __name__ == "__main__":
    main()
