"""Long runs of the engine: `rss WAY` holds its memory flat over a million reads, `loss` runs seeded scenarios in shards.

    python -m tests.soak_engine rss memory|tcp|block [IOS]
    python -m tests.soak_engine loss FIRST COUNT [JOBS]

Each prints what it found, one line for each key, and ends with 1 where it does not hold.
"""

import gc
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from fabric.engine.client import Engine, Read, Settings, open_engine
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.transport.service import Service
from fabric.engine.transport.storage import RamStorage
from fabric.engine.transport.tcp import ServerConfig, TcpServer, serve
from fabric.policy import ShardPolicy
from tests.unit.engine.client.rig import SystemClock
from tests.unit.engine.nvmeof.rig import NQN

IOS = int(os.environ.get("FABRICCTL_SOAK_IOS", "1000000"))
BLOCK = 4096
BLOCKS = 256
BATCH = 32
SAMPLES = 100
LIMIT = 0.01  # of what it is after the warm-up


def rss_bytes() -> int:
    """Memory of this process that is in use."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _engine(way: str) -> Iterator[Engine]:
    policy = ShardPolicy(queues=2, depth=BATCH, transfer_bytes=BLOCK)
    size = BLOCK * BLOCKS
    if way == "memory":
        with open_engine(f"memory://?bytes={size}", policy=policy) as engine:
            yield engine
    elif way == "block":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "disk"
            path.write_bytes(os.urandom(size))
            with open_engine(path.as_uri(), policy=policy, settings=Settings(direct=False)) as engine:
                yield engine
    else:
        with _target(size) as port, open_engine(f"nvme+tcp://127.0.0.1:{port}/{NQN}?nsid=1", policy=policy) as engine:
            yield engine


@contextmanager
def _target(size: int) -> Iterator[int]:
    """A target in a process of its own, so that its memory is not counted."""
    command = [sys.executable, "-m", "tests.soak_engine", "serve", str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.kill()


def _serve(size: int) -> None:
    target = Target(subsystems=[Subsystem(NQN, {1: IdentifyNamespace(size // 512, 9)})], transport="tcp")
    server = TcpServer(Service(target, RamStorage({(NQN, 1): size})), ServerConfig())
    print(server.port, flush=True)
    stop = threading.Event()

    def watch() -> None:
        sys.stdin.read()  # ends with the process that reads
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    serve(server, SystemClock(), stop.is_set)


def rss(way: str, ios: int) -> bool:
    """Reads so often, and samples the memory; returns whether it stays."""
    with _engine(way) as engine:
        buffer = engine.allocate(BLOCK * BATCH)
        views = [buffer.view(at * BLOCK, BLOCK) for at in range(BATCH)]
        unit = BLOCK // engine.namespace.namespace.block_bytes
        done = errors = 0

        def read(count: int) -> None:
            nonlocal done, errors
            while count > 0:
                first = done % (BLOCKS - BATCH)
                futures = engine.submit([Read((first + at) * unit, (view,)) for at, view in enumerate(views)])
                engine.wait(futures)
                errors += sum(1 for one in futures if one.error is not None)
                done, count = done + BATCH, count - BATCH

        warm_up = max(BATCH, ios // 10)
        read(warm_up)
        gc.collect()
        samples = [rss_bytes()]
        for _ in range(SAMPLES):
            read(max(1, (ios - warm_up) // SAMPLES))
            samples.append(rss_bytes())
    deviation = max(abs(one - samples[0]) for one in samples) / samples[0]
    trend = _slope(samples) * SAMPLES / samples[0]
    holds = deviation <= LIMIT and not errors
    print(f"way: {way}")
    print(f"reads: {done}, {errors} failed, of {BLOCK} bytes, after a warm-up of {warm_up}")
    print(f"rss: {samples[0]} bytes after the warm-up, {samples[-1]} at the end, {len(samples)} samples")
    print(f"deviation: {deviation:.2%} at most, limit {LIMIT:.0%}; linear trend {trend:+.2%} over the run")
    print(f"result: {way} {'flat' if holds else 'NOT FLAT'}, {deviation:.2%} over {done} reads")
    return holds


def _slope(samples: list[int]) -> float:
    """Bytes a sample, by least squares."""
    middle, average = (len(samples) - 1) / 2, mean(samples)
    above = sum((at - middle) * (one - average) for at, one in enumerate(samples))
    return above / sum((at - middle) ** 2 for at in range(len(samples)))


def loss(first: int, count: int, jobs: int) -> bool:
    """Runs scenarios in so many processes; returns whether all passed."""
    shares = [(first + count * at // jobs, first + count * (at + 1) // jobs) for at in range(jobs)]
    module = "tests.unit.engine.faults.scenario"
    children = [
        subprocess.Popen([sys.executable, "-m", module, str(low), str(high - low)], stdout=subprocess.PIPE, text=True)
        for low, high in shares
    ]
    outputs = [child.communicate()[0] for child in children]
    holds = all(child.returncode == 0 for child in children)
    for output in outputs:
        print(output.strip())
    print(f"result: {count} scenarios from seed {first}, {'all passed' if holds else 'FAILED'}")
    return holds


def _main(arguments: list[str]) -> int:
    match arguments:
        case ["rss", way, *rest]:
            return 0 if rss(way, int(rest[0]) if rest else IOS) else 1
        case ["loss", first, count, *rest]:
            return 0 if loss(int(first), int(count), int(rest[0]) if rest else 2) else 1
        case ["serve", size]:
            _serve(int(size))
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
