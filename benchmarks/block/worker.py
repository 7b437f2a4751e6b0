"""A contender in a process of its own, told by lines on standard input when to read; answers with lines of JSON.

Used from another interpreter too (NIXL may have its own), so this knows the standard library and `row` alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, cast

from benchmarks.block.row import MIB, Result

__all__ = ("ROOT", "Worker", "serve")

_ROUNDS, _WARM_MS = 3, 50
_SIGN, _LOG = "@ ", "log"  # NIXL writes its log between our lines
ROOT = Path(__file__).resolve().parent.parent.parent


class Worker:
    """The near end. It starts the process anew for every third round: where its memory lies changes what a disk gives.

    Args:
        python: the interpreter.
        module: what it runs.
        arguments: for that.
    """

    def __init__(self, python: str, module: str, arguments: Sequence[str]) -> None:
        self._command = [python, "-m", module, *arguments]
        self._process: subprocess.Popen[str] | None = None
        self._rounds = 0

    def read(self, run_ms: int) -> Result:
        """Returns one round."""
        if self._rounds % _ROUNDS == 0:
            self.close()
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
            self._line()
            self._read(_WARM_MS)
        self._rounds += 1
        return self._read(run_ms)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._end.close()
            self._process.wait(timeout=30)
            self._process = None

    @property
    def _end(self) -> TextIO:
        return cast("TextIO", cast("subprocess.Popen[str]", self._process).stdin)

    def _read(self, run_ms: int) -> Result:
        self._end.write(f"{run_ms}\n")
        answer = json.loads(self._line())
        return Result(answer["bytes"] / MIB / answer["s"], answer["cpu_s"] / (answer["bytes"] / MIB / 1024))

    def _line(self) -> str:
        process = cast("subprocess.Popen[str]", self._process)
        line = _LOG
        while line and not line.startswith(_SIGN):
            line = cast("TextIO", process.stdout).readline()
        if not line:
            raise SystemExit(f"{' '.join(self._command)}: ended with {process.wait()}")
        return line[len(_SIGN) :].strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(hello: str, run: Callable[[float], int], check: Callable[[], None]) -> None:
    """The far end: says hello, then reads for as long as each line says, then checks what was read.

    Args:
        hello: who this is.
        run: reads until a time of `time.perf_counter`; returns bytes.
        check: raises where a wrong byte was read; not timed.
    """
    print(_SIGN + hello, flush=True)
    for line in sys.stdin:
        start_s, cpu_s = time.perf_counter(), time.process_time()
        moved = run(start_s + int(line) / 1000)
        took = {"s": time.perf_counter() - start_s, "cpu_s": time.process_time() - cpu_s, "bytes": moved}
        check()
        print(_SIGN + json.dumps(took), flush=True)
