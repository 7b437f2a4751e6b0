"""`fabricctl nvme bench`: how fast a namespace is, for people at a prompt. Options in, tables and an exit code out."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fabric.cli import options as o
from fabric.cli.amounts import byte_count
from fabric.cli.console import Printer, warnings_shown
from fabric.cli.failures import reported
from fabric.cli.interrupts import until_stopped
from fabric.cli.nvmereplay import Trace

if TYPE_CHECKING:
    from fabric.engine.client import BenchRow
    from fabric.policy import ShardPolicy

__all__ = ("bench",)

_SECOND: Final = 1_000_000_000
_MIB: Final = 1 << 20
_US: Final = 1000
Sizes = Annotated[str, typer.Option("--size", metavar="BYTES,…", help="Of a request; each is measured by itself.")]
Span = Annotated[
    int, typer.Option("--span", parser=byte_count, metavar="BYTES", help="How far the places reach from --lba on.")
]


@reported
def bench(
    url: Annotated[str, typer.Argument(metavar="URL", help="As for `nvme read`.", show_default=False)],
    *,
    size: Sizes = "64k,1M",
    readers: Annotated[int, typer.Option("--readers", min=1, max=65535, help="Requests that are open at a time.")] = 16,
    queues: Annotated[
        int | None, typer.Option("--queues", min=1, max=65535, help="I/O queues; without: the policy's, 4.")
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, help="For each size.")] = 5,
    write: Annotated[bool, typer.Option("--write", help="Writes in place of reads; needs --force.")] = False,
    force: Annotated[bool, typer.Option("--force", help="What stands in the places may go.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check every byte; costs time that shows.")] = False,
    policy: Annotated[Path | None, typer.Option("--policy", help="Shard profile, as `tune` writes it.")] = None,
    lba: Annotated[int, typer.Option("--lba", min=0, help="The first block of the places.")] = 0,
    span: Span = 1 << 30,
    seed: Annotated[int, typer.Option("--seed", help="Of the places.")] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds to connect, for each request.")] = 10,
    trace: Trace = None,
    as_json: o.Json = False,
) -> None:
    """Measure reads (or writes) at random places. Ctrl-C shows what was measured until then.

    \b
    fabricctl nvme bench URL --size 64k,1M --readers 16 --queues 4 --seconds 5
    fabricctl nvme bench file:///var/tmp/scratch --write --force --verify
    """
    from fabric.engine.client import BenchSpec, Settings, open_engine  # lazy: --help must not pay for the engine
    from fabric.engine.client import bench as measure

    if write and not force:
        raise typer.BadParameter("--write replaces blocks for good; say --force if that is meant")
    lengths = [byte_count(one) for one in size.split(",")]
    chosen = replace(_policy(policy), deadline_ns=round(timeout * _SECOND))
    if queues is not None:
        chosen = replace(chosen, queues=queues)
    printer = Printer(as_json=as_json)
    rows: list[BenchRow] = []
    settings = Settings(open_ns=round(timeout * _SECOND), trace=trace)
    with ExitStack() as stack:
        is_stopped = stack.enter_context(until_stopped())
        with warnings_shown():
            engine = stack.enter_context(open_engine(url, policy=chosen, settings=settings))
        for length in lengths:
            if is_stopped():
                break
            spec = BenchSpec(length, readers, round(seconds * _SECOND), write, verify, lba, span, seed)
            row = measure(
                engine,
                spec,
                clock=time.monotonic_ns,
                cpu_clock=time.process_time_ns,
                is_stopped=is_stopped,
                progress=_progress(printer, length, seconds),
            )
            rows.append(row)
        granted = engine.policy
    _show(printer, url, rows, granted)
    _finish(rows, is_stopped=len(rows) < len(lengths) or not all(row.is_complete for row in rows))


def _policy(path: Path | None) -> "ShardPolicy":
    from fabric.policy import ShardPolicy, profile_policy

    return ShardPolicy() if path is None else profile_policy(path)


def _progress(printer: Printer, length: int, seconds: float) -> Callable[[int, int], None]:
    def show(elapsed_ns: int, moved: int) -> None:
        if not printer.quiet:
            rate = moved * _SECOND / elapsed_ns / _MIB
            sys.stderr.write(f"  {_size(length)}: {elapsed_ns / _SECOND:.0f} of {seconds:g} s, {rate:.1f} MiB/s\n")
            sys.stderr.flush()

    return show


def _show(printer: Printer, url: str, rows: Sequence["BenchRow"], policy: "ShardPolicy") -> None:
    is_model = url.startswith("memory:")
    printer.document(
        {"model": is_model, "queues": policy.queues, "depth": policy.depth, "rows": [_numbers(one) for one in rows]}
    )
    if is_model:
        printer.line("target in this process: a model's result, and its CPU time counts")
    head = ("op", "size", "MiB/s", "IOPS", "p50 us", "p99 us", "p99.9 us", "CPU s/GiB", "failed", "wrong")
    table = [head, *(_cells(one) for one in rows)]
    for line in _aligned(table):
        printer.line(line)
    for row in rows:
        printer.line("")
        printer.line(f"{row.op} {_size(row.length)}, by queue (percentiles of transfers, within 28 %)")
        lines = [("queue", "transfers", "MiB/s", "p50 us", "p99 us")]
        for one in row.queues:
            rate = one.bytes * _SECOND / row.elapsed_ns / _MIB if row.elapsed_ns else 0
            lines.append((str(one.queue), str(one.transfers), f"{rate:.1f}", _us(one.p50_ns), _us(one.p99_ns)))
        for line in _aligned(lines):
            printer.line(line)


def _numbers(row: "BenchRow") -> dict[str, object]:
    return {
        "op": row.op,
        "bytes": row.length,
        "readers": row.readers,
        "requests": row.requests,
        "seconds": row.elapsed_ns / _SECOND,
        "mib_per_s": row.bytes_per_s / _MIB,
        "iops": row.requests_per_s,
        "p50_ns": row.p50_ns,
        "p99_ns": row.p99_ns,
        "p999_ns": row.p999_ns,
        "highest_ns": row.highest_ns,
        "cpu_s_per_gib": row.cpu_s_per_gib,
        "failures": dict(row.failures),
        "wrong": row.wrong,
        "complete": row.is_complete,
        "by_queue": row.queues,
    }


def _cells(row: "BenchRow") -> tuple[str, ...]:
    cpu = row.cpu_s_per_gib
    return (
        row.op,
        _size(row.length),
        f"{row.bytes_per_s / _MIB:.1f}",
        f"{row.requests_per_s:.0f}",
        *(_us(one) for one in (row.p50_ns, row.p99_ns, row.p999_ns)),
        "-" if cpu is None else f"{cpu:.3f}",
        str(sum(count for _name, count in row.failures)),
        "-" if row.wrong is None else str(row.wrong),
    )


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]


def _us(duration_ns: int | None) -> str:
    return "-" if duration_ns is None else f"{duration_ns / _US:.1f}"


def _size(length: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if length >= unit and not length % unit:
            return f"{length // unit} {name}"
    return f"{length} B"


def _finish(rows: Sequence["BenchRow"], *, is_stopped: bool) -> None:
    """Ends with the code of the worst that was seen: wrong bytes and failures are findings."""
    from fabric.cli.exits import Exit  # lazy: it needs `workflow`, and --help does not

    if any(row.wrong or row.failures for row in rows):
        raise typer.Exit(Exit.FINDINGS)
    if is_stopped:
        raise typer.Exit(Exit.INTERRUPTED)
