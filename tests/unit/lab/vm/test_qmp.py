import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabric.errors import HostError
from fabric.lab.vm.qmp import monitor

GREETING: object = {"QMP": {"version": {}}}


@contextmanager
def peer(path: Path, *answers: object) -> Iterator[list[object]]:
    """Yields what a QEMU that gives these answers was asked."""
    asked: list[object] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def talk() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as stream:
                for answer in (GREETING, *answers):
                    if answer is not GREETING:
                        asked.append(json.loads(stream.readline()))
                    for message in answer if isinstance(answer, list) else [answer]:
                        stream.write(json.dumps(message).encode() + b"\n")
                    stream.flush()

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield asked
        finally:
            thread.join(10)


def test_answer_is_returned_and_events_before_it_are_dropped(tmp_path: Path) -> None:
    answers: tuple[object, ...] = {"return": {}}, [{"event": "STOP"}, {"return": {"status": "paused"}}]
    with peer(tmp_path / "qmp", *answers) as asked, monitor("host1", tmp_path / "qmp") as session:
        assert session.ask("query-status", {"x": 1}) == {"status": "paused"}
    assert asked == [{"execute": "qmp_capabilities"}, {"execute": "query-status", "arguments": {"x": 1}}]


def test_refusal_is_an_error_in_qemus_words(tmp_path: Path) -> None:
    with (
        peer(tmp_path / "qmp", {"return": {}}, {"error": {"class": "GenericError", "desc": "no such thing"}}),
        pytest.raises(HostError, match=r"host1: QEMU refused fly \(found no such thing"),
        monitor("host1", tmp_path / "qmp") as session,
    ):
        session.ask("fly")


def test_peer_that_hangs_up_is_an_error(tmp_path: Path) -> None:
    with (
        peer(tmp_path / "qmp", {"return": {}}),
        pytest.raises(HostError),
        monitor("host1", tmp_path / "qmp") as session,
    ):
        session.ask("query-status")


def test_nobody_listening_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no session with QEMU"), monitor("host1", tmp_path / "qmp"):
        pass


def test_socket_in_a_folder_with_a_long_path_is_reached(tmp_path: Path) -> None:
    short, long = tmp_path / "s", tmp_path / ("x" * 120)
    short.mkdir()
    with peer(short / "qmp", {"return": {}}):
        short.rename(long)
        with monitor("host1", long / "qmp"):
            pass
