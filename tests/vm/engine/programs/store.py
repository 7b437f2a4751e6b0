"""Writes a pattern over all I/O queues, reads it back, zeroes and flushes; then asks what the target offers.

python3 -m tests.vm.engine.programs.store URL [header] [data]: the words switch the digests of NVMe/TCP on.
"""

import sys
from typing import Final

from fabric.engine.client import Flush, Read, Settings, Write, WriteZeroes, discover
from fabric.engine.client.engine import Engine
from fabric.engine.nvmeof.tcp import Digests
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, TOS, block, controller_of, emit, link_to, names, opened

QUEUES: Final = 4
SIZES: Final = (4096, 16384, 65536, 1 << 20)  # in and beyond a capsule of either transport
ROUNDS: Final = {4096: 32, 16384: 8, 65536: 8, 1 << 20: 2}


def store(engine: Engine, most: int) -> dict[str, object]:
    """Returns how writing and reading back went; the first blocks are left as the last size up to `most` made them."""
    unit = engine.namespace.namespace.block_bytes
    errors: list[str] = []
    wrong = 0
    for turn, size in enumerate(size for size in SIZES if size <= most):
        count = ROUNDS[size]
        wanted = b"".join(block(number * size // unit, size, turn) for number in range(count))
        source, sink = engine.allocate(count * size), engine.allocate(count * size)
        source.memory[:] = wanted
        lbas = [number * size // unit for number in range(count)]
        for kind, buffer in ((Write, source), (Read, sink)):
            futures = engine.submit([kind(lba, (buffer.view(number * size, size),)) for number, lba in enumerate(lbas)])
            engine.wait(futures)
            errors += names(futures)
        wrong += sum(sink.memory[at : at + size] != wanted[at : at + size] for at in range(0, count * size, size))
    return {"errors": errors, "wrong": wrong, "unit": unit}


def zero(engine: Engine, lba: int, blocks: int) -> dict[str, object]:
    """Returns how zeroing and a flush went."""
    unit = engine.namespace.namespace.block_bytes
    futures = engine.submit([WriteZeroes(lba, blocks)])
    engine.wait(futures)
    futures += engine.submit([Flush()])
    engine.wait(futures)
    sink = engine.allocate(blocks * unit)
    futures += engine.submit([Read(lba, (sink.view(),))])
    engine.wait(futures)
    return {"errors": names(futures), "zeroed": not any(sink.memory)}


def main() -> None:
    """Runs it."""
    url, *words = sys.argv[1:]
    policy = ShardPolicy(queues=QUEUES)
    settings = Settings(command_ns=20 * SECOND, tos=TOS)
    digests = Digests("header" in words, "data" in words)
    with opened(link_to(url, policy, settings, digests=digests), policy, settings) as engine:
        controller = controller_of(engine)
        queues = {qid: controller.queue(qid).telemetry.answers for qid in (0, *controller.live_queues)}
        stored = store(engine, 16384 if "data" in words else SIZES[-1])  # CRC-32C in Python is slow, and slower here
        used = {qid: controller.queue(qid).telemetry.answers - before for qid, before in queues.items()}
        zeroed = zero(engine, 64 << 10, 16)
        identity = controller.identity
        assert identity is not None
        cntlid = identity.cntlid
    offered = (
        [] if words else [[one.subnqn, one.transport] for one in discover(url.rsplit("/", 1)[0], settings=settings)]
    )
    emit(stored=stored, zeroed=zeroed, answers=used, cntlid=cntlid, offered=offered)


if __name__ == "__main__":
    main()
