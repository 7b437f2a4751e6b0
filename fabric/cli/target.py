"""`fabricctl target …`: a soft NVMe/TCP target to try things on. Options in, text and an exit code out."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fabric.cli import options as o
from fabric.cli.amounts import byte_count, fault_of
from fabric.cli.console import Printer
from fabric.cli.failures import reported
from fabric.cli.interrupts import until_stopped

__all__ = ("target_app",)

target_app = typer.Typer(
    name="target", no_args_is_help=True, rich_markup_mode=None, help="Serve blocks over NVMe/TCP from this process."
)


class LatencyName(StrEnum):
    """The kinds of `fabric.engine.transport.shape.Latency`, which `--help` must not import."""

    FIXED = "fixed"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"


_US = 1000
_BYTES_PER_MBIT = 125_000
Size = Annotated[
    int | None,
    typer.Option("--size", parser=byte_count, metavar="BYTES", help="Of the namespace: 64MiB. Not of a file that is."),
]
Mbit = Annotated[int | None, typer.Option("--link-mbit", min=1, help="Cap of all that it sends, Mbit/s.")]


@target_app.callback()
def group() -> None:
    """Serve blocks over NVMe/TCP from this process."""


@target_app.command()
@reported
def serve(
    *,
    size: Size = None,
    file: Annotated[Path | None, typer.Option("--file", help="Keep the blocks there; without: in memory.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Writes fail.")] = False,
    nqn: Annotated[str, typer.Option("--nqn", help="Name of the subsystem.")] = "nqn.2026-11.io.fabricctl:soft",
    listen: Annotated[
        str, typer.Option("--listen", help="IP address. Beyond loopback, whoever reaches it reads and writes.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 0,
    tos: Annotated[int | None, typer.Option("--tos", min=0, max=255, help="Type of service of what it sends.")] = None,
    service_us: Annotated[float, typer.Option("--service-us", min=0, help="Per command; a queue does one.")] = 0,
    queue_mbit: Annotated[int | None, typer.Option("--queue-mbit", min=1, help="Cap of each queue, Mbit/s.")] = None,
    latency_us: Annotated[float, typer.Option("--latency-us", min=0, help="Per command, in parallel; median.")] = 0,
    latency_kind: Annotated[LatencyName, typer.Option("--latency-kind", help="How it spreads.")] = LatencyName.FIXED,
    latency_spread: Annotated[
        float, typer.Option("--latency-spread", min=0, help="Sigma of lognormal: 0.5 puts p99 at 3.2 medians.")
    ] = 0.5,
    link_mbit: Mbit = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="NAME=PROBABILITY of I/O commands: drop=0.01, break, delay.")
    ] = None,
    fault_delay_ms: Annotated[float, typer.Option("--fault-delay-ms", min=0, help="Of late kinds.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="All draws come from it.")] = 0,
    as_json: o.Json = False,
) -> None:
    """Serve a namespace until Ctrl-C. Prints its URL.

    \b
    fabricctl target serve --size 64MiB
    fabricctl target serve --file kv.img --size 1GiB --port 4420
    fabricctl target serve --size 64MiB --latency-us 80 --latency-kind exponential --fault drop=0.001
    fabricctl target serve --size 1GiB --service-us 200 --queue-mbit 800 --link-mbit 3200
    """
    from fabric.engine.client import TargetSpec, soft_target  # lazy: --help must not pay for the engine
    from fabric.engine.transport.shape import Latency, Shape
    from fabric.workflow import SystemClock

    shape = Shape(
        service_ns=round(service_us * _US),
        latency=Latency(latency_kind.value, round(latency_us * _US), latency_spread),
        queue_bytes_per_s=None if queue_mbit is None else queue_mbit * _BYTES_PER_MBIT,
        link_bytes_per_s=None if link_mbit is None else link_mbit * _BYTES_PER_MBIT,
        faults=tuple(fault_of(one, fault_delay_ms) for one in fault or ()),
        seed=seed,
    )
    spec = TargetSpec(size, file, nqn, listen, port, read_only, tos, shape)
    if not spec.is_loopback:
        sys.stderr.write(f"warning: whoever reaches {listen} can read and write these blocks; nothing asks for a key\n")
    printer = Printer(as_json=as_json)
    is_shaped = any((service_us, queue_mbit, latency_us, link_mbit, fault))
    with until_stopped() as is_stopped, soft_target(spec) as target:
        printer.document({"url": target.url, "bytes": target.length, "shaped": is_shaped})
        printer.line(target.url)
        if is_shaped:
            printer.line("shaped: what is measured here is a model's result")
        sys.stdout.flush()
        target.serve(SystemClock(), is_stopped)
    printer.line("stopped")
