"""Loads contexts through the engine, in a guest: 16 cold readers, each of whole contexts; one JSON object in, one out.

    PYTHONPATH=/root/engine python3 contexts.py '{"url": …, "bytes": 1048576, "size": 65536, "readers": 16, …}'

A reader asks for one context at once; the engine cuts it into commands of `size` bytes. `flying` bounds the commands
in flight of all readers together: 1 is one command in flight. Blocks carry their own number; every one is compared.
"""

import json
import struct
import sys
import time

import fabric.engine
from fabric.engine.client import Read, Settings
from fabric.policy import ShardPolicy

BLOCK = 4096


def main() -> None:
    """Measures once."""
    asked = json.loads(sys.argv[1])
    length, readers, size = asked["bytes"], asked["readers"], asked["size"]
    policy = ShardPolicy(
        queues=asked["queues"],
        depth=asked["depth"],
        transfer_bytes=size,
        target_bytes=asked["flying"] * size,
        receiver_bytes=asked["flying"] * size,
        deadline_ns=600_000_000_000,
    )
    with fabric.engine.open(asked["url"], policy=policy, settings=Settings(tos=asked["tos"])) as engine:
        buffer = engine.allocate(length * readers)
        described = engine.namespace
        unit = described.namespace.block_bytes
        room = described.blocks * unit
        places = [reader * length % (room - length) // BLOCK * BLOCK for reader in range(readers)]
        start = time.monotonic()
        futures = engine.submit(
            [Read(place // unit, (buffer.view(number * length, length),)) for number, place in enumerate(places)]
        )
        ends: list[float] = []
        left = set(futures)
        while left:
            engine.wait([next(iter(left))], 50_000_000)
            for future in tuple(left):
                if future.done:
                    future.result()
                    ends.append(time.monotonic() - start)
                    left.discard(future)
        wrong = 0
        for number, place in enumerate(places):
            for at in range(0, length, BLOCK):
                (stamp,) = struct.unpack_from("<Q", buffer.memory, number * length + at)
                wrong += stamp != (place + at) // BLOCK
    ends.sort()
    said = {"first_s": ends[0], "median_s": ends[len(ends) // 2], "last_s": ends[-1], "wrong": wrong}
    print(json.dumps({**said, "mib_s": length * readers / 2**20 / ends[-1]}))


if __name__ == "__main__":
    main()
