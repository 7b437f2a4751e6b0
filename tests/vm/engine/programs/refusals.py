"""Asks Linux nvmet for what it must refuse, entry by entry, and prints what it said: the cases of hosts.md 7.4.

python3 -m tests.vm.engine.programs.refusals URL_OF_KV URL_OF_CLOSED URL_OF_TWO
"""

import sys
import time
from dataclasses import replace
from itertools import count
from typing import Final, TypeVar

from fabric.engine.client.address import FabricsAddress, RdmaAddress
from fabric.engine.client.opening import host_config
from fabric.engine.client.settings import Settings, host_identity
from fabric.engine.nvmeof.host import Connect, ConnectionId, Controller, ControllerState, HostConfig, PostSend, Region
from fabric.engine.nvmeof.wire import fabrics, io
from fabric.engine.nvmeof.wire.cm import CmReject, CmRequest
from fabric.engine.nvmeof.wire.command import Command
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.sgl import NULL_KEYED, NULL_TRANSPORT, Sgl, SglKind
from fabric.engine.transport.base import Arena, Broken, Connected, Event, Received, Rejected, Transport, allocate
from fabric.engine.transport.driver import HostDriver, wait
from fabric.errors import LocalProtocolError
from fabric.policy import ShardPolicy
from tests.vm.engine.programs.common import SECOND, emit, transport_to
from tests.vm.engine.programs.common import fabrics as address_of

_LIMIT_NS: Final = 20 * SECOND
_PAGE: Final = 4096
_MORE: Final = 0x2000  # there is more in the error log
_NOBODY: Final = "nqn.2026-11.net.example:nobody"
_IDENTITY: Final = host_identity("nqn.2014-08.org.nvmexpress:uuid:6f1c7d5e-2f0b-4a53-9d3e-0d2f6a1b7c88")

E = TypeVar("E", bound=Event)


