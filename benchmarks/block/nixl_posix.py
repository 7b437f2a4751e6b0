"""NIXL's POSIX backend on a file, batched. `python -m benchmarks.block.nixl_posix PATH BYTES DEPTH BACKEND`.

As its examples do it, and as it is fastest from Python: descriptors of all places in file and memory are prepared once,
a batch is made of their indices by one call, and polled. Two batches of half the depth are open, so that one reads
while the other is made. Needs `nixl` and numpy, and nothing of fabricctl but this folder.
"""

import ctypes
import mmap
import os
import sys
import time
from importlib import import_module
from itertools import cycle, islice
from typing import Any

from benchmarks.block.row import mark, places
from benchmarks.block.worker import serve

BATCHES = 2


class Reader:
    """Keeps batches open.

    Args:
        path: the file.
        size: bytes of a read. depth: reads in flight.
        backend: `use_aio`, `use_uring` or `use_posix_aio`.
    """

    def __init__(self, path: str, size: int, depth: int, backend: str) -> None:
        api = import_module("nixl._api")  # no dependency of this project, and heavy

        self.size, self.each = size, depth // BATCHES
        self.agent = api.nixl_agent("bench", api.nixl_agent_config(enable_prog_thread=False, backends=[]))
        chosen = {name: str(name == backend).lower() for name in ("use_aio", "use_uring", "use_posix_aio")}
        self.agent.create_backend("POSIX", chosen)
        self.file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        length = os.fstat(self.file).st_size
        self.count = length // size
        self.memory = mmap.mmap(-1, size * depth)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.agent.register_memory([(base, size * depth, 0, "")], "DRAM", backends=["POSIX"])
        self.agent.register_memory([(0, length, self.file, "")], "FILE", backends=["POSIX"])
        near = [(base + at * size, size, 0) for at in range(depth)]
        far = [(at * size, size, self.file) for at in range(self.count)]
        self.near = self.agent.prep_xfer_dlist("NIXL_INIT_AGENT", near, "DRAM", backends=["POSIX"])
        self.far = self.agent.prep_xfer_dlist("bench", far, "FILE", backends=["POSIX"])
        batches = islice(places(self.count, self.each), self.count // self.each)
        self.places = cycle([list(batch) for batch in batches])  # where to read is known before, as it is for ours
        self.slots = [list(range(at * self.each, (at + 1) * self.each)) for at in range(BATCHES)]
        self.seen: list[list[int]] = [[]] * BATCHES

    def begin(self, batch: int) -> Any:
        """Returns an open batch at random places."""
        chosen = self.seen[batch] = next(self.places)
        handle = self.agent.make_prepped_xfer(
            "READ", self.near, self.slots[batch], self.far, chosen, backends=["POSIX"]
        )
        if self.agent.transfer(handle) == "ERR":
            raise SystemExit("NIXL refused a batch")
        return handle

    def run(self, end_s: float) -> int:
        """Reads until then, and until all that was begun has ended; returns bytes."""
        handles = {batch: self.begin(batch) for batch in range(BATCHES)}
        ended = 0
        while handles:
            for batch, handle in list(handles.items()):
                state = self.agent.check_xfer_state(handle)
                if state == "ERR":
                    raise SystemExit("NIXL failed a batch")
                if state == "DONE":
                    ended += self.each * self.size
                    handle.release()
                    if time.perf_counter() < end_s:
                        handles[batch] = self.begin(batch)
                    else:
                        del handles[batch]
        return ended

    def check(self) -> None:
        """Looks at the start of each run that was read last."""
        for slots, chosen in zip(self.slots, self.seen, strict=True):
            for slot, place in zip(slots, chosen, strict=True):
                found = self.memory[slot * self.size : slot * self.size + 8]
                if found != mark(place * self.size):
                    raise SystemExit(f"NIXL read wrong bytes at {place * self.size}: {found!r}")


def main() -> None:
    """Serves rounds."""
    path, size, depth, backend = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    reader = Reader(path, size, depth, backend)
    serve("nixl", reader.run, reader.check)


if __name__ == "__main__":
    main()
