"""URLs and host names, without opening anything."""

import uuid
from pathlib import Path

import pytest

from fabric.engine.client.address import (
    AddressError,
    BlockAddress,
    MemoryAddress,
    RdmaAddress,
    TcpAddress,
    parse_address,
)
from fabric.engine.client.opening import look_up
from fabric.engine.client.settings import host_identity


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (
            "nvme+tcp://10.0.0.1:4421/nqn.2026-11.io.example:kv?nsid=3",
            TcpAddress("10.0.0.1", 4421, "nqn.2026-11.io.example:kv", 3),
        ),
        ("nvme+tcp://[::1]/nqn.x?hostnqn=nqn.h", TcpAddress("::1", 4420, "nqn.x", 1, "nqn.h")),
        ("nvme+tcp://target1:8009", TcpAddress("target1", 8009)),
        ("nvme+tcp://t/nqn.x?digest=data", TcpAddress("t", nqn="nqn.x", data_digest=True)),
        (
            "nvme+tcp://t/nqn.x?nsid=2&digest=header,data",
            TcpAddress("t", nqn="nqn.x", nsid=2, header_digest=True, data_digest=True),
        ),
        ("nvme+rdma://10.0.0.1/nqn.x?nsid=2", RdmaAddress("10.0.0.1", 4420, "nqn.x", 2)),
        ("nvme+rdma://[fd00::1]:4421", RdmaAddress("fd00::1", 4421)),
        ("file:///var/kv%20store", BlockAddress(Path("/var/kv store"))),
        ("block:///dev/nvme0n1", BlockAddress(Path("/dev/nvme0n1"))),
        ("memory://", MemoryAddress()),
        ("memory://?bytes=8192", MemoryAddress(8192)),
    ],
)
def test_a_url_names_one_place(url: str, address: object) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://10.0.0.1/",
        "nvme+fc://10.0.0.1/nqn.x",
        "nvme+tcp:///nqn.x",
        "nvme+tcp://10.0.0.1:port/nqn.x",
        "nvme+tcp://10.0.0.1:99999/nqn.x",
        "nvme+tcp://10.0.0.1/nqn.x?nsid=0",
        "nvme+tcp://10.0.0.1/nqn.x?nsid=one",
        "nvme+tcp://10.0.0.1/nqn.x?nsid=1&nsid=2",
        "nvme+tcp://10.0.0.1/nqn.x?queues=4",
        "nvme+tcp://me@10.0.0.1/nqn.x",
        "nvme+tcp://10.0.0.1/nqn.x?digest=",
        "nvme+tcp://10.0.0.1/nqn.x?digest=all",
        "nvme+tcp://10.0.0.1/nqn.x?digest=data,data",
        "file://relative/path",
        "file:relative",
        "memory://host",
        "memory://?bytes=100",
        "memory://?bytes",
    ],
)
def test_another_url_is_refused_with_the_forms_that_are_known(url: str) -> None:
    with pytest.raises(AddressError, match=r"URL") as caught:
        parse_address(url)
    assert "nvme+tcp://HOST:PORT/NQN" in caught.value.expected


def test_names_are_looked_up() -> None:
    assert look_up("127.0.0.1", 1) == "127.0.0.1"
    with pytest.raises(AddressError, match="not known"):
        look_up("no-such-host.invalid", 1)


def test_a_host_name_has_always_the_same_id() -> None:
    one = uuid.UUID(int=7)
    assert host_identity(f"nqn.2014-08.org.nvmexpress:uuid:{one}").hostid == one.bytes
    assert host_identity("nqn.2026-11.io.example:h") == host_identity("nqn.2026-11.io.example:h")
    assert host_identity("nqn.2026-11.io.example:h").hostid != host_identity("nqn.2026-11.io.example:i").hostid
    assert host_identity() != host_identity()