class Raw:
    """A transport without a controller: connects queues and sends entries, right or wrong."""

    def __init__(self, address: FabricsAddress) -> None:
        self.keyed = isinstance(address, RdmaAddress)
        self.transport: Transport[PostSend] = transport_to(address)
        self.arena: Arena = self.transport.register(allocate(4 * _PAGE))
        self._ids = count()
        self._cids = count(1)
        self._memory: dict[ConnectionId, Connected] = {}

    def until(self, kind: type[E]) -> E:
        """Returns the next event of that kind."""
        end_ns = time.monotonic_ns() + _LIMIT_NS
        while (now_ns := time.monotonic_ns()) < end_ns:
            for event in self.transport.poll(now_ns):
                if isinstance(event, kind):
                    return event
                assert not isinstance(event, Broken), event
            wait([self.transport.fileno()], SECOND // 10)
        raise AssertionError(f"no {kind.__name__} came")

    def connect(self, qid: int, depth: int, *, cntlid: int = 0) -> ConnectionId:
        """Returns a connection that is on its way."""
        connection = ConnectionId(next(self._ids))
        request = CmRequest(qid, depth, depth - 1, cntlid).pack()
        self.transport.connect(Connect(connection, qid, depth, request, 16), time.monotonic_ns())
        return connection

    def connected(self, qid: int, *, cntlid: int = 0) -> Connected:
        """Returns a connection that takes posts."""
        self.connect(qid, 32, cntlid=cntlid)
        return self.until(Connected)

    def greet(self, on: Connected, qid: int, data: fabrics.ConnectData) -> Cqe:
        """Returns the answer to a Connect command."""
        command = fabrics.Connect(qid, 31, 0 if qid else 15_000).command()
        packed = data.pack()
        if not self.keyed:
            capsule = command.pack(self._cid(), Sgl(SglKind.IN_CAPSULE, 0, len(packed))) + packed
            return self.send(PostSend(on.connection, qid, 0, capsule))
        sgl = Sgl(SglKind.KEYED, on.memory.address, len(packed), on.memory.key)
        return self.send(PostSend(on.connection, qid, 0, command.pack(self._cid(), sgl), packed))

    def ask(self, on: ConnectionId, command: Command, sgl: Sgl, region: Region | None = None) -> Cqe:
        """Returns the answer to an entry of I/O queue 1."""
        return self.send(PostSend(on, 1, 30, command.pack(self._cid(), sgl), b"", 0, region))

    def send(self, post: PostSend) -> Cqe:
        """Returns the answer to a post."""
        self.transport.post([post], time.monotonic_ns())
        cid = int.from_bytes(post.capsule[2:4], "little")
        while True:
            cqe = Cqe.parse(self.until(Received).response)
            if cqe.cid == cid:
                return cqe

    def _cid(self) -> int:
        return 0x7F00 + next(self._cids)


def told(cqe: Cqe) -> dict[str, object]:
    """Returns an answer as JSON."""
    field = fabrics.refused_field(cqe.result)
    return {"status": cqe.status & ~_MORE, "field": field.name if field else ""}


def connects(kv: FabricsAddress, closed: FabricsAddress) -> dict[str, object]:
    """Returns how Connect was refused for its names."""
    raw = Raw(kv)
    found: dict[str, object] = {}
    for name, nqn in (("wrong subsystem", _NOBODY), ("host not allowed", closed.nqn)):
        on = raw.connected(0)
        data = fabrics.ConnectData(_IDENTITY.hostid, nqn, _IDENTITY.hostnqn)
        found[name] = told(raw.greet(on, 0, data))
    if raw.keyed:
        raw.connect(0, 33)
        found["admin queue of 33"] = CmReject.parse(raw.until(Rejected).private_data).status
    raw.transport.close()
    return found


def bring_up(raw: Raw, config: HostConfig) -> Controller:
    """Returns a controller with its I/O queues, over the transport of `raw`."""
    controller = Controller(config)
    driver = HostDriver(controller, raw.transport)
    now_ns = time.monotonic_ns()
    end_ns = now_ns + _LIMIT_NS
    controller.start(now_ns)
    while controller.state is not ControllerState.LIVE:
        driver.step(now_ns)
        wait([raw.transport.fileno()], SECOND // 50)
        now_ns = time.monotonic_ns()
        assert now_ns < end_ns, controller.state
    return controller


def queues(two: FabricsAddress, config: HostConfig) -> dict[str, object]:
    """Returns how a live controller refused queues and entries."""
    raw, second = Raw(two), Raw(two)
    controller = bring_up(raw, config)
    cntlid = controller.queue(0).cntlid
    assert cntlid is not None
    data = fabrics.ConnectData(config.hostid, config.subnqn, config.hostnqn, cntlid)
    found: dict[str, object] = {}
    for name, qid in (("queue 3 of 2", 3), ("queue 1 twice", 1)):
        found[name] = told(second.greet(second.connected(qid, cntlid=cntlid), qid, data))
    on = controller.queue(1).connection
    assert on is not None
    region = raw.arena.region(0, 2 * _PAGE)
    kind = SglKind.KEYED if raw.keyed else SglKind.TRANSPORT
    wrong = Sgl(kind, region.address if raw.keyed else 0, region.length, region.key if raw.keyed else 0)
    blocks = _PAGE // controller.namespaces[1].block_bytes
    found["SGL of another length"] = told(raw.ask(on, io.read(1, 0, blocks), wrong, region))
    if raw.keyed:
        found["SGL of type 0"] = told(raw.ask(on, io.flush(1), Sgl(0)))
    found["flush"] = told(raw.ask(on, io.flush(1), NULL_KEYED if raw.keyed else NULL_TRANSPORT))
    for one in (raw, second):
        one.transport.close()
    return found


def main() -> None:
    """Runs it."""
    kv, closed, two = map(address_of, sys.argv[1:])
    config = host_config(two, ShardPolicy(queues=2), Settings())
    config = replace(config, hostnqn=_IDENTITY.hostnqn, hostid=_IDENTITY.hostid)
    try:
        replace(config, transport="rdma", responder_resources=0)
        own = ""
    except LocalProtocolError as error:
        own = str(error)
    emit(**connects(kv, closed), **queues(two, config), no_reads=own)


if __name__ == "__main__":
    main()
