"""Reads 4 KiB many times and tells how much memory the process has, from time to time.

python3 -m tests.vm.engine.programs.resident URL READS
"""

import gc
import sys
import time
from pathlib import Path
from typing import Final

from fabric.engine.client import Read, Settings
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, emit, link_to, names, opened

SIZE: Final = 4096
DEPTH: Final = 32
SAMPLES: Final = 20
_PAGE_KIB: Final = 4


def resident_kib() -> int:
    """Returns the resident set of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB


def main() -> None:
    """Runs it."""
    url, reads = sys.argv[1], int(sys.argv[2])
    policy, settings = ShardPolicy(queues=2), Settings(command_ns=20 * SECOND)
    errors: set[str] = set()
    sampled: list[int] = []
    with opened(link_to(url, policy, settings), policy, settings) as engine:
        unit = engine.namespace.namespace.block_bytes
        buffer = engine.allocate(DEPTH * SIZE)
        works = [Read(number * SIZE // unit, (buffer.view(number * SIZE, SIZE),)) for number in range(DEPTH)]
        began_ns, done = time.monotonic_ns(), 0
        for sample in range(SAMPLES):
            while done < reads * (sample + 1) // SAMPLES:
                futures = engine.submit(works)
                engine.wait(futures)
                errors.update(names(futures))
                done += len(futures)
            gc.collect()
            sampled.append(resident_kib())
        took_s = (time.monotonic_ns() - began_ns) / SECOND
    emit(reads=done, errors=sorted(errors), resident_kib=sampled, reads_a_second=round(done / took_s))


if __name__ == "__main__":
    main()
