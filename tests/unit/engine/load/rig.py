"""Files with a payload, jobs on them, and what a runner needs from outside."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabric.engine.load import Grounds, Job, JobResult, Outside, Progress, Region, Stream, prepare, run_job
from fabric.policy import ShardPolicy

RUN = 0xFEED
MIB = 1 << 20
POLICY = ShardPolicy(queues=2, depth=8, deadline_ns=5_000_000_000)


class Told:
    """What a runner said."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self.said: list[str] = []

    def outside(self, is_stopped: Callable[[], bool] = lambda: False) -> Outside:
        return Outside(
            clock=time.monotonic_ns,
            unix_s=time.time,
            cpu_ns=time.process_time_ns,
            is_stopped=is_stopped,
            progress=self.progress.append,
            says=self.said.append,
        )


class Disk:
    """A file that is prepared, with what is known of it."""

    def __init__(self, path: Path, length: int = MIB) -> None:
        self.path = path
        path.write_bytes(bytes(length))
        self.grounds, self.told = Grounds(), Told()
        self.stream = Stream("s1", f"file://{path}", POLICY)
        self.block = 4096 if self.blocks_of_a_page() else 512
        self.region = Region(0, length // self.block)

    def blocks_of_a_page(self) -> bool:
        import fabric.engine

        with fabric.engine.open(self.stream.url) as engine:
            return engine.namespace.namespace.block_bytes == 4096

    def prepare(self) -> int:
        return prepare(
            self.stream, self.region, run_id=RUN, has_consent=True, grounds=self.grounds, outside=self.told.outside()
        )

    def damage(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def run(self, **changes: Any) -> JobResult:
        return run_job(self.job(**changes), grounds=self.grounds, outside=self.told.outside())

    def job(self, **changes: Any) -> Job:
        return job((self.stream,), self.region, **changes)


def job(streams: tuple[Stream, ...], region: Region, **changes: Any) -> Job:
    plain: dict[str, Any] = {
        "name": "a job",
        "run_id": RUN,
        "seed": 1,
        "streams": streams,
        "size_bytes": 16384,
        "readers": 4,
        "write_share": 0.0,
        "on_ns": 0,
        "off_ns": 0,
        "start_unix_s": None,
        "seconds": 0.1,
        "region": region,
        "check": True,
    }
    return Job(**{**plain, **changes})
