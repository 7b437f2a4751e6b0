"""`fabricctl nvme …`: look at a namespace by its URL, read and write blocks. Options in, text and an exit code out."""
# ruff: noqa: D301 - click wants a real backspace character to keep the lines of an example apart

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from fabric.cli import options as o
from fabric.cli.amounts import byte_count
from fabric.cli.console import Printer, warnings_shown
from fabric.cli.failures import reported
from fabric.cli.nvmebench import bench
from fabric.cli.nvmereplay import Trace, replay
from fabric.errors import EnvironmentMissingError

if TYPE_CHECKING:
    from fabric.engine.client import Engine, Settings

__all__ = ("nvme_app",)

nvme_app = typer.Typer(
    name="nvme",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at NVMe/TCP targets, read and write their blocks, without the kernel's host.",
)

_SECOND = 1_000_000_000
Url = Annotated[
    str, typer.Argument(metavar="URL", help="nvme+tcp://HOST:PORT/NQN?nsid=1, or file:///PATH.", show_default=False)
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds to connect, and for each request.")]
Queues = Annotated[int, typer.Option("--queues", min=1, max=65535, help="I/O queues; fewer if the target says so.")]
Lba = Annotated[int, typer.Option("--lba", min=0, help="The first block.")]


@nvme_app.command()
@reported
def discover(
    url: Annotated[str, typer.Argument(metavar="URL", help="nvme+tcp://HOST:PORT", show_default=False)],
    *,
    timeout: Timeout = 10,
    as_json: o.Json = False,
) -> None:
    """List what a target offers to this host.

    \b
    fabricctl nvme discover nvme+tcp://127.0.0.1:4420
    """
    from fabric.engine import client  # lazy: --help must not pay for the engine
    from fabric.engine.nvmeof.wire.logs import TransportType

    printer = Printer(as_json=as_json)
    known = {int(one): one.name.lower() for one in TransportType}
    found = [
        {
            "transport": known.get(one.transport, str(one.transport)),
            "address": one.address,
            "service": one.service,
            "subnqn": one.subnqn,
        }
        for one in client.discover(url, settings=_settings(timeout))
    ]
    printer.document(found)
    for one in found:
        printer.line(f"{one['transport']} {one['address']} {one['service']} {one['subnqn']}")
    if not found:
        printer.line("the target offers nothing to this host")


@nvme_app.command("id")
@reported
def identify(url: Url, *, queues: Queues = 4, timeout: Timeout = 10, as_json: o.Json = False) -> None:
    """Show the controller, the namespace and what the policy became.

    \b
    fabricctl nvme id 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.fabricctl:soft?nsid=1'
    """
    from fabric.engine.client import describe
    from fabric.serial import to_json

    printer = Printer(as_json=as_json)
    with _opened(url, queues, timeout) as engine:
        found = describe(engine)
    printer.document(found)
    fields = to_json(found)
    for name, value in fields.items() if isinstance(fields, dict) else ():
        if value is not None:
            printer.line(f"{name:15} {value}")


@nvme_app.command()
@reported
def read(
    url: Url,
    *,
    lba: Lba = 0,
    length: Annotated[int, typer.Option("--bytes", parser=byte_count, metavar="BYTES", help="How many: 64KiB.")] = 4096,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; - is standard output.")] = None,
    queues: Queues = 4,
    timeout: Timeout = 10,
    trace: Trace = None,
    as_json: o.Json = False,
) -> None:
    """Read blocks into a file, or show their digest.

    \b
    fabricctl nvme read URL --bytes 1MiB -o blocks.bin
    fabricctl nvme read URL --lba 2048 --bytes 4096 -o - | xxd | head
    """
    from hashlib import sha256

    from fabric.engine.client import pull

    digest = sha256()
    raw = str(output) == "-"
    if raw and as_json:
        raise typer.BadParameter("--json and -o - both want standard output")
    printer = Printer(as_json=as_json)
    with ExitStack() as stack:
        engine = stack.enter_context(_opened(url, queues, timeout, trace))
        sink: BinaryIO | None = sys.stdout.buffer if raw else None
        if output is not None and not raw:
            sink = stack.enter_context(_file(output, "wb"))

        def take(part: memoryview) -> None:
            digest.update(part)
            if sink is not None:
                sink.write(part)

        pull(engine, lba, length, take)
    if raw:
        sys.stdout.buffer.flush()
        return
    printer.document({"lba": lba, "bytes": length, "sha256": digest.hexdigest(), "file": str(output or "")})
    printer.line(f"read {length} bytes from block {lba}: sha256 {digest.hexdigest()}")


@nvme_app.command()
@reported
def write(
    url: Url,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="Whole blocks.", show_default=False)],
    *,
    lba: Lba = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", "--force", help="What stands in these blocks may go.")
    ] = False,
    queues: Queues = 4,
    timeout: Timeout = 10,
    trace: Trace = None,
    as_json: o.Json = False,
) -> None:
    """Write a file to blocks. There is no way back: say --overwrite.

    \b
    fabricctl nvme write URL blocks.bin --lba 2048 --overwrite
    """
    from fabric.engine.client import push

    if not overwrite:
        raise typer.BadParameter("this replaces blocks for good; say --overwrite if that is meant")
    printer = Printer(as_json=as_json)
    with _file(source, "rb") as file, _opened(url, queues, timeout, trace) as engine:
        length = source.stat().st_size
        push(engine, lba, length, file.readinto)  # type: ignore[attr-defined]  # BinaryIO lacks it, each binary file has it
    printer.document({"lba": lba, "bytes": length, "file": str(source)})
    printer.line(f"wrote {length} bytes to block {lba} and on")


nvme_app.command()(bench)
nvme_app.command()(replay)


def _opened(url: str, queues: int, timeout_s: float, trace: Path | None = None) -> "Engine":
    from fabric.engine.client import open_engine
    from fabric.policy import ShardPolicy

    policy = ShardPolicy(queues=queues, deadline_ns=round(timeout_s * _SECOND))
    with warnings_shown():
        return open_engine(url, policy=policy, settings=_settings(timeout_s, trace))


def _settings(timeout_s: float, trace: Path | None = None) -> "Settings":
    from fabric.engine.client import Settings

    return Settings(open_ns=round(timeout_s * _SECOND), trace=trace)


def _file(path: Path, mode: str) -> BinaryIO:
    try:
        return path.open(mode)  # type: ignore[return-value]  # of binary modes only
    except OSError as error:
        remedy = "Check path and permissions."
        found = error.strerror or ""
        raise EnvironmentMissingError(
            "the file cannot be opened", where=str(path), found=found, remedy=remedy
        ) from error
