"""A recorded run happens again from its trace, over every way; a trace that was changed is found out at its line."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.engine.client import Engine, Read, Settings, Write, open_engine
from fabric.engine.client.address import MemoryAddress, RdmaAddress
from fabric.engine.client.controllerlink import ControllerLink
from fabric.engine.client.opening import enter, host_config
from fabric.engine.client.work import Flush
from fabric.engine.nvmeof.errors import MediumError, PathError, QueueLostError, status_error
from fabric.engine.nvmeof.host import ConnectionId, Controller, QueueMemory
from fabric.engine.nvmeof.target import Subsystem, Target
from fabric.engine.nvmeof.wire.identify import IdentifyNamespace
from fabric.engine.nvmeof.wire.status import DNR, Status
from fabric.engine.queues import Path as Ports
from fabric.engine.trace import TraceError, replay
from fabric.engine.trace.coding import error_from, event_from, plain, plain_error
from fabric.engine.trace.recording import RecordedEngine, Recorder
from fabric.engine.trace.writer import TraceWriter
from fabric.engine.transport import base
from fabric.engine.transport.faults import Fault, FaultKind
from fabric.engine.transport.memory import MemoryTransport
from fabric.engine.transport.service import Service
from fabric.engine.transport.shape import Shape
from fabric.engine.transport.storage import RamStorage
from fabric.errors import EngineError, EnvironmentMissingError, LocalProtocolError, RemoteProtocolError, TransportError
from tests.unit.engine.client.rig import MIB, MS, POLICY, in_memory, reads, served, writes
from tests.unit.engine.trace.rig import Story

PATIENCE_NS = 20_000 * MS


def story(engine: Engine) -> None:
    """Writes, reads, a refused batch and a flush."""
    source = engine.allocate(MIB)
    source.memory[:] = bytes(range(256)) * (MIB // 256)
    futures = engine.submit(writes(engine, source))
    assert engine.wait(futures, PATIENCE_NS)
    with pytest.raises(LocalProtocolError):
        engine.submit([Read(1 << 40, (source.view(0, 4096),))])
    futures = engine.submit([*reads(engine, source), Flush()])
    engine.cancel(futures[0])
    assert engine.wait(futures, PATIENCE_NS)
    engine.settle(futures, PATIENCE_NS)


@pytest.mark.parametrize("way", ["memory", "tcp", "file"])
def test_a_run_happens_again_from_its_trace(way: str, tmp_path: Path) -> None:
    settings = Settings(trace=tmp_path / "trace", direct=False)
    (tmp_path / "disk").write_bytes(bytes(4 * MIB))
    with served() as target:
        url = {"memory": "memory://", "tcp": target.url, "file": (tmp_path / "disk").as_uri()}[way]
        with open_engine(url, policy=POLICY, settings=settings) as engine:
            story(engine)

    report = replay(tmp_path / "trace")

    assert str(report).startswith("same")
    assert report.lines == len((tmp_path / "trace").read_text().splitlines())
    assert report.calls > 5
    assert report.note == ""


def test_a_trace_holds_no_data_and_is_its_owners_alone(tmp_path: Path) -> None:
    engine, _ = in_memory(settings=Settings(trace=tmp_path / "trace"))
    with engine:
        buffer = engine.allocate(4096)
        buffer.memory[:] = b"secret!!" * 512
        engine.wait(engine.submit([Write(0, (buffer.view(),))]))

    text = (tmp_path / "trace").read_text()
    assert b"secret!!".hex() not in text
    assert "secret!!" not in text
    assert (tmp_path / "trace").stat().st_mode & 0o077 == 0


def test_steps_without_anything_to_do_are_not_recorded(tmp_path: Path) -> None:
    engine, _ = in_memory(settings=Settings(trace=tmp_path / "trace"))
    with engine:
        for _ in range(1000):
            engine.step()
    assert engine.step() == []

    assert (tmp_path / "trace").read_text().count('"step"') < 10


def test_an_engine_that_could_not_be_opened_is_replayed_to_its_error(tmp_path: Path) -> None:
    with served() as target:
        port = target.port
    settings = Settings(trace=tmp_path / "trace", open_ns=2_000 * MS)
    with pytest.raises(EngineError):
        open_engine(f"nvme+tcp://127.0.0.1:{port}/nqn.2026-11.io.fabricctl:none", settings=settings)

    report = replay(tmp_path / "trace")

    assert report.same
    assert report.calls == 1
    assert '"raised":{"error":"' in (tmp_path / "trace").read_text()


def test_a_lost_target_is_replayed(tmp_path: Path) -> None:
    settings = Settings(trace=tmp_path / "trace", command_ns=100 * MS, close_ns=0)
    with served(Shape(faults=(Fault(FaultKind.DROP),))) as target:
        engine = open_engine(target.url, policy=POLICY, settings=settings)
        with engine:
            buffer = engine.allocate(MIB)
            futures = engine.submit([Read(0, (buffer.view(),), deadline_ns=300 * MS)])
            assert engine.wait(futures, PATIENCE_NS)
            assert futures[0].error is not None

    assert replay(tmp_path / "trace").same
    assert '"held":' in (tmp_path / "trace").read_text()


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_the_trace_of_a_crash_is_replayed_to_its_cut(kept: float, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Story(path, 5).engine.close()
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])

    report = replay(path)

    assert report.same
    assert report.note
    assert report.lines == data[: int(len(data) * kept)].count(b"\n")


def test_a_changed_line_is_found(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Story(path, 5).engine.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    at = next(at for at, line in enumerate(lines) if line["k"] == "post" and line["posts"][0][2] and at > 40)
    lines[at]["posts"][0][3] += 1  # another slot
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    report = replay(path)

    assert (report.same, report.line) == (False, at + 1)
    assert report.expected != report.found
    assert f"differs at line {at + 1}" in str(report)


@pytest.mark.parametrize("kind", ["post", "connect", "end", "clock", "poll"])
def test_a_missing_line_is_found_there(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Story(path, 7).engine.close()
    lines = path.read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if json.loads(line)["k"] == kind)
    path.write_text("".join(lines[:at] + lines[at + 1 :]))

    report = replay(path)

    assert not report.same
    assert report.line is not None
    assert report.line >= at + 1


def test_a_full_trace_says_so_and_is_replayed_to_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "trace"
    Story(path, 3).engine.close()
    lines = path.read_text().splitlines()
    writer = TraceWriter(path, most_bytes=20_000)
    for line in lines:
        writer.write(json.loads(line))
    writer.close()

    assert path.stat().st_size <= 20_000
    assert "greatest size" in caplog.text
    report = replay(path)
    assert report.same
    assert "greatest size" in report.note


def test_a_disk_that_is_full_ends_the_trace_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    engine, _ = in_memory(settings=Settings(trace=Path("/dev/full")))
    with engine:
        story(engine)

    assert "nothing more is recorded" in caplog.text


def test_files_that_are_no_traces_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with pytest.raises(EnvironmentMissingError):
        replay(path)
    with pytest.raises(EnvironmentMissingError):
        in_memory(settings=Settings(trace=tmp_path / "none" / "trace"))
    Story(path, 3).engine.close()
    header, *rest = path.read_text().splitlines()
    for text, message in (
        ("", "no header"),
        ("junk\n", "no JSON"),
        ("[1]\n", "no event"),
        (header.replace('"schema":1', '"schema":99') + "\n", "another version"),
        (header.replace('"open_ns"', '"opened_ns"') + "\n", "cannot be replayed"),
        (header + '\n{"k":"call","op":"step"}\n', "before the engine was open"),
        (header + '\n{"k":"call","op":"hop"}\n', "before the engine was open"),
        ("\n".join([header, *rest[:-1]]) + '\nnoise\n{"k":"end","op":"close"}\n', "no JSON"),
    ):
        path.write_text(text)
        with pytest.raises(TraceError, match=message):
            replay(path)


def test_what_a_transport_refuses_is_refused_again(tmp_path: Path) -> None:
    engine, _ = in_memory(settings=Settings(trace=tmp_path / "trace"))
    with engine:
        with pytest.raises(LocalProtocolError, match="cannot be registered"):
            engine.register(memoryview(bytes(4096)))
        buffer = engine.allocate(4096)
        assert engine.wait(engine.submit([Read(0, (buffer.view(),))]))

    assert replay(tmp_path / "trace").same
    assert '"k":"refused"' in (tmp_path / "trace").read_text()


def test_nothing_is_left_open_when_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissingError, match="cannot be opened"):
        open_engine((tmp_path / "none").as_uri(), settings=Settings(trace=tmp_path / "trace"))

    assert (tmp_path / "trace").read_bytes() == b""


def test_a_run_over_keys_and_addresses_happens_again_as_over_rdma(tmp_path: Path) -> None:
    address, settings = RdmaAddress("192.0.2.1", nqn=MemoryAddress().nqn), Settings()
    recorder = Recorder(TraceWriter(tmp_path / "trace"), time.monotonic_ns)
    nqn = MemoryAddress().nqn
    target = Target(subsystems=[Subsystem(nqn, {1: IdentifyNamespace(8192, 9)})], transport="rdma")
    served_here = Service(target, RamStorage({(nqn, 1): 4 * MIB}))
    transport = recorder.transport(MemoryTransport(served_here, keyed=True))
    link = ControllerLink(Controller(host_config(address, POLICY, settings)), transport, 1, Ports("any", "192.0.2.1"))
    recorder.begin(address, POLICY, settings, link)
    with recorder.call("open"):
        news, fitted = enter(link, POLICY, settings, recorder.now_ns)
    with RecordedEngine(link, news, fitted, settings, recorder) as engine:
        story(engine)

    report = replay(tmp_path / "trace")

    assert report.same, str(report)
    assert '"transport":"rdma"' in (tmp_path / "trace").read_text()


def test_a_call_that_the_replay_does_not_know_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Story(path, 3).engine.close()
    lines = path.read_text().splitlines()
    at = next(
        at for at, line in enumerate(lines) if json.loads(line) | {"ns": 0} == {"k": "call", "op": "step", "ns": 0}
    )
    path.write_text("\n".join([*lines[:at], '{"k":"call","op":"hop"}', *lines[at + 1 :]]) + "\n")

    with pytest.raises(TraceError, match=f"{at + 2}: a call that is not known"):
        replay(path)


def test_another_process_replays_it(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Story(path, 11).engine.close()
    code = f"from pathlib import Path; from fabric.engine.trace import replay; print(replay(Path({str(path)!r})))"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.startswith("same")


@pytest.mark.parametrize(
    "event",
    [
        base.Connected(ConnectionId(1), b"\x01", QueueMemory(4096, 7, 8192)),
        base.Rejected(ConnectionId(1), b"no", stale=True),
        base.Sent(ConnectionId(2), 3),
        base.Received(ConnectionId(2), bytes(16), b"payload"),
        base.Done(ConnectionId(3), 4),
        base.Done(ConnectionId(3), 4, TransportError("gone", where="disk"), held=True),
        base.Released(ConnectionId(3), 4),
        base.Broken(ConnectionId(5), RemoteProtocolError("odd", expected="even", found="3", remedy="Ask.")),
        base.Disconnected(ConnectionId(5), "taken down"),
        base.DeviceRemoved("unplugged"),
    ],
)
def test_every_event_comes_back(event: base.Event) -> None:
    again = event_from(json.loads(json.dumps(plain(event))))

    assert type(again) is type(event)
    assert plain(again) == plain(event)


def test_errors_come_back_as_what_they_are() -> None:
    class StrangerError(QueueLostError):
        """Of a module that a replay does not know."""

    medium = status_error(Status.UNRECOVERED_READ_ERROR | DNR, where="queue 3")
    assert isinstance(medium, MediumError)
    for error, kind in (
        (medium, MediumError),
        (StrangerError("down"), QueueLostError),
        (status_error(0x370), PathError),
    ):
        again = error_from(json.loads(json.dumps(plain_error(error))))
        assert type(again) is kind
        assert str(again) == str(error)
    assert plain_error(ValueError("odd")) == {"error": "ValueError", "what": "odd"}
    with pytest.raises(TypeError):
        plain(object())
