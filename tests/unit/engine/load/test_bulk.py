"""Lossy traffic over loopback: it flows, listens only where and when it may, and takes nobody else."""

import contextlib
import socket
import threading
import time

import pytest

from fabric.engine.load import Grounds, JobResult, Region, Stream, run_job
from fabric.engine.load.bulk import BulkAddress, bulk_address
from fabric.errors import LocalProtocolError
from tests.unit.engine.load.rig import Told, job


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def run(told: Told, *streams: Stream, **changes: object) -> JobResult:
    wanted = job(streams, Region(0, 1), **{"readers": 2, "seconds": 0.3, **changes})
    return run_job(wanted, grounds=Grounds(), outside=told.outside())


@pytest.mark.parametrize("peer", ["127.0.0.1", ""])
def test_what_one_end_sends_the_other_gets(peer: str) -> None:
    port, told = free_port(), Told()
    ask = f"?from={peer}" if peer else ""
    listen = Stream("in", f"tcp-listen://127.0.0.1:{port}{ask}", tos=32)
    send = Stream("out", f"tcp-send://127.0.0.1:{port}" + ("?bind=127.0.0.1" if peer else ""))
    result = run(told, send, listen)
    out, into = result.streams
    assert out.bytes_written > 1 << 20
    assert 0 < into.bytes_read <= out.bytes_written
    assert (out.errors, into.errors) == ((), ())
    assert told.said[0].startswith(f"listens on 127.0.0.1 port {port}, for ")
    assert told.said[1] == f"no longer listens on 127.0.0.1 port {port}"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_another_peer_is_turned_away() -> None:
    port, told = free_port(), Told()
    listen = Stream("in", f"tcp-listen://127.0.0.1:{port}?from=127.0.0.9")
    send = Stream("out", f"tcp-send://127.0.0.1:{port}?bind=127.0.0.8")
    into = run(told, listen, send).streams[0]
    assert into.bytes_read == 0


@pytest.mark.slow
def test_the_sender_waits_for_the_other_end() -> None:
    port, told = free_port(), Told()
    results: list[JobResult] = []
    send = Stream("out", f"tcp-send://127.0.0.1:{port}")
    thread = threading.Thread(target=lambda: results.append(run(told, send, seconds=1.0)))
    thread.start()
    time.sleep(0.25)
    into = run(Told(), Stream("in", f"tcp-listen://127.0.0.1:{port}"), seconds=0.4).streams[0]
    thread.join(20)
    assert into.bytes_read > 0
    assert results[0].streams[0].bytes_written > 0


def test_nobody_there_is_an_error() -> None:
    result = run(Told(), Stream("out", f"tcp-send://127.0.0.1:{free_port()}")).streams[0]
    assert result.errors == (("TransportError", 1),)
    assert "nobody answered" in result.first_error


def test_a_cap_holds_for_it_too() -> None:
    port, told = free_port(), Told()
    both = (Stream("in", f"tcp-listen://127.0.0.1:{port}"), Stream("out", f"tcp-send://127.0.0.1:{port}"))
    out = run(told, *both, max_bytes_per_s=4 << 20, seconds=0.5).streams[1]
    assert 0 < out.bytes_written <= 4 << 20


def test_an_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(Told(), Stream("in", f"tcp-listen://127.0.0.1:{taken.getsockname()[1]}"), seconds=0.0).streams[0]
    assert "it cannot listen" in result.first_error


def test_over_ipv6_as_well() -> None:
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6) as one:
        port = one.getsockname()[1]
        one.close()
        both = (Stream("in", f"tcp-listen://[::1]:{port}?from=::1"), Stream("out", f"tcp-send://[::1]:{port}"))
        assert run(Told(), *both).streams[0].bytes_read > 0


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("tcp-send://192.0.2.1:5", BulkAddress(False, "192.0.2.1", 5, "")),
        ("tcp-listen://[fd00::1]:5?from=fd00::2", BulkAddress(True, "fd00::1", 5, "fd00::2")),
        ("nvme+tcp://192.0.2.1:5/x", None),
    ],
)
def test_what_a_url_says(url: str, found: BulkAddress | None) -> None:
    assert bulk_address(url) == found


@pytest.mark.parametrize(
    "url",
    [
        "tcp-listen://0.0.0.0:5",
        "tcp-listen://[::]:5",
        "tcp-listen://192.0.2.1",
        "tcp-listen://host:5",
        "tcp-send://192.0.2.1:5?from=192.0.2.2",
        "tcp-send://192.0.2.1:5/path",
        "tcp-send://192.0.2.1:99999",
    ],
)
def test_a_url_that_says_too_little_or_too_much_is_refused(url: str) -> None:
    with pytest.raises(LocalProtocolError, match="cannot be used"):
        bulk_address(url)
