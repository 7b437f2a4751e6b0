"""A server against 2,000 damaged sessions: a real host's bytes with some changed, cut, doubled or in another order."""

import contextlib
import random
import socket

import pytest

from fabric.engine.nvmeof.target import NVMET, SPDK, TargetProfile
from fabric.engine.nvmeof.tcp import IcRequest, PduWriter
from fabric.engine.nvmeof.tcp.pdu import CapsuleCommand, DataPdu
from fabric.engine.nvmeof.wire import admin, fabrics, io
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.registers import Cc, Register
from fabric.engine.nvmeof.wire.sgl import NULL_TRANSPORT, Sgl, SglKind
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.shape import Shape
from fabric.engine.transport.tcp import TcpServer
from tests.unit.engine.nvmeof.rig import HOST_ID, HOST_NQN, NQN
from tests.unit.engine.transport.rig import service

SESSIONS = 1000  # for each of the two profiles


def capsule(cid: int, command: Command, data: bytes = b"", length: int = 0) -> bytes:
    sgl = Sgl(SglKind.IN_CAPSULE, 0, len(data)) if data else NULL_TRANSPORT
    if length:
        sgl = Sgl(SglKind.TRANSPORT, 0, length)
    return PduWriter().pack(CapsuleCommand(command.pack(cid, sgl)), data)


def session() -> list[bytes]:
    """An admin queue from greeting to events, then I/O commands where they do not belong."""
    connect = fabrics.ConnectData(HOST_ID, NQN, HOST_NQN).pack()
    return [
        PduWriter().pack(IcRequest()),
        capsule(0, fabrics.Connect(0, 31, 15_000).command(), connect),
        capsule(1, fabrics.property_get(Register.CAP)),
        capsule(2, fabrics.property_set(Register.CC, Cc.ENABLED)),
        capsule(3, admin.identify(admin.Cns.CONTROLLER), length=4096),
        capsule(4, admin.set_number_of_queues(4)),
        capsule(5, admin.identify(admin.Cns.ACTIVE_NAMESPACES), length=4096),
        capsule(6, Command(admin.AdminOpcode.ASYNC_EVENT_REQUEST)),
        capsule(7, admin.keep_alive()),
        capsule(8, io.read(1, 0, 8), length=4096),
        capsule(9, io.write(1, 0, 8), length=4096),
        PduWriter().pack(DataPdu(False, 9, 0, 0, 4096), bytes(4096)),
    ]


def queue_session(cntlid: int) -> list[bytes]:
    """An I/O queue of that controller."""
    connect = fabrics.ConnectData(HOST_ID, NQN, HOST_NQN, cntlid).pack()
    return [
        PduWriter().pack(IcRequest()),
        capsule(0, fabrics.Connect(1, 31).command(), connect),
        capsule(1, io.write(1, 0, 1), b"k" * 512),
        capsule(2, io.write(1, 8, 8), length=4096),
        PduWriter().pack(DataPdu(False, 2, 0, 0, 4096), b"w" * 4096),
        capsule(3, io.read(1, 0, 16), length=8192),
        capsule(4, io.deallocate(1, 1), io.pack_ranges((io.LbaRange(3, 2),))),
        capsule(5, io.write_zeroes(1, 0, 4)),
        capsule(6, io.flush(1)),
    ]


def damage(parts: list[bytes], source: random.Random) -> bytes:
    parts = list(parts)
    if source.random() < 0.3:
        at = source.randrange(len(parts))
        parts.insert(at, parts[source.randrange(len(parts))])
    if source.random() < 0.2:
        source.shuffle(parts)
    stream = bytearray(b"".join(parts))
    for _ in range(source.choice((0, 1, 1, 2, 5))):
        # headers are where a change means something: most fall into the first bytes of a PDU
        start = sum(len(part) for part in parts[: source.randrange(len(parts))])
        stream[(start + source.randrange(72)) % len(stream)] = source.randrange(256)
    return bytes(stream[: source.randrange(1, len(stream) + 1)] if source.random() < 0.3 else stream)


@pytest.mark.parametrize("profile", [NVMET, SPDK], ids=lambda one: one.name)
def test_a_damaged_session_harms_nobody_else_and_leaves_nothing(profile: TargetProfile) -> None:
    source = random.Random(2026)  # noqa: S311, the same sessions each time
    faults = tuple(Fault(kind, queues="all", probability=0.02) for kind in FaultKind if kind is not FaultKind.STATUS)
    for number in range(SESSIONS):
        server = TcpServer(service("tcp", Shape(faults=faults, seed=number), profile=profile))
        pairs = [quiet_pair() for _ in range(2)]
        try:
            for (near, far), parts in zip(pairs, (session(), queue_session(1)), strict=True):
                server.adopt(far, 0)
                stream, at = damage(parts, source), 0
                with contextlib.suppress(OSError):  # the server may have hung up
                    for part in parts:  # in steps: data may be sent only when it was asked for
                        near.sendall(stream[at : at + len(part)])
                        at += len(part)
                        server.poll(0)
                    near.sendall(stream[at:])
                turns(server, pairs)
            for near, _far in pairs:
                with contextlib.suppress(OSError):
                    near.shutdown(socket.SHUT_WR)
            turns(server, pairs)
            assert server.connections == 0, f"session {number}"
            assert server.service.target.open_tasks == 0, f"session {number}"
            assert server.service.target.controllers == (), f"session {number}"
        finally:
            for near, _far in pairs:
                near.close()
            server.close()


def quiet_pair() -> tuple[socket.socket, socket.socket]:
    near, far = socket.socketpair()
    near.setblocking(False)
    return near, far


def turns(server: TcpServer, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """Lets the server work and takes what it says, until it has nothing more to do."""
    while server.poll(0):
        for near, _far in pairs:
            try:
                while near.recv(1 << 16):
                    pass
            except OSError:
                continue


def test_the_undamaged_session_reaches_every_command() -> None:
    server = TcpServer(service("tcp"))
    pairs = [quiet_pair() for _ in range(2)]
    for (near, far), parts in zip(pairs, (session()[:8], queue_session(1)), strict=True):
        server.adopt(far, 0)
        for part in parts:
            near.sendall(part)
            turns(server, pairs)

    (controller,) = server.service.target.controllers
    assert sorted(controller.peers) == [0, 1]
    assert controller.peers[1].sqhd == 7  # every command was answered
    assert server.service.storage.read((NQN, 1), 4096, 4096) == b"w" * 4096
    for near, _far in pairs:
        near.close()
    server.close()
